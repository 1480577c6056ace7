"""Stock JavaScript exporters against a running server: `make test-peers`.

Needs Node and npm from the machine. The packages of package.json are installed into a temporary
folder, from wherever npm is set to look; nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.journeys.processes import Serving, environment, serving  # noqa: E402
from tests.peers.installing import NotInstalled, need, npm_install  # noqa: E402

EXAMPLE = HERE.parents[1] / "examples" / "existing_otel_node"
PROTOCOLS = ("grpc", "http-json", "http-protobuf")


def main() -> int:
    """Run every exporter with and without gzip; 0 when all was read back as sent."""
    with tempfile.TemporaryDirectory(prefix="hansard-peers-") as name:
        folder = Path(name)
        try:
            need("node", "npm")
            _install(folder, HERE / "package.json", HERE / "export.mjs")
            _install(folder / "example", *EXAMPLE.glob("*.*"))
        except NotInstalled as problem:
            sys.stderr.write(f"JavaScript exporters: {problem}\n")
            return 1
        with serving(folder / "data") as server:
            return 0 if all([*_checks(folder, server)]) else 1


def _checks(folder: Path, server: Serving) -> Iterator[bool]:
    """Yield for every check, after printing it, whether all was as it should be."""
    for protocol in PROTOCOLS:
        for compression in ("none", "gzip"):
            wrong = _check(folder, server, protocol=protocol, compression=compression)
            yield _told(f"{protocol:<14} {compression}", wrong)
    yield _told("ledger", _check_ledger(server))
    yield _told("examples, in Node", _check_example(folder / "example", server))


def _told(what: str, wrong: list[str]) -> bool:
    sys.stdout.write(f"{what:<20} {'; '.join(wrong) if wrong else 'ok'}\n")
    return not wrong


def _install(folder: Path, *files: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    npm_install(folder)


def _check(folder: Path, server: Serving, *, protocol: str, compression: str) -> list[str]:
    """Send with one exporter and return what was read back otherwise."""
    endpoint = f"http://{server.grpc}" if protocol == "grpc" else server.http
    ended = subprocess.run(
        ["node", "export.mjs", protocol],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(
            PATH=os.environ["PATH"],
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_COMPRESSION=compression,
        ),
        timeout=240,
        check=False,
    )
    if ended.returncode or ended.stderr:
        return [f"the exporter ended with {ended.returncode}: {ended.stderr[-500:]}"]
    sent = json.loads(ended.stdout)
    run = json.loads(server.get(f"/v1/runs/{sent['traceId']}"))
    steps = json.loads(server.get(f"/v1/runs/{sent['traceId']}/steps"))["items"]
    call = next(step for step in steps if step["role"] == "llm")
    body = json.loads(server.get(f"/v1/steps/{call['step_id']}"))
    return [
        *_differ("service", [f"node-{protocol}"], run["service_names"]),
        *_differ("agent", "peer", run["agent"]),
        *_differ("spans", sent["spans"], run["span_count"]),
        *_differ("errors", 1, run["error_count"]),
        *_differ("input tokens", sent["input"], run["tokens"]["input"]),
        *_differ("output tokens", sent["output"], run["tokens"]["output"]),
        *_differ("text", "grüß dich, 世界", body["call"]["input"][0]["parts"][0]["text"]),
        *_differ("roles", ["agent", "llm", "tool"], sorted(step["role"] for step in steps)),
    ]


def _check_ledger(server: Serving) -> list[str]:
    """Logs and metrics go with the two HTTP exporters, twice each."""
    ledger = json.loads(server.get("/v1/ledger"))
    return [
        *_differ("spans stored", 18, ledger["spans"]["stored"]),
        *_differ("logs stored", 8, ledger["logs"]["stored"]),
        *_differ("metric points stored", 4, ledger["metric_points"]["stored"]),
        *_differ("rejected", 0, sum(ledger[k]["rejected"] for k in ("spans", "logs"))),
    ]


def _check_example(folder: Path, server: Serving) -> list[str]:
    """Run the example as its first lines say: a name and an endpoint, and nothing of Hansard."""
    ended = subprocess.run(
        ["npm", "start", "--silent"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(
            PATH=os.environ["PATH"],
            OTEL_SERVICE_NAME="stock",
            OTEL_EXPORTER_OTLP_ENDPOINT=server.http,
        ),
        timeout=240,
        check=False,
    )
    if ended.returncode:
        return [f"it ended with {ended.returncode}: {ended.stderr[-500:]}"]
    runs = json.loads(server.get("/v1/runs?limit=500"))["items"]
    own = [run for run in runs if run["service_names"] == ["stock"]]
    steps = json.loads(server.get(f"/v1/runs/{own[0]['run_id']}/steps"))["items"] if own else []
    return [
        *_differ("output", "There are 3 left of: lamp.\n", ended.stdout),
        *_differ("agents", ["stock"], [run["agent"] for run in own]),
        *_differ("roles", ["agent", "tool"], [step["role"] for step in steps]),
    ]


def _differ(what: str, expected: Any, found: Any) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]


if __name__ == "__main__":
    raise SystemExit(main())

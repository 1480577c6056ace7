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
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.journeys.processes import Serving, environment, serving  # noqa: E402

EXAMPLE = HERE.parents[1] / "examples" / "existing_otel_node"
PROTOCOLS = ("grpc", "http-json", "http-protobuf")


def main() -> int:
    """Run every exporter with and without gzip; 0 when all was read back as sent."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        sys.stderr.write(f"these checks need {' and '.join(missing)}, which are not installed\n")
        return 1
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hansard-peers-") as name:
        folder = Path(name)
        _install(folder, HERE / "package.json", HERE / "export.mjs")
        with serving(folder / "data") as server:
            for protocol in PROTOCOLS:
                for compression in ("none", "gzip"):
                    wrong = _check(folder, server, protocol=protocol, compression=compression)
                    failures += bool(wrong)
                    verdict = "; ".join(wrong) if wrong else "ok"
                    sys.stdout.write(f"{protocol:<14} {compression:<5} {verdict}\n")
            wrong = _check_ledger(server)
            failures += bool(wrong)
            sys.stdout.write(f"{'ledger':<20} {'; '.join(wrong) if wrong else 'ok'}\n")
            wrong = _check_example(folder / "example", server)
            failures += bool(wrong)
            sys.stdout.write(f"{'examples, in Node':<20} {'; '.join(wrong) if wrong else 'ok'}\n")
    return min(failures, 1)


def _install(folder: Path, *files: Path) -> None:
    folder.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock",
         "--ignore-scripts"],
        cwd=folder,
        check=True,
    )  # fmt: skip


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
        timeout=60,
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
    _install(folder, *EXAMPLE.glob("*.*"))
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
        timeout=60,
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

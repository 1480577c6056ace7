"""The demo from outside: programs are started against a running server and judged by its API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.errors import HansardError
from hansard_web.app.server_file import Doors
from hansard_web.demo.agent import Report
from hansard_web.demo.model import serving_model

# Each program exports over the door named here: both are shown to work.
PROGRAMS: Final = {"support-desk": "grpc", "research": "http/protobuf", "night-jobs": "grpc"}
_EXPORT_DELAY_MS: Final = 200  # of the batch processor: runs are seen while they run
_SPOKEN: Final = "crack from top to bottom"  # by a customer, in one conversation of four runs
_CONVERSATION: Final = "order-a-1042"
_RUNS_OF_CONVERSATION: Final = 4


class DemoFailed(HansardError):
    """The demo's own runs did not come back as they were sent."""

    code = "demo_failed"


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as its program counted it, with the program's name and protocol."""

    program: str
    protocol: str
    report: Report


def run_programs(doors: Doors, *, on_run: Callable[[Seen], None]) -> list[Seen]:
    """Run the three programs at once and return their runs; `on_run` gets each as it ends."""
    with serving_model() as model_url, ThreadPoolExecutor(len(PROGRAMS)) as threads:

        def run(program: str) -> list[Seen]:
            seen = []
            for one in _run_program(program, doors, model_url=model_url):
                on_run(one)
                seen.append(one)
            return seen

        return [one for seen in threads.map(run, PROGRAMS) for one in seen]


def _run_program(program: str, doors: Doors, *, model_url: str) -> Iterator[Seen]:
    protocol = PROGRAMS[program]
    with subprocess.Popen(
        [sys.executable, "-m", "hansard_web.demo.programs", program, model_url],
        env=_environment(program, protocol, doors),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C is for the demo; its programs end by themselves in seconds
    ) as process:
        assert process.stdout is not None  # asked for above
        for line in process.stdout:
            yield Seen(program, protocol, Report(**json.loads(line)))
    if process.returncode:
        raise DemoFailed(f"the program {program} ended with {process.returncode}")


def _environment(program: str, protocol: str, doors: Doors) -> dict[str, str]:
    """Return what a user would set to send an instrumented program's spans here."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HANSARD_"))}
    return inherited | {
        "OTEL_SERVICE_NAME": program,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{doors.grpc}" if protocol == "grpc" else doors.http,
        "OTEL_BSP_SCHEDULE_DELAY": str(_EXPORT_DELAY_MS),
        "NO_PROXY": "127.0.0.1,localhost",  # a proxy of this machine has no part in this
    }


# ---- reading it back


def check(doors: Doors, runs: Sequence[Seen]) -> None:
    """Compare the store with what the programs counted; raises DemoFailed with every difference."""
    differences = [line for seen in runs for line in _differences(doors, seen)]
    differences += _expect(
        f"runs of {_CONVERSATION}",
        _RUNS_OF_CONVERSATION,
        len(_get(doors, "/v1/runs", conversation=_CONVERSATION)["items"]),
    )
    hits = _get(doors, "/v1/search", q=f'"{_SPOKEN}"')["items"]
    differences += _expect(f"search finds {_SPOKEN!r}", True, bool(hits))
    if differences:
        raise DemoFailed("read back otherwise than sent:\n  " + "\n  ".join(differences))


def _differences(doors: Doors, seen: Seen) -> list[str]:
    report = seen.report
    run = _get(doors, f"/v1/runs/{report.run_id}")
    tokens = run["tokens"] or {}
    found = {
        "name": run["name"],
        "agent": run["agent"],
        "status": run["status"],
        "service": run["service_names"],
        "conversation": run["conversation_id"],
        "model calls": run["model_calls"],
        "tool calls": run["tool_calls"],
        "tokens": {key: tokens.get(key) or 0 for key in report.tokens},
    }
    expected = {
        "name": f"invoke_agent {report.agent}",
        "agent": report.agent,
        "status": report.status,
        "service": [seen.program],
        "conversation": report.conversation_id,
        "model calls": report.model_calls,
        "tool calls": report.tool_calls,
        "tokens": report.tokens,
    }
    return [
        line
        for what, value in expected.items()
        for line in _expect(f"{report.agent} {report.run_id[:8]}: {what}", value, found[what])
    ]


def _expect(what: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]


def _get(doors: Doors, path: str, **query: str) -> Mapping[str, Any]:
    url = f"{doors.http}{path}?{urllib.parse.urlencode(query)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except OSError as error:  # urllib's errors are OSErrors
        raise DemoFailed(f"GET {path}: {error}") from None

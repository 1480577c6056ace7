"""Programs with the SDK in them, run as processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.processes import environment

# What every program does whatever becomes of its telemetry: one span with three below it.
AGENT = """
import sys
import hansard

hansard.init()
from opentelemetry import trace

tracer = trace.get_tracer("program")
with tracer.start_as_current_span("work"):
    for number in range(3):
        tracer.start_span(f"part {number}").end()
print("result 42")
sys.exit(7)
"""


@dataclass(frozen=True)
class Ended:
    """How a program ended, and how long it took from first to last."""

    status: int
    output: str
    errors: list[str]
    seconds: float


def settings(data: Path, endpoint: str, protocol: str = "http/protobuf") -> dict[str, str]:
    """Return the environment that points the SDK of a program somewhere."""
    return environment(
        HANSARD_DATA=str(data),
        HANSARD_ENDPOINT=endpoint,
        HANSARD_PROTOCOL=protocol,
        HANSARD_SERVICE_NAME="program",
        HANSARD_EXPORT_DELAY_MS="100",
        # Where something answers, a program of a test waits for it however slow the machine is.
        HANSARD_EXIT_TIMEOUT_MS="30000",
    )


def run(code: str, variables: dict[str, str], *, timeout_s: float = 240) -> Ended:
    """Run a program to its end."""
    return _run(["-c", code], variables, timeout_s)


def run_file(code: str, folder: Path, variables: dict[str, str], *arguments: str) -> Ended:
    """Run a program that is a file, as workers that are spawned need it, to its end."""
    path = folder / "program.py"
    path.write_text(code)
    return _run([str(path), *arguments], variables, 300)


def _run(arguments: list[str], variables: dict[str, str], timeout_s: float) -> Ended:
    started_s = time.monotonic()
    ended = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=variables,
        timeout=timeout_s,
    )
    seconds = time.monotonic() - started_s
    return Ended(ended.returncode, ended.stdout, ended.stderr.splitlines(), seconds)


def spooled(data: Path) -> list[str]:
    """Return the names of what waits in the spool, in order."""
    found = (data / "spool").glob("[0-9a-f]*/*-*.*")
    return sorted(path.name for path in found)

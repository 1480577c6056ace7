"""What a hook costs an agent: a new process for each event, beside Python that does nothing.

The bar is on the clock, and holds for a machine that does nothing else; the processor time beside
it says the same on a busy one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import processes
from bench.figures import Figure, below, percentile

_HOOK: Final = [str(Path(sys.executable).parent / "hansard"), "hook", "pre-tool-use"]
_PASS: Final = [sys.executable, "-c", "pass"]
_MOST_MS: Final = 150
_PAUSE_S: Final = 0.2  # for the call itself: what is left of a hook works on meanwhile
_COMMANDS: Final = ("git status", "git push --force", "rm -rf build && npm ci", "kubectl get pods")


def run(*, rounds: int = 60) -> list[Figure]:
    """Run each form so many times after a first one that is not counted."""
    with processes.folder() as data:
        down = _times_ms(_HOOK, rounds, data, HANSARD_ENDPOINT="http://127.0.0.1:9")
        with processes.hansard(data) as server:
            up = _times_ms(_HOOK, rounds, data, HANSARD_ENDPOINT=server.http)
        quiet = _times_ms(_HOOK, rounds, data, HANSARD_HOOK_RECORD="false")
        nothing = _times_ms(_PASS, rounds, data)
    figures: list[Figure] = []
    for name, (times, used) in (("no server", down), ("with a server", up), ("no record", quiet)):
        figures += [
            Figure(f"hook pre-tool-use, {name}: p50", percentile(times, 0.5), "ms"),
            below(f"hook pre-tool-use, {name}: p95", percentile(times, 0.95), "ms", bar=_MOST_MS),
            Figure(f"hook pre-tool-use, {name}: processor, p95", percentile(used, 0.95), "ms"),
        ]
    return [
        *figures,
        Figure("python -c pass: p50", percentile(nothing[0], 0.5), "ms"),
        Figure("python -c pass: p95", percentile(nothing[0], 0.95), "ms"),
        Figure("python -c pass: processor, p95", percentile(nothing[1], 0.95), "ms"),
        Figure("load of the machine, of the last minute", os.getloadavg()[0], ""),
    ]


def _times_ms(
    command: Sequence[str], rounds: int, data: Path, **more: str
) -> tuple[list[float], list[float]]:
    """Return the clock's and the processor's time of each process."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HANSARD_", "PYTHON"))}
    environment = own | {"HANSARD_DATA": str(data)} | more
    times, used = [], []
    for number in range(rounds + 1):
        event = json.dumps(
            {
                "session_id": "bench",
                "hook_event_name": "PreToolUse",
                "tool_name": "Bash",
                "tool_use_id": f"toolu_{number}",
                "tool_input": {"command": _COMMANDS[number % len(_COMMANDS)]},
            }
        ).encode()
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            process.stdin.write(event)
            process.stdin.close()
            process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        times.append((time.perf_counter() - began) * 1000)
        used.append((usage.ru_utime + usage.ru_stime) * 1000)
        time.sleep(_PAUSE_S)
    return times[1:], used[1:]  # the first one compiles what is not compiled yet

"""What a hook costs an agent: a new process for each event, beside Python that does nothing."""

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
    figures = []
    for name, times in (("no server", down), ("with a server", up), ("no record", quiet)):
        figures += [
            Figure(f"hook pre-tool-use, {name}: p50", percentile(times, 0.5), "ms"),
            below(f"hook pre-tool-use, {name}: p95", percentile(times, 0.95), "ms", bar=_MOST_MS),
        ]
    return [
        *figures,
        Figure("python -c pass: p50", percentile(nothing, 0.5), "ms"),
        Figure("python -c pass: p95", percentile(nothing, 0.95), "ms"),
    ]


def _times_ms(command: Sequence[str], rounds: int, data: Path, **more: str) -> list[float]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HANSARD_", "PYTHON"))}
    environment = own | {"HANSARD_DATA": str(data)} | more
    times = []
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
        subprocess.run(command, input=event, capture_output=True, env=environment, check=True)
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(_PAUSE_S)
    return times[1:]  # the first one compiles what is not compiled yet

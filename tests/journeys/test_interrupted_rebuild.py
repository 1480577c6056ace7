"""A rebuild that is killed: it is known, shown, and the next server finishes it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import RebuildRunningError
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import Ingesting, conversation, span, traces
from tests.journeys.processes import environment, hansard, hosting, serving

_KILLED = """
import os, signal, sys, threading
from pathlib import Path
from hansard_collector.derivation.rebuild import rebuild
from hansard_store.database.connections import DataFolder
from hansard_store.database.upkeep_slices import Pace

class Killing(threading.Event):
    pauses = 0
    def wait(self, timeout=None):
        self.pauses += 1
        if self.pauses >= int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return False

rebuild(DataFolder(Path(sys.argv[1])), pace=Pace(hold_s=0, pause_s=0, stop=Killing()))
"""


def fill(folder: Path) -> None:
    """Make a store with ten runs of three model calls each."""
    store = Ingesting(folder)
    for number in range(1, 11):
        calls = [
            span(
                one,
                trace_id=number.to_bytes(16),
                attributes={"input.value": conversation(one), "gen_ai.request.model": "gpt-4o"},
            )
            for one in (1, 2, 3)
        ]
        store.send(traces(calls))
    store.close()


def until_finished(url: str, get: Callable[[str], bytes], *, timeout_s: float = 60) -> str:
    """Return /health once no rebuild is unfinished."""
    deadline_s = time.monotonic() + timeout_s
    page = ""
    while time.monotonic() < deadline_s:
        page = get(url).decode()
        if "rebuild" not in page:
            break
    return page


@pytest.mark.parametrize("pauses", [1, 2, 9, 25])
def test_the_next_server_finishes_a_rebuild_that_was_killed(tmp_path: Path, pauses: int) -> None:
    fill(tmp_path)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), str(pauses)], env=environment(), timeout=240
    )
    assert killed.returncode == -signal.SIGKILL

    with serving(tmp_path, command="web", ports=["http"]) as web:  # which receives nothing
        assert "A rebuild is unfinished" in web.get("/health").decode()
        told = hansard("doctor", "--data", str(tmp_path)).stdout
        assert "unfinished: " in told
    with hosting(tmp_path) as server:
        page = until_finished("/health", server.get)

    assert "rebuild" not in page
    assert verify_store(DataFolder(tmp_path)).findings == []
    assert "unfinished" not in hansard("doctor", "--data", str(tmp_path)).stdout


def test_two_rebuilds_at_once_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    refused = []

    def try_another(done: int, total: int) -> None:
        with pytest.raises(RebuildRunningError):
            rebuild(DataFolder(tmp_path))
        refused.append(done)

    rebuild(DataFolder(tmp_path), progress=try_another)

    assert refused
    assert verify_store(DataFolder(tmp_path)).findings == []

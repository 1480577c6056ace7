"""What a gate adds to a call of a tool that reads: it runs at once, with an event on each side.

Both events are on disk before the call goes on, so the cost of this disk's fsync is measured beside
it, and how much of the rest is the store's and how much the gate's.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import apsw

import hansard
from bench import processes
from bench.figures import Figure, below, percentile
from hansard._backend import open_backend
from hansard._backend.http import HttpDecisions
from hansard._backend.protocol import Decisions
from hansard._config.settings import load_settings
from hansard._gate.arguments import Json
from hansard._gate.gate import Gate

_CALLS = 2_000
_WARM_UP = 100
_FSYNCS = 500


@hansard.tool(effect="read")
def look(what: str, limit: int = 10) -> str:
    """Do next to nothing, so that what is measured is the gate."""
    return what


class Nothing:
    """Keeps nothing: what is left is the gate's own work."""

    is_local = True

    def note(self, event: Json) -> None:
        return


def run() -> list[Figure]:
    """Time calls with and without a gate, and the disk."""
    with processes.folder() as data:
        settings = load_settings({"embedded": True, "data": data}, {})
        local = open_backend(settings).decisions
        embedded = _added_us(local)
        local.close()
        fsync, commit = _fsync_us(data), _commit_us(data)
    figures = [
        below("gate, embedded: added to a read, median", embedded[0] / 1e3, "ms", bar=0.2),
        Figure("gate, embedded, fastest tenth", embedded[1] / 1e3, "ms"),
        Figure("gate, embedded, p95", embedded[2] / 1e3, "ms"),
        Figure("this disk: write and fsync 4 KiB, median", fsync / 1e3, "ms"),
        Figure("this disk: SQLite commit in full, one row, median", commit / 1e3, "ms"),
        Figure("gate without a store, median", _added_us(Nothing())[0] / 1e3, "ms"),  # type: ignore[arg-type]
    ]
    with processes.folder() as data, processes.hansard(data) as server:
        there = HttpDecisions(load_settings({"endpoint": server.http, "data": data / "sdk"}, {}))
        wire = _added_us(there, calls=_CALLS // 4)
        there.close()
    return [
        *figures,
        below("gate, HTTP: added to a read, median", wire[0] / 1e3, "ms", bar=5),
        Figure("gate, HTTP, fastest tenth", wire[1] / 1e3, "ms"),
        Figure("gate, HTTP, p95", wire[2] / 1e3, "ms"),
    ]


def _added_us(decisions: Decisions, *, calls: int = _CALLS) -> tuple[float, float, float]:
    """Return median, fastest tenth and p95 of what a gate adds to a call."""
    with Gate(decisions=decisions):
        gated = _times_us(lambda: look("x"), calls)
    bare = median(_times_us(lambda: look("x"), calls))
    return median(gated) - bare, percentile(gated, 0.1) - bare, percentile(gated, 0.95) - bare


def _times_us(call: Callable[[], Any], calls: int) -> list[float]:
    for _ in range(_WARM_UP):
        call()
    times = []
    for _ in range(calls):
        began = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - began) / 1e3)
    return times


def _fsync_us(folder: Path) -> float:
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        page = os.urandom(4096)

        def write() -> None:
            os.pwrite(file.fileno(), page, 0)
            os.fdatasync(file.fileno())

        return median(_times_us(write, _FSYNCS))


def _commit_us(folder: Path) -> float:
    connection = apsw.Connection(str(folder / "plain.db"))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE one (number INTEGER)")
    try:
        return median(_times_us(lambda: connection.execute("INSERT INTO one VALUES (1)"), _FSYNCS))
    finally:
        connection.close()

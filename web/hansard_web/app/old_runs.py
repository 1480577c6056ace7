"""Keeping a store within its limits: what is too old or too much goes, pinned runs stay.

The command `hansard gc` does it once, a server with --keep or --max-disk does it every hour. Both
work in slices, so that ingest goes on. Every server marks memory that is past its time.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.background import Background
from hansard_compiler.errors import NotFoundError
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import disk_use, keep_reserve
from hansard_store.database.upkeep_slices import Pace
from hansard_store.maintenance.deletion import (
    delete_run,
    finish_deletions,
    oldest_runs,
    runs_without_news_since,
)
from hansard_store.maintenance.garbage import Collected, collect_garbage, give_back_pages
from hansard_store.runs.tombstones import Reason

_EVERY_S: Final = 3600.0
_FIRST_S: Final = 3.0  # after the first page of a server
_MARGIN: Final = 1.05  # deleted beyond the estimate, so that one round mostly suffices
_MOST_ROUNDS: Final = 20
_ALL: Final = (1 << 63) - 1

_log = logging.getLogger("hansard.janitor")

Progress = Callable[[str, int], None]  # what is done, and how much of it since the last time


@dataclass(frozen=True, slots=True)
class Limits:
    """What a store may hold; None is no limit."""

    keep_ns: int | None = None  # since a run's last news
    max_bytes: int | None = None

    @property
    def any(self) -> bool:
        return self.keep_ns is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What one pass did."""

    too_old: int  # runs
    too_much: int  # runs
    collected: Collected
    size_bytes: int  # of the store afterwards


def clean(
    folder: DataFolder,
    connection: apsw.Connection,
    limits: Limits,
    *,
    now_ns: int,
    pace: Pace | None = None,
    progress: Progress = lambda _what, _count: None,
) -> Cleaned:
    """Delete what is beyond the limits and remove what nothing uses any more.

    Raises StoppedError when the pace is stopped; what is done stays done.
    """
    pace = pace or Pace()
    finish_deletions(connection, pace=pace)
    too_old: Sequence[bytes] = ()
    if limits.keep_ns is not None:
        too_old = runs_without_news_since(connection, now_ns - limits.keep_ns)
        _delete(connection, too_old, reason="keep", pace=pace, progress=progress)
    collected = collect_garbage(folder, connection, pace=pace, progress=progress)
    give_back_pages(connection, pace=pace)
    too_much = 0
    for _ in range(_MOST_ROUNDS):
        surplus = _surplus(folder, connection, limits)
        if not surplus:
            break
        too_much += len(surplus)
        _delete(connection, surplus, reason="max_disk", pace=pace, progress=progress)
        collected = collect_garbage(folder, connection, pace=pace, progress=progress)
        give_back_pages(connection, pace=pace)
    keep_reserve(folder)
    return Cleaned(len(too_old), too_much, collected, disk_use(folder, connection).used_bytes)


def _surplus(folder: DataFolder, connection: apsw.Connection, limits: Limits) -> list[bytes]:
    """Return the oldest runs that must go for the store to fit, judged by their average size."""
    if limits.max_bytes is None:
        return []
    # Without the log beside the database: counting its passing changes would delete runs for what
    # the next checkpoint gives back.
    size = disk_use(folder, connection).used_bytes
    if size <= limits.max_bytes:
        return []
    share = (size - limits.max_bytes) / size * _MARGIN
    runs = oldest_runs(connection, limit=_ALL)
    return runs[: math.ceil(len(runs) * share)]


def _delete(
    connection: apsw.Connection,
    runs: Sequence[bytes],
    *,
    reason: Reason,
    pace: Pace,
    progress: Progress,
) -> None:
    for trace_id in runs:
        try:
            delete_run(connection, trace_id, reason=reason, pace=pace)
        except NotFoundError:
            continue  # somebody else deleted it meanwhile
        progress("runs", 1)


def janitor(folder: DataFolder, limits: Limits) -> Background:
    """Return what cleans every hour, in a thread of its own."""

    def look(stop: threading.Event) -> None:
        from hansard_store.memory.service import MemoryService  # with all that reads memory

        with closing(MemoryService(folder, origin="api")) as memory:
            memory.expire_due()
        if limits.any:
            with closing(open_for_maintenance(folder)) as connection:
                clean(folder, connection, limits, now_ns=time.time_ns(), pace=Pace(stop=stop))

    return Background(
        "hansard-janitor",
        look,
        every_s=_EVERY_S,
        first_s=_FIRST_S,
        log=_log,
        put_off="cleaning is put off",
    )

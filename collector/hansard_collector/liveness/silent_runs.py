"""Watching for runs that nobody is alive for any more: only time changes what they are.

Pages follow changes of the store. A process that was killed makes none, so this makes one for it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from hansard_collector.background import Background
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.ingest.liveness import silent_runs, touch_runs

_EVERY_S = 2.0
_log = logging.getLogger("hansard.silence")


class SilenceWatch:
    """Looks every two seconds, in a thread of its own; writes only when a run fell silent."""

    def __init__(self, folder: DataFolder, *, every_s: float = _EVERY_S) -> None:
        self._folder = folder
        self._since_ns = 0
        self._background = Background(
            "hansard-silence",
            self._look,
            every_s=every_s,
            log=_log,
            put_off="runs without a pulse are marked later",
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Watch for as long as the block lasts, for what falls silent in it."""
        self._since_ns = time.time_ns()
        with self._background.working():
            yield

    def _look(self, _: threading.Event) -> None:
        now_ns = time.time_ns()
        with contextlib.closing(open_for_maintenance(self._folder)) as connection:
            tell_silence(connection, since_ns=self._since_ns, now_ns=now_ns)
        self._since_ns = now_ns


def tell_silence(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> int:
    """Have runs looked at again that fell silent in this time; return how many they are."""
    silent = silent_runs(connection, since_ns=since_ns, now_ns=now_ns)
    if silent:
        with transaction(connection):
            touch_runs(connection, silent)
    return len(silent)

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

from hansard_store.database import DataFolder, open_for_maintenance, transaction
from hansard_store.errors import StoreError
from hansard_store.pulses import silent_runs, touch_runs

_EVERY_S = 2.0
_log = logging.getLogger("hansard.silence")


class SilenceWatch:
    """Looks every two seconds, in a thread of its own; writes only when a run fell silent."""

    def __init__(self, folder: DataFolder, *, every_s: float = _EVERY_S) -> None:
        self._folder = folder
        self._every_s = every_s
        self._since_ns = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hansard-silence", daemon=True)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Watch for as long as the block lasts, for what falls silent in it."""
        self._since_ns = time.time_ns()
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(open_for_maintenance(self._folder)) as connection:
            while not self._stop.wait(self._every_s):
                now_ns = time.time_ns()
                try:
                    tell_silence(connection, since_ns=self._since_ns, now_ns=now_ns)
                except (StoreError, apsw.Error) as error:
                    _log.warning("runs without a pulse are told of later: %s", error)
                    continue
                self._since_ns = now_ns


def tell_silence(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> int:
    """Have runs looked at again that fell silent in this time; return how many they are."""
    silent = silent_runs(connection, since_ns=since_ns, now_ns=now_ns)
    if silent:
        with transaction(connection):
            touch_runs(connection, silent)
    return len(silent)

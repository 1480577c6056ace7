"""Figures by hour, computed again beside a running server where runs of the hour changed."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from typing import Final

from hansard_collector.background import Background
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.figures.rollup import compute_hour, due_hours

_log = logging.getLogger("hansard.figures")
_EVERY_S: Final = 5.0
_FIRST_S: Final = 4.0  # after the first page of a server
# An hour with traffic is due again at once: it is computed at most so often, and where that takes
# long, in at most a twentieth of the time.
_LEAST_PAUSE_S: Final = 15.0
_MOST_SHARE: Final = 20


class FigureWork:
    """Computes due hours of one store, the newest first; called by one thread."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._next_s: dict[int, float] = {}  # hour -> when it is computed again, at the earliest

    def look(self, stop: threading.Event) -> None:
        """Compute the hours that are due and were not computed a moment ago."""
        now_s = time.monotonic()
        self._next_s = {hour: at for hour, at in self._next_s.items() if at > now_s}
        with closing(open_for_maintenance(self._folder)) as connection:
            for hour in due_hours(connection):
                if stop.is_set():
                    return
                if hour.start_ns in self._next_s:
                    continue
                began_s = time.monotonic()
                compute_hour(connection, hour)
                took_s = time.monotonic() - began_s
                pause_s = max(_LEAST_PAUSE_S, _MOST_SHARE * took_s)
                self._next_s[hour.start_ns] = time.monotonic() + pause_s


def figure_work(folder: DataFolder) -> Background:
    """Return what keeps figures current, in a thread of its own."""
    return Background(
        "hansard-figures",
        FigureWork(folder).look,
        every_s=_EVERY_S,
        first_s=_FIRST_S,
        log=_log,
        put_off="figures are computed later",
    )

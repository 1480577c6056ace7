"""Long work on the store in short transactions, so that ingest and approvals never wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import apsw

from hansard_store.database.transactions import transaction
from hansard_store.errors import StoppedError


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the write lock is held at a time, and left to others in between."""

    hold_s: float = 0.01
    pause_s: float = 0.01
    stop: threading.Event = field(default_factory=threading.Event)  # set by the caller to end it

    def rest(self) -> None:
        """Leave the lock to others; raises StoppedError when the work is to end."""
        if self.stop.wait(self.pause_s):
            raise StoppedError


def in_slices(connection: apsw.Connection, step: Callable[[], int], pace: Pace) -> int:
    """Run a step again and again until it has nothing to do; return how much it did.

    A step is some rows' work, well under `hold_s`, inside a transaction that it shares with the
    steps before it. Raises StoppedError between two transactions; what is done stays done.
    """
    total = 0
    while True:
        with transaction(connection):
            until = time.monotonic() + pace.hold_s
            while done := step():
                total += done
                if time.monotonic() > until:
                    break
        if not done:
            return total
        pace.rest()

"""Calls whose message does not come: each holds a worker, and perhaps much of a large message.

The library waits for a message for ever, and keeps what has come of it where Python cannot count
it. So a thread looks at the calls that are being received: one is given a time, a short one while
others wait for a worker, and when the process has grown too much only the few oldest go on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 0.25
_LARGE_AT_ONCE = 4  # messages that may go on when memory is short
_STATM = Path("/proc/self/statm")


@dataclass(slots=True, eq=False)
class Waiting:
    """A call whose message is not there yet."""

    cut: Callable[[], object]  # ends the call, from any thread
    began_s: float
    is_cut: bool = False


class StallWatch:
    """Ends calls whose message takes too long; its lock guards the calls and whether it ends.

    Touched by every worker of the receiver and by its own thread.
    """

    def __init__(
        self, *, workers: int, wait_s: float, busy_wait_s: float, max_growth_bytes: int
    ) -> None:
        self._workers = workers
        self._wait_s, self._busy_wait_s = wait_s, busy_wait_s
        self._max_growth_bytes = max_growth_bytes
        self._changed = threading.Condition()
        self._waiting: dict[Waiting, None] = {}  # in the order in which they began
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="otlp-grpc-stalls", daemon=True)
        self._first_bytes = 0

    def start(self) -> None:
        """Begin to watch; memory is compared with that of now."""
        self._first_bytes = resident_bytes()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a second call does nothing."""
        with self._changed:
            self._is_ended = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, cut: Callable[[], object]) -> Waiting:
        """A call waits for its message from now on; `end` must follow."""
        waiting = Waiting(cut, time.monotonic())
        with self._changed:
            self._waiting[waiting] = None
            if len(self._waiting) == 1:
                self._changed.notify()
        return waiting

    def end(self, waiting: Waiting) -> None:
        """The call has its message, or none will come."""
        with self._changed:
            del self._waiting[waiting]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_ended or self._waiting)
                if self._is_ended:
                    return
                self._changed.wait_for(lambda: self._is_ended, timeout=_TICK_S)
                stalled = self._stalled()
            for waiting in stalled:
                waiting.is_cut = True
                waiting.cut()

    def _stalled(self) -> list[Waiting]:
        """Return the calls that have had their time; under the lock."""
        now_s = time.monotonic()
        is_busy = len(self._waiting) >= self._workers // 2
        wait_s = self._busy_wait_s if is_busy else self._wait_s
        pending = [one for one in self._waiting if not one.is_cut]
        stalled = [one for one in pending if now_s - one.began_s >= wait_s]
        if resident_bytes() - self._first_bytes > self._max_growth_bytes:
            slow = [one for one in pending if now_s - one.began_s >= _TICK_S]
            stalled += [one for one in slow[_LARGE_AT_ONCE:] if one not in stalled]
        return stalled


def resident_bytes() -> int:
    """Return the memory of this process; 0 where the system does not tell."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")

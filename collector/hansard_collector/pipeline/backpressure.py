"""People before senders: ingest steps aside while somebody waits for a page.

One Python process runs one thread of Python at a time. Under full ingest a page that takes 20 ms by
itself took ten times that, because the pipeline wants the processor as much as the page does, and
never stops. So between two items it looks whether a person waits, and if so lets them go first, for
at most half of the time: ingest is slowed while people look, and never stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_MOST_S = 0.05  # of stepping aside at once


class Courtesy:
    """Counts who waits; `ask` and `release` from any thread, `give_way` from the pipeline's.

    The condition guards the count.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting = 0
        self._nobody_waits = threading.Condition()
        self._clock = clock
        self._works_until = 0.0

    def ask(self) -> None:
        """Somebody waits for an answer from now on."""
        with self._nobody_waits:
            self._waiting += 1

    def release(self) -> None:
        """The answer is given; to be called once for every `ask`."""
        with self._nobody_waits:
            self._waiting -= 1
            if not self._waiting:
                self._nobody_waits.notify_all()

    def give_way(self) -> float:
        """Wait while somebody waits, and return for how many seconds.

        Afterwards the pipeline works for as long as it has waited before it gives way again.
        """
        if not self._waiting:
            return 0.0
        began = self._clock()
        if began < self._works_until:
            return 0.0
        with self._nobody_waits:
            self._nobody_waits.wait_for(lambda: not self._waiting, timeout=_MOST_S)
        ended = self._clock()
        self._works_until = ended + (ended - began)
        return ended - began

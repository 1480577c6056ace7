"""Calls that wait for their message: each holds a worker, and perhaps much of a large message.

The library waits for a message for ever, and keeps what has come of it where Python cannot count
it: how large it will be is known when it is whole. It begins to receive when it is asked to. So
calls of senders that may send something large are let in a few at a time, and one at a time while
memory is short. A thread looks at those that are being received: one is given a time, a short one
while others wait for a worker, and when the process has grown too much only the few oldest go on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from hansard_collector.receivers.memory import give_back_free_pages, resident_bytes

_TICK_S = 0.25
_LARGE_AT_ONCE = 4  # messages that may go on when memory is short
_LARGE_BYTES = 4 << 20  # stock exporters send less, and receivers of others take no more
_KNOWN_SENDERS = 4096
# Of senders that are not known to send small messages:
_FRESH_AT_ONCE = 2  # begin to send at once; those of before are slow, or show in memory
_FRESH_S = 0.1
_SHORT_FRESH_S = 0.5  # the same while memory is short, for one at a time
_LINE = 32  # wait for that at most, which is half of the workers,
_LINE_OF_SENDER = 4  # and of one sender


@dataclass(slots=True, eq=False)
class Waiting:
    """A call whose message is not there yet."""

    cut: Callable[[], object]  # ends the call, from any thread
    sender: str
    is_small: bool  # the sender's last message was
    began_s: float
    is_cut: bool = False


class StallWatch:
    """Lets calls receive their message, and ends those whose message takes too long.

    The lock guards the calls, those that wait to be let in, and whether it ends. Touched by every
    worker of the receiver and by its own thread.
    """

    def __init__(
        self,
        *,
        workers: int,
        wait_s: float,
        busy_wait_s: float,
        short_bytes: int,
        max_growth_bytes: int,
    ) -> None:
        self._workers = workers
        self._wait_s, self._busy_wait_s = wait_s, busy_wait_s
        self._short_bytes, self._max_growth_bytes = short_bytes, max_growth_bytes
        self._changed = threading.Condition()
        self._waiting: dict[Waiting, None] = {}  # in the order in which they began
        self._line: dict[object, str] = {}  # of calls that are not let in yet, with their senders
        self._sizes: OrderedDict[str, int] = OrderedDict()  # of each sender's last message
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
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, cut: Callable[[], object], *, sender: str, within_s: float) -> Waiting | None:
        """Let a call receive its message from now on; `end` must follow.

        `sender` is the connection's address. None when too many others wait, or it could not be let
        in within the time.
        """
        with self._changed:
            is_small = self._sizes.get(sender, _LARGE_BYTES) < _LARGE_BYTES
            if not is_small and not self._wait_in_line(sender, time.monotonic() + within_s):
                return None
            waiting = Waiting(cut, sender, is_small, time.monotonic())
            self._waiting[waiting] = None
            self._changed.notify_all()
        return waiting

    def end(self, waiting: Waiting, *, size_bytes: int = 0) -> None:
        """The call has its message of this size, or none will come."""
        with self._changed:
            del self._waiting[waiting]
            if size_bytes:
                self._sizes[waiting.sender] = size_bytes
                self._sizes.move_to_end(waiting.sender)
                if len(self._sizes) > _KNOWN_SENDERS:
                    self._sizes.popitem(last=False)
            if self._line:
                self._changed.notify_all()
        if size_bytes >= _LARGE_BYTES:
            # What the library had of it lies in thousands of pieces, which its allocator keeps.
            give_back_free_pages()

    def _wait_in_line(self, sender: str, until_s: float) -> bool:
        """Wait for the calls before, and for room; under the lock."""
        places = list(self._line.values())
        if len(places) >= _LINE or places.count(sender) >= _LINE_OF_SENDER:
            return False
        place = object()
        self._line[place] = sender
        try:
            while self._next() is not place or not self._has_room():
                left_s = until_s - time.monotonic()
                if left_s <= 0 or self._is_ended:
                    return False
                self._changed.wait(min(left_s, _FRESH_S))
            return True
        finally:
            del self._line[place]

    def _next(self) -> object:
        """Return who is first: of the sender with the fewest calls on their way, the earliest."""
        busy = Counter(one.sender for one in self._waiting)
        return min(self._line, key=lambda place: busy[self._line[place]])

    def _has_room(self) -> bool:
        """Return whether one more may send a large message; under the lock."""
        is_short = self._growth() > self._short_bytes
        fresh_s = _SHORT_FRESH_S if is_short else _FRESH_S
        began_s = time.monotonic() - fresh_s
        fresh = sum(not one.is_small and one.began_s > began_s for one in self._waiting)
        return fresh < (1 if is_short else _FRESH_AT_ONCE)

    def _growth(self) -> int:
        return resident_bytes() - self._first_bytes

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
        is_busy = len(self._waiting) + len(self._line) >= self._workers // 2
        wait_s = self._busy_wait_s if is_busy else self._wait_s
        pending = [one for one in self._waiting if not one.is_cut]
        stalled = [one for one in pending if now_s - one.began_s >= wait_s]
        if self._growth() > self._max_growth_bytes:
            slow = [one for one in pending if now_s - one.began_s >= _TICK_S]
            stalled += [one for one in slow[_LARGE_AT_ONCE:] if one not in stalled]
        return stalled

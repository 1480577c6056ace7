"""Failed attempts to authenticate: each later one of an address is answered more slowly.

What is right is never held up, from whatever address: only answers to wrong attempts wait. Guessing
one after the other is slow by that; the secrets that `hansard tokens add` makes have 256 random
bits, and no speed helps against those.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

MOST_ADDRESSES: Final = 1024  # the one that failed longest ago is forgotten first
MOST_WAITING: Final = 16  # answers that wait at once; any more are sent at once
_FREE: Final = 3  # a mistyped token costs nobody time
_FIRST_S: Final = 0.1
_MOST_S: Final = 2.0
_FORGOTTEN_S: Final = 600.0


@dataclass(slots=True)
class _Address:
    failures: int
    last_s: float


@dataclass(frozen=True, slots=True)
class Failures:
    """What failed since it was last requested."""

    count: int
    addresses: int


class Attempts:
    """Counts failures by address, of HTTP and gRPC alike. The lock guards all fields."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._of: OrderedDict[str, _Address] = OrderedDict()
        self._waiting = 0
        self._new = 0
        self._new_addresses: set[str] = set()
        self.total = 0  # since the start of the server

    @contextmanager
    def failed(self, address: str) -> Iterator[float]:
        """Note a failure, and give for how many seconds its answer is to be held back.

        The answer has its place among those that wait until the block ends.
        """
        with self._lock:
            wait_s = self._note(address)
            self._waiting += wait_s > 0
        try:
            yield wait_s
        finally:
            with self._lock:
                self._waiting -= wait_s > 0

    def _note(self, address: str) -> float:
        now_s = self._clock_s()
        one = self._of.pop(address, None)
        if one is None or now_s - one.last_s > _FORGOTTEN_S:
            one = _Address(0, now_s)
        one.failures, one.last_s = one.failures + 1, now_s
        self._of[address] = one
        if len(self._of) > MOST_ADDRESSES:
            self._of.popitem(last=False)
        self.total += 1
        self._new += 1
        if len(self._new_addresses) < MOST_ADDRESSES:
            self._new_addresses.add(address)
        if one.failures <= _FREE or self._waiting >= MOST_WAITING:
            return 0.0
        return float(min(_MOST_S, _FIRST_S * 2 ** min(one.failures - _FREE - 1, 10)))

    def take(self) -> Failures | None:
        """Return what failed since the last call; None where nothing did."""
        with self._lock:
            if not self._new:
                return None
            found = Failures(self._new, len(self._new_addresses))
            self._new, self._new_addresses = 0, set()
            return found

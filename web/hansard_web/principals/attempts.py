"""Failed attempts to authenticate: each later one of an address is answered more slowly.

What is right is never held up, from whatever address: only answers to wrong attempts wait. Guessing
one after the other is slow by that; the secrets that `hansard tokens add` makes have 256 random
bits, and no speed helps against those.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MOST_ADDRESSES: Final = 1024  # the one that failed longest ago is forgotten first
MOST_WAITING: Final = 16  # answers that wait at once; any more are given at once
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
    """What failed since it was last asked for."""

    count: int
    addresses: int


class Attempts:
    """Counts failures by address. The lock guards all fields; any thread may report one."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._of: OrderedDict[str, _Address] = OrderedDict()
        self._waiting = 0
        self._new = 0
        self._new_addresses: set[str] = set()
        self.total = 0  # since the start of the server

    def failed(self, address: str) -> float:
        """Note a failure, and return for how many seconds its answer is to be held back."""
        now_s = self._clock_s()
        with self._lock:
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

    def waits(self, change: int) -> None:
        """Note that an answer begins to wait (1), or has waited (-1)."""
        with self._lock:
            self._waiting += change

    def take(self) -> Failures | None:
        """Return what failed since the last call; None where nothing did."""
        with self._lock:
            if not self._new:
                return None
            found = Failures(self._new, len(self._new_addresses))
            self._new, self._new_addresses = 0, set()
            return found

"""Ids that Hansard makes: UUIDs of version 7 (RFC 9562), which sort by the time they were made.

Their first 12 hex digits are the time in milliseconds, so ids of one minute begin alike: the last
digits tell them apart, and are what people are shown.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Final

_SHORT_DIGITS: Final = 8
_MS_BITS, _COUNTER_BITS, _RANDOM_BITS = 48, 12, 62
_VERSION, _VARIANT = 7, 0b10


class _Clock:
    """Milliseconds and a counter that never go back in one process; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _last
        self._last = 0

    def next(self) -> int:
        """Return milliseconds and counter as one number above every earlier one."""
        now = (time.time_ns() // 1_000_000) << _COUNTER_BITS
        with self._lock:
            self._last = max(now | secrets.randbits(_COUNTER_BITS - 1), self._last + 1)
            return self._last

    def forked(self) -> None:
        """Begin with a new lock in a child process: its parent's may be held."""
        self._lock = threading.Lock()


_clock = _Clock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.forked)


def new_id() -> bytes:
    """Return a UUIDv7 of 16 bytes, above every one that this process made before."""
    at = _clock.next()
    ms, counter = at >> _COUNTER_BITS, at & ((1 << _COUNTER_BITS) - 1)
    number = ms << (128 - _MS_BITS) | _VERSION << 76 | counter << 64
    return (number | _VARIANT << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)).to_bytes(16)


def short_id(whole: str) -> str:
    """Return what people are shown of an id: its last eight hex digits."""
    return whole[-_SHORT_DIGITS:]

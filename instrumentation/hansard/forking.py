"""Forks and the imports of our threads, kept apart.

A module that one thread is importing while another forks stays locked in the child for good, and
whoever imports it there hangs: the program itself, where it is a module of Python's own. So a fork
waits for such an import, and an import for a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LONGEST_S: Final = 5.0  # that a fork waits; what sends is imported in half a second
# Held by the thread of ours that imports, or by the one that forks.
_lock = threading.RLock()
_fork = threading.local()


@contextmanager
def apart_from_forks() -> Iterator[None]:
    """Let no process be forked from here while the block runs."""
    with _lock:
        yield


def _before() -> None:
    _fork.is_held = _lock.acquire(timeout=_LONGEST_S)


def _after() -> None:
    if getattr(_fork, "is_held", False):
        _lock.release()
    _fork.is_held = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)

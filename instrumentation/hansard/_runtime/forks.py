"""Forks never overlap with what the SDK's threads must not do at that moment.

A module that one thread is importing while another forks stays locked in the child for good, and
an import of it there hangs: the program's own, where it is a module of Python's own. A fork
beside a call of gRPC makes gRPC leave out its preparations for forks ("skipping fork() handlers"),
and then one child in ten ended with SIGSEGV. So a fork waits for such an import or call, and they
for a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

_LONGEST_S: Final = 5.0  # that a fork waits; what sends is imported in half a second
_PATIENCE_S: Final = 0.25  # before it ends a call: an answer takes less
# Each is held by a thread of ours that does such a thing, or by the thread that forks. They are
# two because the disk, which needs imports, is where spans go while a call hangs.
_imports = threading.RLock()
_calls = threading.RLock()
_hang_ups: list[Callable[[], None]] = []  # ends the call that is under way
_fork = threading.local()


def apart_from_forks() -> AbstractContextManager[bool]:
    """Let no process be forked from here while the block imports something."""
    return _imports


@contextmanager
def call_apart_from_forks(hang_up: Callable[[], None]) -> Iterator[None]:
    """Let no process be forked from here while the block calls the collector over gRPC.

    `hang_up` ends the call, on the thread that forks, when that one has waited long enough.
    """
    with _calls:
        _hang_ups.append(hang_up)
        try:
            yield
        finally:
            _hang_ups.remove(hang_up)


def _before() -> None:
    held = [_imports] if _imports.acquire(timeout=_LONGEST_S) else []
    if _calls.acquire(timeout=_PATIENCE_S) or _hung_up():
        held.append(_calls)
    _fork.held = held


def _hung_up() -> bool:
    for hang_up in tuple(_hang_ups):
        hang_up()
    return _calls.acquire(timeout=_LONGEST_S)


def _after() -> None:
    for lock in getattr(_fork, "held", ()):
        lock.release()
    _fork.held = []


def _after_in_child() -> None:
    global _calls
    _after()
    _calls = threading.RLock()  # of a call that went on, its thread is not here to let go
    _hang_ups.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)

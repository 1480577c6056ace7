"""Killing a write: done in a child of a fork, so that the one who looks afterwards lives on.

For programs of one thread, not for tests beside each other: a lock that another thread holds while
a process forks stays locked in the child.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def is_killed(act: Callable[[], object]) -> bool:
    """Return whether a child that acts is killed by SIGKILL; False when it came to its end."""
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError("the write failed by itself")
    return False

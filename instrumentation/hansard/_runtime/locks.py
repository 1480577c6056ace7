"""A lock on a folder that its process holds as long as it lives, kill -9 included."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = "lock"

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FolderLock:
    """A held lock; the operating system lets go of it when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have it. Called in the child of a fork it closes the child's handle only."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def try_lock(folder: Path) -> FolderLock | None:
    """Return the folder's lock, None while another process holds it or the folder was removed.

    Raises OSError where the folder cannot be used at all.
    """
    try:
        descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        _try_lock(descriptor)
        # Its last holder may have removed the folder since it was opened here.
        if os.path.samestat(os.fstat(descriptor), os.stat(folder / _FILE)):
            return FolderLock(descriptor)
    except OSError:
        pass
    os.close(descriptor)
    return None


@contextmanager
def hold_lock(folder: Path, busy: Callable[[], Exception]) -> Iterator[None]:
    """Hold the folder's lock in this block; raises `busy()` while another process holds it.

    Makes the folder, for its owner alone, where it is missing. Raises OSError.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = try_lock(folder)
    if lock is None:
        raise busy()
    try:
        yield
    finally:
        lock.release()


def is_lock(path: Path) -> bool:
    """Return whether a file of a folder is its lock."""
    return path.name == _FILE

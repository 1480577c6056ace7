"""Who makes a replay, by something that ends with it however it ends: a lock that it holds.

The number of a process is given again to later ones, in containers nearly always to the next. A
lock is let go by the operating system when its process ends, so that is asked who is there.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from typing import Final

from hansard._runtime.locks import FolderLock, try_lock
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.private_folders import make_private

_NAME: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Holder:
    """One maker of replays. It is known to others from the first `hold` until `release`."""

    def __init__(self, folder: DataFolder) -> None:
        self._name = os.urandom(8).hex()
        self._place = folder.replaying / self._name
        self._lock: FolderLock | None = None

    def hold(self) -> str:
        """Return the name of this maker, which others find held from now on."""
        if self._lock is None:
            make_private(self._place)
            self._lock = try_lock(self._place)
        return self._name

    def release(self) -> None:
        """Let go: nothing is made any more."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self._place, ignore_errors=True)
            lock.release()


def is_held(folder: DataFolder, name: str) -> bool:
    """Whether a maker is there; what one that is gone left behind is removed."""
    if not _NAME.fullmatch(name):
        return False
    place = folder.replaying / name
    try:
        lock = try_lock(place)
    except OSError:
        return True  # there, and nobody here can look
    if lock is None:
        return place.exists()
    with suppress(OSError):
        shutil.rmtree(place)
    lock.release()
    return False

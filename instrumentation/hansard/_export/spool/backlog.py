"""What of this process waits on disk: in order, within a budget that the whole spool shares."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from pathlib import Path
from typing import Final

from hansard._export.dropped import Loss, Losses, Reason
from hansard._export.spool.files import (
    Kind,
    SpoolFile,
    SpoolFolder,
    abandoned,
    files_of,
    process_folders,
    refused_files,
    remove,
)
from hansard.errors import SpoolError

_LOOK_S: Final = 30.0  # how long the size of what other processes left is believed


class Backlog:
    """The spool files of this process; its folder is made with the first one.

    The lock guards all fields: the program's exit, the sender and the keeper thread write.
    """

    def __init__(self, root: Path, *, max_bytes: int, losses: Losses) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._losses = losses
        self._lock = threading.RLock()
        self._folder: SpoolFolder | None = None
        self._files: deque[SpoolFile] = deque()
        self._own_bytes = 0
        self._other_bytes = 0
        self._looked_s = -_LOOK_S
        self._sending: SpoolFile | None = None
        self._is_left = False

    def __len__(self) -> int:
        return len(self._files)

    def count(self, signal: str) -> int:
        """Return how many items of a signal wait."""
        with self._lock:
            return sum(file.lost_items for file in self._files if file.kind.signal == signal)

    def add(self, kind: Kind, data: bytes, *, items: int) -> SpoolFile:
        """Write a batch behind all others; raises SpoolError, and then nothing is there.

        Where the budget is used up, the oldest goes: what others left first, then our own.
        """
        with self._lock:
            if self._is_left:
                raise SpoolError("the program ends")
            self._make_room(len(data))
            if self._folder is None:
                self._folder = SpoolFolder.make(self._root)
            file = self._folder.add(kind, data, items=items)
            self._files.append(file)
            self._own_bytes += file.disk_bytes
            return file

    def first(self) -> SpoolFile | None:
        """Return the oldest batch, which is not dropped until `release` says so."""
        with self._lock:
            self._sending = self._files[0] if self._files else None
            return self._sending

    def release(self) -> None:
        """The batch that was being sent stays where it is."""
        with self._lock:
            self._sending = None

    def arrived(self, file: SpoolFile) -> None:
        """Forget a batch that the collector has."""
        with self._lock:
            self._forget(file)
            remove(file)

    def give_up(self, file: SpoolFile, reason: Reason) -> None:
        """Count a batch that will never arrive, and remove it."""
        with self._lock:
            self._forget(file)
            self.lose(file.kind.signal, reason, file.lost_items)
            remove(file)

    def refuse(self, kind: Kind, items: int, data: bytes) -> None:
        """Count what the collector will never take, and keep it for people to look at."""
        with self._lock:
            self.lose(kind.signal, Reason.REFUSED, items)
            with contextlib.suppress(SpoolError):
                if self._is_left:
                    return
                self._make_room(len(data))
                if self._folder is None:
                    self._folder = SpoolFolder.make(self._root)
                self._folder.set_aside(kind, data, items=items)

    def lose(self, signal: str, reason: Reason, items: int) -> None:
        """Count what never was on disk, or is no more."""
        with self._lock:
            self._losses.add(signal, reason, items)

    def unreported(self) -> list[Loss]:
        """Return the counts that the collector does not know."""
        with self._lock:
            return self._losses.unreported()

    def note_reported(self, losses: list[Loss]) -> None:
        """The collector has these counts."""
        with self._lock:
            self._losses.note_reported(losses)
            if self._folder is not None:
                self.save_losses()

    def save_losses(self) -> None:
        """Write the counts down, where anything can be written."""
        with self._lock, contextlib.suppress(OSError, SpoolError):
            if self._folder is None:
                if not self._losses.unreported():
                    return
                self._folder = SpoolFolder.make(self._root)
            self._losses.save(self._folder.path)

    def leave(self) -> None:
        """Let the next start have what is left."""
        with self._lock:
            self.save_losses()
            if self._folder is not None:
                self._folder.leave()
            self._folder = None
            self._files.clear()
            self._is_left = True

    def forget(self) -> None:
        """In the child of a fork: all of it is the parent's."""
        if self._folder is not None:
            self._folder.forget()

    def _forget(self, file: SpoolFile) -> None:
        with contextlib.suppress(ValueError):
            self._files.remove(file)
            self._own_bytes -= file.disk_bytes
        if self._sending == file:
            self._sending = None

    def _make_room(self, size_bytes: int) -> None:
        """Drop the oldest until this much more fits."""
        if size_bytes > self._max_bytes:
            raise SpoolError(
                f"a batch of {size_bytes} bytes is more than the spool may hold"
                f" (spool_max_bytes={self._max_bytes})"
            )
        now_s = time.monotonic()
        if now_s - self._looked_s > _LOOK_S:
            self._looked_s = now_s
            self._other_bytes = self._size_of_others()
        need_bytes = self._own_bytes + self._other_bytes + size_bytes - self._max_bytes
        if need_bytes > 0 and self._other_bytes:
            freed = self._drop_of_others(need_bytes)
            self._other_bytes = max(self._other_bytes - freed, 0)
            need_bytes -= freed
        while need_bytes > 0 and (oldest := self._oldest()) is not None:
            need_bytes -= oldest.disk_bytes
            self._forget(oldest)
            self._losses.add(oldest.kind.signal, Reason.SPOOL_FULL, oldest.lost_items)
            remove(oldest)

    def _oldest(self) -> SpoolFile | None:
        return next((file for file in self._files if file != self._sending), None)

    def _size_of_others(self) -> int:
        own = self._folder.path if self._folder is not None else None
        files = refused_files(self._root)
        for path in process_folders(self._root):
            if path != own:
                files += files_of(path)
        return sum(file.disk_bytes for file in files)

    def _drop_of_others(self, need_bytes: int) -> int:
        """Remove what was set aside, then what dead processes left; return how much it was."""
        freed = 0
        for file in refused_files(self._root):  # lost already, and counted
            if freed >= need_bytes:
                return freed
            freed += file.disk_bytes
            remove(file)
        for folder in abandoned(self._root):
            for file in folder.files():
                if freed >= need_bytes:
                    break
                freed += file.disk_bytes
                self._losses.add(file.kind.signal, Reason.SPOOL_FULL, file.lost_items)
                remove(file)
            folder.leave()
        return freed

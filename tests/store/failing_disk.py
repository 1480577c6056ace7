"""A disk that fails when it is told to: a VFS of SQLite under all connections of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class FailingDisk(apsw.VFS):
    """The default VFS, of which writes and reads can be made to fail."""

    NAME = "failing-disk"

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        super().__init__(self.NAME, self.base)
        self.is_full = False  # writing fails, as on a disk without room
        self.is_gone = False  # nothing can be read or written

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(
        self, disk: FailingDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._disk.is_gone:
            raise apsw.IOError("disk I/O error")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._disk.is_gone:
            raise apsw.IOError("disk I/O error")
        if self._disk.is_full:
            # SQLite undoes the statement alone; what undoes the transaction finds the disk gone.
            self._disk.is_gone = True
            raise apsw.FullError("database or disk is full")
        super().xWrite(data, offset)


@contextmanager
def failing_disk() -> Iterator[FailingDisk]:
    """Put the disk under every connection that is opened in the block."""
    before = apsw.vfs_names()[0]
    disk = FailingDisk()
    apsw.set_default_vfs(disk.NAME)
    try:
        yield disk
    finally:
        apsw.set_default_vfs(before)
        disk.unregister()

"""How much room a store takes, and how much there is."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from hansard_store.errors import NoSpaceError, StoreBusyError

if TYPE_CHECKING:  # which looks for room itself before it migrates
    from hansard_store.database.data_folder import DataFolder

_SPARE_BYTES = 16 * 1024 * 1024  # left free by whatever is written in bulk
# Ingest leaves so much: reading, deciding, deleting and collecting go on when it has to stop.
_KEPT_FREE_BYTES = 16 * 1024 * 1024
# A file that is given up when others have filled the disk to the last byte.
_RESERVE_BYTES = 8 * 1024 * 1024  # two of the logs below
# Of a disk that is smaller than four of these, a quarter each: or nothing were left for the store.
_SMALL_SHARE = 4
# With less free than this the log is kept short: taking it in needs as much room again.
SCARCE_BYTES = 256 * 1024 * 1024
RESERVE = "reserve"  # in the data folder


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes that a store takes; `free_bytes` of the database are given to the next rows."""

    database_bytes: int
    free_bytes: int
    log_bytes: int  # write-ahead
    blob_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.database_bytes + self.log_bytes + self.blob_bytes

    @property
    def used_bytes(self) -> int:
        """What deleting and collecting would make less; the rest is free already."""
        return self.database_bytes - self.free_bytes + self.blob_bytes


_PAGES = """
SELECT page_count * page_size, freelist_count * page_size
FROM pragma_page_count, pragma_page_size, pragma_freelist_count
"""


def disk_use(folder: DataFolder, connection: apsw.Connection) -> DiskUse:
    """Measure a store; costs a look at every blob's size."""
    database, free = connection.execute(_PAGES).get
    log = folder.database.with_name(folder.database.name + "-wal")
    return DiskUse(
        database_bytes=database,
        free_bytes=free,
        log_bytes=log.stat().st_size if log.exists() else 0,
        blob_bytes=folder_bytes(folder.blobs),
    )


def free_bytes(folder: DataFolder) -> int:
    """Return what is free on the disk of a store once its write-ahead log is taken in."""
    found = os.statvfs(folder.path)
    try:
        log = folder.database.with_name(folder.database.name + "-wal").stat().st_size
    except FileNotFoundError:
        log = 0
    return found.f_bavail * found.f_frsize - log


def kept_free_bytes(folder: DataFolder) -> int:
    """Return how much of the disk of a store ingest leaves: 16 MiB, or a quarter of the disk."""
    return min(_KEPT_FREE_BYTES, _disk_bytes(folder) // _SMALL_SHARE)


def reserve_bytes(folder: DataFolder) -> int:
    """Return how large the reserve of a store is: 8 MiB, or a quarter of the disk."""
    return min(_RESERVE_BYTES, _disk_bytes(folder) // _SMALL_SHARE)


def _disk_bytes(folder: DataFolder) -> int:
    found = os.statvfs(folder.path)
    return found.f_blocks * found.f_frsize


def is_scarce(folder: DataFolder) -> bool:
    """Whether so little is free that no more should be taken than is needed."""
    return free_bytes(folder) < SCARCE_BYTES


def need_room_for_ingest(folder: DataFolder) -> None:
    """Raise StoreBusyError when ingest would take what is reserved for everything else."""
    free, reserved = free_bytes(folder), kept_free_bytes(folder)
    if free < reserved:
        raise StoreBusyError(
            f"the disk is nearly full: {max(free, 0) >> 20} MiB are free, and "
            f"{reserved >> 20} MiB are kept for reading, deciding and deleting"
        )


def keep_reserve(folder: DataFolder) -> None:
    """Make the reserve where there is room for it; a disk that refuses goes without."""
    path = folder.path / RESERVE
    with suppress(OSError):
        size = reserve_bytes(folder)
        if path.exists() or free_bytes(folder) < kept_free_bytes(folder) + size:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _allocate(descriptor, size)
        except OSError:
            path.unlink()
        finally:
            os.close(descriptor)


def give_up_reserve(folder: DataFolder) -> bool:
    """Remove the reserve; False when there is none."""
    try:
        (folder.path / RESERVE).unlink()
    except OSError:
        return False
    return True


def _allocate(descriptor: int, size_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size_bytes)
    else:
        os.write(descriptor, bytes(size_bytes))


def folder_bytes(path: Path) -> int:
    """Return the sum of the sizes of all files below a folder; 0 when there is none."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk: a rename survives a power cut after it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def need_space(what: str, where: Path, *, size_bytes: int) -> None:
    """Raise NoSpaceError when the disk of a folder, made or not, has no room for so much."""
    folder = where
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < size_bytes + _SPARE_BYTES:
        raise NoSpaceError(
            what, needed_bytes=size_bytes + _SPARE_BYTES, free_bytes=free, where=str(where)
        )

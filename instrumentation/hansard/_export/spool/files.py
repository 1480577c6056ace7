"""What waits on disk for the collector: one folder a process, one file a batch, oldest first.

    spool/<process>/lock            held while the process lives
    spool/<process>/000001-12.traces    12 spans, an OTLP ExportTraceServiceRequest
    spool/<process>/000002-1.logs       an ExportLogsServiceRequest
    spool/<process>/000003-2.opens      spans that had not ended yet
    spool/<process>/losses.json     what was lost and not told to the collector yet
    spool/refused/…                 what the collector will not take, kept for people to look at

A file is written under another name and renamed: it is whole, or not there, however the process
ends. It is not fsynced: a power cut may cost the last seconds, and a torn file is counted.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from hansard._export.dropped import FILE as LOSSES_FILE
from hansard._runtime.data_folder import make_folder
from hansard._runtime.locks import FolderLock, is_lock, try_lock
from hansard.errors import SpoolError

FOLDER: Final = "spool"
REFUSED: Final = "refused"
_BLOCK: Final = 4096  # what a small file takes on disk
_NAME: Final = re.compile(r"(?:[0-9a-f]{32}\.)?(\d+)-(\d+)\.(traces|logs|opens)")
_PROCESS: Final = re.compile(r"[0-9a-f]{32}")


class Kind(StrEnum):
    """What is in a file."""

    TRACES = "traces"
    LOGS = "logs"
    OPENS = "opens"

    @property
    def signal(self) -> str:
        """What losses of it are counted as; of open spans nothing is lost, they end later."""
        return "logs" if self is Kind.LOGS else "spans"


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """One batch on disk."""

    path: Path
    number: int
    items: int
    kind: Kind
    size_bytes: int

    @property
    def lost_items(self) -> int:
        """How many are lost when it is dropped."""
        return 0 if self.kind is Kind.OPENS else self.items

    @property
    def disk_bytes(self) -> int:
        return -(-self.size_bytes // _BLOCK) * _BLOCK

    def read(self) -> bytes:
        """Return its bytes; raises SpoolError."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise SpoolError(f"cannot read {self.path}: {error.strerror}") from error


class SpoolFolder:
    """The folder of one process, of this one or of one that is gone; its lock is held."""

    def __init__(self, path: Path, lock: FolderLock) -> None:
        self.path = path
        self._lock = lock
        self._last = max((file.number for file in self.files()), default=0)

    @classmethod
    def make(cls, root: Path) -> SpoolFolder:
        """Make a folder for this process; raises SpoolError where nothing can be written."""
        name = secrets.token_hex(16)
        made = root / f".{name}"
        try:
            make_folder(root)
            if root.stat().st_mode & 0o077:  # of an earlier version
                root.chmod(0o700)
            made.mkdir(mode=0o700)
            lock = try_lock(made)
            if lock is None:
                raise SpoolError(f"cannot lock {made}")
            # Locked before it has a name that others look for.
            made.rename(root / name)
        except OSError as error:
            raise SpoolError(f"cannot write to {root}: {error.strerror}") from error
        return cls(root / name, lock)

    def files(self) -> list[SpoolFile]:
        """Return what is in it, the oldest first."""
        return sorted(_files_in(self.path), key=lambda file: file.number)

    def add(self, kind: Kind, data: bytes, *, items: int) -> SpoolFile:
        """Write a batch behind all others; raises SpoolError, and then nothing is there."""
        number = self._last + 1
        path = self.path / f"{number:06}-{items}.{kind}"
        beside = self.path / f".{number:06}"
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            beside.rename(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise SpoolError(f"cannot write to {self.path}: {error.strerror}") from error
        self._last = number
        return SpoolFile(path, number, items, kind, len(data))

    def set_aside(self, kind: Kind, data: bytes, *, items: int) -> None:
        """Keep what the collector will not take where nobody sends it again by itself."""
        aside = self.path.parent / REFUSED
        with contextlib.suppress(OSError, SpoolError):
            aside.mkdir(mode=0o700, exist_ok=True)
            file = self.add(kind, data, items=items)
            file.path.rename(aside / f"{self.path.name}.{file.path.name}")

    def leave(self) -> None:
        """Let go of it; an empty one is removed."""
        with contextlib.suppress(OSError):
            if all(is_lock(path) or path.name.startswith(".") for path in self.path.iterdir()):
                for path in list(self.path.iterdir()):
                    path.unlink()
                self.path.rmdir()
        self._lock.release()

    def forget(self) -> None:
        """In the child of a fork: it stays the parent's."""
        self._lock.release()


def remove(file: SpoolFile) -> None:
    """Remove a batch that arrived, or that is given up."""
    with contextlib.suppress(OSError):
        file.path.unlink(missing_ok=True)


def process_folders(root: Path) -> list[Path]:
    """Return the folders of all processes, living and gone, the oldest first."""
    try:
        found = [path for path in root.iterdir() if _PROCESS.fullmatch(path.name)]
        return sorted(found, key=lambda path: path.stat().st_ctime_ns)
    except OSError:
        return []


def abandoned(root: Path) -> Iterator[SpoolFolder]:
    """Yield the folders that processes left, each locked: of two that look, one gets it."""
    for path in process_folders(root):
        try:
            lock = try_lock(path)
        except OSError:
            continue
        if lock is not None:
            yield SpoolFolder(path, lock)


def files_of(path: Path) -> list[SpoolFile]:
    """Return the batches of any process's folder, the oldest first."""
    return sorted(_files_in(path), key=lambda file: file.number)


def refused_files(root: Path) -> list[SpoolFile]:
    """Return what was set aside, the oldest first."""
    found = _files_in(root / REFUSED)
    return sorted(found, key=lambda file: (_changed_ns(file.path), file.path.name))


def has_losses(path: Path) -> bool:
    """Say whether a folder tells of something lost."""
    return (path / LOSSES_FILE).exists()


def _files_in(path: Path) -> Iterator[SpoolFile]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is None:
                continue
            with contextlib.suppress(OSError):
                yield SpoolFile(
                    Path(entry.path),
                    int(name[1]),
                    int(name[2]),
                    Kind(name[3]),
                    entry.stat().st_size,
                )


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

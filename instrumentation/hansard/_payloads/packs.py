"""Small payloads of one process, one behind the other in a few files.

    spool/payloads/<process>/lock         held while the process lives
    spool/payloads/<process>/000001.pack  `<sha256> <size> <media type>`, a newline, the bytes, …

To make a file costs 50 times as much as to append 4 KiB to one. A record that a crash or a full
disk cut off is the last of its file, and is known by its length.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import unquote

from hansard._runtime.data_folder import make_folder
from hansard._runtime.locks import FolderLock, try_lock
from hansard.errors import SpoolError

PACKED_BYTES: Final = 64 * 1024  # larger payloads are files of their own
_PACK_BYTES: Final = 4 << 20
_PROCESS: Final = re.compile(r"[0-9a-f]{32}")
_HEAD: Final = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,8}) ([\w%.~-]{1,180})\n", re.ASCII)
# On Windows files translate line ends unless told not to.
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_MOST_HEAD_BYTES: Final = 64 + 1 + 8 + 1 + 180 + 1


class WaitingPayload(NamedTuple):
    """A payload on disk: a file of its own, or a stretch of a pack."""

    path: Path
    ref: str
    media_type: str
    size_bytes: int
    offset: int | None = None  # in a pack
    data: bytes | None = None  # its bytes, where they were just written

    def read(self, open_files: dict[Path, BinaryIO] | None = None) -> bytes:
        """Return its bytes, or what is left of them; raises OSError.

        `open_files`: packs that are open, by whoever closes them.
        """
        if open_files is not None and self.offset is not None:
            file = open_files.get(self.path)
            if file is None:
                file = open_files[self.path] = self.path.open("rb")
            file.seek(self.offset)
            return file.read(self.size_bytes)
        with self.path.open("rb") as file:
            file.seek(self.offset or 0)
            return file.read(self.size_bytes)


@dataclass(slots=True)
class _Pack:
    path: Path
    waiting: int = 0  # payloads in it that are not settled
    size_bytes: int = 0
    descriptor: int = -1  # open for appending


class PackFolder:
    """The packs of one process, of this one or of one that is gone. Callers hold a lock."""

    def __init__(self, path: Path, lock: FolderLock) -> None:
        self.path = path
        self._lock = lock
        self._packs: dict[Path, _Pack] = {}
        self._current: _Pack | None = None
        self._last = 0

    @classmethod
    def make(cls, root: Path) -> PackFolder:
        """Make the folder of this process. Raises OSError, or SpoolError when it is not ours."""
        name = secrets.token_hex(16)
        made = root / f".{name}"
        make_private(root)
        made.mkdir(mode=0o700)
        lock = try_lock(made)
        if lock is None:
            raise SpoolError(f"cannot lock {made}")
        # Locked before it has a name that others look for.
        made.rename(root / name)
        return cls(root / name, lock)

    def append(
        self, digest: str, kind: str, data: bytes, *, media_type: str, keep: bool = False
    ) -> WaitingPayload:
        """Write a payload behind all others; raises OSError, and then nothing is there.

        `keep`: what is returned has the bytes, too.
        """
        pack = self._writable()
        head = f"{digest} {len(data)} {kind}\n".encode()
        record = b"".join((head, data, b"\n"))
        try:
            written = os.write(pack.descriptor, record)
        except OSError:
            self._drop_if_empty(pack)
            raise
        if written < len(record):
            os.ftruncate(pack.descriptor, pack.size_bytes)
            self._drop_if_empty(pack)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        offset = pack.size_bytes + len(head)
        pack.size_bytes += len(record)
        pack.waiting += 1
        kept = data if keep else None
        return WaitingPayload(pack.path, f"sha256:{digest}", media_type, len(data), offset, kept)

    def settle(self, payload: WaitingPayload) -> bool:
        """One of its payloads needs no place any more; with the last one its file goes.

        False when it is none of its payloads.
        """
        pack = self._packs.get(payload.path)
        if pack is None:
            return False
        pack.waiting -= 1
        self._drop_if_empty(pack)
        return True

    def take_in(self) -> tuple[list[WaitingPayload], int]:
        """Return what a dead process left, the oldest first, and how many records are torn."""
        found: list[WaitingPayload] = []
        torn = 0
        for path in sorted(self.path.glob("*.pack")):
            pack = self._packs[path] = _Pack(path)
            try:
                for payload in _records(path):
                    found.append(payload)
                    pack.waiting += 1
            except (OSError, ValueError):
                torn += 1
            self._drop_if_empty(pack)
        return found, torn

    @property
    def is_empty(self) -> bool:
        return not self._packs

    def leave(self) -> None:
        """Let go of it; an empty one is removed."""
        for pack in self._packs.values():
            _close(pack)
        if self.is_empty:
            with contextlib.suppress(OSError):
                for path in list(self.path.iterdir()):
                    path.unlink()
                self.path.rmdir()
        self._lock.release()

    def forget(self) -> None:
        """In the child of a fork: it stays the parent's."""
        for pack in self._packs.values():
            _close(pack)
        self._lock.release()

    def _writable(self) -> _Pack:
        pack = self._current
        if pack is not None and pack.size_bytes < _PACK_BYTES:
            return pack
        if pack is not None:
            _close(pack)
        self._last += 1
        path = self.path / f"{self._last:06}.pack"
        pack = _Pack(path, descriptor=os.open(path, NEW_FILE | os.O_APPEND, 0o600))
        self._packs[path] = self._current = pack
        return pack

    def _drop_if_empty(self, pack: _Pack) -> None:
        if pack.waiting:
            return
        _close(pack)
        if self._current is pack:
            self._current = None
        self._packs.pop(pack.path, None)
        with contextlib.suppress(OSError):
            pack.path.unlink(missing_ok=True)


def make_private(root: Path) -> None:
    """Make the folder of payloads, and the spool around it, their owner's alone."""
    for path in (root.parent, root):
        make_folder(path)


def abandoned(root: Path) -> Iterator[PackFolder]:
    """Yield the folders that processes left, each locked: of two that look, one gets it."""
    try:
        folders = [path for path in root.iterdir() if _PROCESS.fullmatch(path.name)]
    except OSError:
        return
    for path in folders:
        try:
            lock = try_lock(path)
        except OSError:
            continue
        if lock is not None:
            yield PackFolder(path, lock)


def _records(path: Path) -> Iterator[WaitingPayload]:
    """Yield the records of a pack; raises ValueError where the rest cannot be read."""
    size_bytes = path.stat().st_size
    offset = 0
    with path.open("rb") as file:
        while offset < size_bytes:
            file.seek(offset)
            head = _HEAD.match(file.read(_MOST_HEAD_BYTES))
            if head is None:
                raise ValueError("no head of a record")
            begin, length = offset + head.end(), int(head[2])
            if begin + length + 1 > size_bytes:
                raise ValueError("the last record is cut off")
            kind = unquote(head[3].decode())
            yield WaitingPayload(path, f"sha256:{head[1].decode()}", kind, length, begin)
            offset = begin + length + 1


def _close(pack: _Pack) -> None:
    descriptor, pack.descriptor = pack.descriptor, -1
    if descriptor >= 0:
        os.close(descriptor)

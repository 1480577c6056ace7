"""Payloads on disk until the collector has them.

    spool/payloads/<process>/…                         up to 64 KiB (`payload_packs`)
    spool/payloads/<sha256>.<media type, percent-encoded>   larger ones, a file each

All processes of a data folder share the large ones: equal bytes are one file, and whoever is
running sends what has been there for a while. A file is written under another name and renamed.
Nothing is fsynced: a power cut may cost the last seconds, and torn bytes are known by their digest.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from hansard._export.dropped import Reason
from hansard._payloads.packs import (
    NEW_FILE,
    PACKED_BYTES,
    PackFolder,
    WaitingPayload,
    abandoned,
    make_private,
)
from hansard.errors import SpoolError

FOLDER: Final = "payloads"
BINARY: Final = "application/octet-stream"
_NAME: Final = re.compile(r"([0-9a-f]{64})\.([\w%.~-]{1,180})", re.ASCII)
_MOST_KIND_CHARS: Final = 180
_LOOK_S: Final = 30.0  # how long the size of the rest of the spool is believed
_OTHERS_NS: Final = 60 * 1_000_000_000  # a living process sends its own sooner than that
_IN_MEMORY_BYTES: Final = 4 << 20  # of the oldest, which are sent next and need not be read again

OnLoss = Callable[[Reason, int], None]  # why, and how many


class PayloadSpool:
    """The payloads that wait, the oldest first, within the budget of the whole spool.

    The lock guards the fields and the packs; large files are written and read without it. The
    program's threads add, the sender's thread removes.
    """

    def __init__(self, spool: Path, *, max_bytes: int, on_loss: OnLoss) -> None:
        self._spool = spool
        self._folder = spool / FOLDER
        self._max_bytes = max_bytes
        self._on_loss = on_loss
        self._lock = threading.RLock()
        self._waiting: OrderedDict[str, WaitingPayload] = OrderedDict()  # by ref
        self._bytes = 0
        self.since_s = 0.0  # when the oldest came, about, on the monotonic clock
        self._own: PackFolder | None = None
        self._adopted: dict[Path, PackFolder] = {}  # of dead processes
        self._other_bytes = 0  # batches of spans and logs
        self._looked_s = -_LOOK_S
        self._has_looked = False

    def add(self, digest: str, data: bytes, *, media_type: str) -> bool:
        """Keep bytes under their digest (64 hex digits); False when they are lost, and counted.

        The oldest are dropped to make room. Raises SpoolError when the disk does not take them.
        """
        if len(data) > self._max_bytes:
            self._on_loss(Reason.SPOOL_FULL, 1)
            return False
        try:
            payload = self._write(digest, data, media_type)
        except OSError as error:
            raise SpoolError(f"cannot write to {self._folder}: {error.strerror}") from error
        with self._lock:
            if payload is not None:
                self._note(payload)
            dropped = self._over_budget()
        if dropped:
            self._on_loss(Reason.SPOOL_FULL, dropped)
        return True

    def look(self) -> None:
        """Take in what dead processes left; at first also large ones that were just written."""
        found = sorted(_files_in(self._folder), key=lambda one: one[0])
        left = [(folder, *folder.take_in()) for folder in abandoned(self._folder)]
        with self._lock:
            limit_ns = time.time_ns() - (_OTHERS_NS if self._has_looked else 0)
            self._has_looked = True
            for written_ns, payload in found:
                if written_ns <= limit_ns and payload.ref not in self._waiting:
                    self._note(payload)
            for folder, payloads, _ in left:
                self._adopt(folder, payloads)
            if found or left:
                self.since_s = 0.0  # they have waited long enough
        torn = sum(count for _, _, count in left)
        if torn:
            self._on_loss(Reason.UNREADABLE, torn)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        """How many bytes wait."""
        return self._bytes

    def first(self, most: int) -> list[WaitingPayload]:
        """Return the oldest that wait."""
        with self._lock:
            self.since_s = time.monotonic()
            return list(islice(self._waiting.values(), most))

    def done(self, *payloads: WaitingPayload) -> None:
        """Forget payloads that arrived, or that never will."""
        with self._lock:
            for payload in payloads:
                self._forget(payload)

    def lose(self, payload: WaitingPayload, reason: Reason) -> None:
        """Forget and count a payload that will not arrive."""
        self.done(payload)
        self._on_loss(reason, 1)

    def leave(self) -> None:
        """At the end: let the next process have what is left."""
        with self._lock:
            for folder in (self._own, *self._adopted.values()):
                if folder is not None:
                    folder.leave()
            self._own, self._adopted = None, {}
            self._waiting.clear()
            self._bytes = 0

    def after_fork(self) -> None:
        """In a child: what waits is the parent's, and so may be a thread that holds the lock."""
        self._lock = threading.RLock()
        for folder in (self._own, *self._adopted.values()):
            if folder is not None:
                folder.forget()
        self._own, self._adopted = None, {}
        self._waiting = OrderedDict()
        self._bytes = 0

    # ---- under the lock

    def _note(self, payload: WaitingPayload) -> None:
        if not self._waiting:
            self.since_s = time.monotonic()
        known = self._waiting.get(payload.ref)
        if known is not None:
            self._forget(known, but_for=payload)
        self._waiting[payload.ref] = payload
        self._bytes += payload.size_bytes

    def _forget(self, payload: WaitingPayload, *, but_for: WaitingPayload | None = None) -> None:
        known = self._waiting.get(payload.ref)
        if known is not payload:
            return  # dropped, or put again, meanwhile
        del self._waiting[payload.ref]
        self._bytes -= payload.size_bytes
        if payload.offset is None:
            if but_for is None or but_for.path != payload.path:
                _unlink(payload.path)
            return
        if self._own is not None and self._own.settle(payload):
            return
        folder = payload.path.parent
        adopted = self._adopted.get(folder)
        if adopted is not None:
            adopted.settle(payload)
            if adopted.is_empty:
                self._adopted.pop(folder).leave()

    def _adopt(self, folder: PackFolder, payloads: Sequence[WaitingPayload]) -> None:
        """Take over what a dead process left."""
        self._adopted[folder.path] = folder
        for payload in payloads:
            if payload.ref in self._waiting:
                folder.settle(payload)
            else:
                self._note(payload)
        if folder.is_empty:
            self._adopted.pop(folder.path).leave()

    def _over_budget(self) -> int:
        """Drop the oldest, but for the last that came, until the rest fits; return how many."""
        now_s = time.monotonic()
        if now_s - self._looked_s > _LOOK_S:
            self._looked_s = now_s
            self._other_bytes = _size_of_batches(self._spool)
        # However much the batches take, some room is left for payloads.
        budget = max(self._max_bytes - self._other_bytes, self._max_bytes // 4)
        dropped = 0
        while self._bytes > budget and len(self._waiting) > 1:
            self._forget(next(iter(self._waiting.values())))
            dropped += 1
        return dropped

    # ---- writing

    def _write(self, digest: str, data: bytes, media_type: str) -> WaitingPayload | None:
        """Return the payload on disk; None when it was there. Raises OSError or SpoolError."""
        kind = _quoted(media_type)
        if len(kind) > _MOST_KIND_CHARS:
            media_type, kind = BINARY, quote(BINARY, safe="")
        if len(data) > PACKED_BYTES:
            path = self._folder / f"{digest}.{kind}"
            self._write_file(path, data)
            return WaitingPayload(path, f"sha256:{digest}", media_type, len(data))
        with self._lock:
            if f"sha256:{digest}" in self._waiting:
                return None
            if self._own is None:
                self._own = PackFolder.make(self._folder)
            keep = self._bytes < _IN_MEMORY_BYTES
            return self._own.append(digest, kind, data, media_type=media_type, keep=keep)

    def _write_file(self, path: Path, data: bytes) -> None:
        beside = self._folder / f".{os.getpid()}-{secrets.token_hex(4)}"
        try:
            try:
                descriptor = os.open(beside, NEW_FILE, 0o600)
            except FileNotFoundError:
                make_private(self._folder)
                descriptor = os.open(beside, NEW_FILE, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), data)
            os.replace(beside, path)
        except OSError:
            _unlink(beside)
            raise


@lru_cache(maxsize=128)
def _quoted(media_type: str) -> str:
    return quote(media_type, safe="")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _files_in(folder: Path) -> Iterator[tuple[int, WaitingPayload]]:
    """Yield the large payloads of a folder, each with the time it was written."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is not None:
                with contextlib.suppress(OSError):
                    told = entry.stat()
                    ref, media_type = f"sha256:{name[1]}", unquote(name[2])
                    found = WaitingPayload(Path(entry.path), ref, media_type, told.st_size)
                    yield told.st_mtime_ns, found


def _size_of_batches(spool: Path) -> int:
    """Return how much of the spool is not payloads."""
    total = 0
    with contextlib.suppress(OSError):
        for folder in spool.iterdir():
            if folder.name != FOLDER and folder.is_dir():
                with contextlib.suppress(OSError):
                    total += sum(path.stat().st_size for path in folder.iterdir())
    return total


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)

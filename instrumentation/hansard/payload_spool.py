"""Payloads on disk, until the collector has them: one file each, named by what is in it.

    spool/payloads/<sha256>.<media type, percent-encoded>

All processes of a data folder share the folder: equal bytes are one file, whoever has them first,
and whoever is running sends what is there. A file is written under another name and renamed. It is
not fsynced: a power cut may cost the last seconds, and a torn file is known by its digest.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from hansard.errors import SpoolError
from hansard.losses import Reason

FOLDER: Final = "payloads"
BINARY: Final = "application/octet-stream"
_NAME: Final = re.compile(r"([0-9a-f]{64})\.([\w%.~-]{1,180})", re.ASCII)
_LOOK_S: Final = 30.0  # how long the size of the rest of the spool is believed
_OTHERS_NS: Final = 60 * 1_000_000_000  # a living process sends its own sooner than that

OnLoss = Callable[[Reason, int], None]  # why, and how many


@dataclass(frozen=True, slots=True)
class WaitingPayload:
    """A payload on disk."""

    path: Path
    size_bytes: int

    @property
    def ref(self) -> str:
        return f"sha256:{self.path.name[:64]}"

    @property
    def media_type(self) -> str:
        return unquote(self.path.name[65:])


class PayloadSpool:
    """The payloads that wait, the oldest first, within the budget of the whole spool.

    The lock guards the fields; bytes are read and written without it. The program's threads add,
    the sender's thread removes.
    """

    def __init__(self, spool: Path, *, max_bytes: int, on_loss: OnLoss) -> None:
        self._spool = spool
        self._folder = spool / FOLDER
        self._max_bytes = max_bytes
        self._on_loss = on_loss
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, WaitingPayload] = OrderedDict()  # by ref
        self._bytes = 0
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
        if not self._has_looked:
            self.look()
        kind = quote(media_type, safe="")
        path = self._folder / f"{digest}.{kind if len(kind) <= 180 else quote(BINARY, safe='')}"
        self._write(path, data)
        with self._lock:
            self._note(WaitingPayload(path, len(data)))
            dropped = self._over_budget()
        for one in dropped:
            _unlink(one.path)
        if dropped:
            self._on_loss(Reason.SPOOL_FULL, len(dropped))
        return True

    def look(self) -> None:
        """Take in what is in the folder: all at first, later what nobody has sent for a while."""
        found = sorted(_files_in(self._folder), key=lambda one: one[0])
        with self._lock:
            limit_ns = time.time_ns() - (_OTHERS_NS if self._has_looked else 0)
            self._has_looked = True
            for written_ns, payload in found:
                if written_ns <= limit_ns and payload.ref not in self._waiting:
                    self._note(payload)

    def __len__(self) -> int:
        return len(self._waiting)

    def first(self, most: int) -> list[WaitingPayload]:
        """Return the oldest that wait."""
        with self._lock:
            return [
                payload for _, payload in zip(range(most), self._waiting.values(), strict=False)
            ]

    def done(self, payload: WaitingPayload) -> None:
        """Forget a payload that arrived, or that never will."""
        with self._lock:
            self._forget(payload.ref)
        _unlink(payload.path)

    def lose(self, payload: WaitingPayload, reason: Reason) -> None:
        """Forget and count a payload that will not arrive."""
        self.done(payload)
        self._on_loss(reason, 1)

    def after_fork(self) -> None:
        """In a child: what waits is the parent's, and so may be a thread that holds the lock."""
        self._lock = threading.Lock()
        self._waiting = OrderedDict()
        self._bytes = 0

    def _note(self, payload: WaitingPayload) -> None:
        self._forget(payload.ref)
        self._waiting[payload.ref] = payload
        self._bytes += payload.size_bytes

    def _forget(self, ref: str) -> None:
        known = self._waiting.pop(ref, None)
        if known is not None:
            self._bytes -= known.size_bytes

    def _over_budget(self) -> list[WaitingPayload]:
        """Take out the oldest, but for the last that came, until the rest fits."""
        now_s = time.monotonic()
        if now_s - self._looked_s > _LOOK_S:
            self._looked_s = now_s
            self._other_bytes = _size_of_batches(self._spool)
        dropped = []
        # However much the batches take, some room is left for payloads.
        budget = max(self._max_bytes - self._other_bytes, self._max_bytes // 4)
        while self._bytes > budget and len(self._waiting) > 1:
            ref, payload = next(iter(self._waiting.items()))
            self._forget(ref)
            dropped.append(payload)
        return dropped

    def _write(self, path: Path, data: bytes) -> None:
        beside = self._folder / f".{os.getpid()}-{secrets.token_hex(4)}"
        try:
            try:
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileNotFoundError:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), data)
            os.rename(beside, path)
        except OSError as error:
            _unlink(beside)
            raise SpoolError(f"cannot write to {self._folder}: {error.strerror}") from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _files_in(folder: Path) -> Iterator[tuple[int, WaitingPayload]]:
    """Yield the payloads of a folder, each with the time it was written."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    told = entry.stat()
                    yield told.st_mtime_ns, WaitingPayload(Path(entry.path), told.st_size)


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

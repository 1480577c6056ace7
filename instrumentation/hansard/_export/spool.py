"""The spool: what waits on disk for the collector, in order, within one budget.

    spool/<process>/lock            held while the process lives
    spool/<process>/000001-12.traces    12 spans, an OTLP ExportTraceServiceRequest
    spool/<process>/000002-1.logs       an ExportLogsServiceRequest
    spool/<process>/000003-2.opens      spans that had not ended yet
    spool/<process>/000004.pack     payloads: `<sha256> <size> <media type>`, a newline, bytes, …
    spool/<process>/losses.json     what was lost and not yet reported to the collector
    spool/refused/…                 what the collector rejects, stored for people to look at

A batch is written under another name and renamed: it is whole, or not there, however the process
ends. Payloads up to 1 MiB are appended to a pack, as to make a file costs 50 times as much as to
append 4 KiB to one; a record that a crash or a full disk cut off is the last of its pack, and is
known by its length. Nothing is fsynced: a power cut may cost the last seconds, and what is torn is
counted. Versions before had packs in `spool/payloads/<process>/`, and payloads over 64 KiB in files
named `spool/payloads/<sha256>.<media type>`; both are sent as what dead processes left.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from hansard._export.dropped import DropReason, Loss, Losses
from hansard._runtime.data_folder import make_folder
from hansard._runtime.locks import FolderLock, is_lock, try_lock
from hansard.errors import SpoolError

FOLDER: Final = "spool"
REFUSED: Final = "refused"
BINARY: Final = "application/octet-stream"
RECORD_BYTES: Final = 1 << 20  # payloads up to there share packs, and are sent as log records
_BLOCK: Final = 4096  # what a small file takes on disk
_NAME: Final = re.compile(r"(?:[0-9a-f]{32}\.)?(\d+)(?:-(\d+))?\.(traces|logs|opens|pack)")
_PROCESS: Final = re.compile(r"[0-9a-f]{32}")
_HEAD: Final = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,8}) ([\w%.~-]{1,180})\n", re.ASCII)
_MOST_TYPE_CHARS: Final = 180
# On Windows files translate line ends by default.
_WRITE: Final = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
_PACK_BYTES: Final = 2 << 20  # a pack is sent in one request
_PACK_ITEMS: Final = 512
_IN_MEMORY_BYTES: Final = 4 << 20  # of the oldest payloads, which then need not be read again
_LOOK_S: Final = 30.0  # how long the size of what other processes left is believed
_EARLIER: Final = "payloads"  # the folder in which versions before had payloads
_EARLIER_NAME: Final = re.compile(r"([0-9a-f]{64})\.([\w%.~-]{1,180})", re.ASCII)


class SpoolKind(StrEnum):
    """What is in a file."""

    TRACES = "traces"
    LOGS = "logs"
    OPENS = "opens"
    PAYLOADS = "pack"

    @property
    def signal(self) -> str:
        """What losses of it are counted as; of open spans nothing is lost, they end later."""
        return {SpoolKind.LOGS: "logs", SpoolKind.PAYLOADS: "payloads"}.get(self, "spans")


class SpooledPayload(NamedTuple):
    """Content that spans name by its digest."""

    ref: str  # sha256:…
    media_type: str
    data: bytes


@dataclass(slots=True, eq=False)
class SpoolFile:
    """One batch on disk. A pack grows as long as it is the newest of a living process."""

    path: Path
    number: int
    kind: SpoolKind
    size_bytes: int
    known_items: int | None  # None: a pack that another process wrote
    payloads: list[SpooledPayload] | None = None  # of a pack, where they are in memory as well

    @property
    def items(self) -> int:
        """How many items are in it, torn ones included; those of another's pack are counted."""
        if self.known_items is None:
            try:
                self.known_items = sum(1 for _ in _records(self.read()))
            except SpoolError:
                self.known_items = 0
        return self.known_items

    @property
    def lost_items(self) -> int:
        """How many are lost when it is dropped."""
        return 0 if self.kind is SpoolKind.OPENS else self.items

    @property
    def disk_bytes(self) -> int:
        return -(-self.size_bytes // _BLOCK) * _BLOCK

    def read(self) -> bytes:
        """Return its bytes; raises SpoolError."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise SpoolError(f"cannot read {self.path}: {error.strerror}") from error

    def read_payloads(self) -> list[SpooledPayload]:
        """Return the payloads of a pack that are whole; raises SpoolError."""
        if self.payloads is not None:
            return self.payloads
        return [
            one
            for one in _records(self.read())
            if one is not None and one.ref == f"sha256:{hashlib.sha256(one.data).hexdigest()}"
        ]


class SpoolFolder:
    """The folder of one process, of this one or of an ended one; its lock is held."""

    def __init__(self, path: Path, lock: FolderLock) -> None:
        self.path = path
        self._lock = lock
        self._numbers = itertools.count(1 + max((one.number for one in self.files()), default=0))

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
        return files_of(self.path)

    def add(self, kind: SpoolKind, *parts: bytes, items: int) -> SpoolFile:
        """Write a batch behind all others; raises SpoolError, and then nothing is there."""
        number = next(self._numbers)
        path = self.path / f"{number:06}-{items}.{kind}"
        beside = self.path / f".{number:06}"
        try:
            with open(os.open(beside, _WRITE | os.O_TRUNC, 0o600), "wb") as file:
                file.writelines(parts)
            beside.rename(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise SpoolError(f"cannot write to {self.path}: {error.strerror}") from error
        return SpoolFile(path, number, kind, sum(map(len, parts)), items)

    def open_pack(self) -> tuple[SpoolFile, int]:
        """Make an empty pack behind all others, and open it for appending; raises OSError."""
        number = next(self._numbers)
        path = self.path / f"{number:06}.{SpoolKind.PAYLOADS}"
        descriptor = os.open(path, _WRITE | os.O_EXCL | os.O_APPEND, 0o600)
        return SpoolFile(path, number, SpoolKind.PAYLOADS, 0, 0, []), descriptor

    def set_aside(self, kind: SpoolKind, data: bytes, *, items: int) -> None:
        """Store what the collector rejects where it is not sent again automatically."""
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


class Spool:
    """The spool files of this process; its folder is made with the first one.

    The lock guards all fields: the program's threads add payloads, those of the worker and the end
    of the program write batches, and one thread sends.
    """

    def __init__(self, root: Path, *, max_bytes: int, losses: Losses) -> None:
        self.root = root
        self._max_bytes = max_bytes
        # Of a small budget a pack is a small part, as the oldest is dropped by packs.
        self._pack_bytes = min(_PACK_BYTES, max_bytes // 4)
        self._begin(losses)

    def _begin(self, losses: Losses) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._losses = losses
        self._folder: SpoolFolder | None = None
        self._batches: deque[SpoolFile] = deque()
        self._packs: deque[SpoolFile] = deque()
        self._open_pack: SpoolFile | None = None  # the one that grows
        self._open_since_s = 0.0  # on the monotonic clock
        self._descriptor = -1  # of the open pack
        self._memory_bytes = 0  # of payloads that need not be read again
        self._own_bytes = 0
        self._other_bytes = 0
        self._looked_s = -_LOOK_S
        self._sending: SpoolFile | None = None
        self._is_left = False
        self.lost_payloads = 0  # so far

    def __len__(self) -> int:
        """How many files of batches wait."""
        return len(self._batches)

    @property
    def is_empty(self) -> bool:
        """Nothing waits, neither batches nor payloads."""
        return not self._batches and not self._packs

    def add(self, kind: SpoolKind, data: bytes, *, items: int) -> SpoolFile:
        """Write a batch behind all others; raises SpoolError, and then nothing is there.

        Where the budget is used up, the oldest goes: what others left first, then our own.
        """
        with self._lock:
            if self._is_left:
                raise SpoolError("the program ends")
            self._make_room(len(data))
            file = self._made_folder().add(kind, data, items=items)
            self._batches.append(file)
            self._own_bytes += file.disk_bytes
            return file

    def add_payload(self, ref: str, data: bytes, *, media_type: str) -> bool:
        """Write a payload behind all others; False when it is lost, and counted.

        Raises SpoolError when the disk does not take it, and then nothing is there.
        """
        quoted = _quoted(media_type)
        if len(quoted) > _MOST_TYPE_CHARS:
            media_type, quoted = BINARY, _quoted(BINARY)
        head = f"{ref.removeprefix('sha256:')} {len(data)} {quoted}\n".encode()
        size_bytes = len(head) + len(data) + 1
        with self._lock:
            if size_bytes > self._max_bytes or self._is_left:
                reason = DropReason.SPOOL_UNWRITABLE if self._is_left else DropReason.SPOOL_FULL
                self.lose(SpoolKind.PAYLOADS.signal, reason, 1)
                return False
            self._make_room(size_bytes)
            folder = self._made_folder()
            if len(data) <= RECORD_BYTES:
                self._append(folder, SpooledPayload(ref, media_type, data), head)
                return True
        # Long enough to write that nobody else should have to wait for it.
        file = folder.add(SpoolKind.PAYLOADS, head, data, b"\n", items=1)
        with self._lock:
            self._packs.append(file)
            self._own_bytes += file.disk_bytes
        return True

    def first(self) -> SpoolFile | None:
        """Return the oldest batch, which is not dropped until `release` says so."""
        return self._first_of(self._batches)

    def first_pack(self) -> SpoolFile | None:
        """Return the oldest pack in the same way; it does not grow any more."""
        with self._lock:
            if self._packs and self._packs[0] is self._open_pack:
                self._seal()
            return self._first_of(self._packs)

    def payloads_due_s(self, delay_s: float) -> float | None:
        """Return when to send payloads, on the monotonic clock: a full pack now, None if none."""
        count, pack = len(self._packs), self._open_pack
        if not count:
            return None
        return 0.0 if count > 1 or pack is None else self._open_since_s + delay_s

    def release(self) -> None:
        """The file that was being sent stays where it is."""
        with self._lock:
            self._sending = None

    def arrived(self, file: SpoolFile) -> None:
        """Forget a file that the collector has."""
        with self._lock:
            self._forget(file)
            remove(file)

    def give_up(self, file: SpoolFile, reason: DropReason) -> None:
        """Count what is in a file that will never arrive, and remove it."""
        with self._lock:
            self._forget(file)
            self.lose(file.kind.signal, reason, file.lost_items)
            remove(file)

    def refuse(self, kind: SpoolKind, items: int, data: bytes) -> None:
        """Count what the collector will never take, and keep it for people to look at."""
        with self._lock:
            self.lose(kind.signal, DropReason.REFUSED, items)
            if data and not self._is_left:
                with contextlib.suppress(SpoolError):
                    self._make_room(len(data))
                    self._made_folder().set_aside(kind, data, items=items)

    def lose(self, signal: str, reason: DropReason, items: int) -> None:
        """Count what never was on disk, or is no more."""
        with self._lock:
            self._losses.add(signal, reason, items)
            if signal == SpoolKind.PAYLOADS.signal:
                self.lost_payloads += items

    def lost(self, signal: str) -> dict[str, int]:
        """Return how many items of a signal did not and will not arrive, by reason."""
        with self._lock:
            counts = self._losses.counts.items()
            return {reason: count for (name, reason), count in counts if name == signal}

    def unreported(self) -> list[Loss]:
        """Return the counts that the collector does not know."""
        with self._lock:
            return self._losses.unreported()

    def note_reported(self, losses: list[Loss]) -> None:
        """The collector has these counts."""
        with self._lock:
            self._losses.note_reported(losses)
            if self._folder is not None:
                self._save_losses()

    def leave(self) -> None:
        """Let the next start have what is left."""
        with self._lock:
            self._save_losses()
            self._seal()
            if self._folder is not None:
                self._folder.leave()
            self._folder = None
            self._batches.clear()
            self._packs.clear()
            self._is_left = True

    def after_fork(self, losses: Losses | None = None) -> None:
        """Begin afresh in a child, the first time it is called there: all of it is the parent's."""
        if self._pid == os.getpid():
            return
        self._seal()
        if self._folder is not None:
            self._folder.forget()
        self._begin(losses or Losses(self._losses.sender))

    # ---- under the lock

    def _made_folder(self) -> SpoolFolder:
        if self._folder is None:
            self._folder = SpoolFolder.make(self.root)
        return self._folder

    def _first_of(self, files: deque[SpoolFile]) -> SpoolFile | None:
        with self._lock:
            self._sending = files[0] if files else None
            return self._sending

    def _append(self, folder: SpoolFolder, payload: SpooledPayload, head: bytes) -> None:
        record = b"".join((head, payload.data, b"\n"))
        try:
            pack = self._open_pack
            if pack is None or pack.size_bytes + len(record) > self._pack_bytes:
                self._seal()
                pack, self._descriptor = folder.open_pack()
                self._open_pack, self._open_since_s = pack, time.monotonic()
                self._packs.append(pack)
            written = os.write(self._descriptor, record)
            if written < len(record):
                os.ftruncate(self._descriptor, pack.size_bytes)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if pack is not None and not pack.size_bytes:
                self.arrived(pack)  # an empty one
            raise SpoolError(f"cannot write to {folder.path}: {error.strerror}") from error
        self._own_bytes -= pack.disk_bytes
        pack.size_bytes += len(record)
        self._own_bytes += pack.disk_bytes
        pack.known_items = pack.items + 1
        if pack.payloads is not None:
            pack.payloads.append(payload)
            self._memory_bytes += len(payload.data)
            if self._memory_bytes > _IN_MEMORY_BYTES:
                self._free_memory_of(pack)
        if pack.items >= _PACK_ITEMS:
            self._seal()

    def _seal(self) -> None:
        """Let the open pack grow no more."""
        descriptor, self._descriptor, self._open_pack = self._descriptor, -1, None
        if descriptor >= 0:
            os.close(descriptor)

    def _free_memory_of(self, pack: SpoolFile) -> None:
        self._memory_bytes -= sum(len(one.data) for one in pack.payloads or ())
        pack.payloads = None

    def _save_losses(self) -> None:
        with contextlib.suppress(OSError, SpoolError):
            if self._folder is not None or self._losses.unreported():
                self._losses.save(self._made_folder().path)

    def _forget(self, file: SpoolFile) -> None:
        with contextlib.suppress(ValueError):
            (self._packs if file.kind is SpoolKind.PAYLOADS else self._batches).remove(file)
            self._own_bytes -= file.disk_bytes
        if file is self._open_pack:
            self._seal()
        self._free_memory_of(file)
        if self._sending is file:
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
            self._other_bytes = max(self._other_bytes - self._drop_of_others(need_bytes), 0)
        # However much other living processes have, a quarter is left to each.
        own_bytes = max(self._max_bytes - self._other_bytes, self._max_bytes // 4)
        while self._own_bytes + size_bytes > own_bytes and (oldest := self._oldest()) is not None:
            self.give_up(oldest, DropReason.SPOOL_FULL)

    def _oldest(self) -> SpoolFile | None:
        found = [
            file
            for files in (self._batches, self._packs)
            for file in itertools.islice(files, 2)
            if file is not self._sending
        ]
        return min(found, key=lambda file: file.number, default=None)

    def _size_of_others(self) -> int:
        own = self._folder.path if self._folder is not None else None
        files = refused_files(self.root)
        for path in process_folders(self.root):
            if path != own:
                files += files_of(path)
        return sum(file.disk_bytes for file in files)

    def _drop_of_others(self, need_bytes: int) -> int:
        """Remove what was set aside, then what dead processes left; return how much it was."""
        freed = 0
        for file in refused_files(self.root):  # lost already, and counted
            if freed >= need_bytes:
                return freed
            freed += file.disk_bytes
            remove(file)
        for folder in abandoned(self.root):
            for file in folder.files():
                if freed >= need_bytes:
                    break
                freed += file.disk_bytes
                self._losses.add(file.kind.signal, DropReason.SPOOL_FULL, file.lost_items)
                remove(file)
            folder.leave()
        return freed


# ---- of all processes


def remove(file: SpoolFile) -> None:
    """Remove a file that arrived, or that is dropped."""
    with contextlib.suppress(OSError):
        file.path.unlink(missing_ok=True)


def process_folders(root: Path) -> list[Path]:
    """Return the folders of all processes, running and ended, the oldest first.

    Those of versions before have payloads alone, which other folders' spans may name: they are
    before all others.
    """
    found: list[Path] = []
    for folder in (root / _EARLIER, root):
        with contextlib.suppress(OSError):
            paths = [path for path in folder.iterdir() if _PROCESS.fullmatch(path.name)]
            found += sorted(paths, key=lambda path: path.stat().st_ctime_ns)
    return found


def abandoned(root: Path) -> Iterator[SpoolFolder]:
    """Yield the folders that processes left, each locked: of two that look, one gets it."""
    _adopt_earlier(root)
    for path in process_folders(root):
        try:
            lock = try_lock(path)
        except OSError:
            continue
        if lock is not None:
            yield SpoolFolder(path, lock)


def _adopt_earlier(root: Path) -> None:
    """Bring payloads that versions before had in files of their own into packs beside them."""
    earlier = root / _EARLIER
    with contextlib.suppress(OSError, SpoolError):
        names = [name for path in earlier.iterdir() if (name := _EARLIER_NAME.fullmatch(path.name))]
        if not names:
            return earlier.rmdir()
        folder = SpoolFolder.make(earlier)
        try:
            for name in names:
                with contextlib.suppress(OSError):  # another process adopts it
                    data = (earlier / name[0]).read_bytes()
                    head = f"{name[1]} {len(data)} {name[2]}\n".encode()
                    folder.add(SpoolKind.PAYLOADS, head, data, b"\n", items=1)
                    (earlier / name[0]).unlink()
        finally:
            folder.leave()


def files_of(path: Path) -> list[SpoolFile]:
    """Return the batches of any process's folder, the oldest first."""
    return sorted(_files_in(path), key=lambda file: file.number)


def refused_files(root: Path) -> list[SpoolFile]:
    """Return what was set aside, the oldest first."""
    found = _files_in(root / REFUSED)
    return sorted(found, key=lambda file: (_changed_ns(file.path), file.path.name))


def _files_in(path: Path) -> Iterator[SpoolFile]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is not None:
                with contextlib.suppress(OSError):
                    yield SpoolFile(
                        Path(entry.path),
                        int(name[1]),
                        SpoolKind(name[3]),
                        entry.stat().st_size,
                        int(name[2]) if name[2] else None,
                    )


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=128)
def _quoted(media_type: str) -> str:
    return quote(media_type, safe="")


def _records(data: bytes) -> Iterator[SpooledPayload | None]:
    """Yield the payloads of a pack; at the end None where the rest cannot be read."""
    at = 0
    while at < len(data):
        head = _HEAD.match(data, at)
        end = len(data) if head is None else head.end() + int(head[2])
        if head is None or end >= len(data):
            yield None
            return
        media_type = unquote(head[3].decode())
        yield SpooledPayload(f"sha256:{head[1].decode()}", media_type, data[head.end() : end])
        at = end + 1

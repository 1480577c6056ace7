"""Payloads: bytes that spans name by `sha256:<hex>`, stored once.

Up to INLINE_BYTES they stand in their row; larger ones are files under blobs/, written to a
temporary name, synced and renamed before their row is committed, so that no row points at a file
that is not there, whatever is killed when.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import sync
from hansard_store.errors import (
    DigestMismatchError,
    InvalidQueryError,
    PayloadAlteredError,
    StoreBusyError,
    StoreCorruptError,
)
from hansard_store.ingest.redactions import RedactionWriter, RemovedSecret

INLINE_BYTES = 64 * 1024
_MOST_CHECKED = 20_000  # files whose bytes need not be read again
_TICK_NS = 1_000_000_000  # some file systems store times of change in seconds
_REF = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)

_FIND = """
SELECT digest, size, media_type, received_ns, body, NULL FROM payload WHERE digest = :digest
UNION ALL
SELECT payload.digest, payload.size, payload.media_type, payload.received_ns, payload.body,
  payload_alias.reason
FROM payload_alias CROSS JOIN payload ON payload.digest = payload_alias.stored
WHERE payload_alias.sent = :digest
LIMIT 1
"""
_ADD = """
INSERT INTO payload (digest, size, media_type, received_ns, body)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET size = excluded.size, body = excluded.body
WHERE payload.body IS NOT excluded.body OR payload.size <> excluded.size
"""
_IS_KNOWN = "SELECT 1 FROM payload WHERE digest = ?"
_ADD_ALIAS = """
INSERT INTO payload_alias (sent, stored, reason) VALUES (?, ?, ?)
ON CONFLICT (sent) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Payload:
    """A stored payload; `inline` is None for those in a file."""

    digest: bytes  # of the stored bytes
    size: int  # bytes
    media_type: str
    received_ns: int
    inline: bytes | None
    redacted: str | None = None  # why the stored bytes are not those that were sent

    @property
    def ref(self) -> str:
        return payload_ref(self.digest)


@dataclass(frozen=True, slots=True)
class Retained:
    """What retention leaves of a payload; `data` None: nothing may be stored."""

    data: bytes | None
    reason: str | None = None  # None: stored as sent
    removed: Sequence[RemovedSecret] = ()


class PayloadState(StrEnum):
    """What looking at the bytes of a payload shows."""

    INTACT = "intact"
    REDACTED = "redacted at retention"
    ALTERED = "altered"
    MISSING = "missing"


def payload_ref(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"


def parse_payload_ref(text: str) -> bytes:
    """Return the digest of `sha256:<64 hex digits>`.

    Raises InvalidQueryError for any other text.
    """
    folded = text.lower()
    if not _REF.fullmatch(folded):
        raise InvalidQueryError(
            "ref", f"{text!r} is no payload; one is named sha256:<64 hex digits>"
        )
    return bytes.fromhex(folded.removeprefix("sha256:"))


def blob_path(folder: DataFolder, digest: bytes) -> Path:
    """Return where the bytes of a large payload are."""
    name = digest.hex()
    return folder.blobs / name[:2] / name[2:]


def folder_of(connection: apsw.Connection) -> DataFolder:
    """Return the data folder of an open store: large payloads lie beside its database."""
    return DataFolder(Path(connection.db_filename("main")).parent)


def get_payload(connection: apsw.Connection, digest: bytes) -> Payload:
    """Return a payload by the digest that was sent; raises NotFoundError."""
    row: Any = connection.execute(_FIND, {"digest": digest}).fetchone()
    if row is None:
        raise NotFoundError("payload", payload_ref(digest))
    return Payload(*row)


def read_payload(folder: DataFolder, payload: Payload) -> bytes:
    """Return the bytes of a payload, which are those of its digest.

    Raises PayloadAlteredError when they are not, StoreCorruptError when its file is gone.
    """
    data = read_unchecked(folder, payload)
    if hashlib.sha256(data).digest() != payload.digest:
        raise PayloadAlteredError(payload.ref)
    return data


def read_unchecked(folder: DataFolder, payload: Payload) -> bytes:
    """Return the bytes of a payload as they are; raises StoreCorruptError when its file is gone."""
    if payload.inline is not None:
        return payload.inline
    try:
        return blob_path(folder, payload.digest).read_bytes()
    except FileNotFoundError as error:
        raise _missing(payload) from error


def peek_payload(folder: DataFolder, payload: Payload, *, most_bytes: int) -> bytes:
    """Return the first bytes of a payload, at most some; all of it is compared with its digest.

    Raises as `read_payload`. Reads a large payload whole where its file has changed.
    """
    if payload.inline is not None:
        return read_payload(folder, payload)[:most_bytes]
    with checked_file(folder, payload).open("rb") as file:
        return file.read(most_bytes)


def checked_file(folder: DataFolder, payload: Payload) -> Path:
    """Return the file of a large payload, whose bytes are those of its digest.

    A file is read once, in pieces, and again only when it changed. Raises as `read_payload`.
    """
    path = blob_path(folder, payload.digest)
    try:
        is_right = _checked_files.is_right(path, payload.digest)
    except FileNotFoundError as error:
        raise _missing(payload) from error
    if not is_right:
        raise PayloadAlteredError(payload.ref)
    return path


def _missing(payload: Payload) -> StoreCorruptError:
    return StoreCorruptError(f"the file of payload {payload.ref} is missing")


class _CheckedFiles:
    """Which files were found to be those of their digest, and what `stat` returned then.

    A file that is written anew, replaced, or set back to an earlier time of change has another
    inode, size or ctime: it is read again.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        # Guards what is known; threads that answer requests add and look.
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[int, ...]] = OrderedDict()

    def is_right(self, path: Path, digest: bytes) -> bool:
        """Say whether the bytes of a file are those of a digest; raises FileNotFoundError."""
        with path.open("rb") as file:
            shape = _shape_of(os.fstat(file.fileno()))
            with self._lock:
                if self._known.get(path) == shape:
                    self._known.move_to_end(path)
                    return True
            if hashlib.file_digest(file, "sha256").digest() != digest:
                return False
            if _shape_of(os.fstat(file.fileno())) != shape:  # written meanwhile
                return False
        # A change within the system's tick of time after this would leave the shape as it is.
        if time.time_ns() - max(shape[-2:]) > _TICK_NS:
            with self._lock:
                self._known[path] = shape
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
        return True


def _shape_of(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


_checked_files = _CheckedFiles(most=_MOST_CHECKED)


def verify_payload(folder: DataFolder, payload: Payload) -> PayloadState:
    """Read the stored bytes again and say whether they are what their digest promises."""
    try:
        read_payload(folder, payload)
    except PayloadAlteredError:
        return PayloadState.ALTERED
    except StoreCorruptError:
        return PayloadState.MISSING
    return PayloadState.REDACTED if payload.redacted else PayloadState.INTACT


@dataclass(frozen=True, slots=True)
class PreparedPayload:
    """Bytes that are those of their digest, with what retention leaves of them; not stored yet."""

    payload: Payload  # as it will be stored
    sent: bytes  # digest of the bytes as they came
    data: bytes
    removed: Sequence[RemovedSecret] = ()


def prepare_payload(
    data: bytes,
    *,
    expected: bytes,
    media_type: str,
    received_ns: int,
    retain: Callable[[bytes, str], Retained],
) -> PreparedPayload | None:
    """Check bytes against their digest and cut out what may not be stored; None: nothing may.

    Raises DigestMismatchError when the bytes are not those of `expected`.
    """
    found = hashlib.sha256(data).digest()
    if found != expected:
        raise DigestMismatchError(payload_ref(expected), found.hex())
    retained = retain(data, media_type)
    if retained.data is None:
        return None
    digest = found if retained.data == data else hashlib.sha256(retained.data).digest()
    payload = Payload(
        digest=digest,
        size=len(retained.data),
        media_type=media_type,
        received_ns=received_ns,
        inline=retained.data if len(retained.data) <= INLINE_BYTES else None,
        redacted=None if digest == found else retained.reason or "redacted",
    )
    return PreparedPayload(payload, found, retained.data, retained.removed)


def write_file(folder: DataFolder, made: PreparedPayload) -> None:
    """Put the bytes of a large payload in their file; raises StoreBusyError when it cannot be.

    A file that was altered is replaced.
    Before the transaction that adds the row: a disk is slow, and others wait for the lock.
    """
    if made.payload.inline is None:
        _write_blob(blob_path(folder, made.payload.digest), made.data, made.payload.digest)


def add_payload(folder: DataFolder, connection: apsw.Connection, made: PreparedPayload) -> bool:
    """Write the rows of a payload, in a transaction; False when it was known by this digest.

    `write_file` comes before it. Raises StoreBusyError when its file cannot be written now.
    """
    payload = made.payload
    # gc may have removed the file again: under the lock it cannot. Its bytes are not read here,
    # which takes 1 ms for a megabyte.
    if payload.inline is None and not _is_there(blob_path(folder, payload.digest), payload.size):
        write_file(folder, made)
    row = (payload.digest, payload.size, payload.media_type, payload.received_ns, payload.inline)
    is_new = connection.execute(_IS_KNOWN, (payload.digest,)).get is None
    connection.execute(_ADD, row)  # a row that was altered gets its bytes back
    if payload.redacted is not None:
        connection.execute(_ADD_ALIAS, (made.sent, payload.digest, payload.redacted))
        is_new = bool(connection.changes())
        if is_new:
            item = redaction_item(made.sent)
            RedactionWriter(connection).add("payload", item, made.removed)
    return is_new


def redaction_item(digest: bytes) -> int:
    """Return the number under which redactions of a payload are noted: payloads have no id."""
    return int.from_bytes(digest[:8], "big") >> 1


def _is_there(path: Path, size_bytes: int) -> bool:
    with suppress(OSError):
        return path.stat().st_size == size_bytes
    return False


def _write_blob(path: Path, data: bytes, digest: bytes) -> None:
    """Put a file in its place whole, or not at all."""
    with suppress(OSError):
        if _is_there(path, len(data)) and _checked_files.is_right(path, digest):
            return
    temporary = path.with_name(f".{path.name[:8]}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_synced(temporary, data)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreBusyError(f"the payload cannot be written now: {error.strerror}") from error


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)

"""Archives: the folded part of a transcript as a file, read back before it is reported as written.

JSON lines: the first says what it is, each other one is a message as it is stored. The rows stay:
nothing of a transcript is ever removed. A holder of the file can prove it with `check_archive`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.transcripts.errors import NothingToFold
from hansard_compiler.transcripts.ids import ConversationId
from hansard_compiler.transcripts.messages import Row
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import snapshot
from hansard_store.errors import StoreCorruptError, StoreError
from hansard_store.transcripts.rows import get_conversation, list_folds, read_rows

_FORM = "hansard.transcript/1"
_ADD = """
INSERT INTO transcript_archive (conversation_id, last_position, sha256, size, actor, created_at)
VALUES (?, ?, ?, ?, ?, ?)
"""
_FIND = "SELECT conversation_id, last_position FROM transcript_archive WHERE sha256 = ?"


@dataclass(frozen=True, slots=True)
class Archive:
    """A file with the messages from the first to `last_position`."""

    conversation: ConversationId
    last_position: int
    sha256: str
    size_bytes: int


def write_archive(
    folder: DataFolder,
    connection: apsw.Connection,
    conversation: ConversationId,
    path: Path,
    *,
    actor: str,
    clock: Callable[[], int],
) -> Archive:
    """Write what folds stand for to a new file, read it back, and note its sha256.

    Raises NothingToFold where nothing was folded, StoreError where the file cannot be written or is
    there already, StoreCorruptError where it is not read back as it was written.
    """
    with snapshot(connection):
        stored = get_conversation(connection, conversation)
        folds = list_folds(connection, conversation)
        if not folds:
            raise NothingToFold("nothing is folded yet, so there is nothing to archive")
        last = folds[-1].message_position
        head = {"form": _FORM, "conversation_id": str(conversation), "name": stored.name,
                "last_position": last}  # fmt: skip
        rows = read_rows(connection, conversation, limit=last + 1)
    data = b"".join((canonical_bytes(head) + b"\n", *map(_line, rows)))
    _write(path, data)
    if path.read_bytes() != data:
        raise StoreCorruptError(f"{path} is not what was written to it")
    made = Archive(conversation, last, hashlib.sha256(data).hexdigest(), len(data))
    row = (
        conversation.digest, last, bytes.fromhex(made.sha256), made.size_bytes, actor, clock(),
    )  # fmt: skip
    with accountability_transaction(folder) as to:
        to.execute(_ADD, row)
    return made


def check_archive(connection: apsw.Connection, path: Path) -> Archive:
    """Compare a file with what was archived, and its messages with those that are stored.

    Raises StoreCorruptError naming the first thing that differs, StoreError where it cannot be
    read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    digest = hashlib.sha256(data)
    found: Any = connection.execute(_FIND, (digest.digest(),)).fetchone()
    if found is None:
        raise StoreCorruptError(
            f"no archive has the sha256 of {path}: it was altered, or another's"
        )
    conversation = ConversationId(found[0])
    lines = data.split(b"\n")[1:-1]
    rows = read_rows(connection, conversation, limit=found[1] + 1)
    for line, row in zip(lines, rows, strict=True):
        if line + b"\n" != _line(row):
            raise StoreCorruptError(f"the message at position {row.position} is another one here")
    return Archive(conversation, found[1], digest.hexdigest(), len(data))


def _line(row: Row) -> bytes:
    try:
        content: Any = json.loads(row.content)
    except ValueError:
        content = {"undecodable": row.content}  # an archive keeps what is there
    message = {
        "id": row.id.hex(),
        "position": row.position,
        "role": row.role,
        "content": content,
        "created_ns": row.created_ns,
        "schema_version": row.schema_version,
    }
    return canonical_bytes(message) + b"\n"


def _write(path: Path, data: bytes) -> None:
    if path.exists():
        raise StoreError(f"{path} is there already; nothing is overwritten")
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror}") from None

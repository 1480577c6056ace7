"""Who names a payload, which of them nobody names any more, and the files of those."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from hansard_store.content.payloads import payload_ref, redaction_item
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.search.attributes import attribute_token

# A payload comes before the span that names it, which may end hours later.
GRACE_NS = 24 * 3600 * 1_000_000_000
_STRAY_S = 3600  # a file under a temporary name that nobody finished
_AT_ONCE = 20  # files unlinked under one lock

_NAMED = "SELECT payload FROM payload_use WHERE run = ? LIMIT ?"
_DROP_USE = "DELETE FROM payload_use WHERE payload = ? AND run = ?"
_STORED_AS = """
SELECT coalesce((SELECT stored FROM payload_alias WHERE sent = :digest), :digest)
"""
# Named by its own digest, or by one under which it was sent before something was taken out.
_IS_USED = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM payload_use WHERE payload = :stored) OR EXISTS (
  SELECT 1 FROM payload_alias JOIN payload_use ON payload_use.payload = payload_alias.sent
  WHERE payload_alias.stored = :stored) OR EXISTS (
  SELECT 1 FROM transcript_payload WHERE payload = :stored) OR EXISTS (
  SELECT 1 FROM payload_alias
  JOIN transcript_payload ON transcript_payload.payload = payload_alias.sent
  WHERE payload_alias.stored = :stored)
"""
_REDACTIONS = "DELETE FROM redaction WHERE signal = 'payload' AND item = ?"
_SENT_AS = "SELECT sent FROM payload_alias WHERE stored = ?"
_DROP_ALIASES = "DELETE FROM payload_alias WHERE stored = ?"
_DROP = "DELETE FROM payload WHERE digest = ?"
_UNUSED = f"""
SELECT digest FROM payload AS one
WHERE received_ns < :before AND NOT EXISTS ({_IS_USED.replace(":stored", "one.digest")})
"""
_IS_STORED = "SELECT 1 FROM payload WHERE digest = ?"
_IS_NAMED = "SELECT 1 FROM payload_use WHERE payload = ? LIMIT 1"
_NAMING = """
SELECT rowid FROM attribute_fts WHERE attribute_fts MATCH ? ORDER BY rowid DESC LIMIT ?
"""
_UNMET = """
SELECT payload, count(*) FROM payload_use
WHERE NOT EXISTS (SELECT 1 FROM payload WHERE digest = payload_use.payload)
  AND NOT EXISTS (SELECT 1 FROM payload_alias WHERE sent = payload_use.payload)
GROUP BY payload ORDER BY payload
"""
_ALL = """
SELECT digest FROM payload WHERE NOT EXISTS (SELECT 1 FROM payload_alias WHERE stored = digest)
UNION ALL SELECT sent FROM payload_alias ORDER BY 1
"""


def list_payloads(connection: apsw.Connection) -> list[bytes]:
    """Return the digest of every payload that is here, as it was sent."""
    rows: list[Any] = connection.execute(_ALL).fetchall()
    return [row[0] for row in rows]


def spans_naming(
    connection: apsw.Connection, digest: bytes, keys: Iterable[str], *, most: int
) -> list[int]:
    """Return the spans whose attributes under one of these keys name a payload, newest first.

    Those of the transaction that runs are not among them: they are indexed at its end.
    """
    if connection.execute(_IS_NAMED, (digest,)).get is None:
        return []
    tokens = " OR ".join(attribute_token(key, payload_ref(digest)) for key in keys)
    rows: list[Any] = connection.execute(_NAMING, (tokens, most)).fetchall()
    return [row[0] for row in rows]


def unmet_payloads(connection: apsw.Connection) -> list[tuple[bytes, int]]:
    """Return the digests that runs name and whose bytes are not here, with how many runs do."""
    rows: list[Any] = connection.execute(_UNMET).fetchall()
    return [(row[0], row[1]) for row in rows]


def release_payloads(connection: apsw.Connection, run: int, *, most: int) -> int:
    """Forget some payloads that a run names, and drop those that no other names; in a transaction.

    Returns how many were forgotten. Files are left to `remove_stray_files`, after the commit: a
    row must never point at a file that is gone.
    """
    rows: list[Any] = connection.execute(_NAMED, (run, most)).fetchall()
    for (digest,) in rows:
        connection.execute(_DROP_USE, (digest, run))
        drop_if_unused(connection, connection.execute(_STORED_AS, {"digest": digest}).get)
    return len(rows)


def drop_if_unused(connection: apsw.Connection, digest: bytes) -> int:
    """Drop the row of a payload that nothing names; returns 1 if it went, else 0."""
    if connection.execute(_IS_USED, {"stored": digest}).get is not None:
        return 0
    rows: list[Any] = connection.execute(_SENT_AS, (digest,)).fetchall()
    for (sent,) in rows:
        connection.execute(_REDACTIONS, (redaction_item(sent),))
    connection.execute(_DROP_ALIASES, (digest,))
    connection.execute(_DROP, (digest,))
    return connection.changes()


def unused_payloads(connection: apsw.Connection, *, now_ns: int) -> list[bytes]:
    """Return the digests of payloads that nothing has named for a day."""
    rows: list[Any] = connection.execute(_UNUSED, {"before": now_ns - GRACE_NS}).fetchall()
    return [row[0] for row in rows]


def remove_stray_files(folder: DataFolder, connection: apsw.Connection) -> int:
    """Remove files of payloads that have no row, and temporary ones that nobody finished.

    Checked again under the write lock: a writer of a payload makes sure of its file under the
    same lock. Returns how many went.
    """
    strays = [path for path in _files(folder) if not _has_row(connection, path)]
    removed = 0
    for at in range(0, len(strays), _AT_ONCE):
        with transaction(connection):
            for path in strays[at : at + _AT_ONCE]:
                if not _has_row(connection, path):
                    path.unlink(missing_ok=True)
                    removed += 1
    return removed


def _files(folder: DataFolder) -> Iterator[Path]:
    for shelf in folder.blobs.iterdir() if folder.blobs.exists() else ():
        yield from shelf.iterdir() if shelf.is_dir() else ()


def _has_row(connection: apsw.Connection, path: Path) -> bool:
    if path.name.startswith("."):
        return path.exists() and path.stat().st_mtime > time.time() - _STRAY_S
    try:
        digest = bytes.fromhex(path.parent.name + path.name)
    except ValueError:
        return True  # no file of ours
    return connection.execute(_IS_STORED, (digest,)).get is not None

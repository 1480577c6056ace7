"""One record, its versions, and rows as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from hansard_store.database.id_prefixes import find_key
from hansard_store.database.stored_json import json_of, json_text, read_only
from hansard_store.memory.records import Ended, Memory
from hansard_store.principals.model import CLAIMED

COLUMNS: Final = """
memory.id, memory.memory_id, memory.line, memory.version, memory.memory_type, memory.project,
memory.user, memory.agent, memory.trace_id, memory.chain, memory.slot, memory.state,
memory.confidence, memory.freshness_ns, memory.expires_ns, memory.created_ns, memory.writer,
memory.written_by, memory.source_trace, memory.source_steps, memory.approval_id,
memory.superseded_by, memory.contests, memory.ended_ns, memory.ended_by, memory.ended_reason,
memory.content_hmac, memory.reads, memory.last_read_ns, memory.ended_method, memory.written_method,
memory.written_principal
"""
_BY_NUMBER = f"SELECT {COLUMNS} FROM memory WHERE id IN (SELECT value FROM json_each(?))"
_BODIES = """
SELECT memory, subject, attribute, content, scope, metadata, removed FROM memory_body
WHERE memory IN (SELECT value FROM json_each(?))
"""
_TAGS = """
SELECT memory, tag FROM memory_tag INDEXED BY memory_tag_memory
WHERE memory IN (SELECT value FROM json_each(?)) ORDER BY memory, tag
"""
_IDS = "SELECT id, memory_id FROM memory WHERE id IN (SELECT value FROM json_each(?))"
_GONE = """
SELECT trace_id FROM tombstone
WHERE trace_id IN (SELECT unhex(value) FROM json_each(?))
"""
_NUMBER = "SELECT id FROM memory WHERE memory_id = ?"
_LINE = f"SELECT {COLUMNS} FROM memory WHERE line = ? ORDER BY version DESC LIMIT ?"


def get_memory(connection: apsw.Connection, prefix: str, *, now_ns: int) -> Memory:
    """Return the record whose id 8 to 32 hex digits begin or end.

    Raises NotFoundError (also for what is no id at all) and AmbiguousIdError.
    """
    number = find_number(connection, prefix)
    return memories_by_number(connection, [number], now_ns=now_ns)[number]


def find_number(connection: apsw.Connection, prefix: str) -> int:
    """Return the number of the record that an id begins; raises as `get_memory`."""
    return int(connection.execute(_NUMBER, (find_key(connection, "memory", prefix),)).get)


def versions_of(
    connection: apsw.Connection, line: int, *, now_ns: int, limit: int = 100
) -> list[Memory]:
    """Return the versions of a record, the newest first."""
    return whole(connection, connection.execute(_LINE, (line, limit)).fetchall(), now_ns=now_ns)


def memories_by_number(
    connection: apsw.Connection, numbers: Sequence[int], *, now_ns: int
) -> dict[int, Memory]:
    """Return records by their numbers; those that are not there are left out."""
    rows = connection.execute(_BY_NUMBER, (json_text(list(numbers)),)).fetchall()
    return {one.id: one for one in whole(connection, rows, now_ns=now_ns)}


def ids_of(connection: apsw.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the public ids of row numbers."""
    rows: Any = connection.execute(_IDS, (json_text(list(numbers)),))
    return {number: memory_id.hex() for number, memory_id in rows}


def gone_runs(connection: apsw.Connection, runs: Sequence[bytes]) -> set[bytes]:
    """Return those of the runs that were deleted."""
    trace_ids = json_text([one.hex() for one in dict.fromkeys(runs)])
    return {bytes(one) for (one,) in connection.execute(_GONE, (trace_ids,))}


def whole(connection: apsw.Connection, rows: Sequence[Any], *, now_ns: int) -> list[Memory]:
    """Return rows of COLUMNS as records, in their order."""
    numbers = json_text([row[0] for row in rows])
    bodies = {row[0]: row[1:] for row in connection.execute(_BODIES, (numbers,)).fetchall()}
    tags: dict[int, list[str]] = {}
    for number, tag in connection.execute(_TAGS, (numbers,)):
        tags.setdefault(number, []).append(tag)
    others = ids_of(connection, [one for row in rows for one in (row[21], row[22]) if one])
    gone = gone_runs(connection, [row[18] for row in rows if row[18]])
    return [
        _memory(row, bodies.get(row[0]), tags.get(row[0], []), others, gone, now_ns=now_ns)
        for row in rows
    ]


_NO_BODY: Final = ("", "", None, "{}", "{}", "[]")


def _memory(
    row: Any,
    body: Any,
    tags: Sequence[str],
    others: dict[int, str],
    gone: set[bytes],
    *,
    now_ns: int,
) -> Memory:
    trace_id, chain, state, expires_ns, source = row[8], row[9], row[11], row[14], row[18]
    subject, attribute, content, scope, metadata, removed = body or _NO_BODY
    has_expired = state == "current" and expires_ns is not None and expires_ns <= now_ns
    return Memory(
        id=row[0],
        memory_id=row[1].hex(),
        line=row[2],
        version=row[3],
        memory_type=row[4],
        project=row[5],
        user=row[6],
        agent=row[7],
        run_id=trace_id.hex() if trace_id else None,
        chain=f"{trace_id.hex()}-{chain.hex()}" if chain else None,
        slot=row[10],
        state="expired" if has_expired else state,
        confidence=row[12],
        freshness_ns=row[13],
        expires_ns=expires_ns,
        created_ns=row[15],
        writer=row[16],
        written_by=row[17],
        source_run_id=source.hex() if source else None,
        source_steps=tuple(json_of(row[19])),
        source_run_deleted=source in gone,
        approval_id=row[20],
        superseded_by=others.get(row[21]),
        contests=others.get(row[22]),
        ended=None if row[23] is None else Ended(row[23], row[24] or "", row[25] or "", row[29]),
        content_hmac=f"hmac-sha256:{row[26].hex()}",
        reads=row[27],
        last_read_ns=row[28],
        subject=subject,
        attribute=attribute,
        content=None if content is None else read_only(json_of(content)),
        scope=read_only(json_of(scope)),
        metadata=read_only(json_of(metadata)),
        removed=tuple(json_of(removed)),
        tags=tuple(tags),
        # Nobody was authenticated by what a record from before has.
        written_method=None if row[17] is None else row[30] or CLAIMED.method,
        written_principal=row[31],
    )

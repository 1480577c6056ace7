"""One record, its versions, and rows as records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.models.memory import Standing, Writer, as_compile_record
from hansard_store.bodies import Body, Description, body_of
from hansard_store.database.id_prefixes import find_key
from hansard_store.database.stored_json import json_of, json_text, own_copy, read_only
from hansard_store.memory.records import Access, Ended, Memory
from hansard_store.principals.model import CLAIMED, Method
from hansard_store.times import time_text

_NAMES: Final = (
    "id", "memory_id", "line", "version", "memory_type", "project", "user", "agent", "trace_id",
    "chain", "slot", "state", "confidence", "freshness_ns", "expires_ns", "created_ns", "writer",
    "written_by", "source_trace", "source_steps", "approval_id", "superseded_by", "contests",
    "ended_ns", "ended_by", "ended_reason", "content_hmac", "reads", "last_read_ns",
    "ended_method", "written_method", "written_principal",
)  # fmt: skip
COLUMNS: Final = ", ".join(f"memory.{name}" for name in _NAMES)
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
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    named = [one[name] for one in found for name in ("superseded_by", "contests") if one[name]]
    others = ids_of(connection, named)
    gone = gone_runs(connection, [one["source_trace"] for one in found if one["source_trace"]])
    return [
        _memory(one, bodies.get(one["id"], _NO_BODY), tags.get(one["id"], ()), others, gone, now_ns)
        for one in found
    ]


_NO_BODY: Final = ("", "", None, "{}", "{}", "[]")


def _memory(
    row: dict[str, Any],
    body: Sequence[Any],
    tags: Sequence[str],
    others: Mapping[int, str],
    gone: Collection[bytes],
    now_ns: int,
) -> Memory:
    trace_id, chain, source = (row.pop(name) for name in ("trace_id", "chain", "source_trace"))
    at_ns, by, why, method = (row.pop(f"ended_{it}") for it in ("ns", "by", "reason", "method"))
    subject, attribute, content, scope, metadata, removed = body
    expires_ns = row["expires_ns"]
    has_expired = row["state"] == "current" and expires_ns is not None and expires_ns <= now_ns
    # Nobody was authenticated by what a record from before has.
    written_method = None if row["written_by"] is None else row["written_method"] or CLAIMED.method
    changed = {
        "memory_id": row["memory_id"].hex(),
        "state": "expired" if has_expired else row["state"],
        "source_steps": tuple(json_of(row["source_steps"])),
        "superseded_by": others.get(row["superseded_by"]),
        "contests": others.get(row["contests"]),
        "content_hmac": f"hmac-sha256:{row['content_hmac'].hex()}",
        "written_method": written_method,
    }
    return Memory(
        **{**row, **changed},
        run_id=trace_id.hex() if trace_id else None,
        chain=f"{trace_id.hex()}-{chain.hex()}" if chain else None,
        source_run_id=source.hex() if source else None,
        source_run_deleted=source in gone,
        ended=None if at_ns is None else Ended(at_ns, by or "", why or "", method),
        subject=subject,
        attribute=attribute,
        content=None if content is None else read_only(json_of(content)),
        scope=read_only(json_of(scope)),
        metadata=read_only(json_of(metadata)),
        removed=tuple(json_of(removed)),
        tags=tuple(tags),
    )


# Memory as programs and people read it: one JSON for the API, the SDK and the commands.


class EndedBody(Body):
    """Who said that a record does not hold, and why."""

    at: str
    by: str
    method: Method
    reason: str


class MemoryBody(Body):
    """A version of a record. `content` is null after a purge."""

    memory_id: str
    memory_type: str
    layer: Literal["working", "durable"]
    subject: str
    attribute: str
    content: dict[str, Any] | str | None
    state: Standing
    version: int
    namespace: dict[str, str]
    scope: dict[str, Any]
    run_id: Annotated[str | None, Description("of working memory: whose it is")]
    chain: str | None
    slot: str | None
    confidence: float
    freshness_at: str
    expires_at: str | None
    created_at: str
    last_read_at: str | None
    reads: int
    tags: list[str]
    metadata: dict[str, Any]
    writer: Writer
    written_by: Annotated[str | None, Description("who wrote it, in the words of the sender")]
    written_method: Annotated[
        Literal["token", "session", "claimed"] | None,
        Description("how `written_by` is known; null without a name"),
    ]
    written_principal: Annotated[
        str | None,
        Description("the authenticated principal that sent it; null where there was none"),
    ]
    source_run_id: str | None
    source_step_ids: list[str]
    source_run_deleted: Annotated[bool, Description("the run it comes from was deleted")]
    approval_id: str | None
    superseded_by: str | None
    contests: Annotated[str | None, Description("what it would supersede, if a person accepts it")]
    ended: EndedBody | None
    removed: Annotated[list[str], Description("rule:fingerprint of every secret cut out")]
    content_hash: str
    freshness_ns: str
    created_ns: str
    expires_ns: str | None


class AccessBody(Body):
    """One read or write."""

    kind: str
    at: str
    memory_id: str | None
    run_id: str | None
    step_id: str | None
    agent: str | None
    origin: str
    run_deleted: bool


def memory_json(one: Memory) -> MemoryBody:
    """Return everything that is known of a version of a record."""
    return body_of(
        MemoryBody,
        one,
        layer="working" if one.is_working else "durable",
        content=own_copy(one.content),
        scope=own_copy(one.scope),
        metadata=own_copy(one.metadata),
        last_read_at=time_text(one.last_read_ns or None),
        source_step_ids=list(one.source_steps),
        ended=one.ended and _ended_body(one.ended),
        content_hash=one.content_hmac,
    )


def _ended_body(ended: Ended) -> EndedBody:
    at, method = time_text(ended.time_ns), ended.method or CLAIMED.method
    return body_of(EndedBody, ended, at=at, method=method)


def candidate_json(one: Memory) -> Json:
    """Return a record as a compile takes it."""
    return as_compile_record(memory_json(one))


def access_json(one: Access) -> AccessBody:
    """Return one read or write."""
    return body_of(AccessBody, one, at=time_text(one.time_ns), run_deleted=one.run_is_gone)

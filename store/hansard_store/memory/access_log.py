"""Who read and who wrote memory: every time, with the step that did it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.audit.events import append
from hansard_store.memory.records import Access, AccessKind, Toucher
from hansard_store.memory.rows import gone_runs, ids_of

_ADD = """
INSERT INTO memory_access (time_ns, kind, memory, trace_id, span_id, agent, origin)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_READ = """
UPDATE memory SET reads = reads + 1, last_read_ns = max(last_read_ns, ?) WHERE id = ?
"""
_LIST = """
SELECT id, time_ns, kind, memory, trace_id, span_id, agent, origin
FROM memory_access INDEXED BY {index} WHERE {wanted}
ORDER BY id DESC LIMIT :limit
"""
_OF_MEMORY = _LIST.format(
    index="memory_access_memory", wanted="memory IN (SELECT value FROM json_each(:memories))"
)
_OF_RUN = _LIST.format(index="memory_access_run", wanted="trace_id = :trace")
_OF_STEP = _LIST.format(index="memory_access_run", wanted="trace_id = :trace AND span_id = :span")
_BY_DAY = """
SELECT time_ns / 86400000000000, count(*)
FROM memory_access INDEXED BY memory_access_memory
WHERE memory IN (SELECT value FROM json_each(:memories)) AND kind = 'read' AND time_ns >= :since
GROUP BY 1
"""
_MOST_OF_RUN: Final = 200
DAY_NS: Final = 86_400_000_000_000


def record(
    connection: apsw.Connection,
    kind: AccessKind,
    memories: Sequence[int],
    who: Toucher,
    *,
    now_ns: int,
) -> None:
    """Say who touched records, inside a transaction; of none, that nothing was found."""
    columns = (who.trace_id, who.span_id, who.agent, who.origin)
    touched: Sequence[int | None] = memories or [None]
    connection.executemany(_ADD, [(now_ns, kind, one, *columns) for one in touched])
    if kind == "read":
        connection.executemany(_COUNT_READ, [(now_ns, one) for one in memories])


def record_change(
    connection: apsw.Connection,
    kind: AccessKind,
    memory: tuple[int, bytes],
    who: Toucher,
    by: Who,
    body: Json,
    *,
    now_ns: int,
    approval_key: bytes | None = None,
) -> None:
    """Say who changed a record, and append the event, inside the change's transaction.

    `memory` is its number and its id. Who decides without a step of a program is a person.
    """
    number, memory_id = memory
    record(connection, kind, [number], who, now_ns=now_ns)
    is_person = kind in ("accept", "invalidate", "purge") and who.step_id is None
    own_actor = by.actor if kind in ("expire", "supersede", "unsupersede") else Actor.AGENT
    is_written = kind in ("write", "repeat", "accept", "unsupersede")
    written = {**body, **by.proof}
    event = Event(
        type=EventType.MEMORY_WRITTEN if is_written else EventType.MEMORY_INVALIDATED,
        actor=Actor.ME if is_person else own_actor,
        who=by.name,
        action=f"memory.{kind}",
        source=who.origin,
        subject=f"memory:{memory_id.hex()}",
        time_ns=now_ns,
        approval_id=approval_key,
        trace_id=who.trace_id,
        span_id=who.span_id,
        body={name: value for name, value in written.items() if value not in (None, [], "")},
    )
    append(connection, event)


def accesses_of(
    connection: apsw.Connection, memories: Sequence[int], *, limit: int
) -> list[Access]:
    """Return who touched these records, the newest first."""
    parameters = {"memories": str(list(memories)), "limit": limit}
    return _accesses(connection, _OF_MEMORY, parameters)


def accesses_in(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes | None = None
) -> list[Access]:
    """Return what a run, or one step of it, read and wrote, the newest first."""
    parameters = {"trace": trace_id, "limit": _MOST_OF_RUN}
    if span_id is None:
        return _accesses(connection, _OF_RUN, parameters)
    return _accesses(connection, _OF_STEP, {**parameters, "span": span_id})


def reads_by_day(
    connection: apsw.Connection, memories: Sequence[int], *, now_ns: int, days: int = 30
) -> list[int]:
    """Return how often these records were read on each of the last days, the oldest first."""
    last = now_ns // DAY_NS
    since = (last - days + 1) * DAY_NS
    rows: Any = connection.execute(_BY_DAY, {"memories": str(list(memories)), "since": since})
    found = dict(rows)
    return [int(found.get(day, 0)) for day in range(last - days + 1, last + 1)]


def _accesses(connection: apsw.Connection, sql: str, parameters: Mapping[str, Any]) -> list[Access]:
    rows: list[Any] = connection.execute(sql, parameters).fetchall()
    ids = ids_of(connection, [row[3] for row in rows if row[3] is not None])
    gone = gone_runs(connection, [row[4] for row in rows if row[4]])
    return [
        Access(
            id=number,
            time_ns=time_ns,
            kind=kind,
            memory_id=ids.get(memory),
            run_id=trace_id.hex() if trace_id else None,
            step_id=f"{trace_id.hex()}-{span_id.hex()}" if trace_id and span_id else None,
            agent=agent,
            origin=origin,
            run_is_gone=trace_id in gone,
        )
        for number, time_ns, kind, memory, trace_id, span_id, agent, origin in rows
    ]

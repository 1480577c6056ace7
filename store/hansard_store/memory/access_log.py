"""Who read and who wrote memory: every time, with the step that did it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from hansard_store.memory.records import Access, AccessKind, Toucher
from hansard_store.memory.rows import gone_runs, ids_of

_ADD = """
INSERT INTO memory_access (time_ns, kind, memory, trace_id, span_id, agent, origin)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_READ = """
UPDATE memory SET reads = reads + 1, last_read_ns = max(last_read_ns, ?) WHERE id = ?
"""
_COLUMNS = "id, time_ns, kind, memory, trace_id, span_id, agent, origin"
_OF_MEMORY = f"""
SELECT {_COLUMNS} FROM memory_access INDEXED BY memory_access_memory
WHERE memory IN (SELECT value FROM json_each(:memories)) AND id < :before
ORDER BY id DESC LIMIT :limit
"""
_OF_RUN = f"""
SELECT {_COLUMNS} FROM memory_access INDEXED BY memory_access_run
WHERE trace_id = :trace AND id < :before ORDER BY id DESC LIMIT :limit
"""
_OF_STEP = f"""
SELECT {_COLUMNS} FROM memory_access INDEXED BY memory_access_run
WHERE trace_id = :trace AND span_id = :span ORDER BY id DESC LIMIT :limit
"""
_BY_DAY = """
SELECT time_ns / 86400000000000, count(*)
FROM memory_access INDEXED BY memory_access_memory
WHERE memory IN (SELECT value FROM json_each(:memories)) AND kind = 'read' AND time_ns >= :since
GROUP BY 1
"""
_ABOVE_ALL: Final = (1 << 63) - 1
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


def accesses_of(
    connection: apsw.Connection, memories: Sequence[int], *, before: int = _ABOVE_ALL, limit: int
) -> list[Access]:
    """Return who touched these records, the newest first."""
    parameters = {"memories": str(list(memories)), "before": before, "limit": limit}
    return _accesses(connection, connection.execute(_OF_MEMORY, parameters).fetchall())


def accesses_in_run(
    connection: apsw.Connection, trace_id: bytes, *, before: int = _ABOVE_ALL, limit: int = 200
) -> list[Access]:
    """Return what a run read and wrote, the newest first."""
    parameters = {"trace": trace_id, "before": before, "limit": limit}
    return _accesses(connection, connection.execute(_OF_RUN, parameters).fetchall())


def accesses_in_step(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes, *, limit: int = 200
) -> list[Access]:
    """Return what a step read and wrote, the newest first."""
    parameters = {"trace": trace_id, "span": span_id, "limit": limit}
    return _accesses(connection, connection.execute(_OF_STEP, parameters).fetchall())


def reads_by_day(
    connection: apsw.Connection, memories: Sequence[int], *, now_ns: int, days: int = 30
) -> list[int]:
    """Return how often these records were read on each of the last days, the oldest first."""
    last = now_ns // DAY_NS
    since = (last - days + 1) * DAY_NS
    rows: Any = connection.execute(_BY_DAY, {"memories": str(list(memories)), "since": since})
    found = dict(rows)
    return [int(found.get(day, 0)) for day in range(last - days + 1, last + 1)]


def _accesses(connection: apsw.Connection, rows: Sequence[Any]) -> list[Access]:
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

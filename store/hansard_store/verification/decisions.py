"""Decisions on memory and tasks against the audit log: who took each, and how that is known.

Each of them is one chained event in the transaction that wrote its row. What a row says otherwise
than its last event is named by its column. Seals hold these rows as well, without saying which
column differs; rows of before their decisions were events are held by seals alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from hansard_store.audit.event_types import EventType
from hansard_store.database.stored_json import object_of

_AT_ONCE: Final = 500
_MEMORY: Final = """
SELECT id, lower(hex(memory_id)), state, ended_by, ended_method FROM memory
WHERE id > ? AND ended_ns IS NOT NULL ORDER BY id LIMIT ?
"""
_TASKS: Final = """
SELECT id, lower(hex(task_id)), state, decided_by, decided_method, decided_origin, done_by,
  done_method
FROM task WHERE id > ? ORDER BY id LIMIT ?
"""
_EVENTS: Final = """
SELECT subject, seq, action, source, who, body FROM event INDEXED BY event_subject
WHERE subject IN (SELECT value FROM json_each(?)) AND type = ? ORDER BY subject, seq
"""
# The log has an end of it that the row has not.
_UNENDED: Final = """
SELECT lower(hex(memory_id)), state, event.seq FROM event INDEXED BY event_action
CROSS JOIN memory ON memory.memory_id = unhex(substr(event.subject, 8))
WHERE event.action IN ('memory.invalidate', 'memory.purge')
  AND memory.ended_ns IS NULL ORDER BY event.seq
"""
_ENDS: Final = {"memory.invalidate": "invalidated", "memory.purge": "purged"}
_DECIDED: Final = {"task.approve": "approved", "task.dismiss": "dismissed"}

Found = Iterator[tuple[str, str, str]]  # table, row, message


@dataclass(slots=True)
class _Expected:
    """The columns that events must have left, and the event that says so."""

    columns: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def set(self, seq: int, **columns: Any) -> None:
        self.columns |= {name: (value, seq) for name, value in columns.items()}


def check_decisions(connection: apsw.Connection) -> Found:
    """Yield every decision on memory or a task that its row tells otherwise than the log."""
    yield from _ended_memory(connection)
    for memory_id, state, seq in connection.execute(_UNENDED):
        yield "memory", str(memory_id), f"is {state}, and ended by event {seq}"
    yield from _decided_tasks(connection)


def _ended_memory(connection: apsw.Connection) -> Found:
    names = ("state", "ended_by", "ended_method")
    for rows in _pages(connection, _MEMORY):
        events = _events_of(connection, "memory", rows, EventType.MEMORY_INVALIDATED)
        for _, memory_id, *values in rows:
            expected = _Expected()
            for seq, action, _, who, body in events.get(f"memory:{memory_id}", ()):
                if action in _ENDS:
                    method = body.get("auth_method")
                    expected.set(seq, state=_ENDS[action], ended_by=who, ended_method=method)
            row = dict(zip(names, values, strict=True))
            if not expected.columns:
                ended = f"is {row['state']} by {row['ended_by'] or 'nobody'}"
                yield "memory", memory_id, f"{ended}, and the audit log knows nothing of it"
            yield from _differences("memory", memory_id, row, expected)


def _decided_tasks(connection: apsw.Connection) -> Found:
    names = ("state", "decided_by", "decided_method", "decided_origin", "done_by", "done_method")
    for rows in _pages(connection, _TASKS):
        events = _events_of(connection, "task", rows, EventType.TASK_DECIDED)
        for _, task_id, *values in rows:
            expected = _Expected()
            for seq, action, source, who, body in events.get(f"task:{task_id}", ()):
                method = body.get("auth_method")
                if action in _DECIDED:
                    expected.set(seq, state=_DECIDED[action], decided_by=who, decided_origin=source)
                    expected.set(seq, decided_method=method)
                elif action == "task.done":
                    expected.set(seq, state="done", done_by=who, done_method=method)
            row = dict(zip(names, values, strict=True))
            for method, by in (("decided_method", "decided_by"), ("done_method", "done_by")):
                # Without a method it is of a version whose decisions were no events.
                if row[method] is not None and method not in expected.columns:
                    problem = f"has {by} {row[by]}, and the audit log knows nothing of it"
                    yield "task", task_id, problem
            yield from _differences("task", task_id, row, expected)


def _pages(connection: apsw.Connection, sql: str) -> Iterator[list[Any]]:
    after: Any = 0
    while rows := connection.execute(sql, (after, _AT_ONCE)).fetchall():
        yield rows
        after = rows[-1][0]


def _events_of(
    connection: apsw.Connection, kind: str, rows: Sequence[Any], type: EventType
) -> dict[str, list[tuple[int, str, str, str, Mapping[str, Any]]]]:
    """Return the events of some rows by subject: number, action, source, who, body."""
    subjects = _json_list([f"{kind}:{row[1]}" for row in rows])
    found: dict[str, list[tuple[int, str, str, str, Mapping[str, Any]]]] = {}
    for row in connection.execute(_EVENTS, (subjects, str(type))):
        subject, seq, action, source, who, body = row
        found.setdefault(subject, []).append((seq, action, source, who or "", object_of(body)))
    return found


def _differences(table: str, key: str, row: Mapping[str, Any], expected: _Expected) -> Found:
    for name, (value, seq) in expected.columns.items():
        found = row[name]
        if (found or "") != (value or ""):
            yield table, key, f"has {name} {found or 'none'}, and {value or 'none'} by event {seq}"


def _json_list(texts: Sequence[str]) -> str:
    return "[" + ",".join(f'"{one}"' for one in texts) + "]"

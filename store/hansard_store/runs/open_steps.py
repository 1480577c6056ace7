"""Where a run stands: its root, its open steps, and whether a tool call was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

_PLACE = """
SELECT run.id, run.root_span, run.span_count, run.agent_name, run.conversation_id
FROM run WHERE trace_id = ?
"""
_COLUMNS = """
SELECT span.id, span.span_id, parent_span_id, span.name, end_ns, role, tool_call_id, tool_name,
  scope.name
"""
_STEP = f"{_COLUMNS} FROM span JOIN scope ON scope.id = span.scope "
_BY_ID = _STEP + "WHERE span.id = ?"
_BY_SPAN_ID = _STEP + "WHERE trace_id = ? AND span_id = ? ORDER BY side LIMIT 1"
_OPEN = f"""
{_COLUMNS} FROM span INDEXED BY span_open CROSS JOIN scope ON scope.id = span.scope
WHERE trace_id = :trace AND end_ns IS NULL AND scope.name = :scope ORDER BY span.id
"""
_ANSWER = """
SELECT ran FROM tool_event WHERE run = ? AND call_id = ? AND ran IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A run as those see it who go on with it."""

    id: int
    root_span: int | None  # span.id; None before its root came
    span_count: int
    agent_name: str | None
    conversation_id: str | None


@dataclass(frozen=True, slots=True)
class StepPlace:
    """A step as those see it who go on with it."""

    id: int  # span.id
    span_id: bytes
    parent_span_id: bytes | None
    name: str
    end_ns: int | None  # None: open
    role: str
    tool_call_id: str | None
    tool_name: str | None
    scope: str

    @property
    def is_open(self) -> bool:
        return self.end_ns is None


def find_run_place(connection: apsw.Connection, trace_id: bytes) -> RunPlace | None:
    """Return where a run stands; None where there is none."""
    row: Any = connection.execute(_PLACE, (trace_id,)).fetchone()
    return None if row is None else RunPlace(*row)


def find_step_by_number(connection: apsw.Connection, number: int) -> StepPlace | None:
    row: Any = connection.execute(_BY_ID, (number,)).fetchone()
    return None if row is None else StepPlace(*row)


def find_step_place(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes
) -> StepPlace | None:
    """Return a step by its ids."""
    row: Any = connection.execute(_BY_SPAN_ID, (trace_id, span_id)).fetchone()
    return None if row is None else StepPlace(*row)


def open_steps(connection: apsw.Connection, trace_id: bytes, *, scope: str) -> list[StepPlace]:
    """Return the open steps of a run that one scope tells, in the order they came."""
    rows: Any = connection.execute(_OPEN, {"trace": trace_id, "scope": scope})
    return [StepPlace(*row) for row in rows]


def find_answer(connection: apsw.Connection, run: int, call_id: str) -> StepPlace | None:
    """Return the step that ran a tool call, open or ended; None where none has."""
    row: Any = connection.execute(_ANSWER, (run, call_id)).fetchone()
    return None if row is None else find_step_by_number(connection, row[0])

"""Tool calls as requested by a model and as ran by a span, joined and counted once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from hansard_store.ingest.derived_rows import ToolProjection
from hansard_store.ingest.in_memory_runs import TOOL_HALVES, ToolHalf
from hansard_store.runs.projection import RunState

_BY_CALL_ID = "SELECT id FROM tool_event WHERE run = ? AND call_id = ?"
# By the half that a step tells: where one side tells no call id, the first of that name that lacks
# it, of all or of those without a call id; and what adds it.
_LACKING = {
    half: f"SELECT id FROM tool_event WHERE run = ? AND name = ? AND {half} IS NULL LIMIT 1"
    for half in TOOL_HALVES
}
_LACKING_WITHOUT_ID = {
    half: sql.replace(" AND ", " AND call_id IS NULL AND ", 1) for half, sql in _LACKING.items()
}
_ADD = {
    half: f"INSERT INTO tool_event (run, call_id, name, {half}) VALUES (?, ?, ?, ?)"
    for half in TOOL_HALVES
}
_SET = {
    half: f"UPDATE tool_event SET {half} = coalesce({half}, ?) WHERE id = ?" for half in TOOL_HALVES
}
_CLEAR = [f"UPDATE tool_event SET {half} = NULL WHERE {half} = ?" for half in TOOL_HALVES]
_BY_RAN = "SELECT id, requested FROM tool_event WHERE ran = ?"
_MOVE_RAN = "UPDATE tool_event SET ran = ? WHERE id = ?"
_DROP = "DELETE FROM tool_event WHERE id = ?"
_SWEEP = "DELETE FROM tool_event WHERE run = ? AND requested IS NULL AND ran IS NULL"

# A pair of halves in two runs: requested in one, run in another.
_IN_TWO_RUNS = """
SELECT coalesce(sum(pairs), 0) FROM (
  SELECT min(sum(ran IS NULL), sum(requested IS NULL)) AS pairs
  FROM json_each(:runs) AS wanted JOIN tool_event ON tool_event.run = wanted.value
  WHERE call_id IS NOT NULL AND (ran IS NULL OR requested IS NULL)
  GROUP BY call_id, name)
"""


def count_in_two_runs(connection: apsw.Connection, runs: Iterable[int]) -> int:
    """Return how many tool calls some runs (run.id) count twice together.

    Gemini CLI asks for a tool in one trace and runs it in another: each run tells of the call, and
    over both it is one. A call id that comes back in every round pairs within its own run.
    """
    found: int = connection.execute(_IN_TWO_RUNS, {"runs": json.dumps(list(runs))}).get
    return found


def add_half(
    connection: apsw.Connection, run: RunState, half: ToolHalf, tool: ToolProjection, *, span: int
) -> None:
    """Note that a model requested a tool, or that a span ran it, joining the other half."""
    if run.fresh is not None:
        run.tool_calls += run.fresh.add_half(half, tool, span=span)
        return
    found = _find(connection, run, half, tool)
    if found is not None:
        connection.execute(_SET[half], (span, found))
        return
    connection.execute(_ADD[half], (run.id, tool.call_id, tool.name, span))
    run.tool_calls += 1


def remove(connection: apsw.Connection, run: RunState, span: int) -> None:
    """Take back what a span reported about tool calls."""
    run.read_tables(connection)
    for sql in _CLEAR:
        connection.execute(sql, (span,))
    connection.execute(_SWEEP, (run.id,))
    run.tool_calls -= connection.changes()


def hand_over(connection: apsw.Connection, run: RunState, *, inner: int, outer: int) -> None:
    """Let the outer of two steps about one tool run stand for both."""
    run.read_tables(connection)
    theirs: Any = connection.execute(_BY_RAN, (inner,)).fetchone()
    if theirs is None:
        return
    row: Any = connection.execute(_BY_RAN, (outer,)).fetchone()
    if row is None:
        connection.execute(_MOVE_RAN, (outer, theirs[0]))
        return
    event, requested = theirs
    if requested is not None and row[1] is None:
        # The inner one had found the request that both answer.
        connection.execute(_DROP, (row[0],))
        connection.execute(_MOVE_RAN, (outer, event))
        run.tool_calls -= 1
    else:
        remove(connection, run, inner)


def _find(
    connection: apsw.Connection, run: RunState, half: ToolHalf, tool: ToolProjection
) -> int | None:
    """Return the event of a call id; without one on either side, the next of the tool's name."""
    found: int | None = None
    if tool.call_id is not None:
        found = connection.execute(_BY_CALL_ID, (run.id, tool.call_id)).get
    if found is None and tool.name is not None:
        by_name = _LACKING if tool.call_id is None else _LACKING_WITHOUT_ID
        found = connection.execute(by_name[half], (run.id, tool.name)).get
    return found

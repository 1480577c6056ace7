"""Tool calls as requested by a model and as ran by a span, joined and counted once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from hansard_store.ingest.derived_rows import ToolProjection
from hansard_store.runs.projection import RunState

_BY_CALL_ID = "SELECT id FROM tool_event WHERE run = ? AND call_id = ?"
# Where one side tells no call id: the first of that name whose other half is missing.
_UNRUN = """
SELECT id FROM tool_event WHERE run = ? AND name = ? AND ran IS NULL LIMIT 1
"""
_UNRUN_WITHOUT_ID = """
SELECT id FROM tool_event WHERE run = ? AND name = ? AND call_id IS NULL AND ran IS NULL LIMIT 1
"""
_UNREQUESTED = """
SELECT id FROM tool_event WHERE run = ? AND name = ? AND requested IS NULL LIMIT 1
"""
_UNREQUESTED_WITHOUT_ID = """
SELECT id FROM tool_event
WHERE run = ? AND name = ? AND call_id IS NULL AND requested IS NULL LIMIT 1
"""
_ADD = "INSERT INTO tool_event (run, call_id, name, requested, ran) VALUES (?, ?, ?, ?, ?)"
_SET_RAN = "UPDATE tool_event SET ran = coalesce(ran, ?) WHERE id = ?"
_SET_REQUESTED = "UPDATE tool_event SET requested = coalesce(requested, ?) WHERE id = ?"
_DROP_RAN = "UPDATE tool_event SET ran = NULL WHERE ran = ?"
_DROP_REQUESTED = "UPDATE tool_event SET requested = NULL WHERE requested = ?"
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


def add_ran(connection: apsw.Connection, run: RunState, tool: ToolProjection, *, span: int) -> None:
    """Note that a span ran a tool, joining the request it answers."""
    if run.fresh is not None:
        run.tool_calls += run.fresh.add_ran(tool, span=span)
        return
    found = _find(connection, run, tool, _UNRUN, _UNRUN_WITHOUT_ID)
    if found is not None:
        connection.execute(_SET_RAN, (span, found))
        return
    connection.execute(_ADD, (run.id, tool.call_id, tool.name, None, span))
    run.tool_calls += 1


def add_requested(
    connection: apsw.Connection, run: RunState, tools: Iterable[ToolProjection], *, span: int
) -> None:
    """Note the tool calls that a model requested."""
    for tool in tools:
        if run.fresh is not None:
            run.tool_calls += run.fresh.add_requested(tool, span=span)
            continue
        found = _find(connection, run, tool, _UNREQUESTED, _UNREQUESTED_WITHOUT_ID)
        if found is not None:
            connection.execute(_SET_REQUESTED, (span, found))
            continue
        connection.execute(_ADD, (run.id, tool.call_id, tool.name, span, None))
        run.tool_calls += 1


def remove(connection: apsw.Connection, run: RunState, span: int) -> None:
    """Take back what a span reported about tool calls."""
    run.ask_tables(connection)
    connection.execute(_DROP_RAN, (span,))
    connection.execute(_DROP_REQUESTED, (span,))
    connection.execute(_SWEEP, (run.id,))
    run.tool_calls -= connection.changes()


def hand_over(connection: apsw.Connection, run: RunState, *, inner: int, outer: int) -> None:
    """Let the outer of two steps about one tool run stand for both."""
    run.ask_tables(connection)
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
    connection: apsw.Connection, run: RunState, tool: ToolProjection, any_of_name: str, blank: str
) -> int | None:
    """Return the event of a call id; without one on either side, the next of the tool's name."""
    found: int | None = None
    if tool.call_id is not None:
        found = connection.execute(_BY_CALL_ID, (run.id, tool.call_id)).get
    if found is None and tool.name is not None:
        by_name = any_of_name if tool.call_id is None else blank
        found = connection.execute(by_name, (run.id, tool.name)).get
    return found

"""What counts: every model call once, a repeated sum only while nothing below it reports any.

Spans arrive in any order, children mostly before their parents, so each rule works from both ends.
A counted usage marks its ancestors upwards (`usage_below`), also past the point the tree has grown
to; a sum under a mark is not counted, and a mark that reaches a counted sum takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from hansard_store.error_groups.steps import settle as settle_error
from hansard_store.ingest.derived_rows import Usage
from hansard_store.runs.projection import USAGE_COLUMNS, RunState
from hansard_store.steps.flags import SpanFlag

_COLUMNS = ", ".join(USAGE_COLUMNS)
_MARK = "INSERT OR IGNORE INTO usage_below (trace_id, span_id) VALUES (?, ?)"
_IS_MARKED = "SELECT 1 FROM usage_below WHERE trace_id = ? AND span_id = ?"
_PARENTS = "SELECT id, parent_span_id FROM span WHERE trace_id = ? AND span_id = ?"
_SUM = f"SELECT counted, {_COLUMNS} FROM usage_sum WHERE span = ?"
_ADD_SUM = f"""
INSERT INTO usage_sum (span, run, counted, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_UNCOUNT_SUM = "UPDATE usage_sum SET counted = 0 WHERE span = ?"
_DROP_SUM = "DELETE FROM usage_sum WHERE span = ?"
_CALL = f"SELECT response_id, counted, {_COLUMNS} FROM call WHERE span = ?"
_COUNT_CALL = "UPDATE call SET counted = ? WHERE span = ?"
_DROP_CALL = "DELETE FROM call WHERE span = ?"
_IS_REPORTED = {
    column: f"""
SELECT 1 FROM call WHERE run = :run AND counted = 1 AND {column} IS NOT NULL
UNION ALL
SELECT 1 FROM usage_sum WHERE run = :run AND counted = 1 AND {column} IS NOT NULL
LIMIT 1
"""
    for column in USAGE_COLUMNS
}
_REPORTED_BY_STEP = f"SELECT {_COLUMNS} FROM span WHERE id = ?"
_LAST_CALL = f"""
SELECT span.flags & {int(SpanFlag.ERROR)} FROM call JOIN span ON span.id = call.span
WHERE call.run = ?
  AND (call.counted = 1 OR span.flags & {int(SpanFlag.REPORTED_ELSEWHERE)})
ORDER BY coalesce(span.end_ns, span.sort_ns) DESC, span.span_id DESC LIMIT 1
"""
# A try that failed and was made again has a later one, and an agent around it ends after both.
_LAST_AGENT = f"""
SELECT flags & {int(SpanFlag.ERROR)} FROM span
WHERE trace_id = ? AND role = 'agent' AND parent_span_id IS NOT NULL
ORDER BY coalesce(end_ns, sort_ns) DESC, span_id DESC LIMIT 1
"""
_ELSEWHERE = f"""
SELECT {", ".join(f"coalesce(sum(call.{column}), 0)" for column in USAGE_COLUMNS)}
FROM call JOIN span ON span.id = call.span
WHERE call.run = ? AND span.flags & {int(SpanFlag.REPORTED_ELSEWHERE)}
"""
_FLAGS = "SELECT flags FROM span WHERE id = ?"
_SET_FLAGS = "UPDATE span SET flags = ? WHERE id = ?"
_NO_STEP = SpanFlag.DUPLICATE | SpanFlag.FOLDED


def mark_above(connection: apsw.Connection, run: RunState, parent_span_id: bytes | None) -> None:
    """Mark a usage's ancestors, from its parent up to the first that is marked already."""
    if run.fresh is not None:
        for span in run.fresh.mark_above(parent_span_id):
            _uncount_sum(connection, run, span)
        return
    execute = connection.execute
    while parent_span_id is not None:
        execute(_MARK, (run.trace_id, parent_span_id))
        if connection.changes() == 0:
            return
        rows: list[Any] = execute(_PARENTS, (run.trace_id, parent_span_id)).fetchall()
        for span, _ in rows:
            _uncount_sum(connection, run, span)
        parent_span_id = next((parent for _, parent in rows if parent is not None), None)


def is_marked(connection: apsw.Connection, run: RunState, span_id: bytes) -> bool:
    """Return whether something below this span has a counted usage."""
    if run.fresh is not None:
        return run.fresh.is_marked(span_id)
    return connection.execute(_IS_MARKED, (run.trace_id, span_id)).get is not None


def add_sum(
    connection: apsw.Connection, run: RunState, *, span: int, usage: Usage, counted: bool
) -> None:
    """Store the sum that a span repeats, counting it while nothing below reports any."""
    connection.execute(_ADD_SUM, (span, run.id, int(counted), *usage))
    if run.fresh is not None:
        run.fresh.add_sum(span)
    if counted:
        run.add_usage(usage)


def remove_sum(connection: apsw.Connection, run: RunState, span: int) -> None:
    """Take a span's sum out of the totals and the table."""
    _uncount_sum(connection, run, span)
    connection.execute(_DROP_SUM, (span,))


def _uncount_sum(connection: apsw.Connection, run: RunState, span: int) -> None:
    row = connection.execute(_SUM, (span,)).fetchone()
    if row is not None and row[0]:
        connection.execute(_UNCOUNT_SUM, (span,))
        _take_back(connection, run, Usage(*row[1:]))


def set_call_counted(
    connection: apsw.Connection, run: RunState, span: int, *, counted: bool
) -> None:
    """Count a stored call, or take it out of the totals and mark its step as a duplicate."""
    _count_call(connection, run, span, counted=counted)
    set_flags(connection, run, span, duplicate=not counted, elsewhere=False)


def set_reported_elsewhere(
    connection: apsw.Connection, run: RunState, span: int, *, elsewhere: bool
) -> None:
    """Take a call out of the totals that another trace reports as well, or count it again.

    It stays a step of its run.
    """
    _count_call(connection, run, span, counted=not elsewhere)
    set_flags(connection, run, span, elsewhere=elsewhere)
    run.changed = True


def _count_call(connection: apsw.Connection, run: RunState, span: int, *, counted: bool) -> None:
    row = connection.execute(_CALL, (span,)).fetchone()
    if row is None:
        return
    run.reports(row[0])
    if bool(row[1]) == counted:
        return
    connection.execute(_COUNT_CALL, (int(counted), span))
    run.model_calls += 1 if counted else -1
    if counted:
        run.add_usage(Usage(*row[2:]))
    else:
        _take_back(connection, run, Usage(*row[2:]))


def remove_call(connection: apsw.Connection, run: RunState, span: int) -> None:
    """Take a span's call, if it has one, out of the totals and the table."""
    row = connection.execute(_CALL, (span,)).fetchone()
    connection.execute(_DROP_CALL, (span,))
    if row is None:
        return
    run.reports(row[0])
    if row[1]:
        run.model_calls -= 1
        _take_back(connection, run, Usage(*row[2:]))


def _take_back(connection: apsw.Connection, run: RunState, usage: Usage) -> None:
    """Subtract numbers that no row counts any more; what nobody tells is unknown again, not 0."""
    for column, value in zip(USAGE_COLUMNS, usage, strict=True):
        if value is None:
            continue
        rest = (getattr(run, column) or 0) - value
        is_known = (
            rest != 0 or connection.execute(_IS_REPORTED[column], {"run": run.id}).get is not None
        )
        setattr(run, column, rest if is_known else None)


def follow_roots(connection: apsw.Connection, runs: Iterable[RunState]) -> None:
    """Set what of runs depends on their root and on all calls below it, at a transaction's end."""
    for run in runs:
        if run.root_flags:
            _follow_root(connection, run)


def _follow_root(connection: apsw.Connection, run: RunState) -> None:
    follows = run.root_flags & (SpanFlag.FOLLOWS_CALLS | SpanFlag.FOLLOWS_AGENTS)
    if follows and run.status in ("ok", "error"):
        run.status = "error" if _has_failed(connection, run) else "ok"
    if run.root_flags & SpanFlag.SUM_IS_WHOLE and run.root_span is not None:
        _count_rest(connection, run, run.root_span)


def _has_failed(connection: apsw.Connection, run: RunState) -> bool:
    """Return whether the last agent below a root failed; where there is none, the last call."""
    failed: int | None = None
    if run.root_flags & SpanFlag.FOLLOWS_AGENTS:
        failed = connection.execute(_LAST_AGENT, (run.trace_id,)).get
    if failed is None:
        failed = connection.execute(_LAST_CALL, (run.id,)).get
    return bool(failed)


def _count_rest(connection: apsw.Connection, run: RunState, root: int) -> None:
    """Count of the sum that a root reports what the calls below it do not report.

    The row of the sum then holds the rest, and the step itself the sum. Calls below that another
    trace counts are no part of the rest.
    """
    remove_sum(connection, run, root)
    whole: Any = connection.execute(_REPORTED_BY_STEP, (root,)).fetchone()
    elsewhere: Any = connection.execute(_ELSEWHERE, (run.id,)).fetchone()
    below = [(getattr(run, column) or 0) for column in USAGE_COLUMNS]
    rest = Usage(*map(_rest, whole, below, elsewhere))
    connection.execute(_ADD_SUM, (root, run.id, 1, *rest))
    run.add_usage(rest)


def _rest(whole: int | None, below: int, elsewhere: int) -> int | None:
    rest = 0 if whole is None else whole - below - elsewhere
    return rest if rest > 0 else None


def is_step(flags: int) -> bool:
    """Return whether a span is a step of its own: no duplicate, and not folded into another."""
    return not flags & _NO_STEP


def is_work(role: str, tool_name: str | None) -> bool:
    """Return whether a step is an agent's work: its run is of kind `agent` then.

    Every role but `other` is; of MCP's messages those that name a tool.
    """
    return role != "other" and (role != "mcp" or tool_name is not None)


def set_flags(
    connection: apsw.Connection,
    run: RunState,
    span: int,
    *,
    duplicate: bool | None = None,
    folded: bool | None = None,
    elsewhere: bool | None = None,
) -> None:
    """Set or clear why a span is not counted, or no step of its own; count the steps by it."""
    before: int | None = connection.execute(_FLAGS, (span,)).get
    if before is None:
        return
    after = before
    for flag, on in (
        (SpanFlag.DUPLICATE, duplicate),
        (SpanFlag.FOLDED, folded),
        (SpanFlag.REPORTED_ELSEWHERE, elsewhere),
    ):
        if on is not None:
            after = after | flag if on else after & ~flag
    if after != before:
        connection.execute(_SET_FLAGS, (int(after), span))
        run.step_count += is_step(after) - is_step(before)
        if after & SpanFlag.ERROR:
            settle_error(connection, span)

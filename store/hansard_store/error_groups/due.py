"""Steps that failed before there were rows for them: which of them are still without one."""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw

from hansard_store.steps.flags import SpanFlag

_IS_DUE: Final = "SELECT 1 FROM setting WHERE name = 'error_steps_due'"
_DUE: Final = f"""
SELECT span.id, span.sort_ns, span.trace_id, span.span_id FROM span INDEXED BY span_failed
WHERE flags & {SpanFlag.ERROR} AND (sort_ns, id) < (:at_ns, :span) AND derived_version <> 0
  AND NOT EXISTS (SELECT 1 FROM error_step WHERE error_step.span = span.id)
ORDER BY sort_ns DESC, id DESC LIMIT :limit
"""
_DONE: Final = "DELETE FROM setting WHERE name = 'error_steps_due'"


class DueStep(NamedTuple):
    """A failed step without a row."""

    span: int
    at_ns: int
    trace_id: bytes
    span_id: bytes


def is_due(connection: apsw.Connection) -> bool:
    """Return whether lists of errors may miss some that failed before the last upgrade."""
    return connection.execute(_IS_DUE).get is not None


def due_steps(connection: apsw.Connection, *, before: tuple[int, int], limit: int) -> list[DueStep]:
    """Return failed steps without a row before a time and number, the newest first."""
    parameters = {"at_ns": before[0], "span": before[1], "limit": limit}
    return [DueStep(*row) for row in connection.execute(_DUE, parameters)]


def set_done(connection: apsw.Connection) -> None:
    """Say that none is left."""
    connection.execute(_DONE)

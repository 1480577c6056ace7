"""What stands around a compile in its run: the ones before and after it, its policy checks."""

from __future__ import annotations

from typing import Any

import apsw

from hansard_store.compilations.queries import Compilation, compilation_of_span

_BEFORE = """
SELECT span FROM compilation
WHERE run = :run AND (started_ns, span) < (:started_ns, :span) AND model IS :model
ORDER BY started_ns DESC, span DESC LIMIT 1
"""
_AFTER = """
SELECT span FROM compilation
WHERE run = :run AND (started_ns, span) > (:started_ns, :span) AND model IS :model
ORDER BY started_ns, span LIMIT 1
"""
_POLICY_BELOW = """
SELECT policy.id FROM span AS compile CROSS JOIN span AS policy
  ON policy.trace_id = compile.trace_id AND policy.parent_span_id = compile.span_id
WHERE compile.id = :span AND policy.role = 'policy'
ORDER BY policy.sort_ns, policy.id LIMIT 8
"""


def compilation_before(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made before this one."""
    return _neighbour(connection, _BEFORE, made)


def compilation_after(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made after this one."""
    return _neighbour(connection, _AFTER, made)


def policy_spans_of(connection: apsw.Connection, made: Compilation) -> list[int]:
    """Return the spans (by span.id) that tell what policy said during a compile, at most 8."""
    return [row[0] for row in connection.execute(_POLICY_BELOW, {"span": made.span})]


def _neighbour(connection: apsw.Connection, sql: str, made: Compilation) -> Compilation | None:
    place: dict[str, Any] = {
        "run": made.run,
        "span": made.span,
        "started_ns": made.row.started_ns,
        "model": made.row.model,
    }
    span = connection.execute(sql, place).get
    return None if span is None else compilation_of_span(connection, span)

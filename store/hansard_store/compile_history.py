"""The compiles of one run in the order in which they were made."""

from __future__ import annotations

from typing import Any

import apsw

from hansard_store.compilations import Compilation, compilation_of_span

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


def compilation_before(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made before this one."""
    return _neighbour(connection, _BEFORE, made)


def compilation_after(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made after this one."""
    return _neighbour(connection, _AFTER, made)


def _neighbour(connection: apsw.Connection, sql: str, made: Compilation) -> Compilation | None:
    place: dict[str, Any] = {
        "run": made.run,
        "span": made.span,
        "started_ns": made.row.started_ns,
        "model": made.row.model,
    }
    span = connection.execute(sql, place).get
    return None if span is None else compilation_of_span(connection, span)

"""What a rebuild has to do, and how far it is."""

from __future__ import annotations

from typing import Any

import apsw

_ALL = "SELECT trace_id FROM run WHERE id > ? ORDER BY id"
_OLD = """
SELECT trace_id FROM run
WHERE id > ? AND EXISTS (
  SELECT 1 FROM span WHERE span.trace_id = run.trace_id AND derived_version < ?)
ORDER BY id
"""
_SPANS = "SELECT id FROM span WHERE trace_id = ? ORDER BY id"
_DERIVED = "SELECT id FROM span WHERE trace_id = ? AND derived_version <> 0"
_IS_BARE = "SELECT 1 FROM span WHERE id = ? AND derived_version = 0"
_IS_DUE = "SELECT 1 FROM span WHERE derived_version < ? LIMIT 1"
_SET_OLDER = """
UPDATE span SET derived_version = ?2
WHERE id = (SELECT id FROM span WHERE trace_id = ?1 AND derived_version > ?2 LIMIT 1)
"""
_LOGS = "SELECT id FROM log_record WHERE id > ? ORDER BY id LIMIT 100"
_READ_STATE = "SELECT value FROM setting WHERE name = 'rebuild'"
_WRITE_STATE = """
INSERT INTO setting (name, value) VALUES ('rebuild', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_RUNS_LEFT = "SELECT count(*) FROM run WHERE id > ?"
_DROP_STATE = "DELETE FROM setting WHERE name = 'rebuild'"


def runs_after(connection: apsw.Connection, run: int, *, older_than: int | None) -> list[bytes]:
    """Return the trace ids of later runs, or of those that an older version derived."""
    if older_than is None:
        return _column(connection, _ALL, run)
    return _column(connection, _OLD, run, older_than)


def spans_of(connection: apsw.Connection, trace_id: bytes) -> list[int]:
    """Return the numbers of a run's spans, in the order in which they came."""
    return _column(connection, _SPANS, trace_id)


def derived_spans_of(connection: apsw.Connection, trace_id: bytes) -> list[int]:
    """Return the numbers of those of a run's spans of which something is derived."""
    return _column(connection, _DERIVED, trace_id)


def logs_after(connection: apsw.Connection, log: int) -> list[int]:
    """Return the numbers of the next hundred log records."""
    return _column(connection, _LOGS, log)


def is_bare(connection: apsw.Connection, span: int) -> bool:
    """Return whether nothing is derived of a span."""
    return connection.execute(_IS_BARE, (span,)).get is not None


def is_older(connection: apsw.Connection, version: int) -> bool:
    """Return whether an older version derived anything here, or took it back."""
    return connection.execute(_IS_DUE, (version,)).get is not None


def set_older(connection: apsw.Connection, trace_id: bytes, version: int) -> None:
    """Mark a run as one that an older version derived, so that a rebuild of those takes it."""
    connection.execute(_SET_OLDER, (trace_id, version))


def read_progress(connection: apsw.Connection) -> str | None:
    """Return what was last written of an unfinished rebuild."""
    found: str | None = connection.execute(_READ_STATE).get
    return found


def count_runs_after(connection: apsw.Connection, run: int) -> int:
    """Return how many runs come after one."""
    return int(connection.execute(_RUNS_LEFT, (run,)).get)


def write_progress(connection: apsw.Connection, state: str) -> None:
    """Keep how far the rebuild is, in the transaction that got it there."""
    connection.execute(_WRITE_STATE, (state,))


def drop_progress(connection: apsw.Connection) -> None:
    """Say that no rebuild is unfinished."""
    connection.execute(_DROP_STATE)


def _column(connection: apsw.Connection, sql: str, *bindings: int | bytes) -> list[Any]:
    return [row[0] for row in connection.execute(sql, bindings)]

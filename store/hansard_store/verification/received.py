"""Log records and metric points with the columns that are read from their records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import apsw

_LOG_COLUMNS: Final = (
    "trace_id",
    "span_id",
    "severity",
    "event_name",
    "session",
    "body_text",
    "notes",
)
_LOGS: Final = f"""
SELECT log_record.id, record, resource, scope, session_log.log IS NOT NULL, session_log.trace_id,
  {", ".join(f"log_record.{one}" for one in _LOG_COLUMNS)}
FROM log_record LEFT JOIN session_log ON session_log.log = log_record.id
"""
_POINT_COLUMNS: Final = ("name", "unit", "kind", "value")
_POINTS: Final = f"SELECT id, record, {', '.join(_POINT_COLUMNS)} FROM metric_point"


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log record, and its columns by name."""

    id: int
    record: bytes
    resource: int
    scope: int
    is_of_session: bool  # the record of an agent that is read by its log records
    home: bytes | None  # the trace that such a record belongs to
    columns: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A metric point, and its columns by name."""

    id: int
    record: bytes
    columns: dict[str, Any]


def iter_logs(connection: apsw.Connection) -> Iterator[StoredLog]:
    """Yield all log records."""
    for number, record, resource, scope, is_of_session, home, *values in connection.execute(_LOGS):
        columns = dict(zip(_LOG_COLUMNS, values, strict=True))
        yield StoredLog(number, record, resource, scope, bool(is_of_session), home, columns)


def iter_points(connection: apsw.Connection) -> Iterator[StoredPoint]:
    """Yield all metric points."""
    for number, record, *values in connection.execute(_POINTS):
        yield StoredPoint(number, record, dict(zip(_POINT_COLUMNS, values, strict=True)))

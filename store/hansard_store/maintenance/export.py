"""The stored records of a run, in slices: an export never holds a large run in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.steps.flags import SpanFlag

# Spans made of log records were never sent: the log records are what came in.
_SENT = f"flags & {int(SpanFlag.SYNTHETIC)} = 0"
_SPANS_OF_RUN = f"SELECT id FROM span WHERE trace_id = :trace AND {_SENT} ORDER BY id"
_IS_SENT = f"SELECT {_SENT} FROM span WHERE id = ?"
_LOGS_OF_RUN = """
SELECT id FROM log_record INDEXED BY log_record_step WHERE trace_id = :trace ORDER BY id
"""
_LOGS_OF_STEP = """
SELECT id FROM log_record INDEXED BY log_record_step
WHERE trace_id = :trace AND span_id = :span ORDER BY id
"""
_SPAN_RECORDS = """
SELECT span.id, span.resource, span.scope, span_record.record
FROM json_each(:items) AS wanted CROSS JOIN span ON span.id = wanted.value
  CROSS JOIN span_record ON span_record.span = span.id
ORDER BY span.id
"""
_LOG_RECORDS = """
SELECT log.id, log.resource, log.scope, log.record
FROM json_each(:items) AS wanted CROSS JOIN log_record AS log ON log.id = wanted.value
ORDER BY log.id
"""
_POINT_RECORDS = """
SELECT point.id, point.resource, point.scope, point.record
FROM json_each(:items) AS wanted CROSS JOIN metric_point AS point ON point.id = wanted.value
ORDER BY point.id
"""
# Everything, page by page, in the order in which it came.
_ALL_SPANS = f"SELECT id FROM span WHERE id > :after AND {_SENT} ORDER BY id LIMIT :limit"
_ALL_LOGS = "SELECT id FROM log_record WHERE id > :after ORDER BY id LIMIT :limit"
_ALL_POINTS = "SELECT id FROM metric_point WHERE id > :after ORDER BY id LIMIT :limit"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A packed record, and the envelope it came in."""

    id: int
    resource: int
    scope: int
    record: bytes


def span_ids(connection: apsw.Connection, trace_id: bytes) -> list[int]:
    """Return the span.ids of a run in the order they were stored."""
    return _ids(connection, _SPANS_OF_RUN, {"trace": trace_id})


def is_sent(connection: apsw.Connection, span: int) -> bool:
    """Return whether a span was sent, and not made of log records."""
    return bool(connection.execute(_IS_SENT, (span,)).get)


def log_ids(
    connection: apsw.Connection, trace_id: bytes, *, span_id: bytes | None = None
) -> list[int]:
    """Return the log records that carry a trace's ids, or those of one of its spans."""
    if span_id is None:
        return _ids(connection, _LOGS_OF_RUN, {"trace": trace_id})
    return _ids(connection, _LOGS_OF_STEP, {"trace": trace_id, "span": span_id})


def span_records(connection: apsw.Connection, spans: Sequence[int]) -> list[StoredRecord]:
    """Return the records of some spans; those deleted meanwhile are left out."""
    return _records(connection, _SPAN_RECORDS, spans)


def log_records(connection: apsw.Connection, logs: Sequence[int]) -> list[StoredRecord]:
    """Return some log records; those deleted meanwhile are left out."""
    return _records(connection, _LOG_RECORDS, logs)


def point_records(connection: apsw.Connection, points: Sequence[int]) -> list[StoredRecord]:
    """Return some metric points; those deleted meanwhile are left out."""
    return _records(connection, _POINT_RECORDS, points)


def all_span_ids(connection: apsw.Connection, *, after: int, limit: int) -> list[int]:
    """Return the next span.ids of the store, of all runs."""
    return _ids(connection, _ALL_SPANS, {"after": after, "limit": limit})


def all_log_ids(connection: apsw.Connection, *, after: int, limit: int) -> list[int]:
    """Return the next log records of the store."""
    return _ids(connection, _ALL_LOGS, {"after": after, "limit": limit})


def all_point_ids(connection: apsw.Connection, *, after: int, limit: int) -> list[int]:
    """Return the next metric points of the store."""
    return _ids(connection, _ALL_POINTS, {"after": after, "limit": limit})


def _ids(connection: apsw.Connection, sql: str, parameters: dict[str, Any]) -> list[int]:
    return [row[0] for row in connection.execute(sql, parameters)]


def _records(connection: apsw.Connection, sql: str, items: Sequence[int]) -> list[StoredRecord]:
    rows: list[Any] = connection.execute(sql, {"items": json.dumps(list(items))}).fetchall()
    return [StoredRecord(*row) for row in rows]

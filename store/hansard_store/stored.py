"""Spans and logs as they lie in the store, to be read back whole or derived again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from hansard_store.errors import StoreCorruptError
from hansard_store.packing import unpack

_COLUMNS = """
SELECT span.id, span.side, span.resource, span.scope, span.flags, record, mac, received_ns,
  attribute_count, span_record.notes, run.synthetic
"""
_SPAN = f"""{_COLUMNS}
FROM span JOIN span_record ON span_record.span = span.id JOIN run ON run.id = span.run
"""
_BY_ID = _SPAN + "WHERE span.id = ?"
_BY_IDENTITY = _SPAN + "WHERE span.trace_id = ? AND span.span_id = ? ORDER BY side"
_BY_IDS = f"""{_COLUMNS}
FROM json_each(?) AS wanted CROSS JOIN span ON span.id = wanted.value
  JOIN span_record ON span_record.span = span.id JOIN run ON run.id = span.run
"""
_LOGS = """
SELECT record, resource, scope FROM log_record
WHERE trace_id = ? AND span_id = ? ORDER BY time_ns, id LIMIT ?
"""
_LOGGED_SPANS = """
SELECT DISTINCT span_id FROM log_record WHERE trace_id = ? AND span_id IS NOT NULL
"""
_RESOURCE = "SELECT record FROM resource WHERE id = ?"
_SCOPE = "SELECT record FROM scope WHERE id = ?"
_OPEN = """
SELECT id FROM span WHERE trace_id = ? AND span_id = ? AND side = ? AND end_ns IS NULL
"""


class SpanRow(NamedTuple):
    """A stored span with its packed record."""

    id: int
    side: int
    resource: int
    scope: int
    flags: int
    record: bytes
    mac: bytes
    received_ns: int
    attribute_count: int
    notes: str | None  # a line each
    synthetic: int


class LogRow(NamedTuple):
    """A stored log record, packed."""

    record: bytes
    resource: int
    scope: int


def find_open_span(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes, side: int
) -> int | None:
    """Return the number of a stored span that has not ended yet; None where there is none."""
    found: int | None = connection.execute(_OPEN, (trace_id, span_id, side)).get
    return found


def get_span_row(connection: apsw.Connection, span: int) -> SpanRow:
    """Return a stored span by its number; raises StoreCorruptError when there is none."""
    row: Any = connection.execute(_BY_ID, (span,)).fetchone()
    if row is None:
        raise StoreCorruptError(f"span {span} is not stored")
    return SpanRow(*row)


def iter_span_rows(connection: apsw.Connection, spans: Sequence[int]) -> Iterator[SpanRow]:
    """Yield stored spans by their numbers; those that are gone are left out."""
    return map(SpanRow._make, connection.execute(_BY_IDS, (json.dumps(list(spans)),)))


def list_span_rows(connection: apsw.Connection, trace_id: bytes, span_id: bytes) -> list[SpanRow]:
    """Return the stored spans of one id: none, one, or a CLIENT and a SERVER."""
    rows: list[Any] = connection.execute(_BY_IDENTITY, (trace_id, span_id)).fetchall()
    return [SpanRow(*row) for row in rows]


def list_log_rows(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes, *, most: int
) -> list[LogRow]:
    """Return the first log records of a span, by time."""
    rows: list[Any] = connection.execute(_LOGS, (trace_id, span_id, most)).fetchall()
    return [LogRow(*row) for row in rows]


def spans_with_logs(connection: apsw.Connection, trace_id: bytes) -> set[bytes]:
    """Return the ids of a trace that log records name, whether their spans came or not."""
    rows: list[Any] = connection.execute(_LOGGED_SPANS, (trace_id,)).fetchall()
    return {span_id for (span_id,) in rows}


def read_resource(connection: apsw.Connection, resource: int) -> ResourceSpans:
    """Return a stored resource with its schema URL; raises StoreCorruptError."""
    found: ResourceSpans = ResourceSpans.FromString(_envelope(connection, _RESOURCE, resource))
    return found


def read_scope(connection: apsw.Connection, scope: int) -> ScopeSpans:
    """Return a stored scope with its schema URL; raises StoreCorruptError."""
    found: ScopeSpans = ScopeSpans.FromString(_envelope(connection, _SCOPE, scope))
    return found


def _envelope(connection: apsw.Connection, sql: str, number: int) -> bytes:
    packed = connection.execute(sql, (number,)).get
    if packed is None:
        raise StoreCorruptError(f"resource or scope {number} is not stored")
    return unpack(packed)

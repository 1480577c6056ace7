"""Spans and logs as they lie in the store, to be read back whole or derived again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from hansard_store.database.compression import pack_all, unpack
from hansard_store.database.stored_json import as_json, joined
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.steps.flags import SpanFlag

_COLUMNS = """
SELECT span.id, span.side, span.resource, span.scope, span.flags, record, mac, received_ns,
  attribute_count, span_record.notes,
  EXISTS (SELECT 1 FROM redaction WHERE signal = 'traces' AND item = span.id)
"""
_SPAN = f"""{_COLUMNS}
FROM span JOIN span_record ON span_record.span = span.id
"""
_BY_ID = _SPAN + "WHERE span.id = ?"
_BY_IDENTITY = _SPAN + "WHERE span.trace_id = ? AND span.span_id = ? ORDER BY side"
_BY_IDS = f"""{_COLUMNS}
FROM json_each(?) AS wanted CROSS JOIN span ON span.id = wanted.value
  JOIN span_record ON span_record.span = span.id
"""
_LOGS = """
SELECT record, resource, scope FROM log_record
WHERE trace_id = ? AND span_id = ? AND event_name IS NOT NULL ORDER BY time_ns, id LIMIT ?
"""
_SOME_LOG = """
SELECT record, resource, scope FROM log_record WHERE trace_id = ? AND span_id = ? LIMIT 1
"""
_LOGGED_SPANS = """
SELECT DISTINCT span_id FROM log_record WHERE trace_id = ? AND span_id IS NOT NULL
"""
_HAS_LOGS = "SELECT 1 FROM log_record WHERE trace_id = ? AND span_id IS NOT NULL LIMIT 1"
_LOGGED_OF = """
SELECT unhex(wanted.value) FROM json_each(:spans) AS wanted
WHERE EXISTS (
  SELECT 1 FROM log_record WHERE trace_id = :trace AND span_id = unhex(wanted.value))
"""
_UNMARKED = f"""
SELECT DISTINCT span_id FROM json_each(:spans) AS wanted
  CROSS JOIN span ON span.trace_id = :trace AND span.span_id = unhex(wanted.value)
WHERE flags & {int(SpanFlag.HAS_LOGS)} = 0
"""
_NAMED_BEFORE = """
SELECT count(*) FROM (
  SELECT 1 FROM log_record
  WHERE trace_id = :trace AND span_id = :span AND event_name IS NOT NULL
    AND (time_ns, id) < (:time_ns, :log)
  LIMIT :most)
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
    is_redacted: int


class _LogRow(NamedTuple):
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
) -> list[_LogRow]:
    """Return the first log records of a span that are events, by time; else some one, if any.

    Only events have names, and only by those a dialect reads a record: a span may have a hundred
    thousand lines of text.
    """
    rows: list[Any] = connection.execute(_LOGS, (trace_id, span_id, most)).fetchall()
    rows = rows or connection.execute(_SOME_LOG, (trace_id, span_id)).fetchall()
    return [_LogRow(*row) for row in rows]


def are_first_events_before(
    connection: apsw.Connection,
    trace_id: bytes,
    span_id: bytes,
    *,
    time_ns: int,
    log: int,
    most: int,
) -> bool:
    """Return whether `list_log_rows` would give no event from this time and log record on."""
    parameters = {"trace": trace_id, "span": span_id, "time_ns": time_ns, "log": log, "most": most}
    return bool(connection.execute(_NAMED_BEFORE, parameters).get == most)


def spans_with_logs(connection: apsw.Connection, trace_id: bytes) -> set[bytes]:
    """Return the ids of a trace that log records name, whether their spans came or not.

    Costs a read of all log records of the trace; of a few spans, ask `logged_among`.
    """
    rows: list[Any] = connection.execute(_LOGGED_SPANS, (trace_id,)).fetchall()
    return {span_id for (span_id,) in rows}


def logged_among(
    connection: apsw.Connection, trace_id: bytes, span_ids: Iterable[bytes]
) -> set[bytes]:
    """Return those of some span ids of a trace that log records name."""
    if connection.execute(_HAS_LOGS, (trace_id,)).get is None:  # as of most
        return set()
    parameters = {"trace": trace_id, "spans": json.dumps([one.hex() for one in span_ids])}
    rows: list[Any] = connection.execute(_LOGGED_OF, parameters).fetchall()
    return {span_id for (span_id,) in rows}


def not_marked_as_logged(
    connection: apsw.Connection, trace_id: bytes, span_ids: Iterable[bytes]
) -> set[bytes]:
    """Return those of some stored spans of a trace that do not say yet that they have logs."""
    parameters = {"trace": trace_id, "spans": json.dumps([one.hex() for one in span_ids])}
    rows: list[Any] = connection.execute(_UNMARKED, parameters).fetchall()
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


# The whole of each span, beside its skeleton: rows that nobody asks for while they are added.

_ADD = """
INSERT INTO span_record (span, mac, received_ns, attribute_count, notes, record)
SELECT value ->> 0, substr(:bytes, value ->> 1, value ->> 2), value ->> 3, value ->> 4,
  value ->> 5, substr(:records, value ->> 6, value ->> 7)
FROM json_each(:rows)
"""


class _Row(NamedTuple):
    span: int
    mac: bytes
    received_ns: int
    attribute_count: int
    notes: str | None
    record: bytes  # not packed


class SpanRecordWriter:
    """Gathers the records of a transaction; `write_held` writes them all at once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._held: list[_Row] = []

    def add(self, number: int, span: ReceivedSpan, record: bytes) -> None:
        """Keep a span's record, not packed yet, until it is written."""
        notes = "\n".join(span.notes) or None
        row = _Row(number, span.mac, span.received_ns, span.attribute_count, notes, record)
        self._held.append(row)

    def write_held(self) -> None:
        """Write the rows that wait, in one statement that holds no lock of Python's."""
        if not self._held:
            return
        packed = pack_all([row.record for row in self._held])
        records, at = joined(packed)
        macs, mac_at = joined([row.mac for row in self._held])
        rows = [
            (
                row.span, begin, len(row.mac), row.received_ns, row.attribute_count, row.notes,
                start, size,
            )
            for row, begin, start, size in zip(
                self._held, mac_at, at, map(len, packed), strict=False
            )
        ]  # fmt: skip
        self._execute(_ADD, {"bytes": macs, "records": records, "rows": as_json(rows)})
        self._held.clear()

    def forget(self) -> None:
        """Drop what waits: its transaction was rolled back."""
        self._held.clear()

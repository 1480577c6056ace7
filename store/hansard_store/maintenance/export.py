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
# Of each signal: its table, where its records are, and which of its rows were sent.
_TABLES = {
    "traces": ("span", "CROSS JOIN span_record ON span_record.span = span.id", _SENT),
    "logs": ("log_record", "", "true"),
    "metrics": ("metric_point", "", "true"),
}
_RECORDS = {
    signal: f"""
SELECT {table}.id, {table}.resource, {table}.scope, record
FROM json_each(:items) AS wanted CROSS JOIN {table} ON {table}.id = wanted.value {records}
ORDER BY {table}.id
"""
    for signal, (table, records, _) in _TABLES.items()
}
# Everything, page by page, in the order in which it came.
_ALL = {
    signal: f"SELECT id FROM {table} WHERE id > :after AND {sent} ORDER BY id LIMIT :limit"
    for signal, (table, _, sent) in _TABLES.items()
}


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


def stored_records(
    connection: apsw.Connection, signal: str, items: Sequence[int]
) -> list[StoredRecord]:
    """Return the records of some items of a signal; those deleted meanwhile are left out."""
    rows = connection.execute(_RECORDS[signal], {"items": json.dumps(list(items))})
    return [StoredRecord(*row) for row in rows]


def all_ids(connection: apsw.Connection, signal: str, *, after: int, limit: int) -> list[int]:
    """Return the next numbers of what the store holds of a signal, of all runs."""
    return _ids(connection, _ALL[signal], {"after": after, "limit": limit})


def _ids(connection: apsw.Connection, sql: str, parameters: dict[str, Any]) -> list[int]:
    return [row[0] for row in connection.execute(sql, parameters)]

"""Log records and metric points, whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import apsw
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from hansard_store.audit.seal_tables import last_id
from hansard_store.content.large_values import ContentWriter, log_user
from hansard_store.ingest.otlp_records import LargeValue, pack_record
from hansard_store.runs.projection import RunWriter


@dataclass(frozen=True, slots=True)
class ReceivedLog:
    """A log record as it came in, after redaction."""

    mac: bytes
    ordinal: int  # nth equal record of its request
    trace_id: bytes | None
    span_id: bytes | None
    time_ns: int
    received_ns: int
    severity: int
    event_name: str | None
    resource: int
    scope: int
    session: str | None
    body_text: str | None
    message: LogRecord
    large: Sequence[LargeValue]


@dataclass(frozen=True, slots=True)
class ReceivedPoint:
    """A metric data point as it came in: a Metric that holds this one point."""

    mac: bytes
    ordinal: int
    name: str
    unit: str
    kind: str
    time_ns: int
    received_ns: int
    value: float | None
    resource: int
    scope: int
    message: Metric


_KNOWN_LOG = "SELECT 1 FROM log_record WHERE mac = ? AND ordinal = ?"
_LAST_LOG = last_id("log_record")
_LOG_COLUMNS = (
    "mac", "ordinal", "trace_id", "span_id", "time_ns", "received_ns", "severity", "event_name",
    "resource", "scope", "session", "body_text",
)  # fmt: skip
_log_row = attrgetter(*_LOG_COLUMNS)
_KNOWN_POINT = "SELECT 1 FROM metric_point WHERE mac = ? AND ordinal = ?"
_LAST_POINT = last_id("metric_point")
_POINT_COLUMNS = (
    "mac", "ordinal", "name", "unit", "kind", "time_ns", "received_ns", "value", "resource",
    "scope",
)  # fmt: skip
_point_row = attrgetter(*_POINT_COLUMNS)


def _add(table: str, columns: Sequence[str]) -> str:
    names, places = ", ".join(("id", *columns, "record")), ", ?" * (len(columns) + 1)
    return f"INSERT INTO {table} ({names}) VALUES (?{places})"


_ADD_LOG = _add("log_record", _LOG_COLUMNS)
_ADD_POINT = _add("metric_point", _POINT_COLUMNS)
_BURIED = "SELECT 1 FROM tombstone WHERE trace_id = ?"


class LogWriter:
    """Writes log records and metric points, inside one transaction."""

    def __init__(
        self, connection: apsw.Connection, *, runs: RunWriter, contents: ContentWriter
    ) -> None:
        self._execute = connection.execute
        self._runs = runs
        self._contents = contents
        self._last_log = self._last_point = 0

    def add(self, log: ReceivedLog) -> tuple[str, int]:
        """Store a log record; returns "stored", "duplicate" or "deleted", and its id or 0."""
        if self._execute(_KNOWN_LOG, (log.mac, log.ordinal)).get is not None:
            return "duplicate", 0
        if log.trace_id and self._execute(_BURIED, (log.trace_id,)).get is not None:
            return "deleted", 0
        # Numbers are assigned in the transaction, before the record: it is packed under its own.
        self._last_log = (self._last_log or self._execute(_LAST_LOG).get) + 1
        user = log_user(self._last_log)
        record = pack_record(log.message, log.large, self._contents, run=user)
        self._execute(_ADD_LOG, (self._last_log, *_log_row(log), record))
        return "stored", self._last_log

    def add_point(self, point: ReceivedPoint) -> tuple[str, int]:
        """Store a metric point; returns "stored" or "duplicate", and its id or 0."""
        if self._execute(_KNOWN_POINT, (point.mac, point.ordinal)).get is not None:
            return "duplicate", 0
        record = pack_record(point.message, (), self._contents, run=0)
        self._last_point = (self._last_point or self._execute(_LAST_POINT).get) + 1
        self._execute(_ADD_POINT, (self._last_point, *_point_row(point), record))
        return "stored", self._last_point

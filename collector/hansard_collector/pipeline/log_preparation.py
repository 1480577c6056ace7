"""Log records and metric points, ready to be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from hansard_collector.derivation.rows import plain_text
from hansard_collector.dialects.content.prompts import prompt_of_log
from hansard_collector.dialects.engine.item_views import LogView
from hansard_collector.dialects.engine.plan import READ_EVENTS
from hansard_collector.log_sessions.agents import recognise
from hansard_collector.log_sessions.marks import SessionEvent
from hansard_collector.otlp.any_value import log_view
from hansard_collector.pipeline.preparation import Envelope, Preparer
from hansard_collector.pipeline.validation import bad_span_id, bad_trace_id
from hansard_store.ingest.otlp_records import LargeValue, large_values
from hansard_store.ingest.redactions import RemovedSecret

_SIGNED_LIMIT_NS = 1 << 63
_BODY_CHARS = 200
_SESSION_KEYS = ("session.id", "conversation.id", "gen_ai.conversation.id")


@dataclass(frozen=True, slots=True)
class PreparedLog:
    """A log record ready to be written, but for the ids that a transaction gives."""

    envelope: Envelope
    message: LogRecord
    large: Sequence[LargeValue]
    fields: Mapping[str, Any]  # of ReceivedLog, but for resource and scope
    removed: Sequence[RemovedSecret]
    event: SessionEvent | None  # what it is in the session of a coding agent
    prompt: str | None  # which prompt of its session it names
    is_read: bool  # whether a dialect may read it where it stands on a span


@dataclass(frozen=True, slots=True)
class PreparedPoint:
    """A metric point ready to be written."""

    envelope: Envelope
    message: Metric
    fields: Mapping[str, Any]  # of ReceivedPoint, but for resource and scope
    removed: Sequence[RemovedSecret]


def prepare_log(
    preparer: Preparer,
    record: LogRecord,
    envelope: Envelope,
    *,
    mac: bytes,
    ordinal: int,
    received_ns: int,
    removed: Sequence[RemovedSecret] = (),
) -> PreparedLog:
    """Return a log record with its columns. Invalid ids mean "no trace", never an error."""
    view = log_view(record, envelope.resource, scope_name=envelope.scope_name)
    fields = {
        "mac": mac,
        "ordinal": ordinal,
        "time_ns": _storable(view.time_ns) or received_ns,
        "received_ns": received_ns,
        **log_columns(record, view),
    }
    large = large_values(record, preparer.log_cutting())
    # The very same record once more in one request tells nothing more of its session.
    event = recognise(view, record) if ordinal == 0 else None
    return PreparedLog(
        envelope,
        record,
        large,
        fields,
        removed,
        event=event,
        prompt=prompt_of_log(view) if view.event_name else None,
        is_read=view.event_name in READ_EVENTS,
    )


def log_columns(record: LogRecord, view: LogView) -> dict[str, Any]:
    """Return the columns of a log record that its record and its resource give, by name."""
    no_trace = bad_trace_id(record.trace_id) is not None
    no_span = no_trace or bad_span_id(record.span_id) is not None
    body = "" if view.body is None else plain_text(view.body)
    return {
        "trace_id": None if no_trace else record.trace_id,
        "span_id": None if no_span else record.span_id,
        "severity": record.severity_number,
        "event_name": view.event_name or None,
        "session": _session(view.attributes),
        "body_text": body[:_BODY_CHARS] or None,
    }


def _session(attributes: Mapping[str, Any]) -> str | None:
    for key in _SESSION_KEYS:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def _storable(time_ns: int) -> int:
    return time_ns if time_ns < _SIGNED_LIMIT_NS else 0


def single_points(metric: Metric) -> Iterator[tuple[Metric, Any]]:
    """Yield a metric once for each of its data points, each time with that point alone.

    A metric without points is yielded as it is, with None: its name and unit are kept too.
    """
    kind: str = metric.WhichOneof("data") or ""
    points = getattr(metric, kind).data_points if kind else ()
    if len(points) <= 1:
        yield metric, points[0] if points else None
        return
    bare = Metric.FromString(metric.SerializeToString())
    del getattr(bare, kind).data_points[:]
    for point in points:
        one = Metric.FromString(bare.SerializeToString())
        getattr(one, kind).data_points.append(point)
        yield one, point


def prepare_point(
    metric: Metric,
    point: Any,
    envelope: Envelope,
    *,
    mac: bytes,
    ordinal: int,
    received_ns: int,
    removed: Sequence[RemovedSecret] = (),
) -> PreparedPoint:
    """Return a metric of one point with its columns."""
    fields = {
        "mac": mac,
        "ordinal": ordinal,
        "time_ns": (_storable(point.time_unix_nano) if point is not None else 0) or received_ns,
        "received_ns": received_ns,
        **point_columns(metric, point),
    }
    return PreparedPoint(envelope, metric, fields, removed)


def point_columns(metric: Metric, point: Any) -> dict[str, Any]:
    """Return the columns of a metric point that its record gives, by name."""
    return {
        "name": metric.name,
        "unit": metric.unit,
        "kind": metric.WhichOneof("data") or "none",
        "value": _point_value(point),
    }


def _point_value(point: Any) -> float | None:
    """Return a gauge's or sum's number, else the sum of what was measured."""
    if point is None:
        return None
    if hasattr(point, "as_double"):
        kind = point.WhichOneof("value")
        value = getattr(point, kind) if kind else None
    else:
        value = point.sum
    # NaN has no place in a REAL column: SQLite would store NULL anyway.
    return None if value is None or value != value else float(value)

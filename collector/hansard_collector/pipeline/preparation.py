"""Spans, log records and metric points, ready to be written.

A prepared item has all but the ids that a transaction gives: the protobuf message as it will be
stored, its large values cut, and the rows derived from it. Preparing is pure but for its caches.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rows import annotations_of, derive, plain_text
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.content.prompts import prompt_of_log
from hansard_collector.dialects.engine.item_views import LogView, SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import normalise, normalise_scores
from hansard_collector.dialects.engine.plan import READ_EVENTS
from hansard_collector.log_sessions.agents import recognise
from hansard_collector.log_sessions.marks import SessionEvent
from hansard_collector.otlp.any_value import (
    attributes_and_leaves,
    log_view,
    span_view,
)
from hansard_collector.pipeline.validation import (
    USUAL_LIMITS,
    ItemLimits,
    bad_span_id,
    bad_trace_id,
    repair_span,
    span_times,
)
from hansard_store.annotations.rows import SpanAnnotation
from hansard_store.content.json_chunks import (
    MOST_CONTAINERS,
    MOST_ELEMENTS,
    MOST_PIECES_OF_ITEM,
    is_crowded,
)
from hansard_store.content.large_values import ContentCutter, CutValue
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.otlp_records import LargeValue, large_values
from hansard_store.ingest.redactions import RemovedSecret
from hansard_store.steps.flags import SpanFlag

_SERVER = 2
_MAC_BYTES = 16
_MANY_MESSAGES = 512  # of one call, whose digests are computed before the transaction
_SIGNED_LIMIT_NS = 1 << 63
_BODY_CHARS = 200
_SESSION_KEYS = ("session.id", "conversation.id", "gen_ai.conversation.id")
_CACHE_BYTES = 24 * 2**20  # of texts, and as much of messages


@dataclass(frozen=True, slots=True)
class Envelope:
    """The resource and scope that items share, as they are stored and as a dialect reads them."""

    resource_record: Any  # ResourceSpans with only resource and schema_url
    scope_record: Any  # ScopeSpans with only scope and schema_url
    resource: Mapping[str, Any]
    resource_tokens: str  # what its items can be found by, computed once
    scope_name: str
    scope_version: str
    context: bytes  # of both, part of what identifies a log record or metric

    @property
    def service_name(self) -> str | None:
        name = self.resource.get("service.name")
        return name if isinstance(name, str) else None


class PreparedItem(NamedTuple):
    """One span, log record or metric of a request, under its resource and scope."""

    message: Any
    envelope: Envelope
    received_ns: int
    mac: bytes  # what identifies it as received
    removed: Sequence[RemovedSecret] = ()


class PreparedSpan(NamedTuple):
    """A span ready to be written."""

    envelope: Envelope
    message: Span
    large: Sequence[LargeValue]
    fields: Mapping[str, Any]  # of ReceivedSpan, but for resource and scope
    projection: SpanProjection
    removed: Sequence[RemovedSecret]
    view: SpanView | None = None  # only of a span that names payloads: read again with them


@dataclass(frozen=True, slots=True)
class PreparedLog:
    """A log record ready to be written."""

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


class Preparer:
    """Turns messages into prepared items; holds the caches that make resent text cheap.

    Used by one thread only, of which each has its own.
    """

    def __init__(
        self, *, key: bytes, limits: ItemLimits = USUAL_LIMITS, cache_bytes: int = _CACHE_BYTES
    ) -> None:
        self._key = key
        self.limits = limits
        self._cutter = ContentCutter(cache_bytes)
        self.messages = MessageCache(cache_bytes)

    def mac(self, *parts: bytes) -> bytes:
        """Return what identifies an item as received: 16 bytes of HMAC-SHA256."""
        return hmac.digest(self._key, b"".join(parts), hashlib.sha256)[:_MAC_BYTES]

    def span(self, item: PreparedItem) -> PreparedSpan:
        """Return a valid span with all its rows; never raises for what the span holds."""
        span, envelope, received_ns, mac, removed = item
        flags, notes = repair_span(span)
        times = span_times(span, received_ns=received_ns)
        cuts: list[tuple[str, str, Sequence[str]]] = []
        elements: dict[str, Sequence[str]] = {}
        attributes, leaves = attributes_and_leaves(span.attributes)
        cutting = self._cutting(span.trace_id, cuts)
        large = large_values(span, cutting, attribute_leaves=leaves)
        view = span_view(
            span,
            envelope.resource,
            scope_name=envelope.scope_name,
            scope_version=envelope.scope_version,
            elements=elements,
            attributes=attributes,
        )
        # An event, a link or a map inside an attribute may hold a value under the same key.
        elements |= {key: found for key, text, found in cuts if view.attributes.get(key) == text}
        flags |= times.flags | (SpanFlag.REDACTED if removed else 0)
        if span.links:
            flags |= SpanFlag.HAS_LINKS
        notes += [_crowded_note(key) for key, _, text in leaves if is_crowded(text)]
        fields = {
            "trace_id": view.trace_id,
            "span_id": view.span_id,
            "side": int(view.kind == _SERVER),
            "parent_span_id": view.parent_span_id or None,
            "name": view.name,
            "kind": view.kind,
            "start_ns": times.start_ns,
            "end_ns": times.end_ns,
            "sort_ns": times.sort_ns,
            "status": view.status_code,
            "flags": flags,
            "mac": mac,
            "received_ns": received_ns,
            "attribute_count": len(span.attributes),
            "links": [(link.trace_id, link.span_id) for link in span.links],
            "notes": notes,
        }
        projection = project(view, self.messages, resource_tokens=envelope.resource_tokens)
        call = projection.call
        if call is not None and len(call.input) > _MANY_MESSAGES:
            for message in call.input:  # remembered by it, and not computed in the transaction
                _ = message.hash, message.match_hash
        return PreparedSpan(
            envelope,
            span,
            large,
            fields,
            projection,
            removed,
            view if projection.payloads else None,
        )

    def _cutting(
        self, trace_id: bytes, cuts: list[tuple[str, str, Sequence[str]]]
    ) -> Callable[[str, str], CutValue | None]:
        left = MOST_PIECES_OF_ITEM

        def cut(key: str, text: str) -> CutValue | None:
            nonlocal left
            value = self._cutter.cut(trace_id, key, text) if left > 0 else None
            if value is not None:
                left -= len(value.pieces)
                found = value.elements()
                if found is not None:
                    cuts.append((key, text, found))
            return value

        return cut

    def log(self, item: PreparedItem, *, ordinal: int) -> PreparedLog:
        """Return a log record with its columns. Invalid ids mean "no trace", never an error.

        `ordinal` counts the very same records of one request.
        """
        record, envelope, received_ns, mac, removed = item
        view = log_view(record, envelope.resource, scope_name=envelope.scope_name)
        fields = {
            "mac": mac,
            "ordinal": ordinal,
            "time_ns": _storable(view.time_ns) or received_ns,
            "received_ns": received_ns,
            **log_columns(record, view),
        }
        # Logs share no prefix with one another.
        large = large_values(record, self._cutting(b"", []))
        # The very same record once more in one request adds nothing about its session.
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


def _crowded_note(key: str) -> str:
    return (
        f"{key[:100]} holds more than {MOST_CONTAINERS:,} lists and objects, or {MOST_ELEMENTS:,}"
        " elements: it is stored whole, and shown as the text it is"
    )


def project(
    view: SpanView,
    messages: MessageCache,
    *,
    resource_tokens: str | None = None,
    meant: SpanView | None = None,
) -> SpanProjection:
    """Return the derived rows of a span, whatever it holds.

    `meant` is the span with the content it only refers to, where that is at hand.

    One of the three borders where everything is caught (house style §6): a dialect that fails
    costs the span its meaning, never its record, and the note says so.
    """
    try:
        normal = normalise(meant or view, messages)
        return derive(view, normal, resource_tokens=resource_tokens)
    except Exception as error:
        note = f"a dialect could not read this span ({type(error).__name__}): shown as it came"
        return derive(view, Normalised(notes=(note,)), resource_tokens=resource_tokens)


def annotations_with_results(
    view: SpanView, messages: MessageCache, *, meant: SpanView | None = None
) -> tuple[SpanAnnotation, ...] | None:
    """Return the annotations of a span whose log records are results of evaluations.

    None where these change more of the span than its scores. Part of the border that `project` is.
    """
    try:
        return annotations_of(view, normalise_scores(meant or view, messages))
    except Exception:
        return None


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

    A metric without points is yielded as it is, with None: its name and unit are stored too.
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


def prepare_point(item: PreparedItem, metric: Metric, point: Any, *, ordinal: int) -> PreparedPoint:
    """Return a metric of one point with its columns."""
    fields = {
        "mac": item.mac,
        "ordinal": ordinal,
        "time_ns": (_storable(point.time_unix_nano) if point is not None else 0)
        or item.received_ns,
        "received_ns": item.received_ns,
        **point_columns(metric, point),
    }
    return PreparedPoint(item.envelope, metric, fields, item.removed)


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

"""Spans and log records as the stock exporters take them, and made again from OTLP protobuf.

The SDK's own classes state how much was dropped only of the bounded collections that a live span
has. These keep the numbers, so that a span that was on disk is the same bytes when it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

if TYPE_CHECKING:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as ProtoLog
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
    from opentelemetry.sdk._logs import ReadableLogRecord

Attributes = Mapping[str, Any]

_IS_REMOTE: Final = 0x200  # SpanFlags: the parent, or the linked span, is another process's
_KINDS: Final = {
    1: SpanKind.INTERNAL,
    2: SpanKind.SERVER,
    3: SpanKind.CLIENT,
    4: SpanKind.PRODUCER,
    5: SpanKind.CONSUMER,
}


@dataclass(frozen=True, slots=True)
class _Dropped:
    """How many attributes, events and links a span had beyond the SDK's limits."""

    attributes: int = 0
    events: int = 0
    links: int = 0


class MadeEvent(Event):
    """An event that knows how many of its attributes were dropped."""

    def __init__(self, name: str, attributes: Attributes, timestamp: int, dropped: int) -> None:
        super().__init__(name, attributes, timestamp)
        self._dropped = dropped

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


class MadeLink(Link):
    """A link that knows how many of its attributes were dropped."""

    def __init__(self, context: SpanContext, attributes: Attributes, dropped: int) -> None:
        super().__init__(context, attributes)
        self._dropped = dropped

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


class MadeSpan(ReadableSpan):
    """A finished or still open span, ready for an exporter."""

    def __init__(self, *, dropped: _Dropped, **fields: Any) -> None:
        super().__init__(**fields)
        self._dropped = dropped

    @property
    def dropped_attributes(self) -> int:
        return self._dropped.attributes

    @property
    def dropped_events(self) -> int:
        return self._dropped.events

    @property
    def dropped_links(self) -> int:
        return self._dropped.links


def remade(span: ReadableSpan, **changes: Any) -> MadeSpan:
    """Return the span with some fields changed; of a live one, a picture of this moment."""
    fields: dict[str, Any] = {
        "name": span.name,
        "context": span.get_span_context(),
        "parent": span.parent,
        "resource": span.resource,
        "attributes": dict(span.attributes or {}),
        "events": span.events,
        "links": span.links,
        "kind": span.kind,
        "status": span.status,
        "start_time": span.start_time,
        "end_time": span.end_time,
        "instrumentation_scope": span.instrumentation_scope,
    }
    dropped = _Dropped(span.dropped_attributes, span.dropped_events, span.dropped_links)
    return MadeSpan(dropped=dropped, **fields | changes)


# ---- from protobuf


def spans_of(data: bytes) -> list[ReadableSpan]:
    """Return the spans of an ExportTraceServiceRequest; raises ValueError when it is none."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    levels = ("resource_spans", "scope_spans", "spans")
    return [_span(*one) for one in _items(ExportTraceServiceRequest, data, levels)]


def logs_of(data: bytes) -> list[ReadableLogRecord]:
    """Return the records of an ExportLogsServiceRequest; raises ValueError when it is none."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    levels = ("resource_logs", "scope_logs", "log_records")
    return [_log(*one) for one in _items(ExportLogsServiceRequest, data, levels)]


def _items(
    request: Any, data: bytes, levels: tuple[str, str, str]
) -> Iterator[tuple[Any, Resource, InstrumentationScope]]:
    """Yield what a request holds, with its resource and scope: these are made once for all."""
    from google.protobuf.message import DecodeError

    try:
        outers = getattr(request.FromString(data), levels[0])
    except DecodeError as error:
        raise ValueError(f"no {levels[2].replace('_', ' ')}: {error}") from None
    for outer in outers:
        resource = Resource(_attributes(outer.resource.attributes), outer.schema_url)
        for inner in getattr(outer, levels[1]):
            named, attributes = inner.scope, _attributes(inner.scope.attributes)
            scope = InstrumentationScope(named.name, named.version, inner.schema_url, attributes)
            yield from ((one, resource, scope) for one in getattr(inner, levels[2]))


def _span(one: ProtoSpan, resource: Resource, scope: InstrumentationScope) -> MadeSpan:
    is_remote = bool(one.flags & _IS_REMOTE)
    trace_id = int.from_bytes(one.trace_id, "big")
    parent = None
    if one.parent_span_id:
        parent = _context(trace_id, one.parent_span_id, is_remote=is_remote)
    return MadeSpan(
        dropped=_Dropped(
            one.dropped_attributes_count, one.dropped_events_count, one.dropped_links_count
        ),
        name=one.name,
        context=_context(trace_id, one.span_id, state=one.trace_state),
        parent=parent,
        resource=resource,
        attributes=_attributes(one.attributes),
        events=[
            MadeEvent(
                event.name,
                _attributes(event.attributes),
                event.time_unix_nano,
                event.dropped_attributes_count,
            )
            for event in one.events
        ],
        links=[_link(link) for link in one.links],
        kind=_KINDS.get(one.kind, SpanKind.INTERNAL),
        status=Status(StatusCode(one.status.code), one.status.message or None),
        start_time=one.start_time_unix_nano,
        end_time=one.end_time_unix_nano or None,
        instrumentation_scope=scope,
    )


def _link(link: ProtoSpan.Link) -> MadeLink:
    context = _context(
        int.from_bytes(link.trace_id, "big"),
        link.span_id,
        is_remote=bool(link.flags & _IS_REMOTE),
    )
    return MadeLink(context, _attributes(link.attributes), link.dropped_attributes_count)


def _context(
    trace_id: int, span_id: bytes, *, is_remote: bool = False, state: str = ""
) -> SpanContext:
    return SpanContext(
        trace_id,
        int.from_bytes(span_id, "big"),
        is_remote=is_remote,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
        trace_state=TraceState.from_header([state]) if state else None,
    )


def _log(one: ProtoLog, resource: Resource, scope: InstrumentationScope) -> ReadableLogRecord:
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import ReadableLogRecord

    context = Context()
    if one.trace_id and one.span_id:
        where = _context(int.from_bytes(one.trace_id, "big"), one.span_id)
        context = set_span_in_context(NonRecordingSpan(where), context)
    record = LogRecord(
        timestamp=one.time_unix_nano,
        observed_timestamp=one.observed_time_unix_nano,
        context=context,
        severity_text=one.severity_text or None,
        severity_number=SeverityNumber(one.severity_number),
        body=_value(one.body),
        attributes=_attributes(one.attributes),
        event_name=one.event_name or None,
    )
    return ReadableLogRecord(record, resource, scope)


def _attributes(pairs: Sequence[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind)

"""OTLP messages as plain Python values: AnyValue, attribute lists, spans and log records.

The walk over attributes is the hottest loop of ingest. Most values are non-empty strings, and
reading `string_value` costs less than asking which field is set, so strings are tried first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.dialects.engine.item_views import EventView, LogView, SpanView, Value
from hansard_compiler.renamed import current_attributes, current_event
from hansard_store.ingest.otlp_records import Leaf, add_leaves

# `claude_code.api_request`, `codex.tool_result`: the only bodies that are names.
_NAME_BODY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+", re.ASCII)
_LONGEST_NAME = 128
# What the conventions call an event by. Tracing libraries put a place in the code there instead
# (`event otel/src/events.rs:1089`, of Rust's appender), and the name into an attribute.
_DOTTED = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)+", re.ASCII)
_PLAIN = re.compile(r"[\w-]+", re.ASCII)

_NO_VALUES: Mapping[str, Value] = {}
_SCALARS = frozenset({"int_value", "double_value", "bool_value"})  # that hold no text or bytes


def python_value(value: AnyValue) -> Value:
    """Return str, bool, int, float, bytes, None, list or dict; an empty AnyValue is None.

    A kvlist that holds a key twice keeps the last value. Depth is what the protobuf parser let
    through (at most 100), so recursion is safe.
    """
    kind = value.WhichOneof("value")
    if kind == "array_value":
        # Receipts of a compile are arrays of thousands of texts and numbers: see above.
        values = value.array_value.values
        return [item.string_value or item.int_value or python_value(item) for item in values]
    if kind == "kvlist_value":
        return attributes_dict(value.kvlist_value.values)
    if kind is None or kind == "string_value_strindex":  # an index into profiles only
        return None
    return getattr(value, kind)


def attributes_dict(pairs: Iterable[KeyValue]) -> dict[str, Value]:
    """Return an attribute list as a dict in the order sent; of a key sent twice, the last."""
    result: dict[str, Value] = {}
    for pair in pairs:
        value = pair.value
        result[pair.key] = value.string_value or python_value(value)
    return result


def attributes_and_leaves(pairs: Iterable[KeyValue]) -> tuple[dict[str, Value], list[Leaf]]:
    """Return an attribute list as a dict, and its values that hold text or bytes, in one walk."""
    result: dict[str, Value] = {}
    leaves: list[Leaf] = []
    for pair in pairs:
        key, value = pair.key, pair.value
        text = value.string_value
        if text:
            result[key] = text
            leaves.append((key, value, text))
        else:
            kind = value.WhichOneof("value")
            if kind in _SCALARS:  # checked once: the two below would both repeat it
                result[key] = getattr(value, kind)
            else:
                result[key] = python_value(value)
                add_leaves(key, value, leaves)
    return result, leaves


def span_view(
    span: Span,
    resource: Mapping[str, Value] = _NO_VALUES,
    *,
    scope_name: str = "",
    scope_version: str = "",
    logs: Sequence[LogView] = (),
    elements: Mapping[str, Sequence[str]] = _NO_VALUES,
    attributes: Mapping[str, Value] | None = None,
) -> SpanView:
    """Return a span as a dialect reads it. The resource's dict is shared, not copied.

    `attributes` are the span's own, from who has read them already.
    """
    status = span.status
    sent = attributes_dict(span.attributes) if attributes is None else attributes
    return SpanView(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status_code=status.code,
        status_message=status.message,
        attributes=current_attributes(sent),
        events=_event_views(span.events) if span.events else (),
        scope_name=scope_name,
        scope_version=scope_version,
        resource=resource,
        logs=logs,
        dropped_attributes_count=span.dropped_attributes_count,
        elements=elements,
    )


def _event_views(events: Iterable[Span.Event]) -> list[EventView]:
    return [
        EventView(
            name=current_event(_span_event_name(event.name, attributes)),
            time_ns=event.time_unix_nano,
            attributes=attributes,
        )
        for event in events
        for attributes in (current_attributes(attributes_dict(event.attributes)),)
    ]


def _span_event_name(own: str, attributes: Mapping[str, Value]) -> str:
    """An event's name; the attribute's where tracing put a place in the code there."""
    return own if "event.name" not in attributes else _event_name(own, attributes, None)


def log_view(
    record: LogRecord, resource: Mapping[str, Value] = _NO_VALUES, *, scope_name: str = ""
) -> LogView:
    """Return a log record as a dialect reads it, with its event name resolved."""
    attributes = attributes_dict(record.attributes)
    body = python_value(record.body)
    return LogView(
        event_name=_event_name(record.event_name, attributes, body),
        time_ns=record.time_unix_nano or record.observed_time_unix_nano,
        severity_number=record.severity_number,
        body=body,
        attributes=attributes,
        scope_name=scope_name,
        resource=resource,
        trace_id=record.trace_id,
        span_id=record.span_id,
        severity_text=record.severity_text,
    )


def _event_name(own: str, attributes: Mapping[str, Value], body: Value) -> str:
    """The record's own name where it is a dotted one, else the best of all places for it.

    Senders older than OTLP 1.5 put it into an attribute or the body. An attribute is preferred to
    an own name without dots, and a body that is a name to an own name that cannot be one.
    """
    if len(own) <= _LONGEST_NAME and _DOTTED.fullmatch(own):
        return own
    for key in ("event.name", "event_name"):
        name = attributes.get(key)
        if isinstance(name, str) and name:
            return name
    if own and _PLAIN.fullmatch(own):
        return own
    if isinstance(body, str) and len(body) <= _LONGEST_NAME and _NAME_BODY.fullmatch(body):
        return body
    return own

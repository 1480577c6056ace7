"""Steps made of log records, as spans like those that are sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hansard_collector.dialects.engine.item_views import Value
from hansard_collector.log_sessions.marks import LLM, Step
from hansard_collector.pipeline.validation import span_times
from hansard_store.content.contents import CutValue
from hansard_store.ingest.otlp_records import large_values
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.steps.flags import SpanFlag

_MAC_BYTES = 16
_INT_LIMIT = 1 << 63


def span_of(step: Step, *, trace_id: bytes, span_id: bytes, parent: bytes, kind: str) -> Span:
    """Return a step as the span that its agent might have sent."""
    span = Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=step.name,
        kind=Span.SPAN_KIND_CLIENT if kind == LLM else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=max(step.start_ns, 0),
        end_time_unix_nano=max(step.end_ns, 0),
        attributes=[
            KeyValue(key=key, value=any_value(value)) for key, value in step.attributes.items()
        ],
    )
    if step.error is not None:
        span.status.code = Status.STATUS_CODE_ERROR
        span.status.message = step.error
    return span


def received(
    span: Span,
    *,
    resource: int,
    scope: int,
    received_ns: int,
    cut: Callable[[str, str], CutValue | None],
) -> ReceivedSpan:
    """Return a made span in the form in which the store takes spans."""
    times = span_times(span, received_ns=received_ns)
    return ReceivedSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        side=0,
        parent_span_id=span.parent_span_id or None,
        name=span.name,
        kind=span.kind,
        start_ns=times.start_ns,
        end_ns=times.end_ns,
        sort_ns=times.sort_ns,
        status=span.status.code,
        flags=times.flags | SpanFlag.SYNTHETIC,
        mac=made_mac(span),
        received_ns=received_ns,
        resource=resource,
        scope=scope,
        attribute_count=len(span.attributes),
        message=span,
        large=large_values(span, cut),
        synthetic=True,
    )


def made_mac(span: Span) -> bytes:
    """Return what stands for the mac of a made span: no sender can give it to one that it sends."""
    return hashlib.sha256(span.trace_id + span.span_id).digest()[:_MAC_BYTES]


def any_value(value: Value) -> AnyValue:
    """Return a plain value as OTLP writes it; the reverse of `any_value.python_value`."""
    made = AnyValue()
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, str):
        made.string_value = value
    elif isinstance(value, int) and abs(value) < _INT_LIMIT:
        made.int_value = value
    elif isinstance(value, int):
        made.string_value = str(value)
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, bytes):
        made.bytes_value = value
    elif isinstance(value, list):
        made.array_value.values.extend(map(any_value, value))
    elif isinstance(value, dict):
        made.kvlist_value.values.extend(
            KeyValue(key=key, value=any_value(inner)) for key, inner in value.items()
        )
    return made

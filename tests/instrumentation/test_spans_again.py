"""A span that was on disk is the same bytes when it is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from hansard._export.otlp.spans import logs_of, remade, spans_of

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=8)
    | _TEXT
    | st.none()
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(_TEXT, inner, max_size=3)
    ),
    max_leaves=5,
)
_ATTRIBUTES = st.dictionaries(_TEXT, _VALUES, max_size=4)
_IDS = st.integers(1, 2**64 - 1)
_CONTEXTS = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    _IDS,
    is_remote=st.booleans(),
    trace_flags=st.just(TraceFlags(1)),
    trace_state=st.sampled_from([None, TraceState([("vendor", "x"), ("other", "y")])]),
)
_SPANS = st.builds(
    ReadableSpan,
    name=_TEXT,
    context=_CONTEXTS,
    parent=st.none() | _CONTEXTS,
    resource=st.builds(Resource, st.just({"service.name": "s"}), st.just("https://r/1")),
    attributes=_ATTRIBUTES,
    events=st.lists(st.builds(Event, _TEXT, _ATTRIBUTES, st.integers(0, 2**63)), max_size=2),
    links=st.lists(st.builds(Link, _CONTEXTS, _ATTRIBUTES), max_size=2),
    kind=st.sampled_from(SpanKind),
    status=st.sampled_from([Status(), Status(StatusCode.OK), Status(StatusCode.ERROR, "why")]),
    start_time=st.integers(0, 2**63),
    end_time=st.none() | st.integers(1, 2**63),
    instrumentation_scope=st.builds(
        InstrumentationScope, st.just("scope"), st.just("1"), st.just("https://s/1")
    ),
)


@given(_SPANS)
def test_a_span_from_its_bytes_has_the_same_bytes(span: ReadableSpan) -> None:
    data = encode_spans([span]).SerializeToString()

    again = spans_of(data)

    assert encode_spans(again).SerializeToString() == data


@given(_SPANS)
def test_a_remade_span_is_equal(span: ReadableSpan) -> None:
    assert encode_spans([remade(span)]) == encode_spans([span])


@given(_VALUES, _ATTRIBUTES)
def test_a_log_record_from_its_bytes_has_the_same_bytes(
    body: Any, attributes: dict[str, Any]
) -> None:
    record = LogRecord(
        timestamp=1,
        observed_timestamp=2,
        severity_number=SeverityNumber.INFO,
        severity_text="INFO",
        body=body,
        attributes=attributes,
        event_name="hansard.keepalive",
    )
    scope = InstrumentationScope("hansard", "1")
    one = ReadableLogRecord(record, Resource({"service.name": "s"}), scope)
    data = encode_logs([one]).SerializeToString()

    assert encode_logs(logs_of(data)).SerializeToString() == data


def test_what_the_limits_dropped_is_still_told() -> None:
    memory = InMemorySpanExporter()
    limits = SpanLimits(max_attributes=2, max_events=1, max_event_attributes=1, max_links=1)
    provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    context = SpanContext(1, 2, is_remote=False)
    links = [Link(context), Link(context)]
    with provider.get_tracer("t").start_as_current_span("s", links=links) as span:
        span.set_attributes({"a": 1, "b": 2, "c": 3})
        span.add_event("first", {"a": 1, "b": 2})
        span.add_event("second", {"a": 1, "b": 2})
    data = encode_spans(memory.get_finished_spans()).SerializeToString()

    again = spans_of(data)

    assert again[0].dropped_attributes == 1
    assert encode_spans(again).SerializeToString() == data
    assert encode_spans([remade(again[0])]).SerializeToString() == data


@pytest.mark.parametrize("data", [b"\0" * 20, b"\x0a\xff\xff", b"not protobuf"])
def test_what_is_no_protobuf_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(ValueError, match="no spans"):
        spans_of(data)
    with pytest.raises(ValueError, match="no log records"):
        logs_of(data)

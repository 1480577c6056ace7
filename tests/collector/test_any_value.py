"""Protobuf messages become plain values without loss of type."""

from __future__ import annotations

import pytest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hansard_collector.dialects.engine.item_views import EventView, Value
from hansard_collector.otlp.any_value import attributes_dict, log_view, python_value, span_view

_TREE = AnyValue(
    kvlist_value=KeyValueList(
        values=[
            KeyValue(
                key="list",
                value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue()])),
            )
        ]
    )
)


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (AnyValue(string_value="text"), "text"),
        (AnyValue(string_value=""), ""),
        (AnyValue(bool_value=False), False),
        (AnyValue(int_value=0), 0),
        (AnyValue(double_value=0.0), 0.0),
        (AnyValue(bytes_value=b"\x00"), b"\x00"),
        (AnyValue(array_value=ArrayValue()), []),
        (AnyValue(), None),
        (_TREE, {"list": [1, None]}),
    ],
    ids=["text", "empty text", "bool", "int", "double", "bytes", "empty array", "unset", "tree"],
)
def test_each_kind_of_value_keeps_its_type(sent: AnyValue, value: Value) -> None:
    attributes = attributes_dict([KeyValue(key="k", value=sent)])

    assert python_value(sent) == value
    assert attributes == {"k": value}
    assert type(attributes["k"]) is type(value)


def test_the_last_of_two_equal_keys_wins() -> None:
    pairs = [
        KeyValue(key="k", value=AnyValue(string_value="first")),
        KeyValue(key="k", value=AnyValue(string_value="last")),
        KeyValue(key="no value"),
    ]

    assert attributes_dict(pairs) == {"k": "last", "no value": None}


def test_a_span_becomes_a_view_with_its_events_and_scope() -> None:
    span = Span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        name="chat",
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=1,
        end_time_unix_nano=2**64 - 1,
        attributes=[KeyValue(key="a", value=AnyValue(int_value=3))],
        dropped_attributes_count=4,
        events=[Span.Event(name="exception", time_unix_nano=5)],
        status=Status(code=Status.STATUS_CODE_ERROR, message="no"),
    )

    view = span_view(span, {"service.name": "s"}, scope_name="scope", scope_version="1")

    assert (view.trace_id, view.span_id, view.parent_span_id) == (b"t" * 16, b"s" * 8, b"")
    assert (view.kind, view.start_ns, view.end_ns) == (3, 1, 2**64 - 1)
    assert (view.status_code, view.status_message) == (2, "no")
    assert view.attributes == {"a": 3}
    assert view.events == [EventView(name="exception", time_ns=5, attributes={})]
    assert (view.scope_name, view.scope_version, view.resource) == (
        "scope",
        "1",
        {"service.name": "s"},
    )
    assert view.dropped_attributes_count == 4


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (LogRecord(event_name="field"), "field"),
        (
            LogRecord(
                event_name="a.field",
                attributes=[KeyValue(key="event.name", value=AnyValue(string_value="dotted"))],
            ),
            "a.field",
        ),
        (
            LogRecord(
                event_name="field",
                attributes=[KeyValue(key="event.name", value=AnyValue(string_value="dotted"))],
            ),
            "dotted",
        ),
        (
            LogRecord(
                event_name="event otel/src/events/session_telemetry.rs:1089",
                attributes=[
                    KeyValue(key="event.name", value=AnyValue(string_value="codex.user_prompt"))
                ],
            ),
            "codex.user_prompt",
        ),
        (
            LogRecord(
                event_name="event src/main.rs:10",
                body=AnyValue(string_value="claude_code.api_request"),
            ),
            "claude_code.api_request",
        ),
        (LogRecord(event_name="event src/main.rs:10"), "event src/main.rs:10"),
        (
            LogRecord(event_name="field", body=AnyValue(string_value="claude_code.api_request")),
            "field",
        ),
        (
            LogRecord(
                attributes=[
                    KeyValue(key="event_name", value=AnyValue(string_value="underscored")),
                    KeyValue(key="event.name", value=AnyValue(string_value="dotted")),
                ]
            ),
            "dotted",
        ),
        (
            LogRecord(
                attributes=[KeyValue(key="event_name", value=AnyValue(string_value="underscored"))]
            ),
            "underscored",
        ),
        (
            LogRecord(body=AnyValue(string_value="claude_code.api_request")),
            "claude_code.api_request",
        ),
        (LogRecord(body=AnyValue(string_value="looked up. Then stopped")), ""),
        (LogRecord(attributes=[KeyValue(key="event.name", value=AnyValue(int_value=3))]), ""),
    ],
    ids=[
        "field",
        "a dotted field first",
        "event.name before a word",
        "event.name before a place in the code",
        "body before a place in the code",
        "place in the code",
        "a word before the body",
        "event.name",
        "event_name",
        "body",
        "prose",
        "no text",
    ],
)
def test_an_event_name_is_found_wherever_a_sender_puts_it(record: LogRecord, name: str) -> None:
    assert log_view(record).event_name == name


def test_a_log_without_a_time_has_the_time_it_was_observed() -> None:
    record = LogRecord(
        observed_time_unix_nano=7,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        body=AnyValue(int_value=1),
    )

    view = log_view(record, scope_name="scope")

    assert (view.time_ns, view.severity_number, view.body, view.scope_name) == (7, 9, 1, "scope")

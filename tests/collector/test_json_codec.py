"""OTLP/JSON in and out (otlp.md §5), judged by protobuf's own view of the same message."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.errors import MalformedRequest
from hansard_collector.otlp.json_codec import decode_json, encode_json
from hansard_collector.otlp.signals import CONTRACTS, ExportRequest
from hansard_collector.pipeline.requests import Signal

SOUND = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "sound",
    "startTimeUnixNano": "1544712660000000000",
    "endTimeUnixNano": "1544712661000000000",
}


def body_of(span: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SOUND | span]}]}]}).encode()


def decode_span(span: dict[str, Any]) -> tuple[Span, list[str]]:
    """The one span of a request, and the warnings about it."""
    return decode_body(body_of(span))


def decode_body(body: bytes) -> tuple[Span, list[str]]:
    warnings: list[str] = []
    request = decode_json(Signal.TRACES, body, warnings)
    assert isinstance(request, ExportTraceServiceRequest)
    (span,) = request.resource_spans[0].scope_spans[0].spans
    return span, warnings


def attribute(value: Any) -> dict[str, Any]:
    return {"attributes": [{"key": "k", "value": value}]}


# ------------------------------------------------------------------------------ there and back
@st.composite
def any_messages(draw: st.DrawFn, descriptor: Descriptor, levels: int = 9) -> dict[str, Any]:
    """Any message of a type, as nested dicts; half of its fields set, one member of a oneof."""
    fields: dict[str, Any] = {}
    for each in descriptor.fields:
        taken = each.containing_oneof and any(
            other.name in fields for other in each.containing_oneof.fields
        )
        if taken or each.name.endswith("_strindex") or not draw(st.booleans()):
            continue
        if each.message_type is None:
            one = scalars(each)
        elif levels:
            one = any_messages(each.message_type, levels - 1)
        else:
            continue
        fields[each.name] = draw(st.lists(one, max_size=2) if each.is_repeated else one)
    return fields


def scalars(descriptor: FieldDescriptor) -> st.SearchStrategy[Any]:
    by_type: dict[int, st.SearchStrategy[Any]] = {
        FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
        FieldDescriptor.CPPTYPE_DOUBLE: st.floats(allow_nan=False) | st.just(float("nan")),
        FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
        FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
        FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
        FieldDescriptor.CPPTYPE_ENUM: st.integers(-5, 99),
    }
    is_text = descriptor.type == FieldDescriptor.TYPE_STRING
    return by_type.get(descriptor.cpp_type, st.text() if is_text else st.binary(max_size=20))


@st.composite
def requests(draw: st.DrawFn) -> tuple[Signal, ExportRequest]:
    signal = draw(st.sampled_from(Signal))
    message_type = CONTRACTS[signal].request
    return signal, message_type(**draw(any_messages(message_type.DESCRIPTOR)))


@given(requests())
def test_any_request_written_as_json_is_read_back_equal(
    sent: tuple[Signal, ExportRequest],
) -> None:
    signal, message = sent
    warnings: list[str] = []

    back = decode_json(signal, orjson.dumps(encode_json(message)), warnings)

    assert back.SerializeToString(deterministic=True) == message.SerializeToString(
        deterministic=True
    )
    assert warnings == []


def test_ids_are_hex_enums_and_small_integers_numbers_and_large_integers_strings() -> None:
    span = Span(
        trace_id=b"\xab" * 16, kind=Span.SPAN_KIND_CLIENT, flags=257, start_time_unix_nano=2**63
    )
    span.attributes.add(key="n").value.int_value = 7
    span.attributes.add(key="b").value.bytes_value = b"\xff\xfe"
    span.attributes.add(key="d").value.double_value = float("-inf")
    span.attributes.add(key="e").value.SetInParent()
    span.attributes.add(key="f").value.bool_value = False

    assert encode_json(span) == {
        "traceId": "ab" * 16,
        "kind": 3,
        "flags": 257,
        "startTimeUnixNano": "9223372036854775808",
        "attributes": [
            {"key": "n", "value": {"intValue": "7"}},
            {"key": "b", "value": {"bytesValue": "//4="}},
            {"key": "d", "value": {"doubleValue": "-Infinity"}},
            {"key": "e", "value": {}},
            {"key": "f", "value": {"boolValue": False}},
        ],
    }


# ----------------------------------------------------------------------------- what is accepted
def test_ids_are_read_in_either_case() -> None:
    span, warnings = decode_span({"traceId": "ABCDEF" + "0" * 26, "parentSpanId": "fE" * 8})

    assert (span.trace_id, span.parent_span_id) == (b"\xab\xcd\xef" + bytes(13), b"\xfe" * 8)
    assert warnings == []


@pytest.mark.parametrize("nanoseconds", [1544712660000000001, "1544712660000000001"])
def test_a_time_may_be_a_number_or_a_string(nanoseconds: object) -> None:
    span, warnings = decode_span({"startTimeUnixNano": nanoseconds})

    assert span.start_time_unix_nano == 1544712660000000001
    assert warnings == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"intValue": 2**53 + 1}, 2**53 + 1),
        ({"intValue": str(2**53 + 1)}, 2**53 + 1),
        ({"intValue": str(-(2**63))}, -(2**63)),
        ({"intValue": -(2**63)}, -(2**63)),
        ({"intValue": 1e3}, 1000),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "0.5"}, 0.5),
        ({"doubleValue": "-1e-3"}, -0.001),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"bytesValue": "//79/A=="}, b"\xff\xfe\xfd\xfc"),
        ({"bytesValue": "__79_A"}, b"\xff\xfe\xfd\xfc"),
        ({"bytesValue": ""}, b""),
        ({"stringValue": "a\0b"}, "a\0b"),
    ],
)
def test_a_value_is_read_in_every_form_the_specification_allows(
    value: dict[str, Any], expected: object
) -> None:
    span, warnings = decode_span(attribute(value))

    (read,) = span.attributes
    assert getattr(read.value, read.value.WhichOneof("value")) == expected
    assert warnings == []


def test_enums_are_read_by_name_and_unknown_numbers_are_kept() -> None:
    named, _ = decode_span({"kind": "SPAN_KIND_SERVER", "status": {"code": "STATUS_CODE_ERROR"}})
    unknown, warnings = decode_span({"kind": 99})

    assert (named.kind, named.status.code, unknown.kind) == (2, 2, 99)
    assert warnings == []


def test_unknown_fields_are_ignored_without_a_word() -> None:
    span, warnings = decode_span(
        {"brandNew": {"deep": [1]}, "events": [{"name": "e", "later": True}]}
    )

    assert (span.name, span.events[0].name) == ("sound", "e")
    assert warnings == []


def test_a_field_that_is_null_is_absent() -> None:
    fields = ("attributes", "events", "links", "status", "parentSpanId", "traceState", "flags")

    span, warnings = decode_span(dict.fromkeys(fields))

    assert not span.HasField("status")
    assert (span.parent_span_id, len(span.attributes)) == (b"", 0)
    assert warnings == []


def test_an_empty_value_keeps_its_key() -> None:
    pairs = [{"key": "a", "value": {}}, {"key": "b"}, {"key": "c", "value": None}]

    span, warnings = decode_span({"attributes": pairs})

    assert [pair.key for pair in span.attributes] == ["a", "b", "c"]
    assert [pair.value.WhichOneof("value") for pair in span.attributes] == [None] * 3
    assert warnings == []


def test_a_null_in_a_list_of_values_is_an_empty_value() -> None:
    span, _ = decode_span(attribute({"arrayValue": {"values": [None, {"intValue": 1}]}}))

    first, second = span.attributes[0].value.array_value.values
    assert (first.WhichOneof("value"), second.int_value) == (None, 1)


def test_a_byte_order_mark_is_skipped() -> None:
    span, _ = decode_body(b"\xef\xbb\xbf" + body_of({}))

    assert span.name == "sound"


def test_lone_surrogates_become_replacement_characters_and_pairs_stay() -> None:
    body = body_of({}).replace(b'"sound"', rb'"\ud800x \ud83d\ude00 \\ud800 \udfff"')

    span, warnings = decode_body(body)

    assert span.name == "�x 😀 \\ud800 �"
    assert span.SerializeToString()
    assert warnings == []


def test_bare_nan_and_infinity_are_taken_for_their_names() -> None:
    body = body_of(
        {
            "attributes": [
                {"key": "nan", "value": {"doubleValue": 0.25}},
                {"key": "huge", "value": {"doubleValue": 0.5}},
            ]
        }
    )

    span, _ = decode_body(body.replace(b"0.25", b"NaN").replace(b"0.5", b"-Infinity"))

    nan, huge = (pair.value.double_value for pair in span.attributes)
    assert nan != nan
    assert huge == float("-inf")


# --------------------------------------------------------------- what costs one value or one span
@pytest.mark.parametrize(
    "number",
    [
        2**63,
        -(2**63) - 1,
        2**64,
        10**30,
        -(10**30),
        str(2**63),
        "9" * 30,
        1.5,
        "1.5",
        "",
        "x",
        True,
    ],
)
def test_an_integer_that_does_not_fit_costs_its_value_only(number: object) -> None:
    pairs = [{"key": "n", "value": {"intValue": number}}, {"key": "m", "value": {"intValue": 1}}]

    span, warnings = decode_span({"attributes": pairs})

    first, second = span.attributes
    assert (first.key, first.value.WhichOneof("value"), second.value.int_value) == ("n", None, 1)
    assert warnings == ["intValue must be a 64-bit integer; the value was left out"]


def test_an_integer_of_ten_thousand_digits_costs_its_value_only() -> None:
    body = body_of(attribute({"intValue": 123})).replace(b"123", b"9" * 10_000)

    span, warnings = decode_body(body)

    assert span.attributes[0].value.WhichOneof("value") is None
    assert warnings == ["intValue must be a 64-bit integer; the value was left out"]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("name", 7, "name must be a string"),
        ("kind", "SPAN_KIND_NEW", "kind must be the number of an enum's value"),
        ("startTimeUnixNano", -1, "startTimeUnixNano must be an unsigned 64-bit integer"),
        ("droppedEventsCount", 2**32, "droppedEventsCount must be an unsigned 32-bit integer"),
        ("traceState", {"a": 1}, "traceState must be a string"),
    ],
)
def test_a_scalar_of_the_wrong_type_is_left_out_and_named(
    field: str, value: object, problem: str
) -> None:
    span, warnings = decode_span({field: value})

    assert span.span_id.hex() == SOUND["spanId"]
    assert warnings == [f"{problem}; the value was left out"]


@pytest.mark.parametrize("text", ["zz" * 16, "AAECAwQFBgcICQoLDA0ODw==", "ab c" * 8, "abc", 5, "é"])
def test_an_id_that_is_not_hex_becomes_one_that_no_validator_takes(text: object) -> None:
    span, warnings = decode_span({"traceId": text, "spanId": text, "parentSpanId": text})

    assert {len(span.trace_id), len(span.span_id), len(span.parent_span_id)} == {1}
    assert warnings[0] == "traceId must be an even number of hex digits; the value was left out"


def test_an_id_of_the_wrong_length_keeps_its_bytes() -> None:
    span, _ = decode_span({"traceId": "ab" * 15, "spanId": "", "links": [{"traceId": "cd"}]})

    assert (span.trace_id, span.span_id) == (b"\xab" * 15, b"")
    assert span.links[0].trace_id == b"\xcd"


def test_snake_case_keys_are_unknown_and_counted() -> None:
    spans = [SOUND | {"parent_span_id": "11" * 8, "trace_state": "a=b"}] * 3
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    warnings: list[str] = []

    request = decode_json(Signal.TRACES, orjson.dumps(document), warnings)

    assert isinstance(request, ExportTraceServiceRequest)
    assert request.resource_spans[0].scope_spans[0].spans[0].parent_span_id == b""
    assert warnings == [
        "parent_span_id is unknown: OTLP/JSON calls it parentSpanId (3 times)",
        "trace_state is unknown: OTLP/JSON calls it traceState (3 times)",
    ]


def test_of_two_members_of_a_oneof_the_last_is_kept_with_a_warning() -> None:
    span, warnings = decode_span(attribute({"intValue": "1", "stringValue": "s"}))

    assert span.attributes[0].value.string_value == "s"
    assert warnings == ["intValue and stringValue exclude each other; the last one was kept"]


def test_an_unreadable_bucket_costs_the_list_of_buckets() -> None:
    point = {"count": "3", "bucketCounts": ["1", "x", "2"], "explicitBounds": [1, 2]}
    metric = {"name": "m", "histogram": {"dataPoints": [point]}}
    document = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}
    warnings: list[str] = []

    request: Any = decode_json(Signal.METRICS, orjson.dumps(document), warnings)

    (read,) = request.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points
    assert (list(read.bucket_counts), list(read.explicit_bounds)) == ([], [1.0, 2.0])
    assert warnings == ["bucketCounts must be an unsigned 64-bit integer; the value was left out"]


def test_fields_that_only_profiles_use_are_absent() -> None:
    span, _ = decode_span({"attributes": [{"keyStrindex": 3, "value": {"stringValueStrindex": 4}}]})

    assert span.attributes[0].SerializeToString() == b"\x12\x00"


def test_a_body_of_another_signal_is_empty_and_says_so() -> None:
    warnings: list[str] = []

    request = decode_json(Signal.TRACES, b'{"resourceLogs": []}', warnings)

    assert request.SerializeToString() == b""
    assert warnings == ["resourceSpans is missing: nothing of the body was read"]


# -------------------------------------------------------------------------- what is no request
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is empty; an empty OTLP/JSON request is {}"),
        (b"[]", "the body must be a JSON object"),
        (b"5", "the body must be a JSON object"),
        (b'{"resourceSpans": 5}', "resourceSpans must be a JSON list"),
        (
            b'{"resourceSpans": [{}, {"scopeSpans": [{"spans": [{}, 3]}]}]}',
            "resourceSpans[1].scopeSpans[0].spans[1] must be a JSON object",
        ),
        (b'{"resourceSpans": [', "the body is not JSON: Expecting value at line 1 column 20"),
        (b'{"a": "\xff\xfe"}', "the body is not UTF-8: byte 0xff at offset 7"),
        (b'{"a": "\xed\xa0\x80"}', "the body is not UTF-8: byte 0xed at offset 7"),
    ],
)
def test_what_is_no_request_is_malformed_and_the_place_is_named(body: bytes, sentence: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode_json(Signal.TRACES, body, [])

    assert str(refused.value) == sentence


def test_a_wrong_shape_names_its_field_for_bad_request() -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode_span({"attributes": [{"key": "k", "value": []}]})

    path = "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value"
    assert refused.value.field == path


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"arrayValue":{"values":['])
def test_a_hundred_thousand_levels_are_malformed_and_no_recursion_error(opening: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_json(Signal.TRACES, b'{"resourceSpans":' + opening * 100_000, [])


def nested(kind: str, levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "leaf"}
    for _ in range(levels):
        if kind == "arrays":
            value = {"arrayValue": {"values": [value]}}
        else:
            value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return value


PLACES: dict[str, Callable[[list[Any]], dict[str, Any]]] = {
    "span": lambda pairs: {"scopeSpans": [{"spans": [{"attributes": pairs}]}]},
    "event": lambda pairs: {"scopeSpans": [{"spans": [{"events": [{"attributes": pairs}]}]}]},
    "scope": lambda pairs: {"scopeSpans": [{"scope": {"attributes": pairs}}]},
    "resource": lambda pairs: {"resource": {"attributes": pairs}},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("kind", "sure"), [("maps", 31), ("arrays", 47)])
def test_json_is_taken_as_deep_as_protobuf_reads_back_and_no_deeper(
    place: str, kind: str, sure: int
) -> None:
    taken = [levels for levels in range(60) if is_taken(PLACES[place], nested(kind, levels))]

    assert taken == list(range(len(taken)))
    assert sure <= max(taken) <= sure + 1  # a resource lies one message higher than a span


def is_taken(place: Callable[[list[Any]], dict[str, Any]], value: dict[str, Any]) -> bool:
    body = orjson.dumps({"resourceSpans": [place([{"key": "deep", "value": value}])]})
    try:
        request = decode_json(Signal.TRACES, body, [])
    except MalformedRequest:
        return False
    return bool(ExportTraceServiceRequest.FromString(request.SerializeToString()) == request)


def test_what_is_nested_too_deep_is_malformed_in_words() -> None:
    with pytest.raises(MalformedRequest, match="nested too deep: more than 100 messages"):
        decode_span(attribute(nested("maps", 32)))


JSON_KEYS = st.sampled_from(
    [
        "resourceSpans",
        "scopeSpans",
        "spans",
        "attributes",
        "key",
        "value",
        "arrayValue",
        "values",
        "kvlistValue",
        "stringValue",
        "intValue",
        "traceId",
        "events",
        "status",
        "kind",
        "x_y",
    ]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_KEYS, inner, max_size=4),
)


@given(st.dictionaries(JSON_KEYS, JSON_VALUES) | JSON_VALUES)
def test_any_json_is_read_or_malformed(document: object) -> None:
    try:
        request = decode_json(Signal.TRACES, json.dumps(document).encode(), [])
    except MalformedRequest:
        return
    assert ExportTraceServiceRequest.FromString(request.SerializeToString()).IsInitialized()


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_malformed(body: bytes) -> None:
    with contextlib.suppress(MalformedRequest):
        decode_json(Signal.LOGS, body, [])


@given(st.binary(max_size=40))
def test_bytes_come_back_from_every_spelling_of_base64(value: bytes) -> None:
    standard = base64.b64encode(value).decode()
    urlsafe = base64.urlsafe_b64encode(value).decode()

    for text in (standard, urlsafe, standard.rstrip("="), urlsafe.rstrip("=")):
        span, _ = decode_span(attribute({"bytesValue": text}))
        assert span.attributes[0].value.bytes_value == value

"""One protobuf message from any encoding, or a sentence that says why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.errors import MalformedRequest
from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.decoding import decode_request
from hansard_collector.pipeline.requests import Encoding, IngestRequest, RequestSender, Signal

SENDER = RequestSender(address="127.0.0.1:53122", user_agent="test", transport="http")


def request_of(
    body: bytes, *, signal: Signal = Signal.TRACES, encoding: Encoding = Encoding.PROTOBUF
) -> IngestRequest:
    return IngestRequest(signal=signal, encoding=encoding, body=body, sender=SENDER, received_ns=0)


def traces(*spans: Span) -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    encoded: bytes = request.SerializeToString()
    return encoded


def field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field, for messages deeper than the library writes."""
    size, length = b"", len(content)
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def nested_traces(kind: str, levels: int) -> bytes:
    value: bytes = AnyValue(string_value="leaf").SerializeToString()
    for _ in range(levels):
        if kind == "arrays":
            value = field(5, field(1, value))
        else:
            value = field(6, field(1, field(1, b"k") + field(2, value)))
    return field(1, field(2, field(2, field(9, field(1, b"deep") + field(2, value)))))


@pytest.mark.parametrize("signal", Signal)
def test_zero_protobuf_bytes_are_an_empty_request(signal: Signal) -> None:
    decoded = decode_request(request_of(b"", signal=signal))

    assert decoded.message == CONTRACTS[signal].request()
    assert list(decoded.warnings) == []


def test_protobuf_and_json_of_one_request_decode_to_the_same_message() -> None:
    binary = traces(Span(trace_id=b"\xab" * 16, name="x", kind=Span.SPAN_KIND_CLIENT))
    span = b'{"traceId":"' + b"ab" * 16 + b'","name":"x","kind":3}'
    text = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + span + b"]}]}]}"

    from_json = decode_request(request_of(text, encoding=Encoding.JSON))

    assert from_json.message == decode_request(request_of(binary)).message


def test_what_json_could_not_say_is_handed_on_as_warnings() -> None:
    decoded = decode_request(request_of(b'{"resource_spans": []}', encoding=Encoding.JSON))

    assert decoded.warnings[0] == "resource_spans is unknown: OTLP/JSON calls it resourceSpans"


def test_fields_from_a_later_version_survive() -> None:
    later = traces(Span(name="x")) + field(15, b"from the future")

    assert decode_request(request_of(later)).message.SerializeToString() == later


def test_a_string_that_is_not_utf8_is_named_as_such() -> None:
    body = traces(Span(name="abcdef")).replace(b"abcdef", b"abc\xff\xfef")

    with pytest.raises(MalformedRequest, match="a string in it is not UTF-8"):
        decode_request(request_of(body))


@pytest.mark.parametrize(("left", "missing"), [(-1, "1 bytes"), (-20, "20 bytes")])
def test_a_body_cut_off_says_how_much_is_missing(left: int, missing: str) -> None:
    body = traces(Span(name="x" * 300))

    with pytest.raises(MalformedRequest, match=f"cut off: {missing} or more are missing"):
        decode_request(request_of(body[:left]))


@pytest.mark.parametrize("body", [b"\xff" * 64, b"<html></html>", b'{"resourceSpans":[]}'])
def test_what_is_no_protobuf_is_named_as_such(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="is not protobuf, or was damaged"):
        decode_request(request_of(body))


@pytest.mark.parametrize(("kind", "levels"), [("maps", 31), ("arrays", 47)])
def test_31_maps_and_47_arrays_are_decoded(kind: str, levels: int) -> None:
    decoded = decode_request(request_of(nested_traces(kind, levels)))

    assert decoded.message.SerializeToString() == nested_traces(kind, levels)


@pytest.mark.parametrize(("kind", "levels"), [("maps", 32), ("arrays", 48), ("arrays", 5_000)])
def test_deeper_values_are_malformed_with_that_reason(kind: str, levels: int) -> None:
    with pytest.raises(MalformedRequest, match="nested deeper than 100 messages"):
        decode_request(request_of(nested_traces(kind, levels)))


@given(
    body=st.binary(max_size=60), signal=st.sampled_from(Signal), encoding=st.sampled_from(Encoding)
)
def test_any_bytes_are_decoded_or_malformed(
    body: bytes, signal: Signal, encoding: Encoding
) -> None:
    try:
        decoded = decode_request(request_of(body, signal=signal, encoding=encoding))
    except MalformedRequest:
        return
    assert isinstance(decoded.message, CONTRACTS[signal].request)


@given(st.data())
def test_a_request_cut_anywhere_is_decoded_or_malformed(data: st.DataObject) -> None:
    body = traces(*[Span(name="span", trace_id=bytes(16)) for _ in range(3)])
    cut = data.draw(st.integers(1, len(body) - 1))

    with pytest.raises(MalformedRequest):
        decode_request(request_of(body[:cut]))

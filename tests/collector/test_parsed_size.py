"""What a request takes once it is parsed is found before it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hansard_collector.errors import RequestTooDense
from hansard_collector.pipeline.decoding import check_json_size, check_parsed_size
from tests.collector.ingesting import span, traces

KIND = ExportTraceServiceRequest.DESCRIPTOR
# By a process's resident memory, of eight million bytes of empty messages: no message is smaller.
SMALLEST_MESSAGE_BYTES = 40
values = st.recursive(
    st.one_of(st.text(max_size=200), st.integers(-(2**63), 2**63 - 1), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
requests = st.lists(
    st.dictionaries(st.text(min_size=1, max_size=8), values, max_size=5), max_size=5
).map(lambda many: traces([span(number, attributes=each) for number, each in enumerate(many, 1)]))


def messages_in(message: Message) -> Iterator[Message]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if field.is_repeated else [value]:
            yield inner
            yield from messages_in(inner)


def is_refused(body: bytes, limit: int) -> bool:
    try:
        check_parsed_size(KIND, body, limit)
    except RequestTooDense:
        return True
    return False


@given(requests)
def test_every_message_of_a_request_counts(request: Any) -> None:
    body = request.SerializeToString()
    count = sum(1 for _ in messages_in(request))

    assert not is_refused(body, 200 * count)
    assert count == 0 or is_refused(body, SMALLEST_MESSAGE_BYTES * count)


@given(requests, st.integers(0, 400))
def test_a_request_that_is_cut_off_is_left_to_the_parser(request: Any, length: int) -> None:
    body = request.SerializeToString()[:length]

    assert not is_refused(body, 200 * len(body))


@given(st.binary(max_size=300))
def test_any_bytes_are_counted_without_an_error(body: bytes) -> None:
    assert not is_refused(body, 200 * len(body))


def test_numbers_that_are_written_longer_than_they_have_to_be_count_alike() -> None:
    shortest, longest = b"\x0a\x00", b"\x8a\x80\x00\x80\x00"
    assert len(ExportTraceServiceRequest.FromString(longest * 100).resource_spans) == 100

    assert is_refused(shortest * 100, 4_000)
    assert is_refused(longest * 100, 4_000)


@pytest.mark.parametrize("unit", [b"{},", b"[],", b'{"a":1},', b'"ab",'])
def test_json_that_would_take_gigabytes_is_refused(unit: bytes) -> None:
    with pytest.raises(RequestTooDense, match="smaller requests"):
        check_json_size(b"[" + unit * (60_000_000 // len(unit)) + b"1]")


def test_signs_within_the_texts_of_json_are_not_counted() -> None:
    check_json_size(b'{"code":"' + b'{\\"[,' * 12_000_000 + b'"}')

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.ingest.redactions import RemovedSecret
from tests.collector.fields import REQUESTS, Place, places
from tests.compiler.planted import Planted, secrets

REDACTOR = Redactor(b"a key of this test only, 32 bytes")
REDACTED = RetentionPolicy(RetentionMode.REDACTED_PAYLOADS, REDACTOR)
METADATA = RetentionPolicy(RetentionMode.METADATA_ONLY, REDACTOR)
FULL = RetentionPolicy(RetentionMode.FULL_PAYLOADS, REDACTOR)

SECRET = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8rS"
OPAQUE = "k3Jd92mXq7Lp04vTzz"  # a secret only by the name it stands under
PLACES = [place for signal in Signal for place in places(signal)]
each_signal = pytest.mark.parametrize("signal", list(Signal))
CANARIES = ("the canary sang of 7 seas", "canary7f3e9ab2c41d", "CANARY-2b7e-151628aed2a6")


def spans(*made: Span) -> Any:
    request = REQUESTS[Signal.TRACES]()
    request.resource_spans.add().scope_spans.add().spans.extend(made)
    return request


def span(**attributes: Any) -> Span:
    pairs = [
        KeyValue(
            key=key, value=value if isinstance(value, AnyValue) else AnyValue(string_value=value)
        )
        for key, value in attributes.items()
    ]
    return Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="chat", attributes=pairs)


def only_span(request: Any) -> Span:
    found = request.resource_spans[0].scope_spans[0].spans[0]
    assert isinstance(found, Span)
    return found


def array(*texts: str) -> AnyValue:
    value = AnyValue()
    value.array_value.values.extend(AnyValue(string_value=text) for text in texts)
    return value


def test_the_walk_over_descriptors_reaches_all_kinds_of_fields() -> None:
    found = {str(place) for place in PLACES}

    assert len(found) > 150
    assert {
        "traces:resource_spans.scope_spans.spans.links.attributes.value.bytes_value",
        "traces:resource_spans.resource.entity_refs.id_keys",
        "logs:resource_logs.scope_logs.log_records.body.kvlist_value.values.key",
        "metrics:resource_metrics.scope_metrics.metrics.exponential_histogram.data_points"
        ".exemplars.filtered_attributes.value.array_value.values.string_value",
    } <= found


def still_there(text: str, policy: RetentionPolicy, signal: Signal) -> list[str]:
    """Plant a text in one field after the other; return the fields where it survived."""
    return [str(place) for place in places(signal) if text.encode() in after(policy, place, text)]


def after(policy: RetentionPolicy, place: Place, text: str) -> bytes:
    request = place.request_with(f"see {text} here" if text is SECRET else text)
    policy.apply(place.signal, request)
    return bytes(request.SerializeToString())


@each_signal
@pytest.mark.parametrize("policy", [REDACTED, METADATA], ids=lambda policy: policy.mode)
def test_a_secret_in_any_field_is_gone_afterwards(signal: Signal, policy: RetentionPolicy) -> None:
    assert still_there(SECRET, policy, signal) == []


@each_signal
@pytest.mark.parametrize("canary", CANARIES)
def test_metadata_only_keeps_no_content_in_any_field(signal: Signal, canary: str) -> None:
    assert still_there(canary, METADATA, signal) == []


@each_signal
def test_the_rest_of_the_field_is_kept(signal: Signal) -> None:
    cut = [
        str(place)
        for place in places(signal)
        if not re.search(
            "see ‹redacted:openai:[0-9a-f]{12}› here".encode(), after(REDACTED, place, SECRET)
        )
    ]

    assert cut == []


@each_signal
def test_full_payloads_changes_nothing(signal: Signal) -> None:
    for place in places(signal):
        request = place.request_with(f"see {SECRET} here")
        before = request.SerializeToString()

        assert FULL.apply(place.signal, request) == {}
        assert request.SerializeToString() == before


@each_signal
def test_every_removal_from_an_item_is_told_without_telling_the_secret(signal: Signal) -> None:
    for place in places(signal):
        request = place.request_with(f"see {SECRET} here")
        if not _items(signal, request):
            continue

        removed = REDACTED.apply(signal, request)

        assert [(one.rule, one.count) for one in removed[0]] == [("openai", 1)], place
        assert SECRET not in removed[0][0].field


@settings(max_examples=60, deadline=None)
@given(secrets(), st.sampled_from(PLACES))
def test_any_secret_in_any_field_is_gone(planted: Planted, place: Place) -> None:
    for text in (planted.text, json.dumps({"a": json.dumps([planted.text])})):
        request = place.request_with(text)

        REDACTED.apply(place.signal, request)

        assert planted.secret.encode() not in request.SerializeToString()


def test_a_secret_in_base64_and_in_binary_values_is_gone() -> None:
    encoded = base64.b64encode(b"x " + SECRET.encode()).decode()
    request = spans(span(a=encoded, b=AnyValue(bytes_value=b"\xff" + SECRET.encode())))

    REDACTED.apply(Signal.TRACES, request)

    stored = request.SerializeToString()
    assert encoded.encode() not in stored
    assert SECRET.encode() not in stored


@pytest.mark.parametrize(
    "value",
    [
        AnyValue(string_value=OPAQUE),
        AnyValue(bytes_value=OPAQUE.encode()),
        array(OPAQUE),
        array("Token " + OPAQUE, "none"),
    ],
    ids=["text", "bytes", "array", "scheme"],
)
def test_a_telling_attribute_name_makes_its_value_a_secret(value: AnyValue) -> None:
    request = spans(span(**{"http.request.header.x-api-key": value}))

    removed = REDACTED.apply(Signal.TRACES, request)

    assert OPAQUE.encode() not in request.SerializeToString()
    assert removed[0][0].rule == "assignment"
    assert removed[0][0].field.startswith("attributes.http.request.header.x-api-key")


def test_a_telling_name_around_a_map_counts_for_what_is_in_it() -> None:
    value = AnyValue()
    value.kvlist_value.values.add(key="user").value.string_value = "ada"
    value.kvlist_value.values.add(key="v").value.string_value = OPAQUE
    request = spans(span(credentials=value))

    REDACTED.apply(Signal.TRACES, request)

    kept = only_span(request).attributes[0].value.kvlist_value.values
    assert kept[0].value.string_value == "ada"
    assert kept[1].value.string_value.startswith("‹redacted:assignment:")


def test_an_argument_that_follows_a_telling_flag_is_a_secret() -> None:
    arguments = array("agent", "--api-key", OPAQUE, "--verbose", "k3Jd92mXq7Lp04vTyy")
    request = spans(span(**{"process.command_args": arguments}))

    REDACTED.apply(Signal.TRACES, request)

    kept = [v.string_value for v in only_span(request).attributes[0].value.array_value.values]
    assert kept[2].startswith("‹redacted:assignment:")
    assert kept[:2] + kept[3:] == ["agent", "--api-key", "--verbose", "k3Jd92mXq7Lp04vTyy"]


def pairs(**said: str) -> AnyValue:
    values = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in said.items()]
    return AnyValue(kvlist_value=KeyValueList(values=values))


@pytest.mark.parametrize(
    "value",
    [
        array("x-api-key", OPAQUE, "accept", "*/*"),
        array("Authorization", f"Token {OPAQUE}"),
        AnyValue(array_value=ArrayValue(values=[array("x-api-key", OPAQUE), array("a", "b")])),
        AnyValue(array_value=ArrayValue(values=[pairs(name="x-api-key", value=OPAQUE)])),
        pairs(key="Authorization", value=f"Token {OPAQUE}"),
    ],
    ids=["flat", "scheme", "pairs", "name and value", "key and value"],
)
def test_headers_in_lists_lose_their_secrets(value: AnyValue) -> None:
    request = spans(span())
    only_span(request).attributes.add(key="headers", value=value)

    REDACTED.apply(Signal.TRACES, request)

    assert OPAQUE.encode() not in request.SerializeToString()


def test_texts_that_follow_a_word_for_a_secret_stay() -> None:
    said = ["What is my password", f"It is {OPAQUE}", "token", "settings.api_key_v2"]
    request = spans(span())
    attributes = only_span(request).attributes
    attributes.add(key="said", value=array(*said))

    REDACTED.apply(Signal.TRACES, request)

    assert [one.string_value for one in attributes[-1].value.array_value.values] == said


def test_fields_in_an_unusual_order_hide_nothing() -> None:
    value = AnyValue(string_value=OPAQUE).SerializeToString()
    pair = b"\x12" + bytes([len(value)]) + value + b"\x0a\x08password"
    attribute = b"\x4a" + bytes([len(pair)]) + pair
    request = spans(Span.FromString(attribute + b"\x0a\x10" + b"t" * 16))

    REDACTED.apply(Signal.TRACES, request)

    assert OPAQUE.encode() not in request.SerializeToString()


def _with_unknown_field(data: bytes, note: str = "kept") -> Any:
    unknown = b"\xc2\x3e" + bytes([len(data)]) + data  # field 1000, length-delimited
    return spans(Span.FromString(span(note=note).SerializeToString() + unknown))


def test_a_secret_in_a_field_we_do_not_know_goes_with_the_field() -> None:
    message = b"\x0a" + bytes([len(SECRET)]) + SECRET.encode()  # the length byte reads as a word
    request = _with_unknown_field(message)

    removed = REDACTED.apply(Signal.TRACES, request)

    assert SECRET.encode() not in request.SerializeToString()
    assert b"kept" in request.SerializeToString()
    assert removed == {0: (RemovedSecret("everything", "unknown fields", 1),)}


def test_a_secret_in_an_unknown_field_deep_in_a_message_goes_too() -> None:
    request = spans()
    value = request.resource_spans.add().resource.attributes.add(key="deep").value
    value.MergeFromString(b"\xc3\x3e\x0a" + bytes([len(SECRET)]) + SECRET.encode() + b"\xc4\x3e")

    REDACTED.apply(Signal.TRACES, request)

    assert SECRET.encode() not in request.SerializeToString()


def test_other_unknown_fields_stay_but_for_metadata_only() -> None:
    request = _with_unknown_field(b"of a later version", note="a harmless password: none")
    before = request.SerializeToString()

    assert REDACTED.apply(Signal.TRACES, request) == {}
    assert request.SerializeToString() == before

    METADATA.apply(Signal.TRACES, request)
    assert b"later version" not in request.SerializeToString()


def test_removals_are_told_by_item_rule_and_field() -> None:
    request = spans(
        span(note="nothing"),
        span(note=f"{SECRET} and {SECRET}", other=SECRET),
        span(**{SECRET: "a secret as a name"}),
    )
    request.resource_spans[0].resource.attributes.add(key="env").value.string_value = SECRET

    removed = REDACTED.apply(Signal.TRACES, request)

    assert removed[0] == (RemovedSecret("openai", "resource.attributes.env", 1),)
    assert removed[1] == (
        RemovedSecret("openai", "attributes.note", 2),
        RemovedSecret("openai", "attributes.other", 1),
    )
    assert removed[2] == (RemovedSecret("openai", "attributes.key", 1),)


def test_items_are_counted_over_the_whole_request() -> None:
    request = spans(span(), span())
    request.resource_spans.add().scope_spans.add().spans.append(span(note=SECRET))

    assert list(REDACTED.apply(Signal.TRACES, request)) == [2]


def test_applying_twice_changes_nothing() -> None:
    for policy in (REDACTED, METADATA):
        request = spans(span(note=f"see {SECRET}", **{"session.id": "s-1", "x y": "z"}))
        policy.apply(Signal.TRACES, request)
        before = request.SerializeToString()

        policy.apply(Signal.TRACES, request)

        assert request.SerializeToString() == before


def _items(signal: Signal, request: Any) -> list[Any]:
    outer, inner, leaf = {
        Signal.TRACES: ("resource_spans", "scope_spans", "spans"),
        Signal.LOGS: ("resource_logs", "scope_logs", "log_records"),
        Signal.METRICS: ("resource_metrics", "scope_metrics", "metrics"),
    }[signal]
    return [i for r in getattr(request, outer) for s in getattr(r, inner) for i in getattr(s, leaf)]

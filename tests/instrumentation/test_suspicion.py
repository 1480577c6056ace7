"""The quick look at spans never passes what the close look would clean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceState

from hansard._export.redaction import Suspicion
from hansard_compiler.redaction.otlp import SPAN_LEVELS, MessageCleaner, clean_items
from hansard_compiler.redaction.redactor import Redactor

_REDACTOR = Redactor(b"k" * 32)
_TOKEN = "sk-proj-Zx81kQm2Vn7Rt5Yw9Lb4Hs6Jd3Fg0PcAqXeTuIoMzNvBk"  # made up
_RANDOM = "xT9qLm2Wv7Zr4Kp8Nd3B"
_WORDS = st.sampled_from(
    ["", "hello", "what is the time?", _TOKEN, f"use {_TOKEN} now", f"password={_RANDOM}", _RANDOM]
)
_KEYS = st.sampled_from(["a", "gen_ai.tool.name", "api_key", "x-api-key", "password", "prompt"])
_SCALARS = _WORDS | st.integers(0, 9) | st.booleans() | st.none() | st.just(_TOKEN.encode())
_VALUES = (
    _SCALARS
    | st.lists(_SCALARS | st.just("--api-key"), max_size=3).map(tuple)
    | st.dictionaries(_KEYS, _SCALARS, max_size=2)
)
_ATTRIBUTES = st.dictionaries(_KEYS, _VALUES, max_size=3)
_CONTEXTS = st.builds(
    SpanContext,
    st.just(1),
    st.just(2),
    is_remote=st.just(False),
    trace_state=st.just(TraceState([("vendor", "x")])),
)
_SPANS = st.builds(
    ReadableSpan,
    name=_WORDS,
    context=_CONTEXTS,
    resource=st.builds(Resource, _ATTRIBUTES, st.just("")),
    attributes=_ATTRIBUTES,
    events=st.lists(st.builds(Event, _WORDS, _ATTRIBUTES, st.just(1)), max_size=2),
    links=st.lists(st.builds(Link, _CONTEXTS, _ATTRIBUTES), max_size=1),
    status=st.builds(Status, st.just(StatusCode.ERROR), _WORDS),
    instrumentation_scope=st.builds(InstrumentationScope, _WORDS, st.just("1"), st.just("")),
    start_time=st.just(1),
    end_time=st.just(2),
)


def _would_be_cleaned(spans: list[ReadableSpan]) -> bool:
    request = encode_spans(spans)
    return bool(clean_items(request, SPAN_LEVELS, MessageCleaner(_REDACTOR).redact))


@given(st.lists(_SPANS, min_size=1, max_size=3))
def test_what_is_not_suspicious_holds_nothing_to_clean(spans: list[ReadableSpan]) -> None:
    if not Suspicion(_REDACTOR).falls_on(spans):
        assert not _would_be_cleaned(spans)


def _span(**fields: Any) -> ReadableSpan:
    context = SpanContext(1, 2, is_remote=False)
    return ReadableSpan(**{"name": "work", "context": context, "start_time": 1} | fields)


def test_an_ordinary_span_is_not_suspicious() -> None:
    ordinary = _span(attributes={"gen_ai.tool.name": "weather", "count": 3, "tags": ("a", "b")})

    assert not Suspicion(_REDACTOR).falls_on([ordinary])


@pytest.mark.parametrize(
    "fields",
    [
        {"name": _TOKEN},
        {"attributes": {"prompt": _TOKEN}},
        {"attributes": {"api_key": "short"}},
        {"attributes": {"arguments": ("--api-key", _RANDOM)}},
        {"attributes": {"bytes": _TOKEN.encode()}},
        {"events": [Event("exception", {"exception.message": _TOKEN})]},
        {"status": Status(StatusCode.ERROR, _TOKEN)},
        {"resource": Resource({"token": _TOKEN})},
        {"instrumentation_scope": InstrumentationScope(_TOKEN)},
    ],
)
def test_every_place_of_a_span_is_looked_at(fields: dict[str, Any]) -> None:
    assert Suspicion(_REDACTOR).falls_on([_span(**fields)])

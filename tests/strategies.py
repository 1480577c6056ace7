"""Generated telemetry: any OTLP message, and texts like those that agents put into attributes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=12)
# There is one NaN in OTLP/JSON, and 2^52 of them in memory.
DOUBLES = st.floats().map(lambda number: math.nan if math.isnan(number) else number)

# White space where JSON allows it, in every odd form.
_SPACES = st.sampled_from(["", " ", "\n", "\t", "\r\n", "  \n "])
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("é\u2028")
)


@st.composite
def json_texts(draw: st.DrawFn, levels: int = 3, *, kinds: str = "[{s") -> str:
    """A JSON text as some library might write it: any white space, keys twice, huge and odd."""
    kind = draw(st.sampled_from(kinds)) if levels else "s"
    if kind == "[":
        items = draw(st.lists(json_texts(levels - 1), max_size=5))
        return "[" + ",".join(_spaced(draw, item) for item in items) + draw(_SPACES) + "]"
    if kind == "{":
        keys = st.sampled_from(["messages", "model", "a", 'quo"te'])
        pairs = draw(st.lists(st.tuples(keys, json_texts(levels - 1)), max_size=4))
        members = (f"{_spaced(draw, json.dumps(key))}:{_spaced(draw, one)}" for key, one in pairs)
        return "{" + ",".join(members) + draw(_SPACES) + "}"
    return json.dumps(draw(_SCALARS), ensure_ascii=draw(st.booleans()))


def _spaced(draw: st.DrawFn, text: str) -> str:
    return draw(_SPACES) + text + draw(_SPACES)


def large_json() -> st.SearchStrategy[str]:
    """JSON long enough to be kept apart and cut: a conversation in some shape."""
    message = st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=30)}
    )
    return st.builds(
        _conversation,
        st.lists(message, min_size=1, max_size=6),
        wrap=st.sampled_from(["{}", ' {{"model": "m", "messages" : {} }}', "[{}]", "{} ", "{}x"]),
        padding=st.integers(0, 3),
        spaced=st.booleans(),
    )


def _conversation(messages: Sequence[Any], *, wrap: str, padding: int, spaced: bool) -> str:
    body = [{**message, "content": message["content"] + "word " * 80} for message in messages]
    text = json.dumps(body, indent=padding or None, separators=None if spaced else (",", ":"))
    return wrap.format(text)


TEXTS = st.one_of(
    TEXT,
    st.text(min_size=60, max_size=80),
    st.builds(lambda text: text * 60, st.text(min_size=1, max_size=30)),
    json_texts(),
    large_json(),
)


def any_values(levels: int = 3) -> st.SearchStrategy[AnyValue]:
    """Every kind of value, the unset one and empty ones included."""
    scalars = st.one_of(
        st.builds(AnyValue),
        st.builds(AnyValue, string_value=TEXTS),
        st.builds(AnyValue, bool_value=st.booleans()),
        st.builds(AnyValue, int_value=INT64),
        st.builds(AnyValue, double_value=DOUBLES),
        st.builds(AnyValue, bytes_value=st.binary(max_size=10)),
        st.builds(lambda part: AnyValue(bytes_value=part * 300), st.binary(min_size=4, max_size=9)),
    )
    if not levels:
        return scalars
    inner = any_values(levels - 1)
    return st.one_of(
        scalars,
        st.lists(inner, max_size=3).map(_array),
        st.lists(st.tuples(KEYS, inner), max_size=3).map(_map),
    )


def _array(values: Sequence[AnyValue]) -> AnyValue:
    made = AnyValue()
    made.array_value.SetInParent()
    made.array_value.values.extend(values)
    return made


def _map(pairs: Sequence[tuple[str, AnyValue]]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    made.kvlist_value.values.extend(KeyValue(key=key, value=value) for key, value in pairs)
    return made


KEYS = st.sampled_from(
    [
        "",
        "k",
        "llm.input_messages.0.message.content",
        "gen_ai.prompt.0.content",
        "gen_ai.input.messages",
        "input.value",
        "schlüssel",
    ]
)


def key_values(*, most: int = 4) -> st.SearchStrategy[list[KeyValue]]:
    """Attributes, keys twice and pairs without a value among them."""
    pair = st.one_of(
        st.builds(KeyValue, key=KEYS),
        st.builds(lambda key, value: KeyValue(key=key, value=value), KEYS, any_values()),
    )
    return st.lists(pair, max_size=most)


TRACE_IDS = st.integers(1, 3).map(lambda number: number.to_bytes(16, "big"))
SPAN_IDS = st.integers(1, 9).map(lambda number: number.to_bytes(8, "big"))

_EVENTS = st.builds(
    Span.Event,
    time_unix_nano=UINT64,
    name=st.sampled_from(["", "exception", "gen_ai.content.prompt", "gen_ai.user.message"]),
    attributes=key_values(most=2),
    dropped_attributes_count=UINT32,
)
_LINKS = st.builds(
    Span.Link,
    trace_id=TRACE_IDS,
    span_id=SPAN_IDS,
    trace_state=TEXT,
    attributes=key_values(most=2),
    dropped_attributes_count=UINT32,
    flags=UINT32,
)
_STATUS = st.builds(Status, message=TEXT, code=st.sampled_from([0, 1, 2, 7]))


def spans() -> st.SearchStrategy[Span]:
    """Any span with sound ids: every field, with and without a status."""
    return st.builds(
        Span,
        trace_id=TRACE_IDS,
        span_id=SPAN_IDS,
        trace_state=TEXT,
        parent_span_id=st.one_of(st.just(b""), SPAN_IDS),
        flags=UINT32,
        name=TEXT,
        kind=st.sampled_from([0, 1, 2, 3, 4, 5, 11]),
        start_time_unix_nano=UINT64,
        end_time_unix_nano=UINT64,
        attributes=key_values(),
        dropped_attributes_count=UINT32,
        events=st.lists(_EVENTS, max_size=2),
        dropped_events_count=UINT32,
        links=st.lists(_LINKS, max_size=2),
        dropped_links_count=UINT32,
        status=st.one_of(st.none(), _STATUS),
    )


def log_records() -> st.SearchStrategy[LogRecord]:
    """Any log record, with ids of every length."""
    return st.builds(
        LogRecord,
        time_unix_nano=UINT64,
        observed_time_unix_nano=UINT64,
        severity_number=st.sampled_from([0, 9, 17, 24, 99]),
        severity_text=TEXT,
        body=st.one_of(st.none(), any_values()),
        attributes=key_values(),
        dropped_attributes_count=UINT32,
        flags=UINT32,
        trace_id=st.one_of(TRACE_IDS, st.binary(max_size=17)),
        span_id=st.one_of(SPAN_IDS, st.binary(max_size=9)),
        event_name=TEXT,
    )


@st.composite
def metrics(draw: st.DrawFn) -> Metric:
    """A metric of any kind, with any number of points."""
    metric = Metric(name=draw(TEXT), description=draw(TEXT), unit=draw(TEXT))
    metric.metadata.extend(draw(key_values(most=1)))
    kind = draw(st.sampled_from(["", "gauge", "sum", "histogram", "summary"]))
    if not kind:
        return metric
    data = getattr(metric, kind)
    data.SetInParent()
    if kind in ("sum", "histogram"):
        data.aggregation_temporality = draw(st.sampled_from([0, 1, 2, 5]))
    for _ in range(draw(st.integers(0, 3))):
        point = data.data_points.add(time_unix_nano=draw(UINT64))
        point.attributes.extend(draw(key_values(most=2)))
        if kind in ("gauge", "sum"):
            point.as_double = draw(DOUBLES)
        else:
            point.sum = draw(DOUBLES)
            point.count = draw(UINT64)
    return metric

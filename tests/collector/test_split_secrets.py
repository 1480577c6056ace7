"""A secret that a stream sends in pieces is cut out of what the pieces say together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.dialects.content.chat import streamed_messages
from hansard_collector.pipeline.requests import Signal
from hansard_collector.transfer import export_store
from tests.collector.ingesting import Ingesting, logs, traces
from tests.collector.test_redact import FULL, REDACTED, REDACTOR, SECRET, only_span, span, spans

MARKER = REDACTOR.redact_text(SECRET).text
AROUND = ("the key is ", " and no other")


def chunk(delta: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta}],
    }


def saying(*pieces: str) -> list[dict[str, Any]]:
    return [chunk({"role": "assistant"}), *(chunk({"content": one}) for one in pieces)]


def calling(*pieces: str) -> list[dict[str, Any]]:
    calls = [{"index": 0, "function": {"arguments": one}} for one in pieces]
    calls[0] |= {"id": "call_1"}
    calls[0]["function"] |= {"name": "send"}  # type: ignore[operator]  # a mapping, as written above
    return [chunk({"tool_calls": [one]}) for one in calls]


def of_mlflow(chunks: list[dict[str, Any]]) -> Span:
    made = span()
    for at, one in enumerate(chunks):
        event = made.events.add(name=f"mlflow.chunk.item.{at}")
        value = AnyValue(string_value=json.dumps(one))
        event.attributes.append(KeyValue(key="mlflow.chunk.value", value=value))
    return made


def chunks_of(found: Span) -> list[Any]:
    if found.attributes:
        listed: list[Any] = json.loads(found.attributes[0].value.string_value)
        return listed
    return [json.loads(event.attributes[0].value.string_value) for event in found.events]


@pytest.mark.parametrize("at", [1, 6, 9, len(SECRET) - 1])
@pytest.mark.parametrize("says", [saying, calling])
@pytest.mark.parametrize("as_events", [False, True])
def test_what_a_stream_says_is_cleaned_whole(at: int, says: Any, as_events: bool) -> None:
    chunks = says(AROUND[0] + SECRET[:at], SECRET[at:], AROUND[1])
    sent = of_mlflow(chunks) if as_events else span(output=json.dumps(chunks))
    request = spans(sent)

    assert not REDACTED.begin_scan(request, None).result()  # type: ignore[arg-type]  # small: none is asked
    [told] = REDACTED.apply(Signal.TRACES, request)[0]

    found = chunks_of(only_span(request))
    whole = streamed_messages(says(MARKER.join(AROUND)))
    assert streamed_messages(found) == whole
    assert (told.rule, told.count) == ("openai", 1)
    assert [one["id"] for one in found] == ["chatcmpl-1"] * len(chunks)
    assert REDACTED.apply(Signal.TRACES, request) == {}


def test_a_stream_without_a_secret_stays_as_it_came() -> None:
    chunks = saying("no ", "key ", "here")
    request = spans(span(output=json.dumps(chunks, indent=1), other=SECRET))

    REDACTED.apply(Signal.TRACES, request)

    kept = only_span(request)
    assert kept.attributes[0].value.string_value == json.dumps(chunks, indent=1)
    assert kept.attributes[1].value.string_value == MARKER


def test_whoever_keeps_everything_keeps_the_pieces() -> None:
    request = spans(span(output=json.dumps(saying(SECRET[:9], SECRET[9:]))))
    before = request.SerializeToString()

    assert FULL.begin_scan(request, None).result()  # type: ignore[arg-type]  # none is asked
    assert request.SerializeToString() == before


def test_no_piece_together_reaches_the_index(tmp_path: Any) -> None:
    ingesting = Ingesting(tmp_path, retention="redacted_payloads")
    made = span(
        **{
            "openinference.span.kind": "LLM",
            "output.mime_type": "application/json",
            "output.value": json.dumps(saying("found ", SECRET[:9], SECRET[9:])),
        }
    )
    made.start_time_unix_nano, made.end_time_unix_nano = 1, 2
    ingesting.send(traces([made], scope="openinference.agno"))

    def uses(words: str) -> int:
        sql = "SELECT count(*) FROM text_fts WHERE text_fts MATCH ?"
        return int(ingesting.one(sql, f'"{words}"'))

    assert uses("found") == 1
    assert uses(SECRET) == uses(SECRET[9:]) == 0
    ingesting.close()


ANTHROPIC = [
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": bit}}
    for bit in ("here: ", SECRET[:20], SECRET[20:], " all")
]
EVENTS = "".join(f"event: content_block_delta\ndata: {json.dumps(one)}\n\n" for one in ANTHROPIC)


def span_with(chunks: list[dict[str, Any]]) -> Span:
    made = span(body=EVENTS, listed=json.dumps(ANTHROPIC))
    for one in chunks:
        event = made.events.add(name="llm.content.completion.chunk")
        value = AnyValue(string_value=json.dumps(one))
        event.attributes.append(KeyValue(key="chunk", value=value))
    array = AnyValue()
    for one in chunks:
        array.array_value.values.add(string_value=f"data: {json.dumps(one)}")
    made.attributes.append(KeyValue(key="array", value=array))
    maps = AnyValue()
    for bit in ("here: ", SECRET[:20], SECRET[20:]):
        pair = KeyValue(key="delta", value=AnyValue(string_value=bit))
        maps.array_value.values.add().kvlist_value.values.append(pair)
    made.attributes.append(KeyValue(key="maps", value=maps))
    for bit in ("here: ", SECRET[:20], SECRET[20:]):
        event = made.events.add(name="chunk")
        event.attributes.append(KeyValue(key="text", value=AnyValue(string_value=bit)))
    made.start_time_unix_nano, made.end_time_unix_nano = 1, 2
    return made


def test_no_half_of_a_key_is_in_any_file_of_the_store(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path, retention="redacted_payloads")
    ingesting.send(traces([span_with(ANTHROPIC)]))
    ingesting.send(logs([LogRecord(time_unix_nano=1, body=AnyValue(string_value=EVENTS))]))
    told = b"".join(export_store(ingesting.folder)).decode()
    ingesting.close()

    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert told.count("redacted:openai") == 7  # of four attributes, two kinds of events, a body
    for half in (SECRET[:20], SECRET[20:]):
        assert half not in told
        assert half.encode() not in files


PLACES = {
    "events named delta": ("gen_ai.content.delta", None),
    "events named in capitals": ("TOKEN_DELTA", None),
    "a number inside a name": (None, "llm.output.{}.text_delta"),
    "a number after delta": (None, "delta{}"),
    "a name in capitals": (None, "STREAM_CHUNK.{}.TEXT"),
    "a number in brackets": (None, "choices[{}].message_delta.content"),
    "letters of other alphabets": (None, "größe.{}.delta.öffnung"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_request_is_looked_through_wherever_a_name_says_that_it_holds_bits(place: str) -> None:
    event, name = PLACES[place]
    sent = span()
    for at, bit in enumerate(("the key is ", SECRET[:1], SECRET[1:], " and no other")):
        holder = sent if event is None else sent.events.add(name=event)
        pair = KeyValue(key=(name or "text").format(at), value=AnyValue(string_value=bit))
        holder.attributes.append(pair)
    request = spans(sent)

    assert not REDACTED.begin_scan(request, None).result()  # type: ignore[arg-type]  # small: none is asked
    REDACTED.apply(Signal.TRACES, request)

    found = only_span(request)
    held = [*found.attributes, *(pair for one in found.events for pair in one.attributes)]
    assert "".join(pair.value.string_value for pair in held) == f"the key is {MARKER} and no other"

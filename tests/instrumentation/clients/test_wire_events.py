"""Reading server-sent events, and adding up what streams say."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from hansard._clients.bodies import ROUTES, body_of
from hansard_compiler.providers.formats.fields import parsed
from hansard_compiler.providers.formats.sse import ServerSentEvent, read_events

CHAT, RESPONSES = ROUTES["openai"]["/chat/completions"], ROUTES["openai"]["/responses"]
MESSAGES = ROUTES["anthropic"]["/v1/messages"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
# Words of the APIs, so that hostile values stand where the readers look.
KEYS = st.sampled_from(
    [
        "id",
        "model",
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "tools",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "usage",
        "choices",
        "delta",
        "index",
        "message",
        "finish_reason",
        "error",
        "response",
        "output",
        "item",
        "output_index",
        "status",
        "summary",
        "source",
        "system",
        "instructions",
        "content_block",
        "stop_reason",
        "prompt_tokens",
        "details",
        "data",
        "input_tokens_details",
        "prompt_tokens_details",
        "image_url",
        "url",
        "file",
        "parts",
        "partial_json",
        "n",
        "stop",
    ]
)
WORDS = st.sampled_from(
    [
        "text",
        "input_text",
        "output_text",
        "image_url",
        "input_image",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
        "tool_use",
        "tool_result",
        "thinking",
        "image",
        "document",
        "base64",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "error",
        "response.completed",
        "response.output_item.done",
        "response.output_text.delta",
        "input_json_delta",
        "text_delta",
        "user",
    ]
)
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


def sse(*events: dict[str, Any]) -> bytes:
    """A stream as the APIs write it."""
    lines = (f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


@given(st.lists(json_values, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_come_back_as_they_were_written(sent: list[Any], end: str) -> None:
    body = "".join(f"data: {json.dumps(value)}{end}{end}" for value in sent)

    assert [json.dumps(json.loads(event.data)) for event in read_events(body.encode())] == [
        json.dumps(json.loads(json.dumps(value))) for value in sent
    ]


@given(st.text().filter(lambda said: "\r" not in said and "\n" not in said))
def test_only_line_ends_of_the_standard_cut_a_line(said: str) -> None:
    body = f"event: x\ndata: {said}\n\n".encode()

    assert list(read_events(body)) == [ServerSentEvent("x", said)]


@given(st.binary())
def test_any_bytes_can_be_read_as_events(body: bytes) -> None:
    assert all(isinstance(event, ServerSentEvent) for event in read_events(body))


def test_an_event_cut_off_before_its_empty_line_is_left_out() -> None:
    assert list(read_events(b"data: 1\n\ndata: 2\n")) == [ServerSentEvent("", "1")]


def test_comments_and_several_data_lines_are_read_as_the_standard_says() -> None:
    body = b": ping\nevent: a\ndata: one\ndata:two\nid: 7\n\n"

    assert list(read_events(body)) == [ServerSentEvent("a", "one\ntwo")]


@given(hostile)
@example({"status": "completed", "output": [{"type": ["function_call"]}]})
@example({"input": [{"type": {}, "role": "user", "content": "a"}]})
def test_no_body_of_a_request_or_response_makes_a_reader_raise(body: Any) -> None:
    read = body if isinstance(body, dict) else {}

    for route in (route for routes in ROUTES.values() for route in routes.values()):
        asked, answer = route.read_request(read), route.read_response(read)
        json.dumps([asked.input, asked.system, asked.tools, answer.output])
        for value in (*asked.attributes.values(), *answer.attributes.values()):
            assert isinstance(value, str | bool | int | float | list)


@given(st.lists(hostile, max_size=8))
def test_no_stream_makes_a_reader_raise(events: list[Any]) -> None:
    body = sse(*(event for event in events if isinstance(event, dict)))

    for route in (route for routes in ROUTES.values() for route in routes.values()):
        route.read_stream(body)


def test_what_is_no_json_is_nothing() -> None:
    deep = b"[" * 100_000

    assert [parsed(b"{"), parsed(b"\xff"), parsed(deep), parsed("1" * 5_000)] == [None] * 4
    assert body_of(b"[1]") == {}


def test_a_streamed_chat_adds_up_to_what_it_would_have_been_in_one_piece() -> None:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {"content": "Gr"}}]},
        {"choices": [{"index": 0, "delta": {"content": "üße"}}]},
        {"choices": [_call_delta(0, id="call_1", name="get", arguments="")]},
        {"choices": [_call_delta(0, arguments='{"k":')]},
        {"choices": [_call_delta(1, id="call_2", name="put", arguments="{}")]},
        {"choices": [_call_delta(0, arguments="1}")]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
    ]
    body = sse(*({"id": "c1", "model": "gpt-x", **chunk} for chunk in chunks))

    answer, is_whole = CHAT.read_stream(body + b"data: [DONE]\n\n")

    assert is_whole
    assert answer.attributes == {
        "gen_ai.response.id": "c1",
        "gen_ai.response.model": "gpt-x",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
    }
    assert answer.output == [
        {
            "role": "assistant",
            "finish_reason": "tool_calls",
            "parts": [
                {"type": "text", "content": "Grüße"},
                {"type": "tool_call", "id": "call_1", "name": "get", "arguments": {"k": 1}},
                {"type": "tool_call", "id": "call_2", "name": "put", "arguments": {}},
            ],
        }
    ]


def _call_delta(
    index: int, *, arguments: str, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    inner = {"name": name, "arguments": arguments}
    call = {"index": index, "id": id, "function": inner}
    return {"index": 0, "delta": {"tool_calls": [call]}}


def test_a_cut_off_response_shows_what_had_come_until_then() -> None:
    body = sse(
        {"type": "response.created", "response": {"id": "r1", "model": "gpt-x", "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "once "},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "upon"},
    )

    answer, is_whole = RESPONSES.read_stream(body)

    assert not is_whole
    assert answer.attributes["gen_ai.response.id"] == "r1"
    assert answer.output[0]["parts"] == [{"type": "text", "content": "once upon"}]


def test_a_streamed_message_of_anthropic_adds_up_with_the_last_numbers() -> None:
    start = {"id": "m1", "model": "c", "usage": {"input_tokens": 10, "output_tokens": 1}}
    first = {"type": "tool_use", "id": "t1", "name": "get", "input": {}}
    body = sse(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": first},
        _block_delta(0, type="input_json_delta", partial_json='{"a":'),
        _block_delta(0, type="input_json_delta", partial_json="2}"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 30, "cache_read_input_tokens": 7},
        },
        {"type": "message_stop"},
    )

    answer, is_whole = MESSAGES.read_stream(body)

    assert is_whole
    assert answer.attributes["gen_ai.usage.input_tokens"] == 17
    assert answer.attributes["gen_ai.usage.output_tokens"] == 30
    assert answer.attributes["gen_ai.response.finish_reasons"] == ["tool_use"]
    assert answer.output[0]["parts"] == [
        {"type": "tool_call", "id": "t1", "name": "get", "arguments": {"a": 2}}
    ]


def _block_delta(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def test_an_error_inside_a_stream_is_its_failure() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    body = sse({"type": "error", "error": error})

    of_anthropic = MESSAGES.read_stream(body)[0].failure
    of_openai = RESPONSES.read_stream(body)[0].failure

    assert of_anthropic is not None
    assert of_anthropic.type == "overloaded_error"
    assert of_openai == of_anthropic

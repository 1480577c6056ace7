"""Ids that join a result to its call, where flat messages lack them."""

from __future__ import annotations

import json
from typing import Any

from hansard_compiler.calls import Message, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of

_CALL = "llm.input_messages.0.message.tool_calls.0.tool_call"
_FLAT = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "assistant",
    f"{_CALL}.function.name": "get_weather",
    f"{_CALL}.function.arguments": '{"city": "Paris"}',
    "llm.input_messages.1.message.role": "tool",
    "llm.input_messages.1.message.content": "sunny",
}
_ASKED: dict[str, Any] = {
    "id": "c7",
    "type": "function",
    "function": {"name": "get_weather", "arguments": "{}"},
}
_REQUEST: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [_ASKED]},
    {"role": "tool", "tool_call_id": "c7", "content": "sunny"},
]


def _ids(messages: tuple[Message, ...]) -> list[str | None]:
    return [
        part.id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]


def test_ids_are_taken_from_the_request_that_was_recorded_beside_the_messages() -> None:
    call = call_of({**_FLAT, "input.value": json.dumps({"messages": _REQUEST})})

    assert _ids(call.input) == ["c7", "c7"]


def test_a_record_of_other_calls_gives_no_ids() -> None:
    other = [*_REQUEST, *_REQUEST]

    call = call_of({**_FLAT, "input.value": json.dumps({"messages": other})})

    assert _ids(call.input) == [None, None]


def test_ids_of_an_answer_are_taken_from_the_recorded_response() -> None:
    flat = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
    response = {"choices": [{"message": {"role": "assistant", "tool_calls": [_ASKED]}}]}

    call = call_of(
        {
            "openinference.span.kind": "LLM",
            f"{flat}.name": "get_weather",
            f"{flat}.arguments": "{}",
            "output.value": json.dumps(response),
        }
    )

    assert _ids(call.output) == ["c7"]


def test_a_result_without_an_id_answers_the_call_before_it() -> None:
    assert _ids(call_of({**_FLAT, f"{_CALL}.id": "c1"}).input) == ["c1", "c1"]


def test_results_find_their_calls_by_name_in_any_order() -> None:
    def asks(call_id: str, name: str) -> dict[str, Any]:
        return {"type": "tool_call", "id": call_id, "name": name, "arguments": {}}

    def answers(name: str) -> dict[str, Any]:
        part = {"type": "tool_call_response", "name": name, "response": "ok"}
        return {"role": "tool", "parts": [part]}

    asked = {"role": "assistant", "parts": [asks("c1", "rain"), asks("c2", "wind")]}
    messages = json.dumps([asked, answers("wind"), answers("rain")])

    call = call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages})

    assert _ids(call.input) == ["c1", "c2", "c2", "c1"]


def test_a_call_named_by_its_item_has_the_id_that_its_result_names() -> None:
    asked = {"type": "tool_call", "id": "fc_1", "name": "rain", "arguments": {}}
    answer = {"type": "tool_call_response", "id": "call_1", "response": "ok"}
    messages = [{"role": "assistant", "parts": [asked]}, {"role": "tool", "parts": [answer]}]

    call = call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)})

    assert _ids(call.input) == ["call_1", "call_1"]


def test_the_only_call_of_an_answer_has_the_id_that_its_span_tells() -> None:
    asked = {"type": "tool_call", "id": "fc_1", "name": "rain", "arguments": {}}
    answer = json.dumps([{"role": "assistant", "parts": [asked]}])
    told = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer}

    assert _ids(call_of(told).output) == ["fc_1"]
    assert _ids(call_of({**told, "gen_ai.tool.call.id": "call_1"}).output) == ["call_1"]


def test_ids_of_an_answer_are_taken_from_messages_that_haystack_prints() -> None:
    flat = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
    said = "TextContent(text=\"<ChatRole.TOOL: 'x'>, id='c8'\")"
    asked = "ToolCall(tool_name='get_weather', arguments={'city': 'Paris'}, id='c7', extra=None)"
    reply = f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[{said}, {asked}])"

    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            f"{flat}.name": "get_weather",
            f"{flat}.arguments": '{"city": "Paris"}',
            "output.value": json.dumps({"replies": [reply]}),
        }
    )

    assert _ids(call.output) == ["c7"]

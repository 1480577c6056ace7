"""OpenTelemetry GenAI: the newest form, in attributes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_compiler.calls import (
    MediaPart,
    Message,
    OtherPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.collector.dialects.maker import call_of, read

_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        ("chat", "llm"),
        ("generate_content", "llm"),
        ("text_completion", "llm"),
        ("embeddings", "embedding"),
        ("retrieval", "retriever"),
        ("create_agent", "agent"),
        ("invoke_agent", "agent"),
        ("invoke_workflow", "workflow"),
        ("execute_tool", "tool"),
        ("plan", "task"),
        ("fetch_response", "other"),
        ("search_memory", "memory"),
        ("something_new", "other"),
    ],
)
def test_the_operation_tells_the_role(operation: str, role: str) -> None:
    assert read({"gen_ai.operation.name": operation}).role == role


def test_a_fetched_response_is_no_call_and_its_tokens_count_nowhere() -> None:
    shown = read({"gen_ai.operation.name": "fetch_response", "gen_ai.usage.input_tokens": 5})

    assert (shown.role, shown.call, shown.tokens_sum) == ("other", None, None)


def _structured(part: dict[str, Any]) -> Any:
    return [{"role": "assistant", "parts": [part]}]


@pytest.mark.parametrize("as_json", [True, False], ids=["as JSON", "structured"])
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "content": "Hi"}, TextPart("Hi")),
        ({"type": "reasoning", "content": "Hm"}, ReasoningPart("Hm")),
        (
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
            ToolCallPart("c1", "f", {"a": 1}),
        ),
        (
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'},
            ToolCallPart("c1", "f", {"a": 1}),
        ),
        (
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": '},
            ToolCallPart("c1", "f", '{"a": '),
        ),
        ({"type": "tool_call", "id": None, "name": "f"}, ToolCallPart(None, "f", {})),
        (
            {"type": "server_tool_call", "id": "c", "name": "web", "server_tool_call": {"q": 1}},
            ToolCallPart("c", "web", {"q": 1}),
        ),
        (
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
            MediaPart("image/png", data="aGk="),
        ),
        (
            {"type": "file", "modality": "image", "mime_type": "image/png", "file_id": "file-1"},
            MediaPart("image/png", uri="file-1"),
        ),
        (
            {"type": "uri", "modality": "image", "mime_type": None, "uri": "https://x/y.png"},
            MediaPart("image", uri="https://x/y.png"),
        ),
        ({"type": "compaction", "id": "k"}, OtherPart({"type": "compaction", "id": "k"})),
        ({"type": "dance", "steps": 3}, OtherPart({"type": "dance", "steps": 3})),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else "",
)
def test_each_part_of_the_schema_is_read(
    part: dict[str, Any], expected: Any, as_json: bool
) -> None:
    sent = _structured(part)

    call = call_of({**_CHAT, "gen_ai.output.messages": json.dumps(sent) if as_json else sent})

    assert call.output == (Message("assistant", (expected,)),)


@pytest.mark.parametrize("key", ["response", "result"])
def test_a_tool_response_makes_a_tool_message_whoever_the_wire_said(key: str) -> None:
    part = {"type": "tool_call_response", "id": "c1", key: "18 °C"}

    call = call_of({**_CHAT, "gen_ai.input.messages": [{"role": "user", "parts": [part]}]})

    assert call.input == (Message("tool", (ToolResultPart("c1", "18 °C"),)),)


def test_system_instructions_are_the_first_input_message() -> None:
    call = call_of(
        {
            **_CHAT,
            "gen_ai.system_instructions": '[{"type": "text", "content": "Be terse."}]',
            "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]',
        }
    )

    assert [(message.role, message.text) for message in call.input] == [
        ("system", "Be terse."),
        ("user", "Hi"),
    ]


def test_system_instructions_that_the_input_repeats_are_shown_once() -> None:
    call = call_of(
        {
            **_CHAT,
            "gen_ai.system_instructions": "Be terse.",
            "gen_ai.input.messages": [
                {"role": "developer", "parts": [{"type": "text", "content": "Be terse."}]}
            ],
        }
    )

    assert [(message.role, message.text) for message in call.input] == [("system", "Be terse.")]


def test_messages_cut_off_by_a_length_limit_keep_their_text() -> None:
    whole = '[{"role":"user","parts":[{"type":"text","content":"Hi"}]},{"role":"assistant","parts":'

    shown = read({**_CHAT, "gen_ai.input.messages": whole + '[{"type":"text","content":"It i'})

    assert shown.call is not None
    first, rest = shown.call.input
    assert first == Message("user", (TextPart("Hi"),))
    assert rest.role == "assistant"
    assert "It i" in rest.text
    assert "cut off" in shown.notes[0]


def test_elements_cut_by_the_store_give_the_same_messages_as_the_whole_array() -> None:
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "id": "1"}]},
        "a bare text",
        7,
        None,
    ]
    attributes = {**_CHAT, "gen_ai.input.messages": json.dumps(sent)}
    elements = {"gen_ai.input.messages": [json.dumps(item) for item in sent]}

    assert call_of(attributes, elements=elements).input == call_of(attributes).input


def test_parameters_have_short_names() -> None:
    call = call_of(
        {
            **_CHAT,
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.top_k": 40.0,
            "gen_ai.request.stop_sequences": ["END"],
            "gen_ai.request.choice.count": 2,
            "gen_ai.request.reasoning.level": "low",
            "gen_ai.output.type": "json",
        }
    )

    assert call.parameters == {
        "temperature": 0.2,
        "top_k": 40.0,
        "stop_sequences": ["END"],
        "choice_count": 2,
        "reasoning_level": "low",
        "output_type": "json",
    }


def test_every_number_names_the_attribute_it_came_from() -> None:
    call = call_of(
        {
            **_CHAT,
            "gen_ai.usage.input_tokens": 101,
            "gen_ai.usage.output_tokens": "23",
            "gen_ai.usage.cache_read.input_tokens": 64.0,
            "gen_ai.usage.reasoning.output_tokens": 8,
            "gen_ai.response.time_to_first_chunk": 0.25,
        }
    )

    assert (call.tokens.input, call.tokens.output) == (101, 23)
    assert (call.tokens.cache_read, call.tokens.cache_write, call.tokens.reasoning) == (64, None, 8)
    assert call.time_to_first_token_ms == 250
    assert call.sources["tokens.input"] == "gen_ai.usage.input_tokens"
    assert call.sources["tokens.cache_read"] == "gen_ai.usage.cache_read.input_tokens"
    assert call.sources["time_to_first_token"] == "gen_ai.response.time_to_first_chunk"
    assert "tokens.cache_write" not in call.sources


def test_dropped_attributes_are_told() -> None:
    notes = read({}, dropped=3).notes

    assert notes[0].startswith("3 attributes were dropped")


def test_a_span_without_any_dialect_is_a_generic_span() -> None:
    shown = read({"http.request.method": "GET"}, name="GET /")

    assert (shown.role, shown.dialect, shown.call, shown.tool) == ("other", "otel", None, None)


def test_items_that_openllmetry_for_javascript_wrote_as_one_text_are_taken_apart() -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": json.dumps(items)}]}]
        ),
    }

    by_javascript = call_of(told, scope="@traceloop/instrumentation-openai")
    by_anybody = call_of(told)

    assert by_javascript.input == (
        Message("user", (TextPart("hi"),)),
        Message("assistant", (ToolCallPart("c1", "f", {}),)),
    )
    assert [said.text for said in by_anybody.input] == [json.dumps(items)]

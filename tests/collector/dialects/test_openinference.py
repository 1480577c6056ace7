"""OpenInference: flat messages and their traps."""

from __future__ import annotations

import json

import pytest

from hansard_compiler.calls import (
    MediaPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.collector.dialects.maker import call_of, read

_LLM = {"openinference.span.kind": "LLM"}
_OUT = "llm.output_messages.0.message"


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("LLM", "llm"),
        ("llm", "llm"),
        ("CHAIN", "chain"),
        ("AGENT", "agent"),
        ("TOOL", "tool"),
        ("RETRIEVER", "retriever"),
        ("EMBEDDING", "embedding"),
        ("RERANKER", "rerank"),
        ("GUARDRAIL", "guardrail"),
        ("EVALUATOR", "evaluator"),
        ("PROMPT", "prompt"),
        ("DECISION", "llm"),
        ("UNKNOWN", "other"),
    ],
)
def test_each_span_kind_has_its_role(kind: str, role: str) -> None:
    assert read({"openinference.span.kind": kind}).role == role


def test_indices_are_sorted_as_numbers_and_may_have_holes() -> None:
    said = {f"llm.input_messages.{at}.message.content": str(at) for at in (10, 2, 9, 0)}

    assert [message.text for message in call_of({**_LLM, **said}).input] == ["0", "2", "9", "10"]


def test_a_tool_call_that_stands_twice_in_a_message_is_one_call() -> None:
    call = call_of(
        {
            **_LLM,
            f"{_OUT}.role": "assistant",
            f"{_OUT}.contents.0.message_content.type": "text",
            f"{_OUT}.contents.0.message_content.text": "Let me look.",
            f"{_OUT}.contents.1.message_content.type": "tool_use",
            f"{_OUT}.contents.1.tool_call.id": "c1",
            f"{_OUT}.contents.1.tool_call.function.name": "f",
            f"{_OUT}.contents.1.tool_call.function.arguments": '{"a": 1}',
            f"{_OUT}.tool_calls.0.tool_call.id": "c1",
            f"{_OUT}.tool_calls.0.tool_call.function.name": "f",
            f"{_OUT}.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
        }
    )

    assert call.output == (
        Message("assistant", (TextPart("Let me look."), ToolCallPart("c1", "f", {"a": 1}))),
    )


def test_reasoning_images_and_texts_keep_their_order() -> None:
    contents = f"{_OUT}.contents"
    call = call_of(
        {
            **_LLM,
            f"{_OUT}.role": "assistant",
            f"{contents}.10.message_content.type": "text",
            f"{contents}.10.message_content.text": "Hi",
            f"{contents}.0.message_content.type": "reasoning",
            f"{contents}.0.message_content.text": "Hm",
            f"{contents}.1.message_content.type": "image",
            f"{contents}.1.message_content.image.image.url": "https://x/y.png",
        }
    )

    assert call.output == (
        Message(
            "assistant",
            (ReasoningPart("Hm"), MediaPart(None, uri="https://x/y.png"), TextPart("Hi")),
        ),
    )


def test_the_legacy_function_call_is_a_tool_call() -> None:
    call = call_of(
        {
            **_LLM,
            f"{_OUT}.role": "assistant",
            f"{_OUT}.function_call_name": "f",
            f"{_OUT}.function_call_arguments_json": '{"a": 1}',
        }
    )

    assert call.output == (Message("assistant", (ToolCallPart(None, "f", {"a": 1}),)),)


def test_an_empty_output_message_is_no_answer() -> None:
    assert call_of({**_LLM, f"{_OUT}.role": "assistant"}, status=2).output == ()


@pytest.mark.parametrize(
    "marker", ["__REDACTED__", "<REDACTED>", "<replaced>", "<elided>", "<not serializable>", ""]
)
def test_a_redaction_marker_is_not_content(marker: str) -> None:
    call = call_of({**_LLM, "llm.input_messages.0.message.content": marker, "input.value": marker})

    assert call.input == ()


def test_a_prompt_preparing_span_shows_neither_usage_nor_answer() -> None:
    call = call_of(
        {
            **_LLM,
            "llm.model_name": "gpt-4o-mini",
            "llm.invocation_parameters": '{"model_name": "gpt-4o-mini"}',
            "output.value": '{"messages": ["ChatMessage(…)"]}',
            "output.mime_type": "application/json",
        }
    )

    assert (call.output, call.tokens.any_known(), call.error) == ((), False, None)
    assert (call.request_model, call.response_model) == ("gpt-4o-mini", None)


def test_a_completion_answers_in_its_output_value() -> None:
    call = call_of(
        {
            **_LLM,
            "llm.prompts": ["Say hello."],
            "output.value": "Hello!",
            "llm.token_count.completion": 3,
        }
    )

    assert [message.text for message in call.input] == ["Say hello."]
    assert [message.text for message in call.output] == ["Hello!"]


def test_the_model_name_is_what_served_where_the_request_is_known() -> None:
    attributes = {
        **_LLM,
        "llm.invocation_parameters": '{"model": "gpt-4o-mini", "stream": true, "top_p": 1}',
        "llm.model_name": "gpt-4o-mini-2024-07-18",
    }

    call = call_of(attributes)
    failed = call_of({**attributes, "llm.model_name": "gpt-4o-mini"}, status=2)

    assert (call.request_model, call.response_model) == ("gpt-4o-mini", "gpt-4o-mini-2024-07-18")
    assert (call.stream, call.parameters) == (True, {"top_p": 1})
    assert failed.response_model is None


def test_a_span_that_speaks_two_dialects_is_mapped_field_by_field() -> None:
    shown = read(
        {
            **_LLM,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.usage.input_tokens": 5,
            "llm.input_messages.0.message.content": "Hi",
            "llm.token_count.completion": 2,
            "session.id": "s",
        }
    )

    assert shown.call is not None
    assert shown.dialect == "openinference"
    assert [message.text for message in shown.call.input] == ["Hi"]
    assert (shown.call.tokens.input, shown.call.tokens.output) == (5, 2)
    assert shown.call.sources["tokens.output"] == "llm.token_count.completion"


def test_the_sum_of_an_agent_is_no_call() -> None:
    shown = read({"openinference.span.kind": "AGENT", "llm.token_count.prompt": 5})

    assert shown.call is None
    assert shown.tokens_sum is not None
    assert shown.tokens_sum.input == 5


def test_old_messages_of_anthropic_keep_their_system_prompt_among_the_parameters() -> None:
    call = call_of(
        {
            **_LLM,
            "llm.invocation_parameters": json.dumps({"model": "m", "system": "Be terse."}),
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "hi",
        }
    )

    assert [(said.role, said.text) for said in call.input] == [
        ("system", "Be terse."),
        ("user", "hi"),
    ]


def test_a_users_message_that_answers_a_tool_call_is_its_result() -> None:
    call = call_of(
        {
            **_LLM,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.tool_call_id": "c1",
            "llm.input_messages.0.message.content": '[{"type": "text", "text": "18 °C"}]',
        }
    )

    assert call.input == (Message("tool", (ToolResultPart("c1", "18 °C"),)),)


def test_an_answer_that_was_not_flattened_is_read_from_the_response() -> None:
    tool_call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = {"choices": [{"message": {"role": "assistant", "tool_calls": [tool_call]}}]}
    told = {
        **_LLM,
        "llm.token_count.completion": 3,
        "output.mime_type": "application/json",
        "llm.output_messages.0.message.role": "assistant",
    }

    answered = call_of({**told, "output.value": json.dumps(response)})
    state = call_of({**told, "output.value": '{"messages": ["hi"]}'})

    assert answered.output == (Message("assistant", (ToolCallPart("c1", "f", {}),)),)
    assert state.output == ()


def test_tools_are_read_from_the_request_unless_they_are_what_python_prints() -> None:
    tool = {"type": "function", "function": {"name": "f"}}

    call = call_of({**_LLM, "input.value": json.dumps({"tools": [tool, "Tool(name='g')"]})})

    assert [one["name"] for one in call.tools] == ["f"]


@pytest.mark.parametrize(
    ("sent", "query"),
    [
        ("Paris", "Paris"),
        ('{"query": "Paris", "filters": null}', "Paris"),
        ('{"args": ["Paris"], "kwargs": {}}', "Paris"),
        ('{"args": [], "kwargs": {"question": "Paris"}}', "Paris"),
        ('{"top_k": 3}', '{"top_k": 3}'),
    ],
)
def test_what_a_retriever_was_asked_is_found_among_its_arguments(sent: str, query: str) -> None:
    assert read({"openinference.span.kind": "RETRIEVER", "input.value": sent}).query == query


def test_an_agents_node_names_it_where_nothing_else_does() -> None:
    node = {"graph.node.id": "weather-agent"}

    assert read({**node, "openinference.span.kind": "AGENT"}).agent_name == "weather-agent"
    assert read({**node, "openinference.span.kind": "CHAIN"}).agent_name is None

"""Facts that stand only inside a recorded request or response."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_compiler.calls import Call
from tests.collector.dialects.maker import call_of, read

_REQUEST = {
    "model": "gpt-4o-mini",
    "stream": True,
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
}
_OPENAI = {
    "id": "chatcmpl-1",
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {
        "prompt_tokens": 101,
        "completion_tokens": 23,
        "total_tokens": 124,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 8},
    },
}
_ANTHROPIC = {
    "id": "msg_1",
    "model": "claude-sonnet-4-5-20250929",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 140,
        "output_tokens": 29,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 20,
    },
}
_GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}
    ],
    "modelVersion": "gemini-2.5-pro-001",
    "usageMetadata": {
        "promptTokenCount": 10,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 4,
        "totalTokenCount": 18,
    },
}
_LANGCHAIN = {
    "generations": [
        [
            {
                "text": "Hello",
                "generation_info": {"finish_reason": "stop"},
                "message": {
                    "lc": 1,
                    "id": ["langchain", "schema", "messages", "AIMessage"],
                    "kwargs": {
                        "content": "Hello",
                        "response_metadata": {"model_name": "gpt-4o-mini-2024-07-18"},
                        "usage_metadata": {
                            "input_tokens": 101,
                            "output_tokens": 23,
                            "input_token_details": {"cache_read": 64},
                            "output_token_details": {"reasoning": 8},
                        },
                    },
                },
            }
        ]
    ]
}


def _counts(call: Call) -> tuple[int | None, ...]:
    tokens = call.tokens
    return (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.reasoning)


@pytest.mark.parametrize(
    ("response", "model", "reason", "counts"),
    [
        (_OPENAI, "gpt-4o-mini-2024-07-18", "stop", (101, 23, 64, None, 8)),
        (_ANTHROPIC, "claude-sonnet-4-5-20250929", "stop", (224, 29, 64, 20, None)),
        (_GEMINI, "gemini-2.5-pro-001", "stop", (10, 8, 4, None, 3)),
        (_LANGCHAIN, "gpt-4o-mini-2024-07-18", "stop", (101, 23, 64, None, 8)),
    ],
    ids=["OpenAI", "Anthropic", "Gemini", "LangChain"],
)
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ({"openinference.span.kind": "LLM"}, "output.value"),
        ({"mlflow.spanType": '"CHAT_MODEL"'}, "mlflow.spanOutputs"),
        ({"langsmith.span.kind": "llm"}, "gen_ai.completion"),
        ({"langfuse.observation.type": "generation"}, "langfuse.observation.output"),
        ({"lmnr.span.type": "LLM"}, "lmnr.span.output"),
    ],
    ids=["OpenInference", "MLflow", "LangSmith", "Langfuse", "Laminar"],
)
def test_a_recorded_response_tells_what_no_attribute_does(
    kind: dict[str, Any],
    key: str,
    response: dict[str, Any],
    model: str,
    reason: str,
    counts: tuple[int | None, ...],
) -> None:
    call = call_of({**kind, key: json.dumps(response)})

    assert (call.response_model, call.finish_reason) == (model, reason)
    assert _counts(call) == counts
    assert call.sources["tokens.output"] == f"{key}{{usage: output}}"


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ({"openinference.span.kind": "LLM"}, "input.value"),
        ({"mlflow.spanType": '"LLM"'}, "mlflow.spanInputs"),
        ({"langsmith.span.kind": "llm"}, "gen_ai.prompt"),
        ({"lmnr.span.type": "LLM"}, "lmnr.span.input"),
    ],
    ids=["OpenInference", "MLflow", "LangSmith", "Laminar"],
)
@pytest.mark.parametrize("padding", [0, 100_000], ids=["small", "large"])
def test_a_recorded_request_tells_the_asked_model_and_the_stream_flag(
    kind: dict[str, Any], key: str, padding: int
) -> None:
    request = {
        **_REQUEST,
        "messages": [{"role": "user", "content": '"model": "no"' + "x" * padding}],
    }

    call = call_of({**kind, key: json.dumps(request)})

    assert (call.request_model, call.stream) == ("gpt-4o-mini", True)


def test_what_a_user_says_is_not_taken_for_the_model() -> None:
    request = {"messages": [{"role": "user", "content": {"model": "no"}}] * 2000, "model": "late"}

    call = call_of({"openinference.span.kind": "LLM", "input.value": json.dumps(request)})

    assert call.request_model is None


def test_an_attribute_wins_over_the_recorded_response() -> None:
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.token_count.prompt": 107,
            "llm.finish_reason": "length",
            "output.value": json.dumps(_OPENAI),
        }
    )

    assert (call.tokens.input, call.finish_reason) == (107, "length")
    assert call.tokens.cache_write is None


def test_the_output_of_a_chain_is_not_searched_for_usage() -> None:
    shown = read({"openinference.span.kind": "CHAIN", "output.value": json.dumps(_OPENAI)})

    assert (shown.tokens_sum, shown.call) == (None, None)


def test_a_failed_calls_recorded_request_names_no_serving_model() -> None:
    call = call_of(
        {"openinference.span.kind": "LLM", "output.value": json.dumps({"model": "gpt-4o"})},
        status=2,
    )

    assert call.response_model is None


def test_tools_of_a_recorded_request_are_shown() -> None:
    call = call_of({"mlflow.spanType": '"LLM"', "mlflow.spanInputs": json.dumps(_REQUEST)})

    assert call.tools == ({"type": "function", "name": "f"},)


def test_spring_names_its_tools_in_a_list_in_json_or_with_commas() -> None:
    key = "spring.ai.model.request.tool.names"

    for sent in (["f", "g"], '["f", "g"]', "f, g"):
        call = call_of({"gen_ai.operation.name": "chat", key: sent})
        assert [tool["name"] for tool in call.tools] == ["f", "g"]


def test_the_vectors_of_an_embedding_are_no_answer_and_too_large_to_open() -> None:
    answer = {"data": [{"embedding": [0.5] * 10_000}], "usage": {"prompt_tokens": 7}}
    kind = {"mlflow.spanType": '"EMBEDDING"', "mlflow.spanInputs": '{"input": ["Paris"]}'}

    large = call_of({**kind, "mlflow.spanOutputs": json.dumps(answer)})
    small = call_of({**kind, "mlflow.spanOutputs": json.dumps({**answer, "data": []})})

    assert (large.output, large.tokens.input) == ((), None)
    assert (small.output, small.tokens.input) == ((), 7)
    assert [(message.role, message.text) for message in small.input] == [("user", "Paris")]


@pytest.mark.parametrize(
    "kwargs",
    [{"id": "lc_run--1", "response_metadata": {"id": "chatcmpl-1"}}, {"id": "chatcmpl-1"}],
    ids=["Python", "JavaScript"],
)
def test_the_id_of_a_response_is_found_inside_langchains_own(kwargs: dict[str, Any]) -> None:
    message = {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": kwargs}
    output = {"generations": [[{"text": "hi", "message": message}]]}

    call = call_of({"openinference.span.kind": "LLM", "output.value": json.dumps(output)})

    assert call.response_id == "chatcmpl-1"


@pytest.mark.parametrize(
    ("tells", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "completed", "incomplete_details": None}, None),  # a status is no reason
        ({"status": "in_progress", "incomplete_details": "?"}, None),
    ],
)
def test_a_recorded_response_of_the_responses_api_tells_why_it_was_cut_short(
    tells: dict[str, Any], reason: str | None
) -> None:
    response = {"object": "response", "model": "gpt-4o-mini", "output": [], **tells}

    call = call_of({"openinference.span.kind": "LLM", "output.value": json.dumps(response)})

    assert call.finish_reason == reason

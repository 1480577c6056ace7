"""Values as Python prints them, and requests that only count tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.dialects.engine.values import printed
from tests.collector.dialects.maker import call_of, read

_CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
_USAGE = (
    "{'completion_tokens': 23, 'prompt_tokens': 101, 'completion_tokens_details': "
    "{'reasoning_tokens': 6, 'text_tokens': None}, 'prompt_tokens_details': {'cached_tokens': 64}}"
)
_OBJECT = (
    "Usage(completion_tokens=23, prompt_tokens=101, completion_tokens_details="
    "CompletionTokensDetailsWrapper(reasoning_tokens=6, text_tokens=None), prompt_tokens_details="
    "PromptTokensDetailsWrapper(cached_tokens=64))"
)


@pytest.mark.parametrize("sent", [_USAGE, _OBJECT])
def test_usage_that_litellm_prints_tells_cached_and_reasoning_tokens(sent: str) -> None:
    call = call_of({**_CALL, "metadata.usage_object": sent}, scope="litellm")

    tokens = call.tokens
    assert (tokens.input, tokens.output) == (101, 23)
    assert (tokens.cache_read, tokens.reasoning) == (64, 6)


def test_a_providers_object_that_a_library_prints_tells_what_the_library_leaves_out() -> None:
    raw = f"ChatCompletion(id='chatcmpl-1', model='gpt-4o-mini-2024-07-18', usage={_OBJECT})"
    said = {"role": "assistant", "content": "hi", "raw": raw, "token_usage": {"input_tokens": 101}}

    call = call_of({"openinference.span.kind": "LLM", "output.value": json.dumps(said)})

    tokens = call.tokens
    assert (tokens.input, tokens.output) == (101, 23)
    assert (tokens.cache_read, tokens.reasoning) == (64, 6)
    assert (call.response_model, call.response_id) == ("gpt-4o-mini-2024-07-18", "chatcmpl-1")


@pytest.mark.parametrize(
    ("sent", "held"),
    [
        ("{'a': -1, 'b': [1.5, 'x', None, True]}", {"a": -1, "b": [1.5, "x", None, True]}),
        ("Usage(a=1, b=Inner(c='x'))", {"a": 1, "b": {"c": "x"}}),
        ("M(role=<Role.USER: 'user'>, of=<Kind.B: 2>)", {"role": "user", "of": 2}),
        ("M(text=\"<Role.USER: 'user'>\")", {"text": "<Role.USER: 'user'>"}),
        ("M(text='it\\'s <Role.USER: 1>')", {"text": "it's <Role.USER: 1>"}),
        ("<object at 0x7f>", "<object at 0x7f>"),
        ("(1, 2)", [1, 2]),
        ("__import__('os').system('true')", {}),
        ("[x for x in (1, 2)]", "[x for x in (1, 2)]"),
        ("1 + 1", "1 + 1"),
        ("what a text", "what a text"),
        ("{'a': ", "{'a': "),
        ("(" * 4000, "(" * 4000),
        ("-" * 4000 + "1", "-" * 4000 + "1"),
        ("{'a': 1}" + " " * 20_000, "{'a': 1}" + " " * 20_000),
        (5, 5),
    ],
)
def test_a_printed_value_is_read_and_never_run(sent: Any, held: Any) -> None:
    assert printed(sent) == held


@pytest.mark.parametrize(
    "attributes",
    [
        {"http.route": "/v1/messages/count_tokens"},
        {"url.path": "/v1beta/models/gemini-2.5-pro:countTokens"},
        {"url.path": "/tokenize"},
        {"http.route": "/v1/messages/count_tokens?beta=true"},
        {"url": "/v1/messages/count_tokens", "logfire.span_type": "span"},
    ],
)
def test_a_request_that_counts_tokens_is_no_model_call(attributes: dict[str, str]) -> None:
    assert read({"gen_ai.request.model": "m", **attributes}).role == "other"


def test_a_span_named_after_counting_tokens_is_no_model_call() -> None:
    shown = read({"gen_ai.request.model": "m"}, name="client.count_tokens")

    assert shown.role == "other"


def test_what_anthropics_sdk_asks_without_an_operation_asks_no_model() -> None:
    sdk = "com.anthropic.sdk.python"
    asked = {"gen_ai.request.model": "claude-sonnet-4-5"}

    assert read(asked, name="anthropic.messages.count_tokens", scope=sdk).role == "other"
    assert read(asked, name="anthropic.messages.batches.create", scope=sdk).role == "other"
    chat = asked | {"gen_ai.operation.name": "chat"}
    assert read(chat, name="anthropic.messages.create", scope=sdk).role == "llm"


def test_a_call_that_ended_with_an_error_has_failed_whatever_its_status() -> None:
    shown = read({**_CALL, "gen_ai.response.finish_reasons": ["error"]}, status=1)

    assert shown.error is not None
    assert shown.call is not None
    assert shown.call.error == shown.error
    assert shown.call.finish_reason == "error"


def test_a_reason_that_is_no_error_leaves_a_call_as_it_is() -> None:
    assert read({**_CALL, "gen_ai.response.finish_reasons": ["length"]}).error is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"model": '"fail-model"'},
        {"invocation_params": '{"model": "fail-model", "stream": false}'},
        {"mlflow.spanInputs": '{"modelId": "fail-model", "messages": []}'},
    ],
)
def test_a_failed_call_of_mlflow_names_the_model_that_was_asked(attributes: dict[str, str]) -> None:
    call = call_of({"mlflow.spanType": '"CHAT_MODEL"', **attributes}, status=2)

    assert call.request_model == "fail-model"


def test_calls_that_an_answer_asks_for_may_stand_beside_it_on_the_span() -> None:
    beside = {
        "gen_ai.tool.name": "get_weather, get_time",
        "gen_ai.tool.call.id": "call_1, call_2",
        "gen_ai.tool.args": '{"city": "Paris, France"}, {"zone": "CET"}',
    }

    call = call_of({**_CALL, **beside}, scope="openlit.otel.tracing")

    (message,) = call.output
    assert [(p.id, p.name, p.arguments) for p in message.parts] == [  # type: ignore[union-attr]  # both are calls
        ("call_1", "get_weather", {"city": "Paris, France"}),
        ("call_2", "get_time", {"zone": "CET"}),
    ]


def test_arguments_that_were_cut_off_make_no_call() -> None:
    beside = {"gen_ai.tool.name": "a, b", "gen_ai.tool.args": '{"city": "Paris'}

    assert call_of({**_CALL, **beside}).output == ()

"""Logfire's integrations of OpenAI and Anthropic before version 5: requests and responses whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.derivation.rows import derive
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_compiler.calls import Message, TextPart, ToolCallPart
from tests.collector.dialects.maker import span

_ASKED = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
_WITH_USAGE = {**_ASKED, "stream": True, "stream_options": {"include_usage": True}}
_TOLD = {"message": {"role": "assistant", "content": "Hello."}}


def _span(
    request: Any,
    response: Any = None,
    *,
    kind: str = "span",
    template: str = "Message with {request_data[model]!r}",
    scope: str = "logfire.anthropic",
) -> SpanView:
    attributes = {
        "request_data": json.dumps(request),
        "logfire.span_type": kind,
        "logfire.msg_template": template,
    }
    if response is not None:
        attributes["response_data"] = json.dumps(response)
    return span(attributes, scope=scope)


def _read(view: SpanView) -> Normalised:
    return normalise(view, MessageCache())


def _counts(view: SpanView) -> bool:
    shown = _read(view)
    call = derive(view, shown).call
    return call is not None and call.is_candidate and not shown.duplicate


def test_a_request_alone_makes_a_span_a_model_call() -> None:
    usage = {"input_tokens": 47, "cache_read_input_tokens": 64, "output_tokens": 28}

    shown = _read(_span(_ASKED, {**_TOLD, "usage": usage}))

    assert shown.role == "llm"
    assert shown.call is not None
    assert (shown.call.request_model, shown.call.provider) == ("claude-sonnet-4-5", "anthropic")
    assert [said.text for said in (*shown.call.input, *shown.call.output)] == ["hi", "Hello."]
    assert (shown.call.tokens.input, shown.call.tokens.cache_read) == (111, 64)


def test_a_request_without_a_model_is_somebody_elses() -> None:
    assert _read(_span({"path": "/"})).role == "other"


def test_an_embedding_is_known_by_its_message() -> None:
    shown = _read(
        _span(
            {"model": "text-embedding-3-small", "input": ["sunny", "rain"]},
            {"usage": {"prompt_tokens": 9}},
            template="Embedding Creation with {request_data[model]!r}",
        )
    )

    assert shown.role == "embedding"
    assert shown.call is not None
    assert [said.text for said in shown.call.input] == ["sunny", "rain"]
    assert shown.call.tokens.input == 9


@pytest.mark.parametrize(
    ("request_data", "response_data", "counted"),
    [
        (_WITH_USAGE, {**_TOLD, "usage": {"prompt_tokens": 9}}, "record"),
        ({**_ASKED, "stream": True}, {"combined_chunk_content": "Hello."}, "request"),
    ],
)
def test_of_a_stream_the_record_counts_only_where_it_alone_tells_the_usage(
    request_data: Any, response_data: Any, counted: str
) -> None:
    request = _span(request_data)
    record = _span(request_data, response_data, kind="log", template="streaming response from …")

    assert _counts(request) == (counted == "request")
    assert _counts(record) == (counted == "record")


def test_a_stream_of_responses_counts_though_logfire_4_never_tells_its_answer() -> None:
    asked = {
        "gen_ai.request.model": "o4-mini",
        "events": '[{"event.name": "gen_ai.user.message", "role": "user", "content": "hi"}]',
        "logfire.span_type": "span",
    }

    assert _counts(span(asked, scope="logfire.openai"))
    assert not _counts(span(asked, scope="my.own"))


def test_of_a_stream_of_logfire_5_only_the_record_counts_though_a_client_asked() -> None:
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]',
    }
    request = span({**asked, "logfire.span_type": "span"}, scope="logfire.anthropic")
    record = span(
        {**asked, "logfire.span_type": "log", "gen_ai.usage.output_tokens": 28},
        scope="logfire.anthropic",
    )

    assert not _counts(request._replace(kind=3))
    assert _counts(record)


def test_arguments_of_anthropics_blocks_are_taken_out_of_their_wrapper() -> None:
    call = {"function": {"name": "get_weather", "arguments": '{"input": {"city": "Paris"}}'}}
    said = {"message": {"role": "assistant", "content": "I look.", "tool_calls": [call]}}

    by_anthropic = _read(_span(_ASKED, said)).call
    by_openai = _read(_span(_ASKED, said, scope="logfire.openai")).call

    assert by_anthropic is not None
    assert by_openai is not None
    bare = ToolCallPart(None, "get_weather", {"city": "Paris"})
    assert by_anthropic.output == (Message("assistant", (TextPart("I look."), bare)),)
    assert by_openai.output[0].parts[1] == ToolCallPart(
        None, "get_weather", {"input": {"city": "Paris"}}
    )

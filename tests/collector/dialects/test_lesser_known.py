"""Langtrace, OpenLIT, MLflow and LangSmith where they differ from all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.dialects.engine.normal_form import Document
from hansard_compiler.calls import Message, TextPart, ToolCallPart
from tests.collector.dialects.maker import call_of, event, read

_LANGTRACE = {"langtrace.service.name": "Anthropic", "gen_ai.operation.name": "chat"}


def _prompt(*messages: Any) -> list[Any]:
    return [event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(messages)})]


def test_langtrace_tells_the_system_prompt_last_and_once_a_call() -> None:
    system = {"role": "system", "content": "Be terse."}
    asked, answered = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}

    call = call_of(_LANGTRACE, events=_prompt(asked, system, answered, asked, system))

    assert [said.text for said in call.input] == ["Be terse.", "hi", "Hello.", "hi"]


def test_a_tool_call_that_langtrace_lost_leaves_no_empty_part() -> None:
    call = call_of(_LANGTRACE, events=_prompt([{"id": "", "type": ""}], "hi"))

    assert call.input == (Message("user", (TextPart("hi"),)),)


def test_langtrace_has_words_of_its_own_for_tools_cache_and_embeddings() -> None:
    tools = json.dumps([json.dumps([{"type": "function", "function": {"name": "f"}}])])

    call = call_of({**_LANGTRACE, "gen_ai.request.tools": tools, "gen_ai.usage.cached_tokens": 64})

    assert call.tools == ({"type": "function", "name": "f"},)
    assert call.tokens.cache_read == 64
    embedded = {"gen_ai.operation.name": "embed", "gen_ai.request.embedding_inputs": '[["a", "b"]]'}
    assert [said.text for said in call_of({**_LANGTRACE, **embedded}).input] == ["a", "b"]


@pytest.mark.parametrize(
    ("scope", "ms"), [("openlit.instrumentation.openai", 250.0), ("strands.telemetry.tracer", 0.25)]
)
def test_only_openlit_gives_the_first_token_in_seconds(scope: str, ms: float) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.server.time_to_first_token": 0.25}

    assert call_of(told, scope=scope).time_to_first_token_ms == ms


def _chunk(at: int, **delta: Any) -> Any:
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]}
    return event(f"mlflow.chunk.item.{at}", {"mlflow.chunk.value": json.dumps(chunk)}, at_ms=at)


def test_tool_calls_of_an_mlflow_stream_are_put_together_from_its_chunks() -> None:
    output = {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": None}}]}
    chunks = [
        _chunk(0, index=0, id="c1", function={"name": "f", "arguments": ""}),
        _chunk(1, index=0, id=None, function={"name": None, "arguments": '{"city"'}),
        _chunk(2, index=1, id="c2", function={"name": "g", "arguments": "{}"}),
        _chunk(3, index=0, function={"arguments": ': "Paris"}'}),
        event("mlflow.chunk.item.4", {"mlflow.chunk.value": '{"choices": null}'}),
    ]

    call = call_of(
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": json.dumps(output)},
        events=chunks,
    )

    calls = (ToolCallPart("c1", "f", {"city": "Paris"}), ToolCallPart("c2", "g", {}))
    assert call.output == (Message("assistant", calls),)


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "mlflow.spanType": '"RETRIEVER"',
            "mlflow.spanInputs": '{"query": "Paris"}',
            "mlflow.spanOutputs": '[{"id": "d1", "page_content": "sunny"}]',
        },
        {
            "langfuse.observation.type": "retriever",
            "langfuse.observation.input": '{"args": ["Paris"], "kwargs": {}}',
            "langfuse.observation.output": '{"documents": [{"id": "d1", "content": "sunny"}]}',
        },
        {
            "langsmith.span.kind": "retriever",
            "gen_ai.prompt": '{"query": "Paris"}',
            "gen_ai.completion": '{"output": [{"id": "d1", "page_content": "sunny"}]}',
        },
    ],
    ids=["mlflow", "langfuse", "langsmith"],
)
def test_retrievers_tell_their_documents_as_what_they_returned(attributes: Any) -> None:
    shown = read(attributes)

    assert shown.query == "Paris"
    assert shown.documents == (Document("d1", "sunny", None, {}),)


def test_texts_that_a_retriever_returned_are_documents() -> None:
    shown = read(
        {"langfuse.observation.type": "retriever", "langfuse.observation.output": '["a", "b"]'}
    )

    assert [document.content for document in shown.documents] == ["a", "b"]


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.parameters": '{"stream": true}',
        },
        {"langsmith.span.kind": "llm", "langsmith.metadata.stream": True},
        {"mlflow.spanType": '"CHAT_MODEL"', "invocation_params": '{"stream": true}'},
    ],
    ids=["langfuse", "langsmith", "mlflow"],
)
def test_a_stream_is_known_by_what_was_asked(attributes: Any) -> None:
    assert call_of(attributes).stream is True


def test_the_tools_of_a_genkit_model_stand_in_its_request() -> None:
    sent = {"messages": [], "tools": [{"name": "f", "inputSchema": {"type": "object"}}]}

    call = call_of({"genkit:metadata:subtype": "model", "genkit:input": json.dumps(sent)})

    assert call.tools == ({"type": "function", "name": "f", "parameters": {"type": "object"}},)

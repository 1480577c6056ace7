"""Frameworks that tell in words of their own what others tell in OpenTelemetry's."""

from __future__ import annotations

import json

import pytest

from hansard_compiler.calls import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of, event, read

_LLAMA = "llamaindex.opentelemetry.tracer"
_ASKED = {
    "messages": json.dumps(
        [
            {
                "role": "user",
                "additional_kwargs": {},
                "blocks": [{"block_type": "text", "text": "Weather?"}],
            },
            {
                "role": "assistant",
                "additional_kwargs": {
                    "tool_calls": [
                        {"id": "c1", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}
                    ]
                },
                "blocks": [
                    {
                        "block_type": "tool_call",
                        "tool_call_id": "c1",
                        "tool_name": "look",
                        "tool_kwargs": '{"city": "Rome"}',
                    }
                ],
            },
            {
                "role": "tool",
                "additional_kwargs": {"tool_call_id": "c1"},
                "blocks": [{"block_type": "text", "text": "warm"}],
            },
        ]
    ),
    "model_dict.model_name": "gpt-4o-mini",
    "additional_kwargs.tools": '[{"type": "function", "function": {"name": "look"}}]',
}
_ANSWERED = {
    "response.message.role": "assistant",
    "response.message.blocks": '[{"block_type": "text", "text": "It is warm."}]',
    "response.raw.id": "chatcmpl-1",
    "response.raw.model": "gpt-4o-mini-2024-07-18",
    "response.raw.choices": '[{"finish_reason": "stop", "index": 0}]',
    "response.raw.usage.prompt_tokens": "157",
    "response.raw.usage.completion_tokens": "31",
    "response.raw.usage.prompt_tokens_details.cached_tokens": "96",
    "response.raw.usage.completion_tokens_details.reasoning_tokens": "12",
    "response.raw.usage.prompt_tokens_details.cache_write_tokens": "null",
    "response.delta": "null",
}


def test_llamaindex_tells_a_call_in_events_of_its_own() -> None:
    events = [event("LLMChatStartEvent", _ASKED), event("LLMChatEndEvent", _ANSWERED, at_ms=2)]

    call = call_of({}, name="OpenAI.achat", scope=_LLAMA, events=events)

    assert [message.parts for message in call.input] == [
        (TextPart("Weather?"),),
        (ToolCallPart("c1", "look", {"city": "Rome"}),),
        (ToolResultPart("c1", "warm"),),
    ]
    assert call.output[0].text == "It is warm."
    assert (call.request_model, call.response_model) == ("gpt-4o-mini", "gpt-4o-mini-2024-07-18")
    assert (call.finish_reason, call.response_id, call.tools[0]["name"]) == (
        "stop",
        "chatcmpl-1",
        "look",
    )
    assert (call.tokens.input, call.tokens.output) == (157, 31)
    assert (call.tokens.cache_read, call.tokens.reasoning) == (96, 12)


def test_llamaindex_tells_steps_by_methods_and_events() -> None:
    summary = "ToolCall(tool_name='look', tool_kwargs={'city': 'Rome'}, tool_id='c1')"
    ran = read({"llamaindex.step.input_summary": summary}, name="FunctionTool.acall", scope=_LLAMA)
    nodes = [{"node": {"id_": "n1", "text": "Rome is warm.", "metadata": {}}, "score": 0.5}]
    found = read(
        {},
        name="VectorIndexRetriever.retrieve",
        scope=_LLAMA,
        events=[
            event("RetrievalStartEvent", {"str_or_query_bundle.query_str": "Rome?"}),
            event("RetrievalEndEvent", {"nodes": json.dumps(nodes)}),
        ],
    )
    embedded = call_of(
        {},
        name="OpenAIEmbedding.get_query_embedding",
        scope=_LLAMA,
        events=[
            event("EmbeddingStartEvent", {"model_dict.model_name": "text-embedding-3-small"}),
            event("EmbeddingEndEvent", {"chunks": ["Rome?"]}),
        ],
    )

    assert ran.tool is not None
    assert (ran.role, ran.tool.name, ran.tool.call_id) == ("tool", "look", "c1")
    assert ran.tool.arguments == "{'city': 'Rome'}"
    assert (found.role, found.query) == ("retriever", "Rome?")
    assert [(d.id, d.content, d.score) for d in found.documents] == [("n1", "Rome is warm.", 0.5)]
    assert (embedded.request_model, embedded.input[0].text) == ("text-embedding-3-small", "Rome?")
    assert read({}, name="FunctionAgent.run", scope=_LLAMA).role == "agent"


def test_agentops_names_kinds_and_contents_in_its_own_words() -> None:
    tool = read(
        {
            "agentops.span.kind": "tool",
            "operation.name": "look",
            "agentops.tool.input": '{"args": [], "kwargs": {"city": "Rome"}}',
            "agentops.tool.output": "warm",
        },
        name="look.tool",
    )
    agent = read({"agentops.span.kind": "agent", "operation.name": "guide"}, name="guide.agent")

    assert tool.tool is not None
    assert (tool.role, tool.tool.name, tool.tool.result) == ("tool", "look", "warm")
    assert tool.tool.arguments == {"args": [], "kwargs": {"city": "Rome"}}
    assert (agent.role, agent.agent_name) == ("agent", "guide")
    assert call_of({"gen_ai.request.type": "chat", "gen_ai.request.streaming": True}).stream is True


def test_mastra_names_kinds_and_contents_in_its_own_words() -> None:
    agent = read(
        {
            "gen_ai.operation.name": "invoke_agent",
            "mastra.span.type": "agent_run",
            "mastra.agent_run.input": "Weather?",
            "mastra.agent_run.output": '{"text": "warm"}',
            "mastra.metadata.sessionId": "s1",
            "mastra.metadata.userId": "u1",
        }
    )
    older = read(
        {
            "gen_ai.operation.name": "tool.execute",
            "mastra.span.type": "tool_call",
            "gen_ai.tool.name": "look",
            "gen_ai.tool.input": '{"city": "Rome"}',
            "gen_ai.tool.output": "warm",
            "sessionId": "s1",
        }
    )

    assert (agent.role, agent.input, agent.output) == ("agent", "Weather?", '{"text": "warm"}')
    assert (agent.conversation_id, agent.user_id, older.conversation_id) == ("s1", "u1", "s1")
    assert older.tool is not None
    assert (older.role, older.tool.arguments) == ("tool", {"city": "Rome"})
    assert older.tool.result == "warm"


def test_traceai_flattens_messages_under_names_of_the_conventions() -> None:
    call = call_of(
        {
            "gen_ai.span.kind": "LLM",
            "gen_ai.request.parameters": '{"model": "o4-mini", "stream": true}',
            "gen_ai.request.model": "o4-mini-2025-04-16",
            "gen_ai.input.messages.0.message.role": "user",
            "gen_ai.input.messages.0.message.content": "Weather?",
            "gen_ai.output.messages.0.message.role": "assistant",
            "gen_ai.output.messages.0.message.tool_calls.0.tool_call.id": "c1",
            "gen_ai.output.messages.0.message.tool_calls.0.tool_call.function.name": "look",
            "gen_ai.output.messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
            "gen_ai.usage.input_tokens": 101,
            "gen_ai.usage.output_tokens": 23,
            "gen_ai.usage.input_tokens.cache_read": 64,
            "gen_ai.usage.output_tokens.reasoning": 8,
        }
    )

    assert (call.request_model, call.response_model) == ("o4-mini", "o4-mini-2025-04-16")
    assert (call.stream, call.input[0].text) == (True, "Weather?")
    assert call.output[0].parts == (ToolCallPart("c1", "look", {}),)
    assert (call.tokens.cache_read, call.tokens.reasoning) == (64, 8)


def test_the_call_of_a_model_inside_a_guard_is_a_call() -> None:
    call = call_of(
        {
            "openinference.span.kind": "GUARDRAIL",
            "type": "guardrails/guard/step/call",
            "llm.output_messages.0.message.content": "hi",
            "llm.token_count.prompt": 33,
        }
    )

    assert (call.output[0].text, call.tokens.input) == ("hi", 33)


@pytest.mark.parametrize(
    ("name", "role"), [("invoke_agent guide", "agent"), ("execute_tool look", "tool")]
)
def test_pydantic_1_names_spans_without_an_operation(name: str, role: str) -> None:
    assert read({"logfire.msg": "…"}, name=name, scope="pydantic-ai").role == role


def test_pydantic_1_tells_thoughts_by_their_kind_and_counts_by_details() -> None:
    said = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"},
        {
            "event.name": "gen_ai.choice",
            "message": {
                "role": "assistant",
                "content": [
                    {"kind": "thinking", "text": "Rome?"},
                    {"kind": "text", "text": "warm"},
                ],
            },
        },
    ]
    call = call_of(
        {
            "gen_ai.operation.name": "chat",
            "events": json.dumps(said),
            "gen_ai.usage.details.input_tokens": 40,
            "gen_ai.usage.details.output_tokens": 29,
            "gen_ai.usage.details.cache_read_input_tokens": 64,
            "gen_ai.usage.details.cache_creation_input_tokens": 20,
        },
        scope="pydantic-ai",
    )
    oldest = call_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 101,
            "gen_ai.usage.details.cached_tokens": 64,
        },
        scope="pydantic-ai",
    )

    assert call.output[0].parts == (ReasoningPart("Rome?"), TextPart("warm"))
    assert (call.tokens.input, call.tokens.output) == (124, 29)
    assert oldest.tokens.cache_read == 64

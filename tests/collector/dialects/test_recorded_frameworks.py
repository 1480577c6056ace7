"""Frameworks that tell in words of their own what others tell in OpenTelemetry's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_compiler.calls import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of, event, log, read

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


def test_an_event_may_hold_a_whole_content_of_gemini() -> None:
    def content(role: str, **part: Any) -> dict[str, Any]:
        empty = dict.fromkeys(("file_data", "function_call", "function_response", "text"))
        return {"content": {"parts": [{**empty, **part}], "role": role}}

    called = {"id": "c1", "name": "look", "args": {"city": "Rome"}}
    answered = {"id": "c1", "name": "look", "response": {"result": "warm"}}
    call = call_of(
        {"gen_ai.operation.name": "generate_content"},
        logs=[
            log("gen_ai.user.message", body=content("user", text="Weather?")),
            log("gen_ai.user.message", body=content("model", function_call=called), at_ms=2),
            log("gen_ai.user.message", body=content("user", function_response=answered), at_ms=3),
            log(
                "gen_ai.choice", body={"index": 0, **content("model", text="It is warm.")}, at_ms=4
            ),
        ],
    )

    assert [(message.role, message.parts[0]) for message in call.input] == [
        ("user", TextPart("Weather?")),
        ("assistant", ToolCallPart("c1", "look", {"city": "Rome"})),
        ("tool", ToolResultPart("c1", "warm", "look")),
    ]
    assert [message.text for message in call.output] == ["It is warm."]


def test_no_blocks_beside_a_tool_call_are_no_text() -> None:
    answer = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "[]"}
    called = {
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "look",
    }

    alone = call_of({"llm.request.type": "chat", **answer})
    beside = call_of({"llm.request.type": "chat", **answer, **called})

    assert alone.output[0].text == "[]"
    assert beside.output[0].parts == (ToolCallPart("c1", "look", {}),)


def test_messages_of_which_only_the_role_was_flattened_are_taken_from_the_request() -> None:
    system = {
        "lc": 1,
        "id": ["SystemMessage"],
        "kwargs": {"content": [{"type": "text", "text": "Be terse."}]},
    }
    human = {"lc": 1, "id": ["HumanMessage"], "kwargs": {"content": "Weather?"}}
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps({"messages": [[system, human]]}),
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.content": "Weather?",
        }
    )

    assert [(m.role, m.text) for m in call.input] == [("system", "Be terse."), ("user", "Weather?")]


def test_a_result_that_was_flattened_as_the_users_words_is_known_from_the_request() -> None:
    called = {"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "warm"}
    request = {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ]
    }
    flat_call = "llm.input_messages.1.message.tool_calls.0.tool_call.function"
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.invocation_parameters": '{"model": "claude-haiku-4-5", "system": "Be terse."}',
            "input.value": json.dumps(request),
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Weather?",
            "llm.input_messages.1.message.role": "assistant",
            f"{flat_call}.name": "look",
            f"{flat_call}.arguments": '{"city": "Rome"}',
            "llm.input_messages.2.message.role": "user",
            "llm.input_messages.2.message.content": "warm",
        }
    )

    assert [message.role for message in call.input] == ["system", "user", "assistant", "tool"]
    assert call.input[2].parts == (ToolCallPart("c1", "look", {"city": "Rome"}),)
    assert call.input[3].parts == (ToolResultPart("c1", "warm"),)


def test_langfuse_keeps_instructions_and_tools_of_a_response_in_metadata() -> None:
    call = call_of(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": '[{"role": "user", "content": "Weather?"}]',
            "langfuse.observation.metadata.instructions": "Be terse.",
            "langfuse.observation.metadata.tools": '[{"type": "function", "name": "look"}]',
        }
    )

    assert [(m.role, m.text) for m in call.input] == [("system", "Be terse."), ("user", "Weather?")]
    assert [tool["name"] for tool in call.tools] == ["look"]


def test_thoughts_of_claude_are_counted_in_a_recorded_response() -> None:
    usage = {"output_tokens": 29, "output_tokens_details": {"thinking_tokens": 7}}
    call = call_of({"openinference.span.kind": "LLM", "output.value": json.dumps({"usage": usage})})

    assert call.tokens.reasoning == 7


def test_semantic_kernel_for_dotnet_has_operations_and_counts_of_its_own() -> None:
    said = event("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role": "user", "content": "hi"}]'})
    call = call_of(
        {
            "gen_ai.operation.name": "chat.completions",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.prompt_tokens": 5,
            "gen_ai.response.completion_tokens": 2,
            "gen_ai.usage.input_audio_tokens": 1,
        },
        scope="Microsoft.SemanticKernel.Diagnostics",
        events=[said],
    )

    assert (call.input[0].text, call.request_model) == ("hi", "gpt-4o-mini")
    assert (call.tokens.input, call.tokens.output, call.tokens.audio_input) == (5, 2, 1)
    assert read({"gen_ai.operation.name": "orchestrate_tools"}).role == "task"


def test_documents_of_spring_are_texts_though_quotes_break_their_json() -> None:
    kind = {"spring.ai.kind": "vector_store"}
    key = "db.vector.query.response.documents"

    listed = read({**kind, key: '["Rome is warm.", "Oslo is cold."]'})
    broken = read({**kind, key: '["He said "warm".", "cold"]'})

    assert [d.content for d in listed.documents] == ["Rome is warm.", "Oslo is cold."]
    assert [d.content for d in broken.documents] == ['["He said "warm".", "cold"]']


def test_a_structured_result_of_a_tool_is_its_result() -> None:
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "tool",
            "llm.input_messages.0.message.tool_call_id": "c1",
            "llm.input_messages.0.message.content": {"degrees": 18},
        }
    )

    assert call.input[0].parts == (ToolResultPart("c1", {"degrees": 18}),)


def test_json_that_was_sent_as_bytes_is_read_as_json() -> None:
    sent = {"messages": [{"role": "user", "content": "Wetter?"}]}
    call = call_of({"langsmith.span.kind": "llm", "gen_ai.prompt": json.dumps(sent).encode()})
    chain = read({"langsmith.span.kind": "chain", "gen_ai.prompt": "Grüße".encode()})
    image = read({"langsmith.span.kind": "chain", "gen_ai.prompt": b"\xff\xd8\xff"})

    assert call.input[0].text == "Wetter?"
    assert (chain.input, image.input) == ("Grüße", b"\xff\xd8\xff")


def test_chunks_of_a_stream_in_the_output_are_the_answer() -> None:
    def chunk(**delta: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        return json.dumps({"object": "chat.completion.chunk", "choices": choices})

    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"city"'}}
    rest = {"index": 0, "function": {"arguments": ': "Rome"}'}}
    pieces = [
        chunk(role="assistant", content="Let me "),
        chunk(content="look."),
        chunk(tool_calls=[call]),
        chunk(tool_calls=[rest]),
    ]
    span = {"openinference.span.kind": "LLM", "output.mime_type": "application/json"}

    answer = call_of({**span, "output.value": json.dumps(pieces)}).output

    assert [message.parts for message in answer] == [
        (TextPart("Let me look."), ToolCallPart("c1", "look", {"city": "Rome"}))
    ]


def test_a_whole_response_is_the_answer_though_no_attribute_counts_its_tokens() -> None:
    response = {"choices": [{"message": {"role": "assistant", "content": "warm"}}]}
    span = {"openinference.span.kind": "LLM", "output.mime_type": "application/json"}

    answered = call_of({**span, "output.value": json.dumps(response)})
    prepared = call_of({**span, "output.value": '{"messages": [], "tools": []}'})

    assert [message.text for message in answered.output] == ["warm"]
    assert prepared.output == ()

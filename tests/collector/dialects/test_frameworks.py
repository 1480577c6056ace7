"""What each framework and vendor does its own way, beyond the rows of the table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.dialects.engine.normal_form import Document
from hansard_compiler.calls import MediaPart, Message, ReasoningPart, TextPart, ToolCallPart
from tests.collector.dialects.maker import call_of, event, log, read

# ---- Vercel AI SDK


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        ("ai.generateText", "agent"),
        ("ai.generateText.doGenerate", "llm"),
        ("ai.streamText.doStream", "llm"),
        ("ai.generateObject.doGenerate", "llm"),
        ("ai.streamObject.doStream", "llm"),
        ("ai.embed", "chain"),
        ("ai.embed.doEmbed", "embedding"),
        ("ai.embedMany.doEmbed", "embedding"),
        ("ai.toolCall", "tool"),
        ("ai.rerank", "rerank"),
        ("ai.workflowAgent.stream", "agent"),
    ],
)
def test_only_vercels_inner_spans_are_calls(operation: str, role: str) -> None:
    assert read({"ai.operationId": operation}).role == role


def test_a_vercel_answer_joins_reasoning_text_calls_and_files() -> None:
    call = call_of(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.response.reasoning": "Hm",
            "ai.response.text": "Look",
            "ai.response.toolCalls": json.dumps(
                [{"toolCallId": "c1", "toolName": "f", "input": '{"a": 1}'}]
            ),
            "ai.response.files": '[{"mediaType": "image/png", "data": "aGk="}]',
        }
    )

    assert call.output == (
        Message(
            "assistant",
            (
                ReasoningPart("Hm"),
                TextPart("Look"),
                ToolCallPart("c1", "f", {"a": 1}),
                MediaPart("image/png", data="aGk="),
            ),
        ),
    )
    assert call.stream is True


def test_vercel_tools_are_an_array_of_json_texts() -> None:
    tool = {"type": "function", "name": "f", "inputSchema": {"type": "object"}}

    call = call_of(
        {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.tools": [json.dumps(tool)]}
    )

    assert call.tools == ({"type": "function", "name": "f", "parameters": {"type": "object"}},)


# ---- Pydantic AI and Logfire


def test_a_pending_record_announces_the_span_that_is_its_parent() -> None:
    pending = read(
        {"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16},
        parent=b"realspan",
    )

    assert pending.pending_of == b"realspan"
    assert read({"logfire.span_type": "span"}, parent=b"realspan").pending_of is None


def test_logfire_repeats_a_streamed_call_in_a_log_of_its_own() -> None:
    shown = read(
        {
            "logfire.span_type": "log",
            "gen_ai.request.model": "gpt-4o-mini",
            "response_data": '{"combined_chunk_content": "Hi", "chunk_count": 2}',
        }
    )

    assert (shown.role, shown.duplicate) == ("llm", True)
    assert shown.call is not None
    assert [message.text for message in shown.call.output] == ["Hi"]


def test_a_pydantic_agent_shows_what_it_was_asked_and_its_final_result() -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "old"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "old answer"}]},
        {"role": "user", "parts": [{"type": "text", "content": "new"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "new answer"}]},
    ]

    shown = read(
        {
            "gen_ai.operation.name": "invoke_agent",
            "agent_name": "weather-agent",
            "pydantic_ai.all_messages": json.dumps(messages),
            "pydantic_ai.new_message_index": 2,
            "final_result": "new answer",
            "gen_ai.aggregated_usage.input_tokens": 258,
        },
        scope="pydantic-ai",
    )

    assert [message["parts"][0]["text"] for message in shown.input] == ["old", "old answer", "new"]
    assert (shown.output, shown.agent_name) == ("new answer", "weather-agent")
    assert shown.tokens_sum is not None
    assert shown.sources["tokens.input"] == "gen_ai.aggregated_usage.input_tokens"


@pytest.mark.parametrize(
    ("name", "role"), [("agent run", "agent"), ("running tool", "tool"), ("running tools", "task")]
)
def test_pydantic_format_2_names_its_spans(name: str, role: str) -> None:
    shown = read({"gen_ai.usage.input_tokens": 5}, name=name, scope="pydantic-ai")

    assert shown.role == role


# ---- Langfuse, MLflow, LangSmith


def test_a_langfuse_generation_finds_its_tools_and_finish_reason() -> None:
    call = call_of(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": json.dumps(
                {"tools": [{"type": "function", "function": {"name": "f"}}], "messages": []}
            ),
            "langfuse.observation.metadata.finish_reason": '"tool_calls"',
        }
    )

    assert call.tools == ({"type": "function", "name": "f"},)
    assert call.finish_reason == "tool_call"


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("generation", "llm"),
        ("embedding", "embedding"),
        ("agent", "agent"),
        ("tool", "tool"),
        ("chain", "chain"),
        ("retriever", "retriever"),
        ("evaluator", "evaluator"),
        ("guardrail", "guardrail"),
        ("span", "other"),
        ("event", "other"),
    ],
)
def test_each_langfuse_type_has_its_role(kind: str, role: str) -> None:
    assert read({"langfuse.observation.type": kind}).role == role


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("LLM", "llm"),
        ("CHAT_MODEL", "llm"),
        ("CHAIN", "chain"),
        ("AGENT", "agent"),
        ("TOOL", "tool"),
        ("RETRIEVER", "retriever"),
        ("EMBEDDING", "embedding"),
        ("RERANKER", "rerank"),
        ("MEMORY", "memory"),
        ("WORKFLOW", "workflow"),
        ("TASK", "task"),
        ("GUARDRAIL", "guardrail"),
        ("EVALUATOR", "evaluator"),
        ("UNKNOWN", "other"),
    ],
)
def test_each_mlflow_type_has_its_role_though_encoded_twice(kind: str, role: str) -> None:
    assert read({"mlflow.spanType": json.dumps(kind)}).role == role


def test_mlflow_values_are_decoded_once_more() -> None:
    shown = read(
        {
            "mlflow.spanType": '"TOOL"',
            "mlflow.spanInputs": json.dumps({"city": "Paris"}),
            "mlflow.spanOutputs": json.dumps("18 °C"),
            "mlflow.trace.session": '"s"',
        },
        name="get_weather",
    )

    assert shown.tool is not None
    assert (shown.tool.name, shown.tool.arguments) == ("get_weather", {"city": "Paris"})
    assert (shown.tool.result, shown.conversation_id) == ("18 °C", "s")


def test_langsmiths_kind_is_right_where_its_operation_is_not() -> None:
    shown = read({"langsmith.span.kind": "retriever", "gen_ai.operation.name": "embeddings"})

    assert shown.role == "retriever"


def test_a_langsmith_session_name_is_a_project_and_no_conversation() -> None:
    shown = read({"langsmith.span.kind": "llm", "langsmith.trace.session_name": "my project"})

    assert shown.conversation_id is None


# ---- Google ADK


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("invocation", "workflow"),
        ("agent_run [weather]", "agent"),
        ("call_llm", "llm"),
        ("execute_tool get_weather", "tool"),
    ],
)
def test_adk_1_tells_roles_by_span_names_on_its_own_spans_only(name: str, role: str) -> None:
    assert (
        read({"gen_ai.system": "gcp.vertex.agent"}, name=name, scope="gcp.vertex.agent").role
        == role
    )
    assert read({}, name=name).role == "other"


def test_adk_content_that_was_not_captured_is_no_content() -> None:
    llm = call_of(
        {"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"},
        name="call_llm",
    )
    tool = read(
        {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "N/A"},
        name="execute_tool f",
    ).tool

    assert (llm.input, llm.output) == ((), ())
    assert tool is not None
    assert (tool.name, tool.arguments, tool.result) == ("f", None, None)


def test_adk_1_keeps_usage_and_reason_in_the_response() -> None:
    response = {
        "content": {"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Hi"}]},
        "finish_reason": "STOP",
        "usage_metadata": {
            "prompt_token_count": 10,
            "candidates_token_count": 5,
            "thoughts_token_count": 3,
        },
    }

    call = call_of({"gcp.vertex.agent.llm_response": json.dumps(response)}, name="call_llm")

    assert call.output == (Message("assistant", (ReasoningPart("Hm"), TextPart("Hi"))),)
    assert (call.tokens.input, call.tokens.output, call.tokens.reasoning) == (10, 8, 3)
    assert call.finish_reason == "stop"


# ---- Strands, Gemini CLI


def test_a_strands_tool_has_its_arguments_and_result_in_events() -> None:
    tool = read(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"},
        events=[
            event("gen_ai.tool.message", {"role": "tool", "content": '{"city": "Paris"}'}),
            event("gen_ai.choice", {"message": '[{"text": "18 °C"}]'}),
        ],
    ).tool

    assert tool is not None
    assert (tool.arguments, tool.result) == ({"city": "Paris"}, "18 °C")


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        ("llm_call", "llm"),
        ("tool_call", "tool"),
        ("agent_call", "agent"),
        ("user_prompt", "prompt"),
        ("system_prompt", "prompt"),
        ("schedule_tool_calls", "task"),
    ],
)
def test_gemini_cli_has_operations_of_its_own(operation: str, role: str) -> None:
    assert read({"gen_ai.operation.name": operation}, service="gemini-cli").role == role


def test_the_streamed_chunks_of_gemini_cli_are_one_answer() -> None:
    chunks = [{"role": "model", "parts": [{"text": text}]} for text in ("It is ", "18 °C", ".")]

    call = call_of(
        {"gen_ai.operation.name": "llm_call", "gen_ai.output.messages": json.dumps(chunks)},
        service="gemini-cli",
    )

    assert call.output == (Message("assistant", (TextPart("It is 18 °C."),)),)


# ---- LiteLLM, Haystack, Spring AI, MCP, Agent Framework, Genkit


def test_litellms_raw_view_of_a_request_is_a_duplicate() -> None:
    shown = read({"llm.openai.model": "gpt-4o"}, name="raw_gen_ai_request", scope="litellm")

    assert (shown.role, shown.duplicate) == ("llm", True)


def test_an_operation_of_another_kind_is_no_call_though_it_names_a_model() -> None:
    shown = read({"gen_ai.operation.name": "litellm.moderation", "gen_ai.request.model": "m"})

    assert (shown.role, shown.call) == ("other", None)


@pytest.mark.parametrize(
    ("name", "attributes", "role"),
    [
        ("haystack.pipeline.run", {}, "workflow"),
        ("haystack.agent.run", {}, "agent"),
        ("haystack.agent.step", {}, "task"),
        ("haystack.agent.step.llm", {}, "task"),
        ("haystack.agent.step.tool", {}, "tool"),
        ("haystack.chat_generator.run", {}, "llm"),
        ("haystack.component.run", {"haystack.component.type": "OpenAIChatGenerator"}, "llm"),
        ("haystack.component.run", {"haystack.component.type": "OpenAITextEmbedder"}, "embedding"),
        ("haystack.component.run", {"haystack.component.type": "CohereRanker"}, "rerank"),
        ("haystack.component.run", {"haystack.component.type": "PromptBuilder"}, "chain"),
    ],
)
def test_haystack_tells_roles_by_span_name_and_component_type(
    name: str, attributes: dict[str, Any], role: str
) -> None:
    assert read(attributes, name=name).role == role


def test_haystack_keeps_everything_about_a_reply_in_its_meta() -> None:
    reply = {
        "role": "assistant",
        "content": [{"text": "Hi"}],
        "meta": {
            "model": "gpt-4o-mini-2024-07-18",
            "finish_reason": "stop",
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
        },
    }

    call = call_of(
        {
            "haystack.component.type": "OpenAIChatGenerator",
            "haystack.component.output": json.dumps({"replies": [reply]}),
        }
    )

    assert (call.response_model, call.finish_reason) == ("gpt-4o-mini-2024-07-18", "stop")
    tokens = call.tokens
    assert (tokens.input, tokens.output, tokens.cache_read, tokens.reasoning) == (10, 5, 4, 2)


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        ({"spring.ai.kind": "chat_client"}, "agent"),
        ({"spring.ai.kind": "advisor", "gen_ai.operation.name": "framework"}, "chain"),
        ({"spring.ai.kind": "tool_call"}, "tool"),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "query"}, "retriever"),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "add"}, "other"),
        ({"gen_ai.operation.name": "embedding"}, "embedding"),
        ({"mcp.method.name": "tools/list"}, "mcp"),
        ({"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}, "tool"),
        ({"genkit:type": "action", "genkit:metadata:subtype": "flow"}, "workflow"),
        ({"genkit:type": "action", "genkit:metadata:subtype": "tool"}, "tool"),
        ({"lmnr.span.type": "PIPELINE"}, "workflow"),
        ({"lmnr.span.type": "DEFAULT"}, "other"),
    ],
)
def test_other_dialects_tell_roles_in_their_own_words(
    attributes: dict[str, Any], role: str
) -> None:
    assert read(attributes).role == role


@pytest.mark.parametrize(
    ("name", "role"), [("hansard.compile", "compile"), ("hansard.policy.check", "policy")]
)
def test_hansards_own_spans_are_known_by_name(name: str, role: str) -> None:
    shown = read({}, name=name)

    assert (shown.role, shown.dialect) == (role, "hansard")


@pytest.mark.parametrize(
    ("name", "role"),
    [("workflow.run", "workflow"), ("executor.process", "task"), ("message.send", "other")],
)
def test_agent_framework_names_its_workflow_spans(name: str, role: str) -> None:
    assert read({"workflow.id": "w"}, name=name, scope="agent_framework").role == role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("anthropic.tool_use web_search", "tool"),
        ("anthropic.mcp_tool_use x", "tool"),
        ("anthropic.messages.tool_runner", "agent"),
    ],
)
def test_the_anthropic_sdk_names_its_tool_spans(name: str, role: str) -> None:
    assert read({}, name=name, scope="com.anthropic.sdk.python").role == role


def test_an_mcp_tool_call_shows_the_tool_under_the_method() -> None:
    tool = read(
        {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.call.arguments": {"city": "Paris"},
            "gen_ai.tool.call.result": {"content": [{"type": "text", "text": "18 °C"}]},
        },
        name="tools/call get-weather",
    ).tool

    assert tool is not None
    assert (tool.name, tool.arguments) == ("get-weather", {"city": "Paris"})


# ---- retrieval, evaluation, logs


def test_retrieved_documents_keep_their_metadata() -> None:
    shown = read(
        {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "weather",
            "retrieval.documents.1.document.content": "second",
            "retrieval.documents.0.document.content": "first",
            "retrieval.documents.0.document.metadata": '{"page": 3}',
            "retrieval.documents.0.document.url": "https://x",
        }
    )

    assert shown.query == "weather"
    assert shown.documents == (
        Document(None, "first", None, {"page": 3, "url": "https://x"}),
        Document(None, "second", None, {}),
    )


def test_evaluations_of_a_span_are_joined_from_attributes_and_events() -> None:
    shown = read(
        {
            "evaluations.0.evaluation.name": "a",
            "annotations.0.annotation.name": "b",
        },
        logs=[log("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "c"})],
    )

    assert [evaluation["name"] for evaluation in shown.evaluations] == ["c", "a", "b"]

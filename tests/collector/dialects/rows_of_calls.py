"""Rows of the mapping table: who was asked what, and who answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.collector.dialects.maker import event, log
from tests.collector.dialects.rows import (
    INVOCATION,
    LLM,
    Given,
    Row,
    as_json,
    call,
    haystack_reply,
    keys,
    numbers,
    said,
    text_of,
)

MODEL_REQUESTED = Row(
    "model.requested",
    lambda shown: call(shown).request_model,
    [
        *keys("gen_ai.request.model", "llm.request.model_name", "llm.input_model_name"),
        Given({INVOCATION: '{"model": "invoked"}'}, "invoked"),
        *keys(
            "llm.model_name",
            "embedding.model_name",
            "reranker.model_name",
            "decision.request.model_name",
            "langfuse.observation.model.name",
        ),
        Given({"mlflow.llm.model": '"quoted"'}, "quoted"),
        *keys("ai.model.id", "model", "litellm.provider.model"),
    ],
    LLM,
)

MODEL_SERVED = Row(
    "model.served",
    lambda shown: call(shown).response_model,
    [
        *keys(
            "gen_ai.response.model",
            "llm.response.model_name",
            "llm.output_model_name",
            "decision.response.model_name",
        ),
        Given({INVOCATION: '{"model": "asked"}', "llm.model_name": "served"}, "served"),
        *keys("ai.response.model"),
        Given(haystack_reply({"model": "replied"}), "replied"),
    ],
    LLM,
)

PROVIDER = Row(
    "provider",
    lambda shown: call(shown).provider,
    [
        Given({"gen_ai.provider.name": "gcp.vertex_ai"}, "gcp.vertex_ai"),
        Given({"llm.provider": "azure"}, "azure.ai.openai"),
        Given({"llm.system": "mistralai"}, "mistral_ai"),
        Given({"gen_ai.system": "AWS"}, "aws.bedrock"),
        Given({"mlflow.llm.provider": '"cohere"'}, "cohere"),
        Given({"ai.model.provider": "openai.chat"}, "openai"),
        Given({"gen_ai.request.model": "claude-sonnet-4-5"}, "anthropic"),
    ],
    LLM,
)

OPERATION = Row(
    "operation",
    lambda shown: call(shown).operation,
    keys("gen_ai.operation.name", "ai.operationId", "llm.request.type"),
    LLM,
)

INPUT = Row(
    "input messages",
    lambda shown: text_of(call(shown).input),
    [
        Given({"gen_ai.input.messages": said("user", "0")}, "0"),
        Given({"pydantic_ai.all_messages": as_json(said("user", "1"))}, "1"),
        Given({"llm.input_messages.0.message.content": "2"}, "2"),
        Given(
            {},
            "3",
            logs=[
                log(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.input.messages": said("user", "3")},
                )
            ],
        ),
        Given({}, "4", events=[event("gen_ai.user.message", {"content": "4"})]),
        Given({"ai.prompt.messages": as_json(said("user", "5"))}, "5"),
        Given({"ai.prompt": as_json({"system": "s", "prompt": "6"})}, "s|6"),
        Given({"gen_ai.prompt.0.content": "7"}, "7"),
        Given({"events": as_json([{"event.name": "gen_ai.user.message", "content": "8"}])}, "8"),
        Given({"request_data": as_json({"messages": said("user", "9")}), "logfire.msg": "x"}, "9"),
        Given(
            {"gcp.vertex.agent.llm_request": as_json({"contents": [{"parts": [{"text": "10"}]}]})},
            "10",
        ),
        Given(
            {},
            "11",
            events=[event("gen_ai.content.prompt", {"gen_ai.prompt": as_json(said("user", "11"))})],
        ),
        Given({"gen_ai.prompt": as_json(said("user", "12"))}, "12"),
        Given({"new_context": as_json(said("user", "13"))}, "13"),
        Given({}, "14", logs=[log("user_prompt", {"prompt": "14"})]),
        Given({"langfuse.observation.input": as_json(said("user", "15"))}, "15"),
        Given({"mlflow.spanInputs": as_json({"messages": said("user", "16")})}, "16"),
        Given({"lmnr.span.input": as_json(said("user", "17"))}, "17"),
        Given({"llm.prompts.0.prompt.text": "18"}, "18"),
    ],
    LLM,
)

OUTPUT = Row(
    "output messages",
    lambda shown: text_of(call(shown).output),
    [
        Given({"gen_ai.output.messages": said("assistant", "0")}, "0"),
        Given({"llm.output_messages.0.message.content": "1"}, "1"),
        Given(
            {},
            "2",
            events=[
                event(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.output.messages": as_json(said("assistant", "2"))},
                )
            ],
        ),
        Given({}, "3", logs=[log("gen_ai.choice", body={"message": {"content": "3"}})]),
        Given({"ai.response.text": "4"}, "4"),
        Given({"ai.response.object": '{"a": 5}'}, '{"a": 5}'),
        Given({"ai.result.text": "6"}, "6"),
        Given({"gen_ai.completion.0.content": "7"}, "7"),
        Given({"response_data": as_json({"message": {"content": "8"}}), "logfire.msg": "x"}, "8"),
        Given({"response_data.combined_chunk_content": "9"}, "9"),
        Given(
            {"gcp.vertex.agent.llm_response": as_json({"content": {"parts": [{"text": "10"}]}})},
            "10",
        ),
        Given(
            {},
            "11",
            events=[event("gen_ai.content.completion", {"gen_ai.completion": "11"})],
        ),
        Given({"gen_ai.completion": as_json(said("assistant", "12"))}, "12"),
        Given({"response.model_output": "13"}, "13"),
        Given({}, "14", logs=[log("assistant_response", {"response": "14"})]),
        Given({"langfuse.observation.output": "15"}, "15"),
        Given({"mlflow.spanOutputs": as_json("16")}, "16"),
        Given({"llm.choices.0.completion.text": "17"}, "17"),
    ],
    LLM,
)

SYSTEM = Row(
    "system instructions",
    lambda shown: call(shown).input[0].text,
    [
        Given({"gen_ai.system_instructions": as_json([{"type": "text", "content": "0"}])}, "0"),
        Given(
            {"system_prompt_hash": "h"},
            "1",
            logs=[log("system_prompt", {"system_prompt_hash": "h", "system_prompt": "1"})],
        ),
        Given({"user_system_prompt": "2"}, "2"),
        Given(
            {
                "llm.input_messages.0.message.role": "system",
                "llm.input_messages.0.message.content": "3",
            },
            "3",
        ),
        Given({}, "4", events=[event("gen_ai.system.message", {"content": "4"})]),
        Given({"ai.prompt": as_json({"system": "5", "prompt": "p"})}, "5"),
        Given(
            {
                "gcp.vertex.agent.llm_request": as_json(
                    {"config": {"system_instruction": "6"}, "contents": []}
                )
            },
            "6",
        ),
    ],
    LLM,
)


def _tool(at: int) -> dict[str, Any]:
    return {"type": "function", "name": f"t{at}"}


def _tools(at: int) -> list[dict[str, Any]]:
    return [{"name": f"t{at}"}]


TOOLS = Row(
    "tool definitions",
    lambda shown: call(shown).tools,
    [
        Given({"gen_ai.tool.definitions": as_json([_tool(0)])}, (_tool(0),)),
        Given(
            {"llm.tools.0.tool.json_schema": as_json({"type": "function", "function": _tool(1)})},
            (_tool(1),),
        ),
        Given({"ai.prompt.tools": [as_json(_tool(2))]}, (_tool(2),)),
        Given({"mlflow.chat.tools": as_json([{"function": _tool(3)}])}, (_tool(3),)),
        Given({"llm.request.functions.0.name": "t4"}, (_tool(4),)),
        Given({"gen_ai.tool.0.name": "t5"}, (_tool(5),)),
        Given({"model_request_parameters": as_json({"function_tools": _tools(6)})}, (_tool(6),)),
        Given(
            {
                "gcp.vertex.agent.llm_request": as_json(
                    {"config": {"tools": [{"function_declarations": _tools(7)}]}}
                )
            },
            (_tool(7),),
        ),
        Given({"gen_ai.agent.tools": '["t8"]'}, (_tool(8),)),
        Given({"spring.ai.model.request.tool.names": ["t9"]}, (_tool(9),)),
        Given({"spring.ai.chat.client.tool.names": ["t10"]}, (_tool(10),)),
        Given({"tools": as_json([{"name": "t11", "hash": "h"}])}, (_tool(11),)),
        Given({INVOCATION: as_json({"tools": _tools(12)})}, (_tool(12),)),
    ],
    LLM,
)

EMBEDDED = Row(
    "embedding.text",
    lambda shown: [(message.role, message.text) for message in call(shown).input],
    [
        Given(
            {
                "embedding.embeddings.0.embedding.text": "Paris",
                "embedding.embeddings.1.embedding.text": "London",
            },
            [("user", "Paris"), ("user", "London")],
        ),
        Given({"ai.values": ['"Paris"', '"London"']}, [("user", "Paris"), ("user", "London")]),
        Given({"ai.value": '"Paris"'}, [("user", "Paris")]),
    ],
    {"openinference.span.kind": "EMBEDDING"},
)

EMBEDDING_DIMENSIONS = Row(
    "embedding.dims",
    lambda shown: call(shown).parameters.get("dimensions"),
    numbers("gen_ai.embeddings.dimension.count"),
    {"openinference.span.kind": "EMBEDDING"},
)

ROWS: Sequence[Row] = [value for value in globals().values() if isinstance(value, Row)]

"""The mapping table of genai-dialects.md §20, row by row, as spans: what is sent, what is shown.

Each row lists its sources in the table's order. The tests send each alone, and each together with
all later ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hansard_collector.normalised import Normalised
from hansard_collector.views import EventView, LogView
from hansard_compiler.calls import Call
from tests.collector.dialects.maker import event, log


class Given(NamedTuple):
    """One source: what is sent, what it alone leads to."""

    attributes: Mapping[str, Any]
    expected: Any
    events: Sequence[EventView] = ()
    logs: Sequence[LogView] = ()


@dataclass(frozen=True)
class Row:
    name: str
    get: Callable[[Normalised], Any]
    sources: Sequence[Given]
    context: Mapping[str, Any] = field(default_factory=dict)
    # The span speaks Claude Code by its name, Codex by its service, Pydantic AI by its scope.
    span: Mapping[str, Any] = field(
        default_factory=lambda: {
            "name": "claude_code.test",
            "service": "codex_cli_rs",
            "scope": "pydantic-ai",
        }
    )


def call(shown: Normalised) -> Call:
    assert shown.call is not None
    return shown.call


def _keys(*keys: str, values: Callable[[int], Any] = lambda at: f"value {at}") -> list[Given]:
    """Plain keys, each with a value of its own that is shown as sent."""
    return [Given({key: values(at)}, values(at)) for at, key in enumerate(keys)]


def _numbers(*keys: str) -> list[Given]:
    return _keys(*keys, values=lambda at: at + 1)


def _json(value: Any) -> str:
    return json.dumps(value)


_LLM = {"openinference.span.kind": "LLM"}
_TOOL = {"openinference.span.kind": "TOOL"}
_LF_USAGE = "langfuse.observation.usage_details"
_ML_USAGE = "mlflow.chat.tokenUsage"
_INVOCATION = "llm.invocation_parameters"


def _haystack_reply(meta: Mapping[str, Any]) -> dict[str, Any]:
    reply = {"role": "assistant", "content": [{"text": "x"}], "meta": meta}
    return {"haystack.component.output": _json({"replies": [reply]})}


def _text_of(messages: Sequence[Any]) -> str:
    return "|".join(message.text for message in messages)


def _said(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": text}]


KIND = Row(
    "kind",
    lambda shown: shown.role,
    [
        Given({"openinference.span.kind": "Retriever"}, "retriever"),
        Given({"langfuse.observation.type": "generation"}, "llm"),
        Given({"mlflow.spanType": '"RERANKER"'}, "rerank"),
        Given({"langsmith.span.kind": "prompt"}, "prompt"),
        Given({"span.type": "llm_request"}, "llm"),
        Given({"spring.ai.kind": "advisor"}, "chain"),
        Given({"ai.operationId": "ai.embed.doEmbed"}, "embedding"),
        Given({"lmnr.span.type": "EVALUATOR"}, "evaluator"),
        Given({"mcp.method.name": "tools/list"}, "mcp"),
        Given({"gen_ai.operation.name": "invoke_workflow"}, "workflow"),
        Given({"traceloop.span.kind": "task"}, "task"),
        Given({"llm.request.type": "rerank"}, "rerank"),
        Given({"haystack.component.type": "InMemoryBM25Retriever"}, "retriever"),
        Given({"gen_ai.request.model": "m"}, "llm"),
        Given({"http.route": "/"}, "other"),
    ],
)

MODEL_REQUESTED = Row(
    "model.requested",
    lambda shown: call(shown).request_model,
    [
        *_keys("gen_ai.request.model", "llm.request.model_name", "llm.input_model_name"),
        Given({_INVOCATION: '{"model": "invoked"}'}, "invoked"),
        *_keys(
            "llm.model_name",
            "embedding.model_name",
            "reranker.model_name",
            "decision.request.model_name",
            "langfuse.observation.model.name",
        ),
        Given({"mlflow.llm.model": '"quoted"'}, "quoted"),
        *_keys("ai.model.id", "model", "litellm.provider.model"),
    ],
    _LLM,
)

MODEL_SERVED = Row(
    "model.served",
    lambda shown: call(shown).response_model,
    [
        *_keys(
            "gen_ai.response.model",
            "llm.response.model_name",
            "llm.output_model_name",
            "decision.response.model_name",
        ),
        Given({_INVOCATION: '{"model": "asked"}', "llm.model_name": "served"}, "served"),
        *_keys("ai.response.model"),
        Given(_haystack_reply({"model": "replied"}), "replied"),
    ],
    _LLM,
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
    _LLM,
)

OPERATION = Row(
    "operation",
    lambda shown: call(shown).operation,
    _keys("gen_ai.operation.name", "ai.operationId", "llm.request.type"),
    _LLM,
)

INPUT = Row(
    "input messages",
    lambda shown: _text_of(call(shown).input),
    [
        Given({"gen_ai.input.messages": _said("user", "0")}, "0"),
        Given({"pydantic_ai.all_messages": _json(_said("user", "1"))}, "1"),
        Given({"llm.input_messages.0.message.content": "2"}, "2"),
        Given(
            {},
            "3",
            logs=[
                log(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.input.messages": _said("user", "3")},
                )
            ],
        ),
        Given({}, "4", events=[event("gen_ai.user.message", {"content": "4"})]),
        Given({"ai.prompt.messages": _json(_said("user", "5"))}, "5"),
        Given({"ai.prompt": _json({"system": "s", "prompt": "6"})}, "s|6"),
        Given({"gen_ai.prompt.0.content": "7"}, "7"),
        Given({"events": _json([{"event.name": "gen_ai.user.message", "content": "8"}])}, "8"),
        Given({"request_data": _json({"messages": _said("user", "9")}), "logfire.msg": "x"}, "9"),
        Given(
            {"gcp.vertex.agent.llm_request": _json({"contents": [{"parts": [{"text": "10"}]}]})},
            "10",
        ),
        Given(
            {},
            "11",
            events=[event("gen_ai.content.prompt", {"gen_ai.prompt": _json(_said("user", "11"))})],
        ),
        Given({"gen_ai.prompt": _json(_said("user", "12"))}, "12"),
        Given({"new_context": _json(_said("user", "13"))}, "13"),
        Given({}, "14", logs=[log("user_prompt", {"prompt": "14"})]),
        Given({"langfuse.observation.input": _json(_said("user", "15"))}, "15"),
        Given({"mlflow.spanInputs": _json({"messages": _said("user", "16")})}, "16"),
        Given({"lmnr.span.input": _json(_said("user", "17"))}, "17"),
        Given({"llm.prompts.0.prompt.text": "18"}, "18"),
    ],
    _LLM,
)

OUTPUT = Row(
    "output messages",
    lambda shown: _text_of(call(shown).output),
    [
        Given({"gen_ai.output.messages": _said("assistant", "0")}, "0"),
        Given({"llm.output_messages.0.message.content": "1"}, "1"),
        Given(
            {},
            "2",
            events=[
                event(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.output.messages": _json(_said("assistant", "2"))},
                )
            ],
        ),
        Given({}, "3", logs=[log("gen_ai.choice", body={"message": {"content": "3"}})]),
        Given({"ai.response.text": "4"}, "4"),
        Given({"ai.response.object": '{"a": 5}'}, '{"a": 5}'),
        Given({"ai.result.text": "6"}, "6"),
        Given({"gen_ai.completion.0.content": "7"}, "7"),
        Given({"response_data": _json({"message": {"content": "8"}}), "logfire.msg": "x"}, "8"),
        Given({"response_data.combined_chunk_content": "9"}, "9"),
        Given(
            {"gcp.vertex.agent.llm_response": _json({"content": {"parts": [{"text": "10"}]}})},
            "10",
        ),
        Given(
            {},
            "11",
            events=[event("gen_ai.content.completion", {"gen_ai.completion": "11"})],
        ),
        Given({"gen_ai.completion": _json(_said("assistant", "12"))}, "12"),
        Given({"response.model_output": "13"}, "13"),
        Given({}, "14", logs=[log("assistant_response", {"response": "14"})]),
        Given({"langfuse.observation.output": "15"}, "15"),
        Given({"mlflow.spanOutputs": _json("16")}, "16"),
        Given({"llm.choices.0.completion.text": "17"}, "17"),
    ],
    _LLM,
)

_CONTENT_IN = (
    "input.value",
    "langfuse.observation.input",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "haystack.component.input",
    "haystack.pipeline.input_data",
    "haystack.agent.input",
)
GENERIC_INPUT = Row(
    "generic input",
    lambda shown: shown.input,
    [
        *_keys(*_CONTENT_IN),
        Given(
            {"gen_ai.input.messages": _said("user", "hi")},
            [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        ),
        *_keys("user_prompt", "langfuse.trace.input"),
    ],
    {"openinference.span.kind": "CHAIN"},
)
GENERIC_OUTPUT = Row(
    "generic output",
    lambda shown: shown.output,
    [
        *_keys(
            "output.value",
            "langfuse.observation.output",
            "traceloop.entity.output",
            "mlflow.spanOutputs",
            "haystack.component.output",
            "haystack.pipeline.output_data",
            "haystack.agent.output",
        ),
        Given(
            {"gen_ai.output.messages": _said("assistant", "yo")},
            [{"role": "assistant", "parts": [{"type": "text", "text": "yo"}]}],
        ),
        *_keys("final_result", "langfuse.trace.output"),
    ],
    {"openinference.span.kind": "CHAIN"},
)

SYSTEM = Row(
    "system instructions",
    lambda shown: call(shown).input[0].text,
    [
        Given({"gen_ai.system_instructions": _json([{"type": "text", "content": "0"}])}, "0"),
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
        Given({"ai.prompt": _json({"system": "5", "prompt": "p"})}, "5"),
        Given(
            {
                "gcp.vertex.agent.llm_request": _json(
                    {"config": {"system_instruction": "6"}, "contents": []}
                )
            },
            "6",
        ),
    ],
    _LLM,
)


def _tool(at: int) -> dict[str, Any]:
    return {"type": "function", "name": f"t{at}"}


def _tools(at: int) -> list[dict[str, Any]]:
    return [{"name": f"t{at}"}]


TOOLS = Row(
    "tool definitions",
    lambda shown: call(shown).tools,
    [
        Given({"gen_ai.tool.definitions": _json([_tool(0)])}, (_tool(0),)),
        Given(
            {"llm.tools.0.tool.json_schema": _json({"type": "function", "function": _tool(1)})},
            (_tool(1),),
        ),
        Given({"ai.prompt.tools": [_json(_tool(2))]}, (_tool(2),)),
        Given({"mlflow.chat.tools": _json([{"function": _tool(3)}])}, (_tool(3),)),
        Given({"llm.request.functions.0.name": "t4"}, (_tool(4),)),
        Given({"gen_ai.tool.0.name": "t5"}, (_tool(5),)),
        Given({"model_request_parameters": _json({"function_tools": _tools(6)})}, (_tool(6),)),
        Given(
            {
                "gcp.vertex.agent.llm_request": _json(
                    {"config": {"tools": [{"function_declarations": _tools(7)}]}}
                )
            },
            (_tool(7),),
        ),
        Given({"gen_ai.agent.tools": '["t8"]'}, (_tool(8),)),
        Given({"spring.ai.model.request.tool.names": ["t9"]}, (_tool(9),)),
        Given({"spring.ai.chat.client.tool.names": ["t10"]}, (_tool(10),)),
        Given({"tools": _json([{"name": "t11", "hash": "h"}])}, (_tool(11),)),
        Given({_INVOCATION: _json({"tools": _tools(12)})}, (_tool(12),)),
    ],
    _LLM,
)

TOOL_NAME = Row(
    "tool.name",
    lambda shown: shown.tool and shown.tool.name,
    [
        *_keys(
            "gen_ai.tool.name",
            "tool.name",
            "ai.toolCall.name",
            "spring.ai.tool.definition.name",
            "haystack.tool.name",
            "tool_name",
        ),
        *_keys("traceloop.entity.name"),
        Given({}, "claude_code.test"),  # the span's own name, when nothing else tells
    ],
    _TOOL,
)

TOOL_CALL_ID = Row(
    "tool.call_id",
    lambda shown: shown.tool and shown.tool.call_id,
    _keys(
        "gen_ai.tool.call.id",
        "gen_ai.tool.call_id",
        "tool.id",
        "tool_call.id",
        "ai.toolCall.id",
        "spring.ai.tool.call.id",
        "haystack.tool.call.id",
        "tool_use_id",
        "call_id",
    ),
    _TOOL,
)


def _arguments(*keys: str, start: int = 0) -> list[Given]:
    """JSON is opened: arguments are shown as an object."""
    return [
        Given({key: _json({"n": start + at})}, {"n": start + at}) for at, key in enumerate(keys)
    ]


TOOL_ARGUMENTS = Row(
    "tool.arguments",
    lambda shown: shown.tool and shown.tool.arguments,
    [
        *_arguments(
            "gen_ai.tool.call.arguments",
            "ai.toolCall.args",
            "spring.ai.tool.call.arguments",
            "gcp.vertex.agent.tool_call_args",
            "tool_arguments",
        ),
        Given(
            {},
            {"city": "Paris"},
            events=[event("gen_ai.tool.message", {"role": "tool", "content": '{"city": "Paris"}'})],
        ),
        *_arguments("tool_input", "tool_parameters", start=20),
        Given({"full_command": "ls"}, {"full_command": "ls"}),
        Given({"file_path": "/a"}, {"file_path": "/a"}),
        *_arguments(
            "arguments",
            "input.value",
            "tool.parameters",
            "haystack.agent.step.tool.input",
            "mcp.request.argument",
            "traceloop.entity.input",
            "langfuse.observation.input",
            "mlflow.spanInputs",
            start=40,
        ),
    ],
    _TOOL,
)

TOOL_RESULT = Row(
    "tool.result",
    lambda shown: shown.tool and shown.tool.result,
    [
        *_keys(
            "gen_ai.tool.call.result",
            "ai.toolCall.result",
            "spring.ai.tool.call.result",
            "gcp.vertex.agent.tool_response",
            "tool_response",
        ),
        Given({}, "blocks", events=[event("gen_ai.choice", {"message": '[{"text": "blocks"}]'})]),
        Given({}, "out", events=[event("tool.output", {"output": "out"})]),
        *_keys(
            "new_context",
            "output",
            "output.value",
            "haystack.agent.step.tool.output",
            "mcp.response.value",
            "traceloop.entity.output",
            "langfuse.observation.output",
            "mlflow.spanOutputs",
            values=lambda at: f"result {at}",
        ),
    ],
    _TOOL,
)

TOOL_DESCRIPTION = Row(
    "tool.description",
    lambda shown: shown.tool and shown.tool.description,
    _keys(
        "gen_ai.tool.description",
        "tool.description",
        "spring.ai.tool.definition.description",
        "haystack.tool.description",
    ),
    _TOOL,
)
TOOL_TYPE = Row(
    "tool.type",
    lambda shown: shown.tool and shown.tool.type,
    _keys("gen_ai.tool.type", "spring.ai.tool.type"),
    _TOOL,
)

FINISH_REASON = Row(
    "finish_reasons",
    lambda shown: (call(shown).finish_reason, call(shown).finish_reason_raw),
    [
        Given({"gen_ai.response.finish_reasons": ["tool_calls"]}, ("tool_call", "tool_calls")),
        Given({"gen_ai.response.finish_reason": "MAX_TOKENS"}, ("length", "MAX_TOKENS")),
        Given({"gen_ai.response.stop_reason": "refusal"}, ("content_filter", "refusal")),
        Given({"llm.finish_reason": "end_turn"}, ("stop", "end_turn")),
        Given(
            {
                "gen_ai.output.messages": _json(
                    [{"role": "assistant", "parts": [], "finish_reason": "length"}]
                )
            },
            ("length", "length"),
        ),
        Given({"ai.response.finishReason": "tool-calls"}, ("tool_call", "tool-calls")),
        Given({"gen_ai.completion.1.finish_reason": "tool_use"}, ("tool_call", "tool_use")),
        Given({"llm.response.finish_reason": "SAFETY"}, ("content_filter", "SAFETY")),
        Given({"llm.response.stop_reason": "stop"}, ("stop", "stop")),
        Given({"stop_reason": "pause_turn"}, ("other", "pause_turn")),
        Given({"anthropic.message.stop_reason": "end_turn"}, ("stop", "end_turn")),
        Given(
            {},
            ("length", "max_tokens"),
            events=[event("gen_ai.choice", {"finish_reason": "max_tokens"})],
        ),
    ],
    _LLM,
)

TOKENS_INPUT = Row(
    "tokens.input",
    lambda shown: call(shown).tokens.input,
    [
        *_keys(
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
            "ai.usage.tokens",
            values=lambda at: 10 + at,
        ),
        Given({_ML_USAGE: '{"input_tokens": 30}'}, 30),
        Given({_LF_USAGE: '{"input": 31, "input_cached_tokens": 4}'}, 35),
        Given({"input_tokens": 32, "cache_read_tokens": 5, "cache_creation_tokens": "1"}, 38),
        Given({"input_token_count": 33}, 33),
        Given({"decision.token_count.input": 34}, 34),
        Given(_haystack_reply({"usage": {"prompt_tokens": 35}}), 35),
    ],
    _LLM,
)

TOKENS_OUTPUT = Row(
    "tokens.output",
    lambda shown: call(shown).tokens.output,
    [
        *_numbers(
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ),
        Given({_ML_USAGE: '{"output_tokens": 30}'}, 30),
        Given({_LF_USAGE: '{"output": 31, "output_reasoning_tokens": 4}'}, 35),
        Given({"output_tokens": 32}, 32),
        Given({"output_token_count": 33}, 33),
        Given({"decision.token_count.output": 34}, 34),
        Given(_haystack_reply({"usage": {"completion_tokens": 35}}), 35),
    ],
    _LLM,
)

TOKENS_REASONING = Row(
    "tokens.reasoning",
    lambda shown: call(shown).tokens.reasoning,
    [
        *_numbers(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "gen_ai.usage.details.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.outputTokenDetails.reasoningTokens",
            "ai.usage.reasoningTokens",
        ),
        Given({_LF_USAGE: '{"output_reasoning_tokens": 30}'}, 30),
        Given({"gen_ai.usage.output_token_details": '{"reasoning": 31}'}, 31),
        *_keys("codex.usage.reasoning_output_tokens", values=lambda _: 32),
        *_keys("reasoning_token_count", values=lambda _: 33),
    ],
    _LLM,
)

TOKENS_CACHE_READ = Row(
    "tokens.cache_read",
    lambda shown: call(shown).tokens.cache_read,
    [
        *_numbers(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
            "llm.token_count.prompt_details.cache_read",
            "llm.token_count.prompt_details.cache_input",
            "ai.usage.inputTokenDetails.cacheReadTokens",
            "ai.usage.cachedInputTokens",
        ),
        Given({"ai.response.providerMetadata": '{"anthropic": {"cacheReadInputTokens": 30}}'}, 30),
        Given({_ML_USAGE: '{"cache_read_input_tokens": 31}'}, 31),
        Given({_LF_USAGE: '{"input_cache_read": 32}'}, 32),
        Given({"gen_ai.usage.input_token_details": '{"cache_read": 33}'}, 33),
        Given({"cache_read_tokens": "34"}, 34),
        Given({"cached_token_count": 35}, 35),
        Given({"openai.cached_input_tokens": 36}, 36),
    ],
    _LLM,
)

TOKENS_CACHE_WRITE = Row(
    "tokens.cache_write",
    lambda shown: call(shown).tokens.cache_write,
    [
        *_numbers(
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.cache_write_input_tokens",
            "llm.token_count.prompt_details.cache_write",
            "ai.usage.inputTokenDetails.cacheWriteTokens",
        ),
        Given({_ML_USAGE: '{"cache_creation_input_tokens": 30}'}, 30),
        Given({_LF_USAGE: '{"input_cache_creation_5m": 30, "input_cache_creation_1h": 1}'}, 31),
        Given({"cache_creation_tokens": 32}, 32),
        Given({"cache_write_token_count": 33}, 33),
    ],
    _LLM,
)

TOKENS_CACHE_WRITE_5M = Row(
    "tokens.cache_write_5m",
    lambda shown: call(shown).tokens.cache_write_5m,
    [
        *_numbers("anthropic.usage.cache_creation.ephemeral_5m_input_tokens"),
        Given({_LF_USAGE: '{"input_cache_creation_5m": 30}'}, 30),
        Given({}, 31, logs=[log("api_request", {"cache_creation_5m_tokens": "31"})]),
    ],
    _LLM,
)
TOKENS_CACHE_WRITE_1H = Row(
    "tokens.cache_write_1h",
    lambda shown: call(shown).tokens.cache_write_1h,
    [
        *_numbers("anthropic.usage.cache_creation.ephemeral_1h_input_tokens"),
        Given({_ML_USAGE: '{"cache_creation_input_tokens_above_1hr": 29}'}, 29),
        Given({_LF_USAGE: '{"input_cache_creation_1h": 30}'}, 30),
        Given({}, 31, logs=[log("api_request", {"cache_creation_1h_tokens": 31})]),
    ],
    _LLM,
)

TOKENS_AUDIO_INPUT = Row(
    "tokens.audio in",
    lambda shown: call(shown).tokens.audio_input,
    _numbers(
        "gen_ai.usage.audio.input_tokens",
        "llm.token_count.prompt_details.audio",
        "gen_ai.usage.details.input_audio_tokens",
    ),
    _LLM,
)
TOKENS_AUDIO_OUTPUT = Row(
    "tokens.audio out",
    lambda shown: call(shown).tokens.audio_output,
    _numbers(
        "gen_ai.usage.audio.output_tokens",
        "llm.token_count.completion_details.audio",
        "gen_ai.usage.details.output_audio_tokens",
    ),
    _LLM,
)

COST = Row(
    "cost.total",
    lambda shown: (cost := call(shown).cost) and cost.usd,
    [
        *_keys(
            "llm.cost.total",
            "operation.cost",
            "litellm.cost.total",
            "gen_ai.cost.total_cost",
            "llm.response.cost",
            values=lambda at: (at + 1) / 100,
        ),
        Given({"langfuse.observation.cost_details": '{"total": 0.3}'}, 0.3),
        Given({"mlflow.llm.cost": '{"total_cost": 0.31}'}, 0.31),
        Given({"gen_ai.usage.cost": "0.32"}, 0.32),
        Given({}, 0.33, logs=[log("api_request", {"cost_usd": "0.33"})]),
        Given({"usage.estimated_usd": 0.34}, 0.34),
    ],
    _LLM,
)

COST_PARTS = Row(
    "cost parts",
    lambda shown: (cost := call(shown).cost) and dict(cost.lines),
    [
        Given(
            {"llm.cost.prompt": 0.1, "llm.cost.completion": 0.2}, {"prompt": 0.1, "completion": 0.2}
        ),
        Given({"litellm.cost.input": 0.1}, {"input": 0.1}),
        Given({"gen_ai.cost.output_cost": 0.2}, {"output": 0.2}),
        Given({"langfuse.observation.cost_details": '{"input": 0.1, "total": 1}'}, {"input": 0.1}),
        Given({"mlflow.llm.cost": '{"input_cost": 0.1, "total_cost": 1}'}, {"input": 0.1}),
    ],
    {**_LLM, "operation.cost": 1.0},
)

PARAMETERS = Row(
    "params",
    lambda shown: call(shown).parameters.get("temperature"),
    [
        Given({"gen_ai.request.temperature": 0.1}, 0.1),
        Given({_INVOCATION: '{"temperature": 0.2}'}, 0.2),
        Given({"langfuse.observation.model.parameters": '{"temperature": 0.3}'}, 0.3),
        Given({"ai.settings.temperature": 0.4}, 0.4),
        Given({"llm.request.temperature": 0.5}, 0.5),
    ],
    _LLM,
)

RESPONSE_ID = Row(
    "response.id",
    lambda shown: call(shown).response_id,
    _keys("gen_ai.response.id", "ai.response.id", "request_id", "anthropic.request.id"),
    _LLM,
)

_TL = "traceloop.association.properties"
_VA = "ai.telemetry.metadata"
CONVERSATION = Row(
    "conversation / session",
    lambda shown: shown.conversation_id,
    [
        *_keys(
            "gen_ai.conversation.id",
            "session.id",
            "langfuse.session.id",
            f"{_TL}.session_id",
            f"{_TL}.thread_id",
            f"{_TL}.chat_id",
            f"{_TL}.conversation_id",
            f"{_VA}.sessionId",
            f"{_VA}.threadId",
        ),
        Given({"mlflow.trace.session": '"quoted"'}, "quoted"),
        *_keys(
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
            "langsmith.metadata.conversation_id",
            "gcp.vertex.agent.session_id",
            "spring.ai.chat.client.conversation.id",
            "conversation.id",
            "mcp.session.id",
        ),
        Given({"metadata": '{"thread_id": "th"}'}, "th"),
    ],
    _LLM,
    {},
)

USER = Row(
    "user",
    lambda shown: shown.user_id,
    [
        *_keys(
            "user.id",
            "enduser.id",
            "langfuse.user.id",
            f"{_TL}.user_id",
            "gen_ai.user",
            "llm.user",
            f"{_VA}.userId",
        ),
        Given({"mlflow.trace.user": '"quoted"'}, "quoted"),
        *_keys("litellm.end_user.id", "metadata.user_api_key_end_user_id"),
        Given({"metadata": '{"user_id": "u"}'}, "u"),
        *_keys("user.account_uuid", "user.email"),
    ],
    _LLM,
)

AGENT_NAME = Row(
    "agent.name",
    lambda shown: shown.agent_name,
    _keys(
        "gen_ai.agent.name",
        "agent.name",
        "graph.node.name",
        "agent_name",
        "ai.telemetry.functionId",
        "traceloop.entity.name",
        "subagent_type",
    ),
    {"openinference.span.kind": "AGENT"},
)
AGENT_ID = Row(
    "agent.id",
    lambda shown: shown.agent_id,
    _keys("gen_ai.agent.id", "graph.node.id", "agent_id", "executor.id"),
)
AGENT_DESCRIPTION = Row(
    "agent.description",
    lambda shown: shown.agent_description,
    _keys("gen_ai.agent.description"),
)

WORKFLOW = Row(
    "workflow.name",
    lambda shown: shown.workflow_name,
    _keys(
        "gen_ai.workflow.name",
        "traceloop.workflow.name",
        "workflow.name",
        "langfuse.trace.name",
        "langsmith.trace.name",
    ),
)

_RETRIEVER = {"openinference.span.kind": "RETRIEVER"}
QUERY = Row(
    "retrieval.query",
    lambda shown: shown.query,
    [
        *_keys(
            "gen_ai.retrieval.query.text",
            "gen_ai.memory.query.text",
            "reranker.query",
            "input.value",
            "db.vector.query.content",
        ),
        Given({"haystack.component.input": '{"query": "q"}'}, "q"),
    ],
    _RETRIEVER,
)


def _shown_documents(shown: Normalised) -> list[tuple[str | None, str | None, float | None]]:
    return [(found.id, found.content, found.score) for found in shown.documents]


DOCUMENTS = Row(
    "retrieval.documents",
    _shown_documents,
    [
        Given(
            {"gen_ai.retrieval.documents": _json([{"id": "0", "content": "c", "score": 0.5}])},
            [("0", "c", 0.5)],
        ),
        Given({"gen_ai.memory.records": [{"id": "1", "content": "c"}]}, [("1", "c", None)]),
        Given(
            {
                "retrieval.documents.0.document.id": "2",
                "retrieval.documents.0.document.content": "c",
                "retrieval.documents.0.document.score": 0.25,
            },
            [("2", "c", 0.25)],
        ),
        Given({"reranker.output_documents.0.document.id": "3"}, [("3", None, None)]),
        Given({"reranker.input_documents.0.document.id": "4"}, [("4", None, None)]),
        Given(
            {"db.vector.query.response.documents": _json([{"id": "5", "content": "c"}])},
            [("5", "c", None)],
        ),
        Given(
            {},
            [("6", "c", 0.1)],
            events=[
                event(
                    "db.query.result",
                    {
                        "db.query.result.id": "6",
                        "db.query.result.score": 0.1,
                        "db.query.result.document": "c",
                    },
                )
            ],
        ),
        Given(
            {
                "haystack.component.output": _json(
                    {"documents": [{"id": "7", "content": "c", "score": 1, "meta": {}}]}
                )
            },
            [("7", "c", 1.0)],
        ),
    ],
    _RETRIEVER,
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
    _numbers("gen_ai.embeddings.dimension.count"),
    {"openinference.span.kind": "EMBEDDING"},
)

SCORE = Row(
    "score",
    lambda shown: shown.evaluations[0],
    [
        Given(
            {},
            {"name": "good", "score": 0.5, "label": "ok"},
            logs=[
                log(
                    "gen_ai.evaluation.result",
                    {
                        "gen_ai.evaluation.name": "good",
                        "gen_ai.evaluation.score.value": 0.5,
                        "gen_ai.evaluation.score.label": "ok",
                    },
                )
            ],
        ),
        Given(
            {"evaluations.0.evaluation.name": "n", "evaluations.0.evaluation.score": 1},
            {"name": "n", "score": 1},
        ),
        Given({"trace.evaluations.0.evaluation.name": "n"}, {"name": "n", "level": "trace"}),
        Given({"annotations.0.annotation.label": "l"}, {"label": "l"}),
        Given({"output.value": '{"score": 2}'}, {"score": 2}),
        Given({"pydantic_ai.decision.confidence": 0.75}, {"name": "confidence", "score": 0.75}),
    ],
    {"openinference.span.kind": "EVALUATOR"},
)

PROMPT = Row(
    "prompt template",
    lambda shown: shown.prompt.get("name") or shown.prompt.get("template") or shown.prompt,
    [
        Given({"gen_ai.prompt.name": "greeting"}, "greeting"),
        Given({"llm.prompt_template.template": "Hi {x}"}, "Hi {x}"),
    ],
)
PROMPT_NAME = Row(
    "prompt template: name",
    lambda shown: shown.prompt.get("name"),
    [
        *_keys("gen_ai.prompt.name", "langfuse.observation.prompt.name", "traceloop.prompt.key"),
        Given({f"{_VA}.langfusePrompt": '{"name": "lf"}'}, "lf"),
    ],
)
PROMPT_VARIABLES = Row(
    "prompt template: variables",
    lambda shown: shown.prompt.get("variables"),
    [
        Given({"gen_ai.prompt.variable.x": "1"}, {"x": "1"}),
        Given({"llm.prompt_template.variables": '{"x": "2"}'}, {"x": "2"}),
        Given({"traceloop.prompt.template_variables": '{"x": "3"}'}, {"x": "3"}),
    ],
)

FIRST_TOKEN = Row(
    "time_to_first_token",
    lambda shown: call(shown).time_to_first_token_ms,
    [
        Given({"gen_ai.response.time_to_first_chunk": 0.5}, 500),
        *_keys(
            "ai.response.msToFirstChunk",
            "ai.stream.msToFirstChunk",
            "gen_ai.server.time_to_first_token",
            values=lambda at: 10.0 + at,
        ),
        # The maker's spans start at 2025-11-24T16:00:00Z.
        Given({"langfuse.observation.completion_start_time": '"2025-11-24T16:00:00.020Z"'}, 20),
        Given({"ttft_ms": 21}, 21),
        Given({}, 25, events=[event("ai.stream.firstChunk", at_ms=25)]),
        Given({}, 26, events=[event("gen_ai.content.completion.chunk", at_ms=26)]),
        Given({}, 27, events=[event("First Token Stream Event", at_ms=27)]),
    ],
    _LLM,
)

TAGS = Row(
    "tags",
    lambda shown: shown.tags,
    [
        Given({"tag.tags": ["a", "b"]}, ("a", "b")),
        Given({"langfuse.trace.tags": ["c"]}, ("c",)),
        Given({f"{_VA}.tags": ["d"]}, ("d",)),
        Given({"langsmith.span.tags": "e, f"}, ("e", "f")),
        Given({"logfire.tags": ["g"]}, ("g",)),
    ],
)
METADATA = Row(
    "metadata",
    lambda shown: shown.metadata.get("tier"),
    [
        Given({"metadata": '{"tier": "0"}'}, "0"),
        Given({"langfuse.observation.metadata.tier": '"1"'}, "1"),
        Given({"langfuse.trace.metadata.tier": '"2"'}, "2"),
        Given({f"{_VA}.tier": "3"}, "3"),
        Given({f"{_TL}.tier": "4"}, "4"),
        Given({"langsmith.metadata.tier": "5"}, "5"),
        Given({"metadata.tier": "6"}, "6"),
        Given({"litellm.metadata.tier": "7"}, "7"),
    ],
    _LLM,
)

DISPLAY_NAME = Row(
    "display name",
    lambda shown: shown.name,
    [
        Given({"logfire.msg": "running tool: f"}, "running tool: f"),
        Given({"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "fn"}, "fn"),
        Given({"ai.operationId": "ai.toolCall", "ai.telemetry.functionId": "fn"}, None),
    ],
)

ROWS: Sequence[Row] = [value for value in globals().values() if isinstance(value, Row)]

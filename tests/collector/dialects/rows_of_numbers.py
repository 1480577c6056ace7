"""Rows of the mapping table: tokens, cost, times, parameters, reasons."""

from __future__ import annotations

from collections.abc import Sequence

from tests.collector.dialects.maker import event, log
from tests.collector.dialects.rows import (
    INVOCATION,
    LF_USAGE,
    LLM,
    ML_USAGE,
    Given,
    Row,
    as_json,
    call,
    haystack_reply,
    keys,
    numbers,
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
                "gen_ai.output.messages": as_json(
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
    LLM,
)

TOKENS_INPUT = Row(
    "tokens.input",
    lambda shown: call(shown).tokens.input,
    [
        *keys(
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
            "ai.usage.tokens",
            values=lambda at: 10 + at,
        ),
        Given({ML_USAGE: '{"input_tokens": 30}'}, 30),
        Given({LF_USAGE: '{"input": 31, "input_cached_tokens": 4}'}, 35),
        Given({"input_tokens": 32, "cache_read_tokens": 5, "cache_creation_tokens": "1"}, 38),
        Given({"input_token_count": 33}, 33),
        Given({"decision.token_count.input": 34}, 34),
        Given(haystack_reply({"usage": {"prompt_tokens": 35}}), 35),
    ],
    LLM,
)

TOKENS_OUTPUT = Row(
    "tokens.output",
    lambda shown: call(shown).tokens.output,
    [
        *numbers(
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ),
        Given({ML_USAGE: '{"output_tokens": 30}'}, 30),
        Given({LF_USAGE: '{"output": 31, "output_reasoning_tokens": 4}'}, 35),
        Given({"output_tokens": 32}, 32),
        Given({"output_token_count": 33}, 33),
        Given({"decision.token_count.output": 34}, 34),
        Given(haystack_reply({"usage": {"completion_tokens": 35}}), 35),
    ],
    LLM,
)

TOKENS_REASONING = Row(
    "tokens.reasoning",
    lambda shown: call(shown).tokens.reasoning,
    [
        *numbers(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "gen_ai.usage.details.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.outputTokenDetails.reasoningTokens",
            "ai.usage.reasoningTokens",
        ),
        Given({LF_USAGE: '{"output_reasoning_tokens": 30}'}, 30),
        Given({"gen_ai.usage.output_token_details": '{"reasoning": 31}'}, 31),
        *keys("codex.usage.reasoning_output_tokens", values=lambda _: 32),
        *keys("reasoning_token_count", values=lambda _: 33),
    ],
    LLM,
)

TOKENS_CACHE_READ = Row(
    "tokens.cache_read",
    lambda shown: call(shown).tokens.cache_read,
    [
        *numbers(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
            "llm.token_count.prompt_details.cache_read",
            "llm.token_count.prompt_details.cache_input",
            "ai.usage.inputTokenDetails.cacheReadTokens",
            "ai.usage.cachedInputTokens",
        ),
        Given({"ai.response.providerMetadata": '{"anthropic": {"cacheReadInputTokens": 30}}'}, 30),
        Given({ML_USAGE: '{"cache_read_input_tokens": 31}'}, 31),
        Given({LF_USAGE: '{"input_cache_read": 32}'}, 32),
        Given({"gen_ai.usage.input_token_details": '{"cache_read": 33}'}, 33),
        Given({"cache_read_tokens": "34"}, 34),
        Given({"cached_token_count": 35}, 35),
        Given({"openai.cached_input_tokens": 36}, 36),
    ],
    LLM,
)

TOKENS_CACHE_WRITE = Row(
    "tokens.cache_write",
    lambda shown: call(shown).tokens.cache_write,
    [
        *numbers(
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.cache_write_input_tokens",
            "llm.token_count.prompt_details.cache_write",
            "ai.usage.inputTokenDetails.cacheWriteTokens",
        ),
        Given({ML_USAGE: '{"cache_creation_input_tokens": 30}'}, 30),
        Given({LF_USAGE: '{"input_cache_creation_5m": 30, "input_cache_creation_1h": 1}'}, 31),
        Given({"cache_creation_tokens": 32}, 32),
        Given({"cache_write_token_count": 33}, 33),
    ],
    LLM,
)

TOKENS_CACHE_WRITE_5M = Row(
    "tokens.cache_write_5m",
    lambda shown: call(shown).tokens.cache_write_5m,
    [
        *numbers("anthropic.usage.cache_creation.ephemeral_5m_input_tokens"),
        Given({LF_USAGE: '{"input_cache_creation_5m": 30}'}, 30),
        Given({}, 31, logs=[log("api_request", {"cache_creation_5m_tokens": "31"})]),
    ],
    LLM,
)

TOKENS_CACHE_WRITE_1H = Row(
    "tokens.cache_write_1h",
    lambda shown: call(shown).tokens.cache_write_1h,
    [
        *numbers("anthropic.usage.cache_creation.ephemeral_1h_input_tokens"),
        Given({ML_USAGE: '{"cache_creation_input_tokens_above_1hr": 29}'}, 29),
        Given({LF_USAGE: '{"input_cache_creation_1h": 30}'}, 30),
        Given({}, 31, logs=[log("api_request", {"cache_creation_1h_tokens": 31})]),
    ],
    LLM,
)

TOKENS_AUDIO_INPUT = Row(
    "tokens.audio in",
    lambda shown: call(shown).tokens.audio_input,
    numbers(
        "gen_ai.usage.audio.input_tokens",
        "llm.token_count.prompt_details.audio",
        "gen_ai.usage.details.input_audio_tokens",
    ),
    LLM,
)

TOKENS_AUDIO_OUTPUT = Row(
    "tokens.audio out",
    lambda shown: call(shown).tokens.audio_output,
    numbers(
        "gen_ai.usage.audio.output_tokens",
        "llm.token_count.completion_details.audio",
        "gen_ai.usage.details.output_audio_tokens",
    ),
    LLM,
)

COST = Row(
    "cost.total",
    lambda shown: (cost := call(shown).cost) and cost.usd,
    [
        *keys(
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
    LLM,
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
    {**LLM, "operation.cost": 1.0},
)

PARAMETERS = Row(
    "params",
    lambda shown: call(shown).parameters.get("temperature"),
    [
        Given({"gen_ai.request.temperature": 0.1}, 0.1),
        Given({INVOCATION: '{"temperature": 0.2}'}, 0.2),
        Given({"langfuse.observation.model.parameters": '{"temperature": 0.3}'}, 0.3),
        Given({"ai.settings.temperature": 0.4}, 0.4),
        Given({"llm.request.temperature": 0.5}, 0.5),
    ],
    LLM,
)

RESPONSE_ID = Row(
    "response.id",
    lambda shown: call(shown).response_id,
    keys("gen_ai.response.id", "ai.response.id", "request_id", "anthropic.request.id"),
    LLM,
)

FIRST_TOKEN = Row(
    "time_to_first_token",
    lambda shown: call(shown).time_to_first_token_ms,
    [
        Given({"gen_ai.response.time_to_first_chunk": 0.5}, 500),
        *keys(
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
    LLM,
)

ROWS: Sequence[Row] = [value for value in globals().values() if isinstance(value, Row)]

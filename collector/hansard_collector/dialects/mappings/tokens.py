"""The table, for what model calls count: tokens of each kind. See `table`."""

from __future__ import annotations

from hansard_collector.dialects import (
    claude_code,
    langfuse,
    llamaindex,
    mlflow,
    others,
    vercel_ai_sdk,
)
from hansard_collector.dialects.content import wire
from hansard_collector.dialects.engine.sources import FieldSource, Rows, counts_of, within
from hansard_collector.dialects.engine.values import count

_CC = claude_code.NAME
_LF_USAGE = "langfuse.observation.usage_details"
_ML_USAGE = "mlflow.chat.tokenUsage"
_VA_PROVIDER = "ai.response.providerMetadata"

TOKENS: Rows = {
    "tokens.input": (
        others.gemini_logged("gen_ai.usage.input_tokens"),
        *counts_of("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        *counts_of("llm.token_count.prompt"),
        *counts_of("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        mlflow.number(_ML_USAGE, "input_tokens"),
        FieldSource(_LF_USAGE, langfuse.input_tokens, label=f"{_LF_USAGE}{{input}}"),
        FieldSource(
            "input_tokens",
            claude_code.input_tokens,
            label="input_tokens + cache_read_tokens + cache_creation_tokens",
            needs=_CC,
        ),
        *counts_of("input_token_count", needs="codex"),
        *counts_of("decision.token_count.input", "llm.usage.prompt_tokens"),
        *counts_of("usage.prompt_tokens", needs="voltagent"),
        *wire.usage("input"),
        *llamaindex.counted("input"),
        *counts_of("gen_ai.response.prompt_tokens"),  # Semantic Kernel for .NET
        *counts_of("gen_ai.usage.details.input_tokens"),  # Pydantic AI 1, of old clients
        *counts_of("gen_ai.aggregated_usage.input_tokens"),
    ),
    "tokens.output": (
        others.gemini_logged("gen_ai.usage.output_tokens"),
        *counts_of("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        *counts_of("llm.token_count.completion"),
        *counts_of("ai.usage.outputTokens", "ai.usage.completionTokens"),
        mlflow.number(_ML_USAGE, "output_tokens"),
        FieldSource(_LF_USAGE, langfuse.output_tokens, label=f"{_LF_USAGE}{{output}}"),
        *counts_of("output_tokens", needs=_CC),
        *counts_of("output_token_count", needs="codex"),
        *counts_of("decision.token_count.output", "llm.usage.completion_tokens"),
        *counts_of("usage.completion_tokens", needs="voltagent"),
        *wire.usage("output"),
        *llamaindex.counted("output"),
        *counts_of("gen_ai.response.completion_tokens"),
        *counts_of("gen_ai.usage.details.output_tokens"),
        *counts_of("gen_ai.aggregated_usage.output_tokens"),
    ),
    "tokens.reasoning": (
        others.gemini_logged("gen_ai.usage.reasoning.output_tokens"),
        *counts_of("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        *counts_of("llm.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens"),
        *counts_of("gen_ai.usage.thinking_tokens", "gen_ai.usage.details.thinking_tokens"),
        *counts_of("llm.token_count.completion_details.reasoning"),
        *counts_of("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"),
        FieldSource(_LF_USAGE, langfuse.reasoning, label=f"{_LF_USAGE}{{output_reasoning_tokens}}"),
        within("gen_ai.usage.output_token_details", "reasoning", read=count),
        *counts_of("codex.usage.reasoning_output_tokens", "openai.reasoning_tokens"),
        *counts_of("reasoning_token_count", needs="codex"),
        *counts_of("gen_ai.usage.output_tokens.reasoning"),  # traceAI
        *counts_of("usage.reasoning_tokens", needs="voltagent"),
        *wire.usage("reasoning"),
        *llamaindex.counted("reasoning"),
        *counts_of("gen_ai.aggregated_usage.reasoning.output_tokens"),
        *counts_of("gen_ai.aggregated_usage.details.reasoning_tokens"),
        *counts_of("gen_ai.aggregated_usage.details.thinking_tokens"),
    ),
    "tokens.cache_read": (
        others.gemini_logged("gen_ai.usage.cache_read.input_tokens"),
        *counts_of("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        *counts_of("gen_ai.usage.details.cache_read_tokens"),
        *counts_of("gen_ai.usage.details.cache_read_input_tokens"),
        *counts_of("llm.token_count.prompt_details.cache_read"),
        *counts_of("llm.token_count.prompt_details.cache_input"),
        *counts_of("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
        FieldSource(
            _VA_PROVIDER, vercel_ai_sdk.provider_count("cacheReadInputTokens", "cachedPromptTokens")
        ),
        mlflow.number(_ML_USAGE, "cache_read_input_tokens"),
        FieldSource(_LF_USAGE, langfuse.cache_read, label=f"{_LF_USAGE}{{input_cached_tokens}}"),
        within("gen_ai.usage.input_token_details", "cache_read", read=count),
        *counts_of("cache_read_tokens", needs=_CC),
        *counts_of("cached_token_count", needs="codex"),
        *counts_of("openai.cached_input_tokens"),
        *counts_of("gen_ai.usage.cached_tokens"),  # Langtrace
        *counts_of("llm.usage.cached_tokens"),
        *counts_of("usage.cached_tokens", needs="voltagent"),
        *counts_of("gen_ai.usage.details.cached_tokens"),  # Pydantic AI 0
        *counts_of("gen_ai.usage.input_tokens.cache_read"),  # traceAI
        *counts_of("gen_ai.usage.cached_input_tokens"),  # Mastra
        *counts_of("metadata.usage.cached_prompt_tokens"),  # BeeAI
        *wire.usage("cache read"),
        *llamaindex.counted("cache read"),
        *counts_of("gen_ai.aggregated_usage.cache_read.input_tokens"),
    ),
    "tokens.cache_write": (
        *counts_of("gen_ai.usage.cache_write.input_tokens"),
        *counts_of("gen_ai.usage.cache_creation.input_tokens"),
        *counts_of("gen_ai.usage.cache_creation_input_tokens"),
        *counts_of("gen_ai.usage.cache_write_input_tokens"),
        *counts_of("gen_ai.usage.details.cache_write_tokens"),
        *counts_of("gen_ai.usage.details.cache_creation_input_tokens"),
        *counts_of("llm.token_count.prompt_details.cache_write"),
        *counts_of("ai.usage.inputTokenDetails.cacheWriteTokens"),
        FieldSource(
            _VA_PROVIDER,
            vercel_ai_sdk.provider_count("cacheCreationInputTokens", "cacheWriteTokens"),
        ),
        mlflow.number(_ML_USAGE, "cache_creation_input_tokens"),
        FieldSource(_LF_USAGE, langfuse.cache_write, label=f"{_LF_USAGE}{{input_cache_creation}}"),
        within("gen_ai.usage.input_token_details", "cache_creation", read=count),
        *counts_of("cache_creation_tokens", needs=_CC),
        *counts_of("cache_write_token_count", needs="codex"),
        *counts_of("openai.cache_write_tokens"),
        *counts_of("metadata.usage.cached_creation_tokens"),
        *wire.usage("cache write"),
        *llamaindex.counted("cache write"),
        *counts_of("gen_ai.aggregated_usage.cache_write.input_tokens"),
        *counts_of("gen_ai.aggregated_usage.cache_creation.input_tokens"),
    ),
    "tokens.cache_write_5m": (
        *counts_of("anthropic.usage.cache_creation.ephemeral_5m_input_tokens"),
        FieldSource(_LF_USAGE, langfuse.cache_write_5m),
        FieldSource(
            "event api_request", claude_code.logged_count("cache_creation_5m_tokens"), needs=_CC
        ),
    ),
    "tokens.cache_write_1h": (
        *counts_of("anthropic.usage.cache_creation.ephemeral_1h_input_tokens"),
        mlflow.number(_ML_USAGE, "cache_creation_input_tokens_above_1hr"),
        FieldSource(_LF_USAGE, langfuse.cache_write_1h),
        FieldSource(
            "event api_request", claude_code.logged_count("cache_creation_1h_tokens"), needs=_CC
        ),
    ),
    "tokens.total": (
        *counts_of("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        *counts_of("llm.token_count.total", "ai.usage.totalTokens", "codex.usage.total_tokens"),
        within(_LF_USAGE, "total_tokens", read=count),
        mlflow.number(_ML_USAGE, "total_tokens"),
        *wire.usage("total"),
        *llamaindex.counted("total"),
    ),
    "tokens.audio_input": (
        *counts_of("gen_ai.usage.audio.input_tokens", "llm.token_count.prompt_details.audio"),
        *counts_of("gen_ai.usage.details.input_audio_tokens", "gen_ai.usage.input_audio_tokens"),
    ),
    "tokens.audio_output": (
        *counts_of("gen_ai.usage.audio.output_tokens", "llm.token_count.completion_details.audio"),
        *counts_of("gen_ai.usage.details.output_audio_tokens", "gen_ai.usage.output_audio_tokens"),
    ),
}

# What other steps report of the calls inside them: never read out of a recorded response.
SUMS: Rows = {
    field: tuple(source for source in sources if source.evidence not in wire.RESPONSES)
    for field, sources in TOKENS.items()
}

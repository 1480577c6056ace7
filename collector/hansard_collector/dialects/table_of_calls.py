"""The table, for model calls: messages, models, tokens, cost. See `table`."""

from __future__ import annotations

from hansard_collector.dialects import (
    claude_code,
    gen_ai,
    gen_ai_events,
    google_adk,
    haystack,
    langfuse,
    mlflow,
    openinference,
    others,
    pydantic_ai,
    traceloop,
    vercel,
    wire,
)
from hansard_collector.dialects.sources import (
    Rows,
    Source,
    counts_of,
    each,
    flags_of,
    provider_named,
    reals_of,
    texts_of,
    within,
)
from hansard_collector.dialects.values import count, flag, real

_CC = claude_code.NAME
_ADK_REQUEST = "gcp.vertex.agent.llm_request"
_ADK_RESPONSE = "gcp.vertex.agent.llm_response"
_DETAILS = f"event {gen_ai_events.DETAILS}"
_CHOICE = f"event {gen_ai_events.CHOICE}"
_INVOCATION = "llm.invocation_parameters"
_LF_INPUT = "langfuse.observation.input"
_LF_METADATA = "langfuse.observation.metadata"
_LF_OUTPUT = "langfuse.observation.output"
_LF_USAGE = "langfuse.observation.usage_details"
_ML_USAGE = "mlflow.chat.tokenUsage"
_HS_IN = "haystack.component.input"
_HS_OUT = "haystack.component.output"
_VA_PROVIDER = "ai.response.providerMetadata"

MESSAGES: Rows = {
    "input": (
        Source("gen_ai.input.messages", gen_ai.input_messages),
        Source("pydantic_ai.all_messages", pydantic_ai.history),
        Source("llm.input_messages.", openinference.input_messages),
        Source(_DETAILS, gen_ai_events.details_input),
        *each(gen_ai_events.INPUT_EVIDENCE, gen_ai_events.input_messages),
        Source("ai.prompt.messages", gen_ai.input_messages),
        Source("ai.prompt", vercel.prompt),
        Source("gen_ai.prompt.", traceloop.input_messages),
        *each(("events", "all_messages_events"), pydantic_ai.event_input, needs="pydantic_ai"),
        Source("events", pydantic_ai.event_input, needs="logfire"),
        Source("request_data", pydantic_ai.request, needs="logfire"),
        Source(_ADK_REQUEST, google_adk.input_messages),
        Source("event gen_ai.content.prompt", gen_ai_events.prompt_content),
        Source("gen_ai.prompt", gen_ai_events.all_prompt),
        Source("new_context", claude_code.new_context, needs=_CC),
        *each(claude_code.PROMPT_LOGS, claude_code.prompt_log, needs=_CC),
        Source(_LF_INPUT, langfuse.input_messages),
        Source("mlflow.spanInputs", mlflow.input_messages),
        Source("lmnr.span.input", others.request),
        Source("llm.prompts.", openinference.prompts),
        Source("llm.prompts", openinference.listed_prompts),
        Source("llm.messages", others.request),
        Source("lk.chat_ctx", others.livekit_context),
        *each(("lk.user_input", "lk.input_text", "lk.user_transcript"), others.request),
        Source("genkit:input", others.request),
        Source(_HS_IN, haystack.input_messages),
        Source("haystack.agent.step.llm.input", haystack.input_messages),
    ),
    "output": (
        Source("gen_ai.output.messages", gen_ai.output_messages),
        Source("llm.output_messages.", openinference.output_messages),
        Source(_DETAILS, gen_ai_events.details_output),
        Source(_CHOICE, gen_ai_events.output_messages),
        *each(vercel.ANSWER_KEYS, vercel.answer),
        Source("gen_ai.completion.", traceloop.output_messages),
        *each(("events", "all_messages_events"), pydantic_ai.event_output, needs="pydantic_ai"),
        Source("events", pydantic_ai.event_output, needs="logfire"),
        Source("response_data", pydantic_ai.response, needs="logfire"),
        Source("request_data", pydantic_ai.appended_answer, needs="logfire"),
        Source("response_data.combined_chunk_content", pydantic_ai.combined_chunks),
        Source(_ADK_RESPONSE, google_adk.output_messages),
        Source("event gen_ai.content.completion", gen_ai_events.completion_content),
        Source("gen_ai.completion", gen_ai_events.all_completion),
        Source("response.model_output", claude_code.output, needs=_CC),
        *each(claude_code.ANSWER_LOGS, claude_code.output_log, needs=_CC),
        Source(_LF_OUTPUT, langfuse.output_messages),
        Source("mlflow.spanOutputs", mlflow.output_messages),
        Source("lmnr.span.output", others.response),
        Source("llm.choices.", openinference.choices),
        Source("llm.completions", openinference.listed_completions),
        *each(("lk.response.text", "lk.response.function_calls"), others.livekit_answer),
        Source("genkit:output", others.response),
        Source(_HS_OUT, haystack.output_messages),
        Source("haystack.agent.step.llm.output", haystack.output_messages),
        Source("output.value", openinference.whole_output),
    ),
    "system": (
        Source("gen_ai.system_instructions", gen_ai.system_messages),
        Source(_DETAILS, gen_ai_events.details_system),
        *each(claude_code.SYSTEM_LOGS, claude_code.system_log, needs=_CC),
        Source("user_system_prompt", gen_ai.system_messages, needs=_CC),
        Source(_INVOCATION, openinference.system, label=f"{_INVOCATION}{{system}}"),
    ),
}

EMBEDDED: Rows = {
    "input": (
        Source("embedding.embeddings.", openinference.embedded_texts),
        *each(("ai.values", "ai.value"), vercel.embedded_texts),
        Source("gen_ai.input.messages", gen_ai.input_messages),
        Source(_DETAILS, gen_ai_events.details_input),
        Source("gen_ai.prompt.", traceloop.input_messages),
        Source(_LF_INPUT, langfuse.input_messages),
        Source("mlflow.spanInputs", mlflow.input_messages),
        Source("gen_ai.prompt", gen_ai_events.all_prompt),
        Source("lmnr.span.input", others.request),
        Source("genkit:input", others.request),
        Source(_HS_IN, haystack.embedded_texts),
        Source("request_data", pydantic_ai.request, needs="logfire"),
        Source("gen_ai.request.embedding_inputs", openinference.listed_prompts),  # Langtrace
    ),
}

CALL: Rows = {
    "operation": texts_of("gen_ai.operation.name", "ai.operationId", "llm.request.type"),
    "provider": (
        *provider_named("gen_ai.provider.name", "llm.provider", "llm.system", "gen_ai.system"),
        Source("mlflow.llm.provider", mlflow.provider),
        *provider_named("ai.model.provider", "langsmith.metadata.ls_provider"),
        *provider_named("langtrace.service.name"),
    ),
    "request_model": (
        *texts_of("gen_ai.request.model", "llm.request.model_name", "llm.input_model_name"),
        within(_INVOCATION, "model"),
        *wire.ASKED_MODEL,
        *texts_of("llm.model_name", "embedding.model_name", "reranker.model_name"),
        *texts_of("decision.request.model_name", "langfuse.observation.model.name"),
        *mlflow.texts_of("mlflow.llm.model"),
        *texts_of("ai.model.id"),
        *texts_of("model", needs=_CC),
        *texts_of("litellm.provider.model"),
        within(_ADK_REQUEST, "model"),
        within("request_data", "model", needs="logfire"),
        *texts_of("model", needs="codex"),
        Source("genkit:name", others.genkit_model),
        *texts_of("langsmith.metadata.ls_model_name"),
    ),
    "response_model": (
        *texts_of("gen_ai.response.model", "llm.response.model_name", "llm.output_model_name"),
        *texts_of("decision.response.model_name"),
        Source("llm.model_name", openinference.served_model),
        *texts_of("ai.response.model"),
        *wire.SERVING_MODEL,
    ),
    "stream": (
        *flags_of("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming"),
        *flags_of("stream", needs="mlflow"),  # the keyword arguments of the call
        Source("output.value", wire.came_in_chunks, label="output.value{type}"),
        Source(_INVOCATION, openinference.streamed, label=f"{_INVOCATION}{{stream}}"),
        Source("ai.operationId", vercel.streamed),
        *flags_of("langsmith.request.streaming", "litellm.request.streaming"),
        *flags_of("langsmith.metadata.stream"),
        within("langfuse.observation.model.parameters", "stream", read=flag),
        within("invocation_params", "stream", read=flag, needs="mlflow"),
        Source("request_data", openinference.streamed, needs="logfire"),
        *wire.STREAMED,
        *each(gen_ai_events.CHUNK_EVIDENCE, others.said_so),
    ),
    "tools": (
        Source("gen_ai.tool.definitions", gen_ai.tools),
        Source(_DETAILS, gen_ai_events.details_tools),
        Source("llm.tools.", openinference.tools),
        Source("ai.prompt.tools", gen_ai.tools),
        Source("mlflow.chat.tools", mlflow.tools),
        Source("llm.request.functions.", traceloop.functions),
        Source("gen_ai.tool.", traceloop.functions),
        Source("model_request_parameters", pydantic_ai.function_tools),
        Source("request_data", pydantic_ai.tools_of_request, needs="logfire"),
        Source(_ADK_REQUEST, google_adk.tools),
        Source("gen_ai.request.tools", gen_ai.tools),  # Langtrace
        Source("gen_ai.agent.tools", gen_ai.tools),
        *each(others.SPRING_TOOL_NAMES, others.tool_names),
        Source("tools", claude_code.tools, needs=_CC),
        Source(_INVOCATION, pydantic_ai.tools_of_request),
        *each((*wire.REQUESTS, "genkit:input"), wire.tools),
        Source(_LF_INPUT, langfuse.tools),
    ),
    "finish_reason": (
        Source("gen_ai.response.finish_reasons", gen_ai.finish_reason),
        *texts_of("gen_ai.response.finish_reason", "gen_ai.response.stop_reason"),
        *texts_of("llm.finish_reason"),
        Source("gen_ai.output.messages", gen_ai.finish_reason_of_messages),
        *texts_of("ai.response.finishReason", "ai.result.finishReason", "gen_ai.finishReason"),
        Source("gen_ai.completion.", traceloop.finish_reason),
        *texts_of("llm.response.finish_reason", "llm.response.stop_reason"),
        *texts_of("stop_reason", needs=_CC),
        *texts_of("anthropic.message.stop_reason"),
        Source(_CHOICE, gen_ai_events.finish_reason),
        Source(_DETAILS, gen_ai_events.details_finish_reason),
        *wire.FINISH_REASON,
        Source(f"{_LF_METADATA}.finish_reason", gen_ai.finish_reason),
    ),
    "response_id": (
        *texts_of("gen_ai.response.id", "ai.response.id"),
        *texts_of("request_id", needs=_CC),
        *wire.RESPONSE_ID,
        *texts_of("anthropic.request.id"),
    ),
    "time_to_first_token": (
        Source("gen_ai.response.time_to_first_chunk", gen_ai.milliseconds),
        Source("gen_ai.client.operation.time_to_first_chunk", gen_ai.milliseconds),
        *reals_of("ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"),
        Source("gen_ai.server.time_to_first_token", gen_ai.milliseconds, needs="openlit"),
        *reals_of("gen_ai.server.time_to_first_token"),
        Source("langfuse.observation.completion_start_time", langfuse.first_token_ms),
        *reals_of("ttft_ms", needs=_CC),
        *reals_of("ttft_ms", needs="codex"),
        *each(gen_ai_events.CHUNK_EVIDENCE, gen_ai_events.first_chunk_ms),
    ),
    "cost.reported": (
        *reals_of("llm.cost.total", "operation.cost", "litellm.cost.total"),
        *reals_of("gen_ai.cost.total_cost", "llm.response.cost"),
        within("langfuse.observation.cost_details", "total", read=real),
        mlflow.number("mlflow.llm.cost", "total_cost", real),
        *reals_of("gen_ai.usage.cost"),
        Source("hidden_params", others.hidden_cost, needs="litellm"),
        Source("event api_request", claude_code.logged_cost, needs=_CC),
        Source("event claude_code.api_request", claude_code.logged_cost, needs=_CC),
        *reals_of("usage.estimated_usd", needs="codex"),
    ),
}

TOKENS: Rows = {
    "tokens.input": (
        *counts_of("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        *counts_of("llm.token_count.prompt"),
        *counts_of("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        mlflow.number(_ML_USAGE, "input_tokens"),
        Source(_LF_USAGE, langfuse.input_tokens, label=f"{_LF_USAGE}{{input}}"),
        Source(
            "input_tokens",
            claude_code.input_tokens,
            label="input_tokens + cache_read_tokens + cache_creation_tokens",
            needs=_CC,
        ),
        *counts_of("input_token_count", needs="codex"),
        *counts_of("decision.token_count.input", "llm.usage.prompt_tokens"),
        *wire.INPUT_TOKENS,
        *counts_of("gen_ai.aggregated_usage.input_tokens"),
    ),
    "tokens.output": (
        *counts_of("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        *counts_of("llm.token_count.completion"),
        *counts_of("ai.usage.outputTokens", "ai.usage.completionTokens"),
        mlflow.number(_ML_USAGE, "output_tokens"),
        Source(_LF_USAGE, langfuse.output_tokens, label=f"{_LF_USAGE}{{output}}"),
        *counts_of("output_tokens", needs=_CC),
        *counts_of("output_token_count", needs="codex"),
        *counts_of("decision.token_count.output", "llm.usage.completion_tokens"),
        *wire.OUTPUT_TOKENS,
        *counts_of("gen_ai.aggregated_usage.output_tokens"),
    ),
    "tokens.reasoning": (
        *counts_of("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        *counts_of("llm.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens"),
        *counts_of("gen_ai.usage.details.thinking_tokens"),
        *counts_of("llm.token_count.completion_details.reasoning"),
        *counts_of("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"),
        Source(_LF_USAGE, langfuse.reasoning, label=f"{_LF_USAGE}{{output_reasoning_tokens}}"),
        within("gen_ai.usage.output_token_details", "reasoning", read=count),
        *counts_of("codex.usage.reasoning_output_tokens", "openai.reasoning_tokens"),
        *counts_of("reasoning_token_count", needs="codex"),
        *wire.REASONING_TOKENS,
        *counts_of("gen_ai.aggregated_usage.reasoning.output_tokens"),
        *counts_of("gen_ai.aggregated_usage.details.reasoning_tokens"),
        *counts_of("gen_ai.aggregated_usage.details.thinking_tokens"),
    ),
    "tokens.cache_read": (
        *counts_of("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        *counts_of("gen_ai.usage.details.cache_read_tokens"),
        *counts_of("gen_ai.usage.details.cache_read_input_tokens"),
        *counts_of("llm.token_count.prompt_details.cache_read"),
        *counts_of("llm.token_count.prompt_details.cache_input"),
        *counts_of("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
        Source(_VA_PROVIDER, vercel.provider_count("cacheReadInputTokens", "cachedPromptTokens")),
        mlflow.number(_ML_USAGE, "cache_read_input_tokens"),
        Source(_LF_USAGE, langfuse.cache_read, label=f"{_LF_USAGE}{{input_cached_tokens}}"),
        within("gen_ai.usage.input_token_details", "cache_read", read=count),
        *counts_of("cache_read_tokens", needs=_CC),
        *counts_of("cached_token_count", needs="codex"),
        *counts_of("openai.cached_input_tokens"),
        *counts_of("gen_ai.usage.cached_tokens"),  # Langtrace
        *wire.CACHE_READ_TOKENS,
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
        Source(_VA_PROVIDER, vercel.provider_count("cacheCreationInputTokens", "cacheWriteTokens")),
        mlflow.number(_ML_USAGE, "cache_creation_input_tokens"),
        Source(_LF_USAGE, langfuse.cache_write, label=f"{_LF_USAGE}{{input_cache_creation}}"),
        within("gen_ai.usage.input_token_details", "cache_creation", read=count),
        *counts_of("cache_creation_tokens", needs=_CC),
        *counts_of("cache_write_token_count", needs="codex"),
        *counts_of("openai.cache_write_tokens"),
        *wire.CACHE_WRITE_TOKENS,
        *counts_of("gen_ai.aggregated_usage.cache_write.input_tokens"),
        *counts_of("gen_ai.aggregated_usage.cache_creation.input_tokens"),
    ),
    "tokens.cache_write_5m": (
        *counts_of("anthropic.usage.cache_creation.ephemeral_5m_input_tokens"),
        Source(_LF_USAGE, langfuse.cache_write_5m),
        Source(
            "event api_request", claude_code.logged_count("cache_creation_5m_tokens"), needs=_CC
        ),
    ),
    "tokens.cache_write_1h": (
        *counts_of("anthropic.usage.cache_creation.ephemeral_1h_input_tokens"),
        mlflow.number(_ML_USAGE, "cache_creation_input_tokens_above_1hr"),
        Source(_LF_USAGE, langfuse.cache_write_1h),
        Source(
            "event api_request", claude_code.logged_count("cache_creation_1h_tokens"), needs=_CC
        ),
    ),
    "tokens.total": (
        *counts_of("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        *counts_of("llm.token_count.total", "ai.usage.totalTokens", "codex.usage.total_tokens"),
        within(_LF_USAGE, "total_tokens", read=count),
        mlflow.number(_ML_USAGE, "total_tokens"),
        *wire.TOTAL_TOKENS,
    ),
    "tokens.audio_input": (
        *counts_of("gen_ai.usage.audio.input_tokens", "llm.token_count.prompt_details.audio"),
        *counts_of("gen_ai.usage.details.input_audio_tokens"),
    ),
    "tokens.audio_output": (
        *counts_of("gen_ai.usage.audio.output_tokens", "llm.token_count.completion_details.audio"),
        *counts_of("gen_ai.usage.details.output_audio_tokens"),
    ),
}

# What other steps report of the calls inside them: never read out of a recorded response.
SUMS: Rows = {
    field: tuple(source for source in sources if source.evidence not in wire.RESPONSES)
    for field, sources in TOKENS.items()
}

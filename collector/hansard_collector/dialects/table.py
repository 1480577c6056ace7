"""THE TABLE: where each field of the normal form stands, in order (genai-dialects.md §20).

For a field, the first source that is present and usable is taken; rows under `MERGED` and `JOINED`
take all of them. Evidence is an attribute key, a prefix of flat keys (ends in a dot), an event
(`event …`, of the span or as a log record) or the beginning of the span's name (`span …`).
"""

from __future__ import annotations

from collections.abc import Mapping

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
    strands,
    traceloop,
    vercel,
)
from hansard_collector.dialects.sources import (
    Read,
    Source,
    constant,
    counts_of,
    flags_of,
    lists_of,
    provider_named,
    reals_of,
    roles_of,
    sent_of,
    texts_of,
    values_of,
    within,
)
from hansard_collector.dialects.values import count, real

Rows = Mapping[str, tuple[Source, ...]]

_CC = claude_code.NAME
_ADK_REQUEST = "gcp.vertex.agent.llm_request"
_ADK_RESPONSE = "gcp.vertex.agent.llm_response"
_DETAILS = f"event {gen_ai_events.DETAILS}"
_CHOICE = f"event {gen_ai_events.CHOICE}"
_FUNCTIONS = "llm.request.functions."
_INVOCATION = "llm.invocation_parameters"
_LF_INPUT = "langfuse.observation.input"
_LF_METADATA = "langfuse.observation.metadata"
_LF_OUTPUT = "langfuse.observation.output"
_LF_USAGE = "langfuse.observation.usage_details"
_ML_USAGE = "mlflow.chat.tokenUsage"
_HS_IN = "haystack.component.input"
_HS_OUT = "haystack.component.output"
_TL = "traceloop.association.properties"
_VA_META = "ai.telemetry.metadata"
_VA_PROVIDER = "ai.response.providerMetadata"


def _each(keys: tuple[str, ...], read: Read, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, read, needs=needs) for key in keys)


_ROLE: Rows = {
    "role": (
        # Hansard's own spans, by name: DESIGN §9.
        *roles_of("openinference.span.kind", openinference.ROLES),
        *roles_of("langfuse.observation.type", langfuse.ROLES),
        Source("mlflow.spanType", mlflow.role),
        *roles_of("langsmith.span.kind", others.LANGSMITH_ROLES),
        Source("span.type", claude_code.role, needs=_CC),
        Source("span claude_code.", claude_code.role_by_name),
        Source("spring.ai.kind", others.spring_role),
        Source("ai.operationId", vercel.role),
        *roles_of("lmnr.span.type", others.LAMINAR_ROLES),
        Source("genkit:metadata:subtype", others.genkit_role),
        Source("genkit:type", others.genkit_role),
        Source("span raw_gen_ai_request", constant("llm"), needs="litellm"),
        *roles_of("gen_ai.operation.name", {"execute_tool": "tool"}),
        Source("mcp.method.name", constant("mcp")),
        *roles_of("gen_ai.operation.name", gen_ai.ROLES),
        *roles_of("traceloop.span.kind", traceloop.ROLES),
        *roles_of("llm.request.type", traceloop.REQUEST_TYPES),
        Source("haystack.component.type", haystack.role_of_component),
        Source("span haystack.", haystack.role),
        *(
            Source(evidence, google_adk.role, needs="google_adk")
            for evidence in google_adk.SPAN_ROLES
        ),
        Source("haystack.tool.name", constant("tool")),
        Source("lk.function_tool.name", constant("tool")),
        Source("embedding.model_name", constant("embedding")),
        Source("reranker.model_name", constant("rerank")),
        *_each(
            (
                "gen_ai.request.model", "gen_ai.response.model", "llm.request.model_name",
                "llm.response.model_name", "llm.model_name", "langfuse.observation.model.name",
                "mlflow.llm.model", "ai.model.id", "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.messages",
            ),
            constant("llm"),
        ),
    ),
}  # fmt: skip

_EVERY: Rows = {
    "name": (
        *texts_of("logfire.msg"),
        Source("ai.telemetry.functionId", vercel.display_name),
        *texts_of("genkit:name"),
    ),
    "conversation_id": (
        *texts_of("session.id", needs=_CC),
        *texts_of("gen_ai.conversation.id", "session.id", "langfuse.session.id"),
        *texts_of(
            f"{_TL}.session_id", f"{_TL}.thread_id", f"{_TL}.chat_id", f"{_TL}.conversation_id"
        ),
        *texts_of(f"{_VA_META}.sessionId", f"{_VA_META}.threadId"),
        *mlflow.texts_of("mlflow.trace.session"),
        *texts_of(
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
            "langsmith.metadata.conversation_id",
            "gcp.vertex.agent.session_id",
            "spring.ai.chat.client.conversation.id",
            "conversation.id",
            "lmnr.association.properties.session_id",
            "anthropic.session.id",
            "mcp.session.id",
        ),
        within("metadata", "session_id", needs="openinference"),
        within("metadata", "thread_id", needs="openinference"),
    ),
    "user_id": (
        *texts_of("user.id", "enduser.id", "langfuse.user.id"),
        *texts_of(f"{_TL}.user_id", "gen_ai.user", "llm.user", f"{_VA_META}.userId"),
        *mlflow.texts_of("mlflow.trace.user"),
        *texts_of(
            "litellm.end_user.id",
            "metadata.user_api_key_end_user_id",
            "lmnr.association.properties.user_id",
        ),
        within("metadata", "user_id", needs="openinference"),
        *texts_of("user.account_uuid", "user.email"),
    ),
    "agent_name": (
        *texts_of("gen_ai.agent.name", "agent.name", "graph.node.name"),
        *texts_of("agent_name", needs="pydantic_ai"),
        *texts_of("agent_name", needs="logfire"),
        *texts_of("ai.telemetry.functionId"),
        Source("traceloop.entity.name", others.entity_of_agent),
        *texts_of("subagent_type", needs=_CC),
        *texts_of("lk.agent_name", "haystack.agent.name"),
    ),
    "agent_id": (
        *texts_of("gen_ai.agent.id", "graph.node.id"),
        *texts_of("agent_id", needs=_CC),
        *texts_of("executor.id"),
    ),
    "agent_description": texts_of("gen_ai.agent.description"),
    "workflow_name": (
        *texts_of("gen_ai.workflow.name", "traceloop.workflow.name", "workflow.name"),
        *texts_of("langfuse.trace.name", "langsmith.trace.name"),
        *mlflow.texts_of("mlflow.traceName"),
    ),
    "tags": (
        *lists_of("tag.tags", "langfuse.trace.tags", f"{_VA_META}.tags", "langsmith.span.tags"),
        *lists_of("logfire.tags"),
    ),
    "duplicate": (
        Source("span raw_gen_ai_request", others.said_so, needs="litellm"),
        Source("logfire.span_type", pydantic_ai.repeats_call),
    ),
    "pending_of": (Source("logfire.span_type", pydantic_ai.pending_of),),
}

# All sources together; the first that names something wins it.
_MERGED: Rows = {
    "metadata": (
        Source("metadata", openinference.metadata, needs="openinference"),
        Source(f"{_LF_METADATA}.", langfuse.metadata),
        Source(_LF_METADATA, openinference.metadata),
        Source("langfuse.trace.metadata.", langfuse.metadata),
        Source("langfuse.trace.metadata", openinference.metadata),
        *_each((f"{_VA_META}.", f"{_TL}.", "langsmith.metadata."), others.family),
        *_each(("lmnr.association.properties.", "metadata.", "litellm.metadata."), others.family),
        Source("ai.settings.context.", vercel.context),
    ),
    "prompt": (
        *_each(("gen_ai.prompt.name", "gen_ai.prompt.version"), gen_ai.prompt_field),
        Source("gen_ai.prompt.variable.", gen_ai.prompt_variables),
        *_each(openinference.PROMPT_KEYS, openinference.prompt_field),
        *_each(langfuse.PROMPT_KEYS, langfuse.prompt_field),
        Source("traceloop.prompt.", traceloop.prompt_fields),
        Source(f"{_VA_META}.langfusePrompt", vercel.langfuse_prompt),
    ),
    "parameters": (
        *_each(tuple(gen_ai.PARAMETERS), gen_ai.parameter),
        Source(_INVOCATION, openinference.parameters),
        Source("embedding.invocation_parameters", openinference.parameters),
        Source("langfuse.observation.model.parameters", langfuse.parameters),
        Source("ai.settings.", vercel.settings),
        *_each(traceloop.PARAMETER_KEYS, traceloop.parameter),
        *_each(claude_code.PARAMETERS, claude_code.parameter, needs=_CC),
        Source("codex.request.reasoning_effort", others.codex_effort),
    ),
    "cost.lines": (
        Source("llm.cost.", openinference.cost_lines),
        *_each(("litellm.cost.", "gen_ai.cost."), others.costs),
        Source("langfuse.observation.cost_details", langfuse.cost_lines),
        Source("mlflow.llm.cost", mlflow.cost_lines),
    ),
}

# All sources, one after the other.
_JOINED: Rows = {
    "evaluations": (
        Source("event gen_ai.evaluation.result", gen_ai.evaluations),
        *_each(
            (
                "evaluations.", "trace.evaluations.", "session.evaluations.",
                "annotations.", "trace.annotations.", "session.annotations.",
            ),
            openinference.evaluations,
        ),
        Source("output.value", openinference.evaluator_output),
        Source("pydantic_ai.decision.confidence", pydantic_ai.confidence),
    ),
}  # fmt: skip

_MESSAGES: Rows = {
    "input": (
        Source("gen_ai.input.messages", gen_ai.input_messages),
        Source("pydantic_ai.all_messages", pydantic_ai.history),
        Source("llm.input_messages.", openinference.input_messages),
        Source(_DETAILS, gen_ai_events.details_input),
        *_each(gen_ai_events.INPUT_EVIDENCE, gen_ai_events.input_messages),
        Source("ai.prompt.messages", gen_ai.input_messages),
        Source("ai.prompt", vercel.prompt),
        Source("gen_ai.prompt.", traceloop.input_messages),
        *_each(("events", "all_messages_events"), pydantic_ai.event_input, needs="pydantic_ai"),
        Source("events", pydantic_ai.event_input, needs="logfire"),
        Source("request_data", pydantic_ai.request, needs="logfire"),
        Source(_ADK_REQUEST, google_adk.input_messages),
        Source("event gen_ai.content.prompt", gen_ai_events.prompt_content),
        Source("gen_ai.prompt", gen_ai_events.all_prompt),
        Source("new_context", claude_code.new_context, needs=_CC),
        *_each(claude_code.PROMPT_LOGS, claude_code.prompt_log, needs=_CC),
        Source(_LF_INPUT, langfuse.input_messages),
        Source("mlflow.spanInputs", mlflow.input_messages),
        Source("lmnr.span.input", others.request),
        Source("llm.prompts.", openinference.prompts),
        Source("llm.prompts", openinference.listed_prompts),
        Source("llm.messages", others.request),
        Source("lk.chat_ctx", others.livekit_context),
        *_each(("lk.user_input", "lk.input_text", "lk.user_transcript"), others.request),
        Source("genkit:input", others.request),
        Source(_HS_IN, haystack.input_messages),
        Source("haystack.agent.step.llm.input", haystack.input_messages),
    ),
    "output": (
        Source("gen_ai.output.messages", gen_ai.output_messages),
        Source("llm.output_messages.", openinference.output_messages),
        Source(_DETAILS, gen_ai_events.details_output),
        Source(_CHOICE, gen_ai_events.output_messages),
        *_each(vercel.ANSWER_KEYS, vercel.answer),
        Source("gen_ai.completion.", traceloop.output_messages),
        *_each(("events", "all_messages_events"), pydantic_ai.event_output, needs="pydantic_ai"),
        Source("events", pydantic_ai.event_output, needs="logfire"),
        Source("response_data", pydantic_ai.response, needs="logfire"),
        Source("response_data.combined_chunk_content", pydantic_ai.combined_chunks),
        Source(_ADK_RESPONSE, google_adk.output_messages),
        Source("event gen_ai.content.completion", gen_ai_events.completion_content),
        Source("gen_ai.completion", gen_ai_events.all_completion),
        Source("response.model_output", claude_code.output, needs=_CC),
        *_each(claude_code.ANSWER_LOGS, claude_code.output_log, needs=_CC),
        Source(_LF_OUTPUT, langfuse.output_messages),
        Source("mlflow.spanOutputs", mlflow.output_messages),
        Source("lmnr.span.output", others.response),
        Source("llm.choices.", openinference.choices),
        Source("llm.completions", openinference.listed_completions),
        *_each(("lk.response.text", "lk.response.function_calls"), others.livekit_answer),
        Source("genkit:output", others.response),
        Source(_HS_OUT, haystack.output_messages),
        Source("haystack.agent.step.llm.output", haystack.output_messages),
        Source("output.value", openinference.plain_output),
    ),
    "system": (
        Source("gen_ai.system_instructions", gen_ai.system_messages),
        Source(_DETAILS, gen_ai_events.details_system),
        *_each(claude_code.SYSTEM_LOGS, claude_code.system_log, needs=_CC),
        Source("user_system_prompt", gen_ai.system_messages, needs=_CC),
    ),
}

_EMBEDDED: Rows = {
    "input": (
        Source("embedding.embeddings.", openinference.embedded_texts),
        *_each(("ai.values", "ai.value"), vercel.embedded_texts),
        Source("gen_ai.input.messages", gen_ai.input_messages),
        Source(_DETAILS, gen_ai_events.details_input),
        Source("gen_ai.prompt.", traceloop.input_messages),
        Source(_LF_INPUT, langfuse.input_messages),
        Source("mlflow.spanInputs", mlflow.input_messages),
        Source("gen_ai.prompt", gen_ai_events.all_prompt),
        Source("lmnr.span.input", others.request),
        Source("genkit:input", others.request),
        Source(_HS_IN, haystack.embedded_texts),
    ),
}

_CALL: Rows = {
    "operation": texts_of("gen_ai.operation.name", "ai.operationId", "llm.request.type"),
    "provider": (
        *provider_named("gen_ai.provider.name", "llm.provider", "llm.system", "gen_ai.system"),
        Source("mlflow.llm.provider", mlflow.provider),
        *provider_named("ai.model.provider"),
    ),
    "request_model": (
        *texts_of("gen_ai.request.model", "llm.request.model_name", "llm.input_model_name"),
        within(_INVOCATION, "model"),
        *texts_of("llm.model_name", "embedding.model_name", "reranker.model_name"),
        *texts_of("decision.request.model_name", "langfuse.observation.model.name"),
        *mlflow.texts_of("mlflow.llm.model"),
        *texts_of("ai.model.id"),
        *texts_of("model", needs=_CC),
        *texts_of("litellm.provider.model"),
        within(_ADK_REQUEST, "model"),
        within("request_data", "model", needs="logfire"),
        *texts_of("model", needs="codex"),
    ),
    "response_model": (
        *texts_of("gen_ai.response.model", "llm.response.model_name", "llm.output_model_name"),
        *texts_of("decision.response.model_name"),
        Source("llm.model_name", openinference.served_model),
        *texts_of("ai.response.model"),
        Source(_HS_OUT, haystack.meta_text("model"), label=f"{_HS_OUT}{{replies[0].meta.model}}"),
    ),
    "stream": (
        *flags_of("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming"),
        Source(_INVOCATION, openinference.streamed, label=f"{_INVOCATION}{{stream}}"),
        Source("ai.operationId", vercel.streamed),
        *flags_of("langsmith.request.streaming", "litellm.request.streaming"),
        Source("request_data", openinference.streamed, needs="logfire"),
        *_each(gen_ai_events.CHUNK_EVIDENCE, others.said_so),
    ),
    "tools": (
        Source("gen_ai.tool.definitions", gen_ai.tools),
        Source(_DETAILS, gen_ai_events.details_tools),
        Source("llm.tools.", openinference.tools),
        Source("ai.prompt.tools", gen_ai.tools),
        Source("mlflow.chat.tools", mlflow.tools),
        Source(_FUNCTIONS, traceloop.functions),
        Source("gen_ai.tool.", traceloop.functions),
        Source("model_request_parameters", pydantic_ai.function_tools),
        Source("request_data", pydantic_ai.tools_of_request, needs="logfire"),
        Source(_ADK_REQUEST, google_adk.tools),
        Source("gen_ai.agent.tools", gen_ai.tools),
        Source("spring.ai.model.request.tool.names", gen_ai.tools),
        Source("spring.ai.chat.client.tool.names", gen_ai.tools),
        Source("tools", claude_code.tools, needs=_CC),
        Source(_INVOCATION, pydantic_ai.tools_of_request),
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
        Source(_ADK_RESPONSE, google_adk.finish_reason),
        Source(_HS_OUT, haystack.meta_text("finish_reason", "stop_reason")),
        Source(f"{_LF_METADATA}.finish_reason", gen_ai.finish_reason),
    ),
    "response_id": (
        *texts_of("gen_ai.response.id", "ai.response.id"),
        *texts_of("request_id", needs=_CC),
        *texts_of("anthropic.request.id"),
    ),
    "time_to_first_token": (
        Source("gen_ai.response.time_to_first_chunk", gen_ai.milliseconds),
        Source("gen_ai.client.operation.time_to_first_chunk", gen_ai.milliseconds),
        *reals_of("ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"),
        *reals_of("gen_ai.server.time_to_first_token"),
        Source("langfuse.observation.completion_start_time", langfuse.first_token_ms),
        *reals_of("ttft_ms", needs=_CC),
        *reals_of("ttft_ms", needs="codex"),
        *_each(gen_ai_events.CHUNK_EVIDENCE, gen_ai_events.first_chunk_ms),
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

_TOKENS: Rows = {
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
        Source(_HS_OUT, haystack.usage("prompt_tokens", "input_tokens")),
        within(_ADK_RESPONSE, "usage_metadata", "prompt_token_count", read=count),
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
        Source(_HS_OUT, haystack.usage("completion_tokens", "output_tokens")),
        Source(_ADK_RESPONSE, google_adk.output_tokens),
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
        Source(_HS_OUT, haystack.usage_detail("completion_tokens_details", "reasoning_tokens")),
        within(_ADK_RESPONSE, "usage_metadata", "thoughts_token_count", read=count),
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
        Source(_HS_OUT, haystack.usage_detail("prompt_tokens_details", "cached_tokens")),
        Source(_HS_OUT, haystack.usage("cache_read_input_tokens")),
        within(_ADK_RESPONSE, "usage_metadata", "cached_content_token_count", read=count),
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
        Source(_HS_OUT, haystack.usage("cache_creation_input_tokens")),
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
    "tokens.audio_input": (
        *counts_of("gen_ai.usage.audio.input_tokens", "llm.token_count.prompt_details.audio"),
        *counts_of("gen_ai.usage.details.input_audio_tokens"),
    ),
    "tokens.audio_output": (
        *counts_of("gen_ai.usage.audio.output_tokens", "llm.token_count.completion_details.audio"),
        *counts_of("gen_ai.usage.details.output_audio_tokens"),
    ),
}

_TOOL: Rows = {
    "name": (
        *texts_of("gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
        *texts_of("spring.ai.tool.definition.name", "haystack.tool.name"),
        *texts_of("tool_name", needs=_CC),
        *texts_of("function_name", needs="gemini_cli"),
        *texts_of("lk.function_tool.name", "traceloop.entity.name"),
        Source("span execute_tool", others.name_after_operation),
    ),
    "call_id": (
        *texts_of("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool.id", "tool_call.id"),
        *texts_of("ai.toolCall.id", "spring.ai.tool.call.id", "haystack.tool.call.id"),
        *texts_of("tool_use_id", needs=_CC),
        *texts_of("call_id", needs="codex"),
        *texts_of("lk.function_tool.id"),
    ),
    "type": texts_of("gen_ai.tool.type", "spring.ai.tool.type"),
    "description": (
        *texts_of("gen_ai.tool.description", "tool.description"),
        *texts_of("spring.ai.tool.definition.description", "haystack.tool.description"),
    ),
    "arguments": (
        *values_of("gen_ai.tool.call.arguments", "ai.toolCall.args"),
        *values_of("spring.ai.tool.call.arguments"),
        Source("gcp.vertex.agent.tool_call_args", google_adk.content),
        *values_of("tool_arguments", needs="pydantic_ai"),
        Source("event gen_ai.tool.message", strands.tool_arguments),
        *_each(("tool_input", "tool_parameters"), claude_code.tool_arguments, needs=_CC),
        *_each(("full_command", "file_path"), claude_code.tool_detail, needs=_CC),
        *values_of("function_args", needs="gemini_cli"),
        *values_of("arguments", needs="codex"),
        *values_of("input.value", "tool.parameters", "haystack.agent.step.tool.input"),
        *values_of("mcp.request.argument", "traceloop.entity.input", _LF_INPUT),
        Source("mlflow.spanInputs", mlflow.decode),
        *values_of("lmnr.span.input", "lk.function_tool.arguments", "genkit:input"),
        *values_of("gen_ai.prompt", _HS_IN),
    ),
    "result": (
        *values_of("gen_ai.tool.call.result", "ai.toolCall.result"),
        *values_of("spring.ai.tool.call.result"),
        Source("gcp.vertex.agent.tool_response", google_adk.content),
        *values_of("tool_response", needs="pydantic_ai"),
        Source(_CHOICE, strands.tool_result),
        Source("event tool.output", claude_code.tool_output, needs=_CC),
        *values_of("new_context", needs=_CC),
        *values_of("output", needs="codex"),
        *values_of("output.value", "haystack.agent.step.tool.output"),
        *values_of("mcp.response.value", "traceloop.entity.output", _LF_OUTPUT),
        Source("mlflow.spanOutputs", mlflow.decode),
        *values_of("lmnr.span.output", "lk.function_tool.output", "genkit:output"),
        *values_of("gen_ai.completion", _HS_OUT),
    ),
}

_RETRIEVAL: Rows = {
    "query": (
        *texts_of("gen_ai.retrieval.query.text", "gen_ai.memory.query.text", "reranker.query"),
        *texts_of("input.value", "db.vector.query.content"),
        Source(_HS_IN, haystack.query),
        *texts_of("genkit:input"),
    ),
    "documents": (
        Source("gen_ai.retrieval.documents", gen_ai.documents),
        Source("gen_ai.memory.records", gen_ai.documents),
        *_each(
            ("retrieval.documents.", "reranker.output_documents.", "reranker.input_documents."),
            openinference.documents,
        ),
        Source("db.vector.query.response.documents", others.vector_documents),
        Source("event db.query.result", traceloop.vector_results),
        Source("event db.search.result", traceloop.vector_results),
        Source(_HS_OUT, haystack.documents),
    ),
}

# What any step took and gave; a span's messages count too (`normalise`).
_CONTENT: Rows = {
    "input": (
        *sent_of("input.value", _LF_INPUT, "traceloop.entity.input"),
        Source("mlflow.spanInputs", mlflow.decode),
        *sent_of(_HS_IN, "haystack.pipeline.input_data", "haystack.agent.input"),
    ),
    "output": (
        *sent_of("output.value", _LF_OUTPUT, "traceloop.entity.output"),
        Source("mlflow.spanOutputs", mlflow.decode),
        *sent_of(_HS_OUT, "haystack.pipeline.output_data", "haystack.agent.output"),
    ),
}
_LESSER_CONTENT: Rows = {
    "input": (
        *sent_of("user_prompt", needs=_CC),
        *sent_of("langfuse.trace.input", "lmnr.span.input", "genkit:input"),
        *sent_of("gen_ai.task.input", "gen_ai.guardrail.input"),
    ),
    "output": (
        *sent_of("final_result"),
        *sent_of("langfuse.trace.output", "lmnr.span.output", "genkit:output"),
        *sent_of("gen_ai.task.output", "gen_ai.guardrail.output"),
    ),
}

_FAILURE: Rows = {
    "failed": (
        Source("langfuse.observation.level", langfuse.level_is_error),
        Source("success", claude_code.failed, needs=_CC),
        Source("gen_ai.tool.status", strands.tool_failed),
        *_each(
            ("error.type", "litellm.provider.error.code", "haystack.tool.error"), others.said_so
        ),
    ),
    "type": (
        *texts_of("error.type", "litellm.provider.error.code", "gen_ai.guardrail.error.type"),
    ),
    "message": (
        *texts_of("langfuse.observation.status_message"),
        *texts_of("error", needs=_CC),
        *texts_of("error.message", "haystack.tool.error", "litellm.provider.error.message"),
        *texts_of("gen_ai.guardrail.error.message"),
    ),
    "http_status": (
        *counts_of("http.response.status_code", "http.status_code"),
        *counts_of("status_code", needs=_CC),
        *counts_of("litellm.provider.error.code", "rpc.response.status_code"),
    ),
}

GROUPS: Mapping[str, Rows] = {
    "role": _ROLE,
    "every": _EVERY,
    "merged": _MERGED,
    "joined": _JOINED,
    "messages": _MESSAGES,
    "embedded": _EMBEDDED,
    "call": _CALL,
    "tokens": _TOKENS,
    "tool": _TOOL,
    "retrieval": _RETRIEVAL,
    "content": _CONTENT,
    "lesser_content": _LESSER_CONTENT,
    "failure": _FAILURE,
}

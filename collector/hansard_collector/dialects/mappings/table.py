"""THE TABLE: where each field of the normal form stands, in order (genai-dialects.md §20).

For a field, the first source that is present and usable is taken; the groups `merged` and `joined`
take all of them. Evidence is an attribute key, a prefix of flat keys (ends in a dot), an event
(`event …`, of the span or as a log record) or the beginning of the span's name (`span …`). Rows of
model calls stand in `table_of_calls`, their tokens in `table_of_tokens`, rows of other steps in
`table_of_steps`.
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
    llamaindex,
    mlflow,
    openinference,
    openllmetry,
    others,
    pydantic_ai,
    strands,
    vercel_ai_sdk,
)
from hansard_collector.dialects import hansard as own
from hansard_collector.dialects.content import failure, prompts, wire
from hansard_collector.dialects.engine.sources import (
    Rows,
    Source,
    constant,
    counts_of,
    each,
    flags_of,
    lists_of,
    roles_of,
    sent_of,
    texts_of,
    values_of,
    within,
)
from hansard_collector.dialects.engine.values import count, opened
from hansard_collector.dialects.mappings import calls

# The table, for all other steps: tools, retrieval, generic content, failure. See `table`.

_CC = claude_code.NAME
_CHOICE = f"event {gen_ai_events.CHOICE}"
_LF_INPUT = "langfuse.observation.input"
_LF_OUTPUT = "langfuse.observation.output"
_HS_IN = "haystack.component.input"
_HS_OUT = "haystack.component.output"

TOOL: Rows = {
    "name": (
        *texts_of("gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
        *texts_of("spring.ai.tool.definition.name", "haystack.tool.name"),
        *texts_of("tool_name", needs=_CC),
        *texts_of("tool_name", needs="codex"),
        *texts_of("name", needs="logfire_agents"),
        *texts_of("function_name", needs="gemini_cli"),
        *texts_of("lk.function_tool.name", "traceloop.entity.name"),
        *texts_of("operation.name", needs="agentops"),
        Source(llamaindex.STEP, llamaindex.tool_name),
        Source("span handoff to ", openinference.handoff_tool, needs="openinference"),
        *each(others.TOOL_SPANS, others.name_after_operation),
    ),
    "call_id": (
        *texts_of("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool.id", "tool_call.id"),
        *texts_of("ai.toolCall.id", "spring.ai.tool.call.id", "haystack.tool.call.id"),
        *texts_of("tool_use_id", needs=_CC),
        *texts_of("call_id", needs="codex"),
        *texts_of("lk.function_tool.id", "tool.call.id"),
        Source(llamaindex.STEP, llamaindex.tool_call_id),
        *each(others.TOOL_MESSAGES, others.call_id_of_message),
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
        *each(("tool_input", "tool_parameters"), claude_code.tool_arguments, needs=_CC),
        *each(claude_code.TOOL_LOGS, claude_code.logged_arguments, needs=_CC),
        *each(claude_code.HOOK_LOGS, claude_code.hooked_arguments),
        *each(("full_command", "file_path"), claude_code.tool_detail, needs=_CC),
        *values_of("function_args", needs="gemini_cli"),
        Source("gen_ai.input.messages", others.gemini_tool_arguments, needs="gemini_cli"),
        *values_of("arguments", needs="codex"),
        others.logged(others.CODEX_TOOL_END, "arguments", read=opened, needs="codex"),
        *values_of("input", needs="logfire_agents"),
        *values_of("input", needs="voltagent"),  # its `tool.parameters` is the schema
        *values_of("input.value", "tool.parameters", "haystack.agent.step.tool.input"),
        *values_of("mcp.request.argument", "traceloop.entity.input", _LF_INPUT),
        Source("mlflow.spanInputs", mlflow.decode),
        *values_of("lmnr.span.input", "genkit:input"),
        *values_of("lk.function_tool.arguments", "lk.pii.function_tool.arguments"),
        *values_of("gen_ai.tool.input", *others.AGENTOPS_INPUTS, *others.MASTRA_INPUTS),
        Source(llamaindex.STEP, llamaindex.tool_arguments),
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
        Source("gen_ai.output.messages", others.gemini_tool_result, needs="gemini_cli"),
        others.logged(others.CODEX_TOOL_END, "output", read=opened, needs="codex"),
        *values_of("output", needs="codex"),
        *values_of("output", needs="logfire_agents"),
        *values_of("output", needs="voltagent"),
        *values_of("output.value", "haystack.agent.step.tool.output"),
        *values_of("mcp.response.value", "traceloop.entity.output", _LF_OUTPUT),
        Source("mlflow.spanOutputs", mlflow.decode),
        *values_of("anthropic.tool_result.content"),
        *values_of("lmnr.span.output", "genkit:output"),
        *values_of("lk.function_tool.output", "lk.pii.function_tool.output"),
        *values_of("gen_ai.tool.output", *others.AGENTOPS_OUTPUTS, *others.MASTRA_OUTPUTS),
        *values_of("gen_ai.completion", _HS_OUT),
        *each(claude_code.HOOK_LOGS, claude_code.hooked_result),
    ),
}

RETRIEVAL: Rows = {
    "query": (
        *texts_of("gen_ai.retrieval.query.text", "gen_ai.memory.query.text", "reranker.query"),
        Source("input.value", openinference.query),
        *texts_of("db.vector.query.content"),
        Source(llamaindex.RETRIEVING, llamaindex.query),
        Source(_HS_IN, haystack.query),
        *texts_of("genkit:input"),
        *each((_LF_INPUT, "mlflow.spanInputs", "gen_ai.prompt"), openinference.query),
    ),
    "documents": (
        Source("gen_ai.retrieval.documents", gen_ai.documents),
        Source("gen_ai.memory.records", gen_ai.documents),
        *each(
            ("retrieval.documents.", "reranker.output_documents.", "reranker.input_documents."),
            openinference.documents,
        ),
        Source("db.vector.query.response.documents", others.vector_documents),
        Source(llamaindex.RETRIEVED, llamaindex.documents),
        Source("event db.query.result", openllmetry.vector_results),
        Source("event db.search.result", openllmetry.vector_results),
        Source(_HS_OUT, haystack.documents),
        *each((_LF_OUTPUT, "mlflow.spanOutputs", "gen_ai.completion"), gen_ai.listed_documents),
    ),
}

# What any step took and gave; a span's messages count too (`normalise`).
CONTENT: Rows = {
    "input": (
        *sent_of("hansard.input"),
        *sent_of("input.value", _LF_INPUT, "traceloop.entity.input"),
        Source("mlflow.spanInputs", mlflow.decode),
        *sent_of(_HS_IN, "haystack.pipeline.input_data", "haystack.agent.input"),
        *sent_of("gen_ai.prompt"),  # LangSmith: of any run
        *sent_of(*others.AGENTOPS_INPUTS, *others.MASTRA_INPUTS),
        *sent_of("input", needs="mastra"),
        *sent_of("input", needs="voltagent"),
    ),
    "output": (
        *sent_of("hansard.output"),
        *sent_of("output.value", _LF_OUTPUT, "traceloop.entity.output"),
        Source("mlflow.spanOutputs", mlflow.decode),
        *sent_of(_HS_OUT, "haystack.pipeline.output_data", "haystack.agent.output"),
        *sent_of("gen_ai.completion"),
        *sent_of(*others.AGENTOPS_OUTPUTS, *others.MASTRA_OUTPUTS),
        *sent_of("output", needs="mastra"),
        *sent_of("output", needs="voltagent"),
    ),
}
LESSER_CONTENT: Rows = {
    "input": (
        *sent_of("user_prompt", needs=_CC),
        *sent_of("langfuse.trace.input", "lmnr.span.input", "genkit:input"),
        *sent_of("gen_ai.task.input", "gen_ai.guardrail.input"),
        *sent_of("hansard.run.goal"),
    ),
    "output": (
        *sent_of("final_result"),
        *sent_of("langfuse.trace.output", "lmnr.span.output", "genkit:output"),
        *sent_of("gen_ai.task.output", "gen_ai.guardrail.output"),
    ),
}

FAILURE: Rows = {
    "failed": (
        Source("langfuse.observation.level", langfuse.level_is_error),
        Source("success", claude_code.failed, needs=_CC),
        Source("gen_ai.tool.status", strands.tool_failed),
        *each(("error.type", "litellm.provider.error.code", "haystack.tool.error"), others.said_so),
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


# The table, for what model calls count: tokens of each kind. See `table`.


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
        Source(_LF_USAGE, langfuse.input_tokens, label=f"{_LF_USAGE}{{input}}"),
        Source(
            "input_tokens",
            claude_code.input_tokens,
            label="input_tokens + cache_read_tokens + cache_creation_tokens",
            needs=_CC,
        ),
        *counts_of("input_token_count", needs="codex"),
        *counts_of("decision.token_count.input", "llm.usage.prompt_tokens"),
        *counts_of("usage.prompt_tokens", needs="voltagent"),
        *wire.INPUT_TOKENS,
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
        Source(_LF_USAGE, langfuse.output_tokens, label=f"{_LF_USAGE}{{output}}"),
        *counts_of("output_tokens", needs=_CC),
        *counts_of("output_token_count", needs="codex"),
        *counts_of("decision.token_count.output", "llm.usage.completion_tokens"),
        *counts_of("usage.completion_tokens", needs="voltagent"),
        *wire.OUTPUT_TOKENS,
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
        Source(_LF_USAGE, langfuse.reasoning, label=f"{_LF_USAGE}{{output_reasoning_tokens}}"),
        within("gen_ai.usage.output_token_details", "reasoning", read=count),
        *counts_of("codex.usage.reasoning_output_tokens", "openai.reasoning_tokens"),
        *counts_of("reasoning_token_count", needs="codex"),
        *counts_of("gen_ai.usage.output_tokens.reasoning"),  # traceAI
        *counts_of("usage.reasoning_tokens", needs="voltagent"),
        *wire.REASONING_TOKENS,
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
        Source(
            _VA_PROVIDER, vercel_ai_sdk.provider_count("cacheReadInputTokens", "cachedPromptTokens")
        ),
        mlflow.number(_ML_USAGE, "cache_read_input_tokens"),
        Source(_LF_USAGE, langfuse.cache_read, label=f"{_LF_USAGE}{{input_cached_tokens}}"),
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
        *wire.CACHE_READ_TOKENS,
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
        Source(
            _VA_PROVIDER,
            vercel_ai_sdk.provider_count("cacheCreationInputTokens", "cacheWriteTokens"),
        ),
        mlflow.number(_ML_USAGE, "cache_creation_input_tokens"),
        Source(_LF_USAGE, langfuse.cache_write, label=f"{_LF_USAGE}{{input_cache_creation}}"),
        within("gen_ai.usage.input_token_details", "cache_creation", read=count),
        *counts_of("cache_creation_tokens", needs=_CC),
        *counts_of("cache_write_token_count", needs="codex"),
        *counts_of("openai.cache_write_tokens"),
        *counts_of("metadata.usage.cached_creation_tokens"),
        *wire.CACHE_WRITE_TOKENS,
        *llamaindex.counted("cache write"),
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


_INVOCATION = "llm.invocation_parameters"
_LF_METADATA = "langfuse.observation.metadata"
_TL = "traceloop.association.properties"
_VA_META = "ai.telemetry.metadata"

_ROLE: Rows = {
    "role": (
        *(Source(evidence, constant(role)) for evidence, role in own.SPAN_ROLES.items()),
        *roles_of("hansard.kind", own.ROLES),
        *roles_of("type", {"guardrails/guard/step/call": "llm"}),  # Guardrails' call of a model
        Source("openinference.span.kind", openinference.prepared),
        *roles_of("openinference.span.kind", openinference.ROLES),
        *roles_of("gen_ai.span.kind", openinference.ROLES),  # traceAI, in OpenInference's words
        *roles_of("fi.span.kind", openinference.ROLES),
        *roles_of("langfuse.observation.type", langfuse.ROLES),
        Source("mlflow.spanType", mlflow.role),
        *roles_of("langsmith.span.kind", others.LANGSMITH_ROLES),
        Source("span.type", claude_code.role, needs=_CC),
        Source("span.type", others.voltagent_role, needs="voltagent"),
        Source("entity.type", others.voltagent_entity, needs="voltagent"),
        Source("span claude_code.", claude_code.role_by_name),
        Source("spring.ai.kind", others.spring_role),
        Source("ai.operationId", vercel_ai_sdk.role),
        *roles_of("lmnr.span.type", others.LAMINAR_ROLES),
        Source("genkit:metadata:subtype", others.genkit_role),
        Source("genkit:type", others.genkit_role),
        Source("span raw_gen_ai_request", constant("llm"), needs="litellm"),
        *roles_of("gen_ai.operation.name", {"execute_tool": "tool"}),
        Source("mcp.method.name", constant("mcp")),
        *each(("http.route", "url.path"), others.counts_only),
        Source("url", others.counts_only, needs="logfire"),
        *roles_of("gen_ai.operation.name", gen_ai.ROLES),
        *roles_of("traceloop.span.kind", openllmetry.ROLES),
        *roles_of("agentops.span.kind", others.AGENTOPS_ROLES),
        *roles_of("mastra.span.type", others.MASTRA_ROLES),
        *roles_of("llm.request.type", openllmetry.REQUEST_TYPES),
        *roles_of("gen_ai.request.type", openllmetry.REQUEST_TYPES),
        Source("haystack.component.type", haystack.role_of_component),
        Source("haystack.agent.step.llm.output", haystack.role_of_step),
        Source("span haystack.", haystack.role),
        *(
            Source(evidence, google_adk.role, needs="google_adk")
            for evidence in google_adk.SPAN_ROLES
        ),
        *(
            Source(evidence, constant(role), needs=dialect)
            for dialect, names in others.SPAN_ROLES.items()
            for evidence, role in names.items()
        ),
        Source("haystack.tool.name", constant("tool")),
        *(
            Source(evidence, constant(role), needs="llamaindex")
            for evidence, role in llamaindex.SPAN_ROLES.items()
        ),
        Source("codex.tool.phase", others.codex_role),
        Source("lk.function_tool.name", constant("tool")),
        Source("embedding.model_name", constant("embedding")),
        Source("reranker.model_name", constant("rerank")),
        Source("gen_ai.operation.name", constant("other")),  # custom operations are allowed
        Source("request_data", pydantic_ai.role_of_request, needs="logfire"),
        Source("span anthropic.", others.sdk_request, needs="anthropic_sdk"),
        *each(
            (
                "gen_ai.request.model", "gen_ai.response.model", "llm.request.model_name",
                "llm.response.model_name", "llm.model_name", "langfuse.observation.model.name",
                "mlflow.llm.model", "ai.model.id", "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens",
                "llm.messages",
            ),
            others.names_model,
        ),
    ),
}  # fmt: skip

_EVERY: Rows = {
    "name": (
        *texts_of("logfire.msg"),
        Source("ai.telemetry.functionId", vercel_ai_sdk.display_name),
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
        *texts_of("mastra.metadata.threadId", "mastra.metadata.sessionId"),
        *texts_of("threadId", "sessionId", needs="mastra"),
        within("metadata", "session_id", needs="openinference"),
        within("metadata", "thread_id", needs="openinference"),
        within("metadata", "sessionId", needs="openinference"),
        within(_INVOCATION, "metadata", "session_id"),  # LiteLLM's
        Source(prompts.LOGS, prompts.session_logged),
    ),
    "prompt_id": (
        *each((*prompts.ROOT_KEYS, *prompts.PROMPT_KEYS), prompts.named),
        Source("gen_ai.prompt.name", prompts.named_by_gemini),
        *each(prompts.TURN_KEYS, prompts.named),
        *each(tuple(prompts.ENDS), prompts.named_after_prefix),
        *each(
            (
                f"{_TL}.",
                f"{_VA_META}.",
                "langsmith.metadata.",
                "lmnr.association.properties.",
                "metadata.",
                "litellm.metadata.",
                "hansard.run.metadata.",
                "langfuse.trace.metadata.",
                f"{_LF_METADATA}.",
            ),
            prompts.named_in_metadata,
        ),
        Source(prompts.LOGS, prompts.logged),
    ),
    "user_id": (
        *texts_of("user.id", "enduser.id", "langfuse.user.id"),
        *texts_of(f"{_TL}.user_id", "gen_ai.user", "llm.user", f"{_VA_META}.userId"),
        *mlflow.texts_of("mlflow.trace.user"),
        *texts_of(
            "langsmith.metadata.user_id",
            "litellm.end_user.id",
            "metadata.user_api_key_end_user_id",
            "lmnr.association.properties.user_id",
        ),
        *texts_of("mastra.metadata.userId"),
        *texts_of("userId", needs="mastra"),
        within("metadata", "user_id", needs="openinference"),
        *texts_of("user.account_uuid", "user.email"),
        *texts_of("gen_ai.request.user"),  # OpenLIT: OpenAI's parameter
        within(_INVOCATION, "user"),
    ),
    "agent_name": (
        *texts_of("gen_ai.agent.name", "agent.name", "graph.node.name"),
        *texts_of("agent_name", needs="pydantic_ai"),
        *texts_of("agent_name", needs="logfire"),
        Source("name", others.entity_of_agent, needs="logfire_agents"),
        Source("span agent_run", google_adk.agent_named, needs="google_adk"),
        *texts_of("ai.telemetry.functionId"),
        Source("traceloop.entity.name", others.entity_of_agent),
        *texts_of("subagent_type", needs=_CC),
        Source("span.type", claude_code.agent_named, needs=_CC),
        Source("span session_task.turn", constant("codex"), needs="codex"),
        *texts_of("lk.agent_name", "haystack.agent.name"),
        Source("entity.name", others.entity_of_agent, needs="voltagent"),
        Source("operation.name", others.entity_of_agent, needs="agentops"),
        *texts_of("gen_ai.agent.id", needs="mastra"),
        Source("graph.node.id", others.entity_of_agent),  # CrewAI's has no name beside
        within("metadata", "lc_agent_name", needs="openinference"),  # LangChain's create_agent
        *texts_of("langsmith.metadata.lc_agent_name", f"{_TL}.lc_agent_name"),
        Source("smolagents.max_steps", openinference.smolagents_name),
        Source("span BaseWorkflowAgent.", openinference.llamaindex_agent, needs="openinference"),
    ),
    "agent_id": (
        *texts_of("gen_ai.agent.id", "graph.node.id"),
        *texts_of("agent_id", needs=_CC),
        *texts_of("executor.id"),
    ),
    "agent_description": texts_of("gen_ai.agent.description"),
    "domain": texts_of("hansard.run.domain"),
    "goal": texts_of("hansard.run.goal"),
    "asked": (
        Source("hansard.input", own.words),
        others.logged("codex.user_prompt", "prompt", needs="codex"),
    ),
    "answered": (Source("hansard.output", own.words),),
    "cancelled": (
        *flags_of("hansard.cancelled"),
        Source("event exception", failure.was_left),
    ),
    "workflow_name": (
        *texts_of("gen_ai.workflow.name", "traceloop.workflow.name", "workflow.name"),
        *texts_of("langfuse.trace.name", "langsmith.trace.name"),
        *mlflow.texts_of("mlflow.traceName"),
    ),
    "tags": (
        *lists_of("hansard.run.tags"),
        *lists_of("tag.tags", "langfuse.trace.tags", f"{_VA_META}.tags", "langsmith.span.tags"),
        *lists_of("logfire.tags", "mastra.tags", "agentops.tags"),
    ),
    "duplicate": (
        *flags_of("hansard.duplicate"),
        Source("span raw_gen_ai_request", others.said_so, needs="litellm"),
        Source("logfire.span_type", pydantic_ai.repeats_call),
    ),
    "sum_is_whole": (Source("entity.type", others.sums_all_steps, needs="voltagent"),),
    "follows_agents": (
        Source("openinference.span.kind", openinference.always_ends_well, needs="openinference"),
    ),
    "follows_calls": (Source("span.type", claude_code.leaves_status, needs=_CC),),
    "pending_of": (Source("logfire.span_type", pydantic_ai.pending_of),),
}

# All sources together; the first that names something wins it.
_MERGED: Rows = {
    "metadata": (
        Source("hansard.run.metadata.", others.family),
        Source("metadata", openinference.metadata, needs="openinference"),
        Source(f"{_LF_METADATA}.", langfuse.metadata),
        Source(_LF_METADATA, openinference.metadata),
        Source("langfuse.trace.metadata.", langfuse.metadata),
        Source("langfuse.trace.metadata", openinference.metadata),
        *each((f"{_VA_META}.", f"{_TL}.", "langsmith.metadata."), others.family),
        *each(("lmnr.association.properties.", "metadata.", "litellm.metadata."), others.family),
        Source("ai.settings.context.", vercel_ai_sdk.context),
    ),
    "prompt": (
        *each(("gen_ai.prompt.name", "gen_ai.prompt.version"), gen_ai.prompt_field),
        Source("gen_ai.prompt.variable.", gen_ai.prompt_variables),
        *each(openinference.PROMPT_KEYS, openinference.prompt_field),
        *each(langfuse.PROMPT_KEYS, langfuse.prompt_field),
        Source("traceloop.prompt.", openllmetry.prompt_fields),
        Source(f"{_VA_META}.langfusePrompt", vercel_ai_sdk.langfuse_prompt),
    ),
    "parameters": (
        *each(tuple(gen_ai.PARAMETERS), gen_ai.parameter),
        Source(_INVOCATION, openinference.parameters),
        Source("embedding.invocation_parameters", openinference.parameters),
        Source("gen_ai.request.parameters", openinference.parameters, needs="traceai"),
        Source("langfuse.observation.model.parameters", langfuse.parameters),
        Source("ai.settings.", vercel_ai_sdk.settings),
        *each(openllmetry.PARAMETER_KEYS, openllmetry.parameter),
        *each(claude_code.PARAMETERS, claude_code.parameter, needs=_CC),
        Source("codex.request.reasoning_effort", others.codex_effort),
    ),
    "cost.lines": (
        Source("llm.cost.", openinference.cost_lines),
        *each(("litellm.cost.", "gen_ai.cost."), others.costs),
        Source("langfuse.observation.cost_details", langfuse.cost_lines),
        Source("mlflow.llm.cost", mlflow.cost_lines),
    ),
}

# All sources, one after the other.
_JOINED: Rows = {
    "evaluations": (
        Source(gen_ai.RESULT, gen_ai.evaluations),
        *each(
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

GROUPS: Mapping[str, Rows] = {
    "role": _ROLE,
    "every": _EVERY,
    "merged": _MERGED,
    "joined": _JOINED,
    "messages": calls.MESSAGES,
    "embedded": calls.EMBEDDED,
    "call": calls.CALL,
    "tokens": TOKENS,
    "sums": SUMS,
    "tool": TOOL,
    "retrieval": RETRIEVAL,
    "content": CONTENT,
    "lesser_content": LESSER_CONTENT,
    "failure": FAILURE,
}

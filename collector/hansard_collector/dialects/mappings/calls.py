"""The table, for model calls: messages, models, tokens, cost. See `table`."""

from __future__ import annotations

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
    vercel_ai_sdk,
)
from hansard_collector.dialects.content import chat, tool_lists, wire
from hansard_collector.dialects.engine.sources import (
    FieldSource,
    Rows,
    constant,
    each,
    flags_of,
    provider_named,
    reals_of,
    texts_of,
    within,
)
from hansard_collector.dialects.engine.values import flag, real

_CC = claude_code.NAME
_ADK_REQUEST = "gcp.vertex.agent.llm_request"
_ADK_RESPONSE = "gcp.vertex.agent.llm_response"
_DETAILS = f"event {gen_ai_events.DETAILS}"
_CHOICE = f"event {gen_ai_events.CHOICE}"
_INVOCATION = "llm.invocation_parameters"
_LF_INPUT = "langfuse.observation.input"
_LF_METADATA = "langfuse.observation.metadata"
_LF_OUTPUT = "langfuse.observation.output"
_HS_IN = "haystack.component.input"
_HS_OUT = "haystack.component.output"


def _tools_in(key: str, name: str, needs: str = "") -> FieldSource:
    """The tools that a recorded request lists under a name."""
    return within(
        key, name, read=lambda listed: tool_lists.tools_of(listed) or None, needs=needs, label=key
    )


MESSAGES: Rows = {
    "input": (
        FieldSource("gen_ai.input.messages", gen_ai.input_messages),
        FieldSource("pydantic_ai.all_messages", pydantic_ai.history),
        FieldSource("llm.input_messages.", openinference.input_messages),
        FieldSource("gen_ai.input.messages.", openinference.input_messages),  # traceAI
        FieldSource(_DETAILS, gen_ai_events.details_input),
        *each(gen_ai_events.INPUT_EVIDENCE, gen_ai_events.input_messages),
        FieldSource("ai.prompt.messages", gen_ai.input_messages),
        FieldSource("ai.prompt", vercel_ai_sdk.prompt),
        FieldSource("gen_ai.prompt.", openllmetry.input_messages),
        *each(("events", "all_messages_events"), pydantic_ai.event_input, needs="pydantic_ai"),
        FieldSource("events", pydantic_ai.event_input, needs="logfire"),
        FieldSource("request_data", pydantic_ai.request, needs="logfire"),
        FieldSource(_ADK_REQUEST, google_adk.input_messages),
        FieldSource("event gen_ai.content.prompt", gen_ai_events.prompt_content),
        FieldSource("gen_ai.prompt", wire.input_messages),
        FieldSource("new_context", wire.input_messages, needs=_CC),
        *each(claude_code.PROMPT_LOGS, claude_code.prompt_log, needs=_CC),
        FieldSource(_LF_INPUT, langfuse.input_messages),
        FieldSource("mlflow.spanInputs", mlflow.input_messages),
        FieldSource("lmnr.span.input", wire.input_messages),
        FieldSource("llm.prompts.", openinference.prompts),
        FieldSource("llm.prompts", openinference.listed_prompts),
        FieldSource("llm.messages", wire.input_messages),
        *each(("lk.chat_ctx", "lk.pii.chat_ctx"), others.livekit_context),
        *each(others.LIVEKIT_REQUESTS, wire.input_messages),
        FieldSource("genkit:input", wire.input_messages),
        *each((llamaindex.CHATTED, llamaindex.PROMPTED), llamaindex.input_messages),
        FieldSource(_HS_IN, haystack.input_messages),
        FieldSource("haystack.agent.step.llm.input", haystack.input_messages),
    ),
    "output": (
        FieldSource("gen_ai.output.messages", gen_ai.output_messages),
        FieldSource("llm.output_messages.", openinference.output_messages),
        FieldSource("gen_ai.output.messages.", openinference.output_messages),
        FieldSource(_DETAILS, gen_ai_events.details_output),
        FieldSource(_CHOICE, gen_ai_events.output_messages),
        *each(vercel_ai_sdk.ANSWER_KEYS, vercel_ai_sdk.response),
        FieldSource("gen_ai.completion.", openllmetry.output_messages),
        *each(("events", "all_messages_events"), pydantic_ai.event_output, needs="pydantic_ai"),
        FieldSource("events", pydantic_ai.event_output, needs="logfire"),
        FieldSource("response_data", pydantic_ai.response, needs="logfire"),
        FieldSource("request_data", pydantic_ai.appended_answer, needs="logfire"),
        FieldSource("response_data.combined_chunk_content", pydantic_ai.combined_chunks),
        FieldSource(_ADK_RESPONSE, google_adk.output_messages),
        FieldSource("event gen_ai.content.completion", gen_ai_events.completion_content),
        FieldSource("gen_ai.completion", wire.output_messages),
        FieldSource("response.model_output", wire.output_messages, needs=_CC),
        *each(claude_code.ANSWER_LOGS, claude_code.output_log, needs=_CC),
        FieldSource(_LF_OUTPUT, wire.output_messages),
        FieldSource("mlflow.spanOutputs", mlflow.output_messages),
        FieldSource("lmnr.span.output", wire.output_messages),
        FieldSource("llm.choices.", openinference.choices),
        FieldSource("llm.completions", wire.output_messages),
        *each(others.LIVEKIT_ANSWERS, others.livekit_answer),
        FieldSource("genkit:output", wire.output_messages),
        *each((llamaindex.ANSWERED, llamaindex.COMPLETED), llamaindex.output_messages),
        FieldSource(_HS_OUT, haystack.output_messages),
        FieldSource("haystack.agent.step.llm.output", haystack.output_messages),
        FieldSource("output.value", openinference.whole_output),
    ),
    "system": (
        FieldSource("gen_ai.system_instructions", gen_ai.system_messages),
        FieldSource(_DETAILS, gen_ai_events.details_system),
        *each(claude_code.SYSTEM_LOGS, claude_code.system_log, needs=_CC),
        FieldSource("user_system_prompt", gen_ai.system_messages, needs=_CC),
        within(_INVOCATION, "system", read=lambda sent: chat.system_messages(sent) or None),
        FieldSource(f"{_LF_METADATA}.instructions", gen_ai.system_messages),
    ),
}

EMBEDDED: Rows = {
    "input": (
        FieldSource("embedding.embeddings.", openinference.embedded_texts),
        *each(("ai.values", "ai.value"), vercel_ai_sdk.embedded_texts),
        FieldSource("gen_ai.input.messages", gen_ai.input_messages),
        FieldSource(_DETAILS, gen_ai_events.details_input),
        FieldSource("gen_ai.prompt.", openllmetry.input_messages),
        FieldSource(_LF_INPUT, langfuse.input_messages),
        FieldSource("mlflow.spanInputs", mlflow.input_messages),
        FieldSource("gen_ai.prompt", wire.input_messages),
        FieldSource("lmnr.span.input", wire.input_messages),
        FieldSource("genkit:input", wire.input_messages),
        FieldSource(llamaindex.EMBEDDED, llamaindex.embedded_texts),
        FieldSource(_HS_IN, haystack.embedded_texts),
        FieldSource("request_data", pydantic_ai.request, needs="logfire"),
        FieldSource("gen_ai.request.embedding_inputs", openinference.listed_prompts),  # Langtrace
    ),
}

CALL: Rows = {
    "operation": texts_of("gen_ai.operation.name", "ai.operationId", "llm.request.type"),
    "provider": (
        *provider_named("gen_ai.provider.name", "llm.provider", "llm.system", "gen_ai.system"),
        FieldSource("mlflow.llm.provider", mlflow.provider),
        *provider_named("ai.model.provider", "langsmith.metadata.ls_provider"),
        *provider_named("langtrace.service.name"),
    ),
    "request_model": (
        within("gen_ai.request.parameters", "model", needs="traceai"),
        *texts_of("gen_ai.request.model", "llm.request.model_name", "llm.input_model_name"),
        within(_INVOCATION, "model"),
        *wire.REQUESTED_MODEL,
        FieldSource("llm.model_name", openinference.requested_model),
        *texts_of("embedding.model_name", "reranker.model_name"),
        *texts_of("decision.request.model_name", "langfuse.observation.model.name"),
        *mlflow.texts_of("mlflow.llm.model"),
        *texts_of("ai.model.id"),
        *texts_of("model", needs=_CC),
        *texts_of("litellm.provider.model"),
        *texts_of("llm.model", "ai.model.name", needs="voltagent"),
        within(_ADK_REQUEST, "model"),
        within("request_data", "model", needs="logfire"),
        *mlflow.REQUESTED_MODEL,
        *texts_of("model", needs="codex"),
        others.logged(others.CODEX_END, "model", "slug", needs="codex"),
        FieldSource("genkit:name", others.genkit_model),
        *texts_of("langsmith.metadata.ls_model_name"),
        *each(others.OPENLIT_CALLS, others.after_operation, needs="openlit"),
        *each((llamaindex.CHATTED, llamaindex.PROMPTED, llamaindex.EMBEDDING), llamaindex.model),
    ),
    "response_model": (
        *texts_of("gen_ai.response.model", "llm.response.model_name", "llm.output_model_name"),
        others.logged(others.GEMINI_RESPONSE, "model", needs="gemini_cli"),
        *texts_of("decision.response.model_name"),
        FieldSource("llm.model_name", openinference.served_model),
        *texts_of("ai.response.model"),
        *wire.SERVING_MODEL,
        *each(claude_code.SERVED_LOGS, claude_code.logged_model, needs=_CC),
        *each((llamaindex.ANSWERED, llamaindex.COMPLETED), llamaindex.serving_model),
        FieldSource("gen_ai.request.model", openinference.served_model, needs="traceai"),
    ),
    "stream": (
        *flags_of("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming"),
        *flags_of("gen_ai.request.streaming", "gen_ai.request.is_stream"),
        *flags_of("llm.stream", needs="voltagent"),
        within("gen_ai.request.parameters", "stream", read=flag, needs="traceai"),
        *flags_of("stream", needs="mlflow"),  # the keyword arguments of the call
        FieldSource("output.value", wire.came_in_chunks, label="output.value{type}"),
        within(_INVOCATION, "stream", read=flag),
        FieldSource("ai.operationId", vercel_ai_sdk.streamed),
        *flags_of("langsmith.request.streaming", "litellm.request.streaming"),
        *flags_of("langsmith.metadata.stream"),
        within("langfuse.observation.model.parameters", "stream", read=flag),
        within("invocation_params", "stream", read=flag, needs="mlflow"),
        within("request_data", "stream", read=flag, needs="logfire", label="request_data"),
        *wire.STREAMED,
        FieldSource("gen_ai.operation.name", gen_ai.streams),
        *each(gen_ai_events.CHUNK_EVIDENCE, constant(True)),
    ),
    "tools": (
        FieldSource("gen_ai.tool.definitions", gen_ai.tools),
        FieldSource(_DETAILS, gen_ai_events.details_tools),
        FieldSource("llm.tools.", openinference.tools),
        FieldSource("ai.prompt.tools", gen_ai.tools),
        FieldSource("mlflow.chat.tools", mlflow.tools),
        FieldSource("llm.request.functions.", openllmetry.functions),
        FieldSource("gen_ai.request.functions.", openllmetry.functions),
        FieldSource("gen_ai.tool.", openllmetry.functions),
        _tools_in("model_request_parameters", "function_tools"),
        _tools_in("request_data", "tools", needs="logfire"),
        FieldSource(_ADK_REQUEST, google_adk.tools),
        FieldSource("gen_ai.request.tools", gen_ai.tools),  # Langtrace
        FieldSource("gen_ai.agent.tools", gen_ai.tools),
        *each(others.SPRING_TOOL_NAMES, others.tool_names),
        FieldSource("llm.tools", others.tool_names, needs="voltagent"),
        FieldSource("tools", claude_code.tools, needs=_CC),
        _tools_in(_INVOCATION, "tools"),
        *each((*wire.REQUESTS, "genkit:input"), wire.tools),
        FieldSource(_LF_INPUT, langfuse.tools),
        FieldSource(f"{_LF_METADATA}.tools", gen_ai.tools),
        FieldSource(llamaindex.CHATTED, llamaindex.tools),
    ),
    "finish_reason": (
        FieldSource("gen_ai.response.finish_reasons", gen_ai.finish_reason),
        *texts_of("gen_ai.response.finish_reason", "gen_ai.response.stop_reason"),
        *texts_of("llm.finish_reason"),
        FieldSource("gen_ai.output.messages", gen_ai.finish_reason_of_messages),
        *texts_of("ai.response.finishReason", "ai.result.finishReason", "gen_ai.finishReason"),
        FieldSource("gen_ai.completion.", openllmetry.finish_reason),
        *texts_of("llm.response.finish_reason", "llm.response.stop_reason"),
        *texts_of("stop_reason", needs=_CC),
        *texts_of("anthropic.message.stop_reason"),
        others.logged(
            others.GEMINI_RESPONSE, "finish_reasons", read=others.first_text, needs="gemini_cli"
        ),
        FieldSource(_CHOICE, gen_ai_events.finish_reason),
        FieldSource(_DETAILS, gen_ai_events.details_finish_reason),
        *wire.FINISH_REASON,
        FieldSource(f"{_LF_METADATA}.finish_reason", gen_ai.finish_reason),
        *each((llamaindex.ANSWERED, llamaindex.COMPLETED), llamaindex.finish_reason),
    ),
    "response_id": (
        *texts_of("gen_ai.response.id", "ai.response.id"),
        *texts_of("request_id", needs=_CC),
        *wire.RESPONSE_ID,
        *texts_of("anthropic.request.id"),
        *each((llamaindex.ANSWERED, llamaindex.COMPLETED), llamaindex.response_id),
    ),
    "time_to_first_token": (
        FieldSource("gen_ai.response.time_to_first_chunk", gen_ai.milliseconds),
        FieldSource("gen_ai.client.operation.time_to_first_chunk", gen_ai.milliseconds),
        FieldSource("gen_ai.streaming.time_to_first_token", gen_ai.milliseconds),
        *reals_of("ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"),
        FieldSource("gen_ai.server.time_to_first_token", gen_ai.milliseconds, needs="openlit"),
        *reals_of("gen_ai.server.time_to_first_token"),
        FieldSource("langfuse.observation.completion_start_time", langfuse.first_token_ms),
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
        within(  # LiteLLM 1
            "hidden_params", "response_cost", read=real, needs="litellm", label="hidden_params"
        ),
        FieldSource("event api_request", claude_code.logged_cost, needs=_CC),
        FieldSource("event claude_code.api_request", claude_code.logged_cost, needs=_CC),
        *reals_of("usage.estimated_usd", needs="codex"),
    ),
}

"""The table, for all other steps: tools, retrieval, generic content, failure. See `table`."""

from __future__ import annotations

from hansard_collector.dialects import (
    claude_code,
    gen_ai,
    gen_ai_events,
    google_adk,
    haystack,
    llamaindex,
    mlflow,
    openinference,
    openllmetry,
    others,
    strands,
)
from hansard_collector.dialects.engine.sources import (
    FieldSource,
    Rows,
    constant,
    counts_of,
    each,
    means,
    sent_of,
    texts_of,
    values_of,
    within,
)
from hansard_collector.dialects.engine.values import opened

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
        FieldSource(llamaindex.STEP, llamaindex.tool_name),
        FieldSource("span handoff to ", openinference.handoff_tool, needs="openinference"),
        *each(others.TOOL_SPANS, others.after_operation),
    ),
    "call_id": (
        *texts_of("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool.id", "tool_call.id"),
        *texts_of("ai.toolCall.id", "spring.ai.tool.call.id", "haystack.tool.call.id"),
        *texts_of("tool_use_id", needs=_CC),
        *texts_of("call_id", needs="codex"),
        *texts_of("lk.function_tool.id", "tool.call.id"),
        FieldSource(llamaindex.STEP, llamaindex.tool_call_id),
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
        FieldSource("gcp.vertex.agent.tool_call_args", google_adk.content),
        *values_of("tool_arguments", needs="pydantic_ai"),
        FieldSource("event gen_ai.tool.message", strands.tool_arguments),
        *each(("tool_input", "tool_parameters"), claude_code.tool_arguments, needs=_CC),
        *each(claude_code.TOOL_LOGS, claude_code.logged_arguments, needs=_CC),
        *each(claude_code.HOOK_LOGS, claude_code.hooked_arguments),
        *each(("full_command", "file_path"), claude_code.tool_detail, needs=_CC),
        *values_of("function_args", needs="gemini_cli"),
        # Gemini CLI's tool: `{callId, name, args, …}` where a call has its messages.
        within(
            "gen_ai.input.messages",
            "args",
            read=lambda sent: sent,
            needs="gemini_cli",
            label="gen_ai.input.messages",
        ),
        *values_of("arguments", needs="codex"),
        others.logged(others.CODEX_TOOL_END, "arguments", read=opened, needs="codex"),
        *values_of("input", needs="logfire_agents"),
        *values_of("input", needs="voltagent"),  # its `tool.parameters` is the schema
        *values_of("input.value", "tool.parameters", "haystack.agent.step.tool.input"),
        *values_of("mcp.request.argument", "traceloop.entity.input", _LF_INPUT),
        FieldSource("mlflow.spanInputs", mlflow.decode),
        *values_of("lmnr.span.input", "genkit:input"),
        *values_of("lk.function_tool.arguments", "lk.pii.function_tool.arguments"),
        *values_of("gen_ai.tool.input", *others.AGENTOPS_INPUTS, *others.MASTRA_INPUTS),
        FieldSource(llamaindex.STEP, llamaindex.tool_arguments),
        *values_of("gen_ai.prompt", _HS_IN),
    ),
    "result": (
        *values_of("gen_ai.tool.call.result", "ai.toolCall.result"),
        *values_of("spring.ai.tool.call.result"),
        FieldSource("gcp.vertex.agent.tool_response", google_adk.content),
        *values_of("tool_response", needs="pydantic_ai"),
        FieldSource(_CHOICE, strands.tool_result),
        FieldSource("event tool.output", claude_code.tool_output, needs=_CC),
        *values_of("new_context", needs=_CC),
        FieldSource("gen_ai.output.messages", others.gemini_tool_result, needs="gemini_cli"),
        others.logged(others.CODEX_TOOL_END, "output", read=opened, needs="codex"),
        *values_of("output", needs="codex"),
        *values_of("output", needs="logfire_agents"),
        *values_of("output", needs="voltagent"),
        *values_of("output.value", "haystack.agent.step.tool.output"),
        *values_of("mcp.response.value", "traceloop.entity.output", _LF_OUTPUT),
        FieldSource("mlflow.spanOutputs", mlflow.decode),
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
        FieldSource("input.value", openinference.query),
        *texts_of("db.vector.query.content"),
        FieldSource(llamaindex.RETRIEVING, llamaindex.query),
        FieldSource(_HS_IN, haystack.query),
        *texts_of("genkit:input"),
        *each((_LF_INPUT, "mlflow.spanInputs", "gen_ai.prompt"), openinference.query),
    ),
    "documents": (
        FieldSource("gen_ai.retrieval.documents", gen_ai.documents),
        FieldSource("gen_ai.memory.records", gen_ai.documents),
        *each(
            ("retrieval.documents.", "reranker.output_documents.", "reranker.input_documents."),
            openinference.documents,
        ),
        FieldSource("db.vector.query.response.documents", others.vector_documents),
        FieldSource(llamaindex.RETRIEVED, llamaindex.documents),
        FieldSource("event db.query.result", openllmetry.vector_results),
        FieldSource("event db.search.result", openllmetry.vector_results),
        FieldSource(_HS_OUT, haystack.documents),
        *each((_LF_OUTPUT, "mlflow.spanOutputs", "gen_ai.completion"), gen_ai.listed_documents),
    ),
}

# What any step took and gave; a span's messages count too (`normalise`).
CONTENT: Rows = {
    "input": (
        *sent_of("hansard.input"),
        *sent_of("input.value", _LF_INPUT, "traceloop.entity.input"),
        FieldSource("mlflow.spanInputs", mlflow.decode),
        *sent_of(_HS_IN, "haystack.pipeline.input_data", "haystack.agent.input"),
        *sent_of("gen_ai.prompt"),  # LangSmith: of any run
        *sent_of(*others.AGENTOPS_INPUTS, *others.MASTRA_INPUTS),
        *sent_of("input", needs="mastra"),
        *sent_of("input", needs="voltagent"),
    ),
    "output": (
        *sent_of("hansard.output"),
        *sent_of("output.value", _LF_OUTPUT, "traceloop.entity.output"),
        FieldSource("mlflow.spanOutputs", mlflow.decode),
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
        means("langfuse.observation.level", {"ERROR": True}),
        FieldSource("success", claude_code.failed, needs=_CC),
        means("gen_ai.tool.status", {"error": True}),
        *each(("error.type", "litellm.provider.error.code", "haystack.tool.error"), constant(True)),
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

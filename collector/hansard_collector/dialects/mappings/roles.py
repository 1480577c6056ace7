"""The table, for what a span is: model call, tool, retrieval, agent, … See `table`."""

from __future__ import annotations

from hansard_collector.dialects import (
    claude_code,
    gen_ai,
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
from hansard_collector.dialects import hansard as own
from hansard_collector.dialects.engine.sources import (
    FieldSource,
    Rows,
    constant,
    each,
    means,
    roles_of,
)

_CC = claude_code.NAME

ROLE: Rows = {
    "role": (
        *(FieldSource(evidence, constant(role)) for evidence, role in own.SPAN_ROLES.items()),
        *roles_of("hansard.kind", own.ROLES),
        *roles_of("type", {"guardrails/guard/step/call": "llm"}),  # Guardrails' call of a model
        FieldSource("openinference.span.kind", openinference.prepared),
        *roles_of("openinference.span.kind", openinference.ROLES),
        *roles_of("gen_ai.span.kind", openinference.ROLES),  # traceAI, in OpenInference's words
        *roles_of("fi.span.kind", openinference.ROLES),
        *roles_of("langfuse.observation.type", langfuse.ROLES),
        FieldSource("mlflow.spanType", mlflow.role),
        *roles_of("langsmith.span.kind", others.LANGSMITH_ROLES),
        means("span.type", claude_code.ROLES, needs=_CC),
        FieldSource("span.type", others.voltagent_role, needs="voltagent"),
        *roles_of("entity.type", others.VOLTAGENT_ROLES, needs="voltagent"),
        FieldSource("span claude_code.", claude_code.role_by_name),
        FieldSource("spring.ai.kind", others.spring_role),
        FieldSource("ai.operationId", vercel_ai_sdk.role),
        *roles_of("lmnr.span.type", others.LAMINAR_ROLES),
        *roles_of("genkit:metadata:subtype", others.GENKIT_ROLES),
        *roles_of("genkit:type", others.GENKIT_ROLES),
        FieldSource("span raw_gen_ai_request", constant("llm"), needs="litellm"),
        *roles_of("gen_ai.operation.name", {"execute_tool": "tool"}),
        FieldSource("mcp.method.name", constant("mcp")),
        *each(("http.route", "url.path"), others.counts_only),
        FieldSource("url", others.counts_only, needs="logfire"),
        *roles_of("gen_ai.operation.name", gen_ai.ROLES),
        *roles_of("traceloop.span.kind", openllmetry.ROLES),
        *roles_of("agentops.span.kind", others.AGENTOPS_ROLES),
        *roles_of("mastra.span.type", others.MASTRA_ROLES),
        *roles_of("llm.request.type", openllmetry.REQUEST_TYPES),
        *roles_of("gen_ai.request.type", openllmetry.REQUEST_TYPES),
        FieldSource("haystack.component.type", haystack.role_of_component),
        FieldSource("haystack.agent.step.llm.output", constant("llm")),  # its generator has no span
        FieldSource("span haystack.", haystack.role),
        *(
            FieldSource(evidence, constant(role), needs="google_adk")
            for evidence, role in google_adk.SPAN_ROLES.items()
        ),
        *(
            FieldSource(evidence, constant(role), needs=dialect)
            for dialect, names in others.SPAN_ROLES.items()
            for evidence, role in names.items()
        ),
        FieldSource("haystack.tool.name", constant("tool")),
        *(
            FieldSource(evidence, constant(role), needs="llamaindex")
            for evidence, role in llamaindex.SPAN_ROLES.items()
        ),
        means("codex.tool.phase", {"dispatch": "tool"}),
        FieldSource("lk.function_tool.name", constant("tool")),
        FieldSource("embedding.model_name", constant("embedding")),
        FieldSource("reranker.model_name", constant("rerank")),
        FieldSource("gen_ai.operation.name", constant("other")),  # custom operations are allowed
        FieldSource("request_data", pydantic_ai.role_of_request, needs="logfire"),
        FieldSource("span anthropic.", others.sdk_request, needs="anthropic_sdk"),
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

"""THE TABLE: where each field of the normal form is, in order (genai-dialects.md §20).

For a field, the first source that is present and usable is taken; the groups `merged` and `joined`
take all of them. Evidence is an attribute key, a prefix of flat keys (ends in a dot), an event
(`event …`, of the span or as a log record) or the beginning of the span's name (`span …`). What a
span is stands in `roles`, rows of model calls in `calls`, their tokens in `tokens`, rows of other
steps in `steps`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hansard_collector.dialects import (
    claude_code,
    gen_ai,
    google_adk,
    langfuse,
    mlflow,
    openinference,
    openllmetry,
    others,
    pydantic_ai,
    vercel_ai_sdk,
)
from hansard_collector.dialects import hansard as own
from hansard_collector.dialects.content import failure, prompts
from hansard_collector.dialects.engine.sources import (
    FieldSource,
    Rows,
    constant,
    each,
    flags_of,
    lists_of,
    means,
    members_of,
    read_family,
    read_mapping,
    texts_of,
    within,
)
from hansard_collector.dialects.engine.values import text
from hansard_collector.dialects.mappings import calls, roles, steps, tokens

_CC = claude_code.NAME
_INVOCATION = "llm.invocation_parameters"
_LF_METADATA = "langfuse.observation.metadata"
_TL = "traceloop.association.properties"
_VA_META = "ai.telemetry.metadata"

_EVERY: Rows = {
    "name": (
        *texts_of("logfire.msg"),
        FieldSource("ai.telemetry.functionId", vercel_ai_sdk.display_name),
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
        FieldSource(prompts.LOGS, prompts.session_logged),
    ),
    "prompt_id": (
        *each((*prompts.ROOT_KEYS, *prompts.PROMPT_KEYS), prompts.named),
        FieldSource("gen_ai.prompt.name", prompts.named_by_gemini),
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
        FieldSource(prompts.LOGS, prompts.logged),
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
        FieldSource("name", others.entity_of_agent, needs="logfire_agents"),
        FieldSource("span agent_run", google_adk.agent_named, needs="google_adk"),
        *texts_of("ai.telemetry.functionId"),
        FieldSource("traceloop.entity.name", others.entity_of_agent),
        *texts_of("subagent_type", needs=_CC),
        means("span.type", claude_code.AGENTS, needs=_CC),
        FieldSource("span session_task.turn", constant("codex"), needs="codex"),
        *texts_of("lk.agent_name", "haystack.agent.name"),
        FieldSource("entity.name", others.entity_of_agent, needs="voltagent"),
        FieldSource("operation.name", others.entity_of_agent, needs="agentops"),
        *texts_of("gen_ai.agent.id", needs="mastra"),
        FieldSource("graph.node.id", others.entity_of_agent),  # CrewAI's has no name beside
        within("metadata", "lc_agent_name", needs="openinference"),  # LangChain's create_agent
        *texts_of("langsmith.metadata.lc_agent_name", f"{_TL}.lc_agent_name"),
        FieldSource("smolagents.max_steps", openinference.smolagents_name),
        FieldSource(
            "span BaseWorkflowAgent.", openinference.llamaindex_agent, needs="openinference"
        ),
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
        FieldSource("hansard.input", own.words),
        others.logged("codex.user_prompt", "prompt", needs="codex"),
    ),
    "answered": (FieldSource("hansard.output", own.words),),
    "cancelled": (
        *flags_of("hansard.cancelled"),
        FieldSource("event exception", failure.was_left),
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
        FieldSource("span raw_gen_ai_request", constant(True), needs="litellm"),
        FieldSource("logfire.span_type", pydantic_ai.repeats_call),
    ),
    "sum_is_whole": (FieldSource("entity.type", others.sums_all_steps, needs="voltagent"),),
    "follows_agents": (
        FieldSource(
            "openinference.span.kind", openinference.always_ends_well, needs="openinference"
        ),
    ),
    "follows_calls": (means("span.type", claude_code.WITHOUT_STATUS, needs=_CC),),
    "pending_of": (FieldSource("logfire.span_type", pydantic_ai.pending_of),),
}

# All sources together; the first that names something wins it.
_MERGED: Rows = {
    "metadata": (
        FieldSource("hansard.run.metadata.", read_family),
        FieldSource("metadata", read_mapping, needs="openinference"),
        FieldSource(f"{_LF_METADATA}.", langfuse.metadata),
        FieldSource(_LF_METADATA, read_mapping),
        FieldSource("langfuse.trace.metadata.", langfuse.metadata),
        FieldSource("langfuse.trace.metadata", read_mapping),
        *each((f"{_VA_META}.", f"{_TL}.", "langsmith.metadata."), read_family),
        *each(("lmnr.association.properties.", "metadata.", "litellm.metadata."), read_family),
        FieldSource("ai.settings.context.", read_family),
    ),
    "prompt": (
        *members_of(gen_ai.PROMPT_MEMBERS, read=text),
        FieldSource("gen_ai.prompt.variable.", gen_ai.prompt_variables),
        *members_of(openinference.PROMPT_MEMBERS, read=openinference.opened_content),
        *members_of(langfuse.PROMPT_MEMBERS),
        FieldSource("traceloop.prompt.", openllmetry.prompt_fields),
        FieldSource(f"{_VA_META}.langfusePrompt", vercel_ai_sdk.langfuse_prompt),
    ),
    "parameters": (
        *members_of(gen_ai.PARAMETERS),
        FieldSource(_INVOCATION, openinference.parameters),
        FieldSource("embedding.invocation_parameters", openinference.parameters),
        FieldSource("gen_ai.request.parameters", openinference.parameters, needs="traceai"),
        FieldSource("langfuse.observation.model.parameters", read_mapping),
        FieldSource("ai.settings.", vercel_ai_sdk.settings),
        *members_of(openllmetry.PARAMETERS),
        *members_of(claude_code.PARAMETERS, needs=_CC),
        *members_of({"codex.request.reasoning_effort": "reasoning_effort"}, read=text),
    ),
    "cost.lines": (
        FieldSource("llm.cost.", openinference.cost_lines),
        *each(("litellm.cost.", "gen_ai.cost."), others.costs),
        FieldSource("langfuse.observation.cost_details", langfuse.cost_lines),
        FieldSource("mlflow.llm.cost", mlflow.cost_lines),
    ),
}

# All sources, one after the other.
_JOINED: Rows = {
    "evaluations": (
        FieldSource(gen_ai.RESULT, gen_ai.evaluations),
        *each(
            (
                "evaluations.", "trace.evaluations.", "session.evaluations.",
                "annotations.", "trace.annotations.", "session.annotations.",
            ),
            openinference.evaluations,
        ),
        FieldSource("output.value", openinference.evaluator_output),
        FieldSource("pydantic_ai.decision.confidence", pydantic_ai.confidence),
    ),
}  # fmt: skip

GROUPS: Mapping[str, Rows] = {
    "role": roles.ROLE,
    "every": _EVERY,
    "merged": _MERGED,
    "joined": _JOINED,
    "messages": calls.MESSAGES,
    "embedded": calls.EMBEDDED,
    "call": calls.CALL,
    "tokens": tokens.TOKENS,
    "sums": tokens.SUMS,
    "tool": steps.TOOL,
    "retrieval": steps.RETRIEVAL,
    "content": steps.CONTENT,
    "lesser_content": steps.LESSER_CONTENT,
    "failure": steps.FAILURE,
}

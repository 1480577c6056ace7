"""Smaller dialects: LangSmith, Spring AI, LiteLLM, Codex, Laminar, LiveKit, VoltAgent, Genkit,
Agent Framework, AgentOps, Mastra, and what they need beyond a plain look-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.sources import FieldSource, same
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import (
    count,
    first,
    inside,
    is_content,
    opened,
    reals,
    text,
    texts,
)
from hansard_collector.dialects.gen_ai import document
from hansard_compiler.calls import Json, Message

# LangSmith's own kind is right where its operation name is not (retriever → embeddings).
LANGSMITH_ROLES: Mapping[str, str] = same(
    "llm", "chain", "tool", "retriever", "embedding", "prompt"
) | {
    "parser": "chain",
}
# Spans that tell what they are by their names only, a dialect each.
SPAN_ROLES: Mapping[str, Mapping[str, str]] = {
    "agent_framework": {
        "span workflow.run": "workflow",
        "span workflow.build": "workflow",
        "span executor.process": "task",
    },
    "anthropic_sdk": {
        "span anthropic.tool_use": "tool",
        "span anthropic.mcp_tool_use": "tool",
        "span anthropic.custom_tool_use": "tool",
        "span anthropic.messages.tool_runner": "agent",
    },
    "logfire_agents": {  # the OpenAI Agents SDK; message templates, names not filled in
        "span OpenAI Agents trace: ": "workflow",
        "span Agent run: ": "agent",
        "span Function: ": "tool",
        "span Handoff: ": "task",
        "span Task: ": "task",
        "span Turn ": "task",
        "span Guardrail ": "guardrail",
    },
    "codex": {"span session_task.turn": "agent"},
    # Around each call, `llm_request`, stand the turn's part in it and each attempt.
    "livekit": {"span llm_node": "task", "span llm_request_run": "task"},
    "openlit": {"span chat ": "llm", "span embeddings ": "embedding"},  # a failed call has no more
    "pydantic_ai": {
        "span agent run": "agent",  # format 2
        "span running tools": "task",
        "span running tool": "tool",
        "span invoke_agent ": "agent",  # format 3 of version 1, without the operation
        "span execute_tool ": "tool",
    },
}
SPRING_ROLES: Mapping[str, str] = {
    "chat_client": "agent",
    "advisor": "chain",
    "tool_call": "tool",
    "vector_store": "retriever",
}
AGENTOPS_ROLES: Mapping[str, str] = {
    "session": "workflow",
    "workflow": "workflow",
    "agent": "agent",
    "task": "task",
    "operation": "task",
    "tool": "tool",
    "guardrail": "guardrail",
}
AGENTOPS_INPUTS, AGENTOPS_OUTPUTS = (
    tuple(f"agentops.{kind}.{way}" for kind in ("entity", *AGENTOPS_ROLES))
    for way in ("input", "output")
)
# The calls themselves say `chat`; what is around them runs over several.
MASTRA_ROLES: Mapping[str, str] = {
    "agent_run": "agent",
    "workflow_run": "workflow",
    "workflow_step": "task",
    "model_generation": "task",
    "model_step": "task",
    "tool_call": "tool",
    "mcp_tool_call": "tool",
}
MASTRA_INPUTS, MASTRA_OUTPUTS = (
    tuple(f"mastra.{kind}.{way}" for kind in MASTRA_ROLES) for way in ("input", "output")
)
LAMINAR_ROLES: Mapping[str, str] = same("llm", "tool", "evaluator") | {
    "pipeline": "workflow",
    "evaluation": "evaluator",
    "executor": "task",
}
GENKIT_ROLES: Mapping[str, str] = same("tool", "retriever", "agent", "prompt", "evaluator") | {
    "model": "llm",
    "embedder": "embedding",
    "reranker": "rerank",
    "flow": "workflow",
}


def spring_role(reading: Reading, key: str) -> str | None:
    """A vector store's span is a retrieval only where it queries."""
    kind = (text(reading.view.attributes[key]) or "").lower()
    operation = text(reading.view.attributes.get("db.operation.name")) or "query"
    if kind == "vector_store" and operation not in ("query", "search"):
        return "other"
    return SPRING_ROLES.get(kind)


VOLTAGENT_ROLES: Mapping[str, str] = same(
    "agent", "embedding", "guardrail", "llm", "memory", "retriever", "tool", "workflow"
) | {
    "workflow-step": "task",
}


def voltagent_role(reading: Reading, key: str) -> str | None:
    return VOLTAGENT_ROLES.get((text(reading.view.attributes[key]) or "").lower(), "task")


def sums_all_steps(reading: Reading, _: str) -> bool | None:
    """VoltAgent's call has the tokens of its last step, the agent those of all."""
    return True if "span.type" not in reading.attributes else None


def genkit_model(reading: Reading, key: str) -> str | None:
    """A model is named after its plugin: `googleai/gemini-2.5-flash`."""
    name = text(reading.view.attributes[key])
    return None if name is None else name.partition("/")[2] or name


# Coding agents whose log records tell of a call what its span does not.
GEMINI_RESPONSE = "gemini_cli.api_response"
_GEMINI_COUNTS = (
    "input_token_count", "output_token_count", "cached_content_token_count",
    "thoughts_token_count", "tool_token_count", "total_token_count",
)  # fmt: skip
CODEX_END = "codex.sse_event"
CODEX_TOOL_END = "codex.tool_result"


def gemini_usage(sent: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of Gemini CLI's record in the meaning of the conventions, by their keys.

    Thoughts and tool prompts are counted apart, unless the total shows that they are not. A
    response without usage is logged with zeros throughout: nothing.
    """
    counts = {key: count(sent.get(key)) for key in _GEMINI_COUNTS}
    if not any(counts.values()):
        return {}
    spoken, prompt = counts["output_token_count"], counts["input_token_count"]
    thoughts = counts["thoughts_token_count"] or 0
    by_tools = counts["tool_token_count"] or 0
    if counts["total_token_count"] == (prompt or 0) + (spoken or 0):
        thoughts = by_tools = 0  # counted within
    found = {
        "gen_ai.usage.input_tokens": None if prompt is None else prompt + by_tools,
        "gen_ai.usage.output_tokens": None if spoken is None else spoken + thoughts,
        "gen_ai.usage.reasoning.output_tokens": counts["thoughts_token_count"],
        "gen_ai.usage.cache_read.input_tokens": counts["cached_content_token_count"],
    }
    return {key: number for key, number in found.items() if number is not None}


def gemini_logged(key: str) -> FieldSource:
    """A count of the record of this very call: of others that ended then the input differs."""

    def read(reading: Reading, _: str) -> int | None:
        known = count(reading.attributes.get("gen_ai.usage.input_tokens"))
        for record in reading.records(GEMINI_RESPONSE):
            if known in (None, count(record.attributes.get("input_token_count"))):
                return gemini_usage(record.attributes).get(key)
        return None

    return FieldSource(f"event {GEMINI_RESPONSE}", read, label=f"{GEMINI_RESPONSE}{{{key}}}")


def logged(
    event: str, *keys: str, read: Callable[[Any], Any] = text, needs: str = ""
) -> FieldSource:
    """What a log record of a span has under the first of some keys."""

    def find(reading: Reading, _: str) -> Any:
        for record in reversed(reading.records(event)):
            value = first(record.attributes, keys)
            if is_content(value) and (found := read(value)) is not None:
                return found
        return None

    return FieldSource(f"event {event}", find, label=f"{event}{{{keys[0]}}}", needs=needs)


def first_text(value: Any) -> str | None:
    """The first of some texts, or of JSON text of a list of them."""
    return next(iter(texts(value)), None)


def gemini_tool_result(reading: Reading, key: str) -> Any:
    """`{status, request, response: {responseParts: [{functionResponse: {response}}], …}}`."""
    response = inside(reading.opened(key), "response")
    if not isinstance(response, dict):
        return None
    parts = response.get("responseParts")
    responses = [inside(part, "functionResponse", "response") for part in _listed(parts)]
    responses = [part for part in responses if part is not None]
    if not responses:
        return first(response, ("resultDisplay", "error"))
    result = responses[0] if len(responses) == 1 else responses
    only = result.get("output") if isinstance(result, dict) and len(result) == 1 else None
    return result if only is None else only


def counts_only(reading: Reading, key: str) -> str | None:
    """A request that has tokens counted, and calls no model."""
    path = (text(reading.view.attributes[key]) or "").partition("?")[0]
    return "other" if path.lower().rstrip("/").endswith(_COUNTING) else None


_COUNTING = ("count_tokens", "counttokens", "count-tokens", "/tokenize", "token-counting")


def names_model(reading: Reading, _: str) -> str | None:
    """A span that only names a model calls it, unless its own name is that of a count of tokens."""
    return None if reading.view.name.lower().endswith(_COUNTING) else "llm"


def sdk_request(reading: Reading, _: str) -> str | None:
    """Anthropic's SDK names the operation of what calls a model; all else calls the API."""
    return "other" if "gen_ai.operation.name" not in reading.attributes else None


def livekit_context(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`lk.chat_ctx`, `lk.pii.chat_ctx`: `{items: [{type: message, role, content}, …]}`."""
    sent = reading.opened(key)
    items = sent.get("items") if isinstance(sent, dict) else sent
    return chat.messages_of(items, "user") or None


# Newer versions mark what a person said by one more word.
LIVEKIT_REQUESTS, LIVEKIT_ANSWERS = (
    tuple(f"{family}.{name}" for family in ("lk", "lk.pii") for name in names)
    for names in (
        ("user_input", "input_text", "user_transcript"),
        ("response.text", "response.function_calls"),
    )
)


def livekit_answer(reading: Reading, _: str) -> tuple[Message, ...] | None:
    attributes = reading.view.attributes
    fields = {
        name: first(attributes, (f"lk.{name}", f"lk.pii.{name}"))
        for name in ("response.text", "response.function_calls")
    }
    calls = [opened(call) for call in _listed(fields["response.function_calls"])]
    message = {
        "role": "assistant",
        "content": fields["response.text"],
        "tool_calls": [call for call in calls if isinstance(call, dict)],
    }
    return chat.messages_of(message, "assistant") or None


def _listed(value: Any) -> list[Any]:
    value = opened(value)
    return value if isinstance(value, list) else []


SPRING_TOOL_NAMES = ("spring.ai.model.request.tool.names", "spring.ai.chat.client.tool.names")


def tool_names(reading: Reading, key: str) -> tuple[Json, ...] | None:
    """Names only, as a list, as JSON, or with commas between."""
    names = texts(reading.view.attributes[key])
    return tool_lists.tools_of(list(names)) or None


def vector_documents(reading: Reading, key: str) -> Any:
    """Spring AI: the documents' texts, joined so that quotes in them make it no JSON."""
    sent = reading.opened(key)
    if not is_content(sent):
        return None
    items = map(opened, sent if isinstance(sent, list) else [sent])
    found = [item if isinstance(item, dict) else {"content": item} for item in items]
    return tuple(document(item) for item in found) or None


def costs(reading: Reading, prefix: str) -> Mapping[str, float] | None:
    """`gen_ai.cost.<part>`, `litellm.cost.<part>`: US dollars a part."""
    found = reals(reading.rest(prefix))
    return {name.removesuffix("_cost"): usd for name, usd in found.items()} or None


def entity_of_agent(reading: Reading, key: str) -> str | None:
    """A plain name (`traceloop.entity.name`) names an agent on an agent's span only."""
    return text(reading.view.attributes[key]) if reading.role == "agent" else None


# Where LangChain's tools leave the message they answer with.
TOOL_MESSAGES = (
    "output.value",
    "langfuse.observation.output",
    "gen_ai.completion",
    "mlflow.spanOutputs",
)


def call_id_of_message(reading: Reading, key: str) -> str | None:
    sent = reading.opened(key)
    for inner in (
        sent,
        inside(sent, "data"),
        inside(sent, "kwargs"),
        inside(sent, "output"),
        inside(sent, "output", "kwargs"),  # of LangChain for JavaScript
    ):
        if isinstance(inner, dict) and (call_id := text(inner.get("tool_call_id"))):
            return call_id
    return None


# A failed call of OpenLIT has nothing but its name, which is the conventions': operation and model.
OPENLIT_CALLS = ("span chat ", "span embeddings ")


_OPERATIONS = ("execute_tool", "tools/call", "anthropic.tool_use", "anthropic.custom_tool_use")
TOOL_SPANS = tuple(f"span {operation}" for operation in _OPERATIONS)


def after_operation(reading: Reading, evidence: str) -> str | None:
    """`chat gpt-4o-mini` → `gpt-4o-mini`, `execute_tool get_weather` → `get_weather`."""
    return reading.view.name.removeprefix(evidence.removeprefix("span ")).strip() or None

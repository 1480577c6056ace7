"""The normal form: the product's view of one span."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hansard_collector.dialects.engine.item_views import NOTHING
from hansard_compiler.calls import Call, CallError, Cost, Tokens, Tool

ROLES = (
    "llm", "embedding", "agent", "workflow", "tool", "retriever", "rerank", "memory", "policy",
    "compile", "approval", "guardrail", "evaluator", "prompt", "mcp", "task", "chain", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """One retrieved or reranked document."""

    id: str | None
    content: str | None
    score: float | None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Normalised(NamedTuple):
    """Everything the projections need to know about one span, whatever dialect it spoke.

    `call` is set for roles llm and embedding only. A span of another role that repeats the usage
    of its children says so in `tokens_sum`: that sum counts only when no descendant reports any.
    """

    role: str = "other"
    dialect: str = "otel"  # for display and /health: otel, gen_ai, openinference, traceloop, …
    name: str | None = None  # display name when the dialect has a better one than the span's
    call: Call | None = None
    tool: Tool | None = None
    tokens_sum: Tokens | None = None
    input: Any = None  # generic input and output of any step (text or JSON)
    output: Any = None
    error: CallError | None = None
    conversation_id: str | None = None
    prompt_id: str | None = None  # which prompt of its conversation it is of; lines: of several
    user_id: str | None = None
    agent_name: str | None = None
    agent_id: str | None = None
    agent_description: str | None = None
    workflow_name: str | None = None
    domain: str | None = None
    goal: str | None = None  # of a run, in its user's words
    asked: str | None = None  # of the arguments of a decorated function, what a person would quote
    answered: str | None = None  # of its result
    documents: tuple[Document, ...] = ()
    query: str | None = None  # of a retriever or reranker
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = NOTHING
    prompt: Mapping[str, Any] = NOTHING  # template name, version, variables
    evaluations: tuple[Mapping[str, Any], ...] = ()
    cancelled: bool = False  # ended before it was done, and nothing failed
    sum_is_whole: bool = False  # calls below tell only a part of `tokens_sum`
    sum_cost: Cost | None = None  # of such a sum
    follows_agents: bool = False  # its status is always OK: that of the last agent below is its own
    follows_calls: bool = False  # it states no status: that of its last model call is its own
    duplicate: bool = False  # the dialect itself says this repeats another span's call
    pending_of: bytes | None = None  # Logfire: this record announces the span with this parent
    notes: tuple[str, ...] = ()  # what a person should know, e.g. attributes were dropped
    sources: Mapping[str, str] = NOTHING

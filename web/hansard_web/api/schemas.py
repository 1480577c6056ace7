"""The bodies of the API as OpenAPI describes them.

Routes build plain dictionaries (see `answers.Answer`); these models say what is in them, and tests
check every answer against its model.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hansard_compiler.models.runs import RunRecord, StepRecord
from hansard_store.annotations.queries import AnnotationBody, ScoreSumBody

SchemaVersion = Literal["1"]
RunStatus = Literal["ok", "error", "open", "no_end", "blocked", "cancelled"]
StepStatus = Literal["ok", "unset", "error", "cancelled", "open", "no_end", "blocked"]


class Body(BaseModel):
    """A part of an answer: nothing but what is described."""

    model_config = ConfigDict(extra="forbid")


class Answer(Body):
    """An answer as a whole."""

    schema_version: SchemaVersion


class Page(Answer):
    """One page of a list; `next_cursor` null = the last one."""

    next_cursor: str | None


class ErrorDetail(Body):
    code: str = Field(description="stable, for programs")
    message: str = Field(description="for people")
    details: dict[str, Any]


class Error(Answer):
    error: ErrorDetail


class TokenSums(Body):
    """`input` includes cached tokens, `output` includes reasoning; null = not reported."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None


class RunItem(Body):
    """A run; `ended_at` and `duration_ms` are null while there is no end."""

    run_id: str = Field(description="trace id, 32 hex digits")
    name: str
    kind: Literal["agent", "other"] = Field(description="other: no step of an agent's work")
    agent: str | None
    domain: str | None
    user_goal: str | None = Field(description="hansard.run.goal; up to 16,384 characters")
    status: RunStatus
    started_at: str = Field(description="RFC 3339, nanoseconds, UTC")
    ended_at: str | None
    started_ns: str
    ended_ns: str | None
    duration_ms: float | None
    span_count: int
    step_count: int
    open_count: int
    model_calls: int
    tool_calls: int
    error_count: int
    models: list[str]
    tokens: TokenSums | None
    cost_usd: float | None
    conversation_id: str | None
    group_id: str | None = Field(
        description="same for the traces of one prompt; null: of no prompt, or of several"
    )
    user_id: str | None
    service_names: list[str]
    first_input: str | None
    last_output: str | None
    has_receipts: bool
    pinned: bool
    synthetic: bool
    tags: list[str] = Field(description="that stand on the run and its steps")
    scores: list[ScoreSumBody]
    first_seen_seq: int
    version: int


class RunList(Page):
    items: list[RunItem]


class FacetCount(Body):
    value: str
    runs: int


class Facets(Answer):
    """Counted over the newest runs that meet the filter; `is_complete`: over all of them."""

    runs: int
    is_complete: bool
    facets: dict[str, list[FacetCount]]


class StepMention(Body):
    """What every mention of a step says of it."""

    step_id: str
    run_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    role: str
    duplicate: bool
    status: StepStatus
    start_ns: str | None
    end_ns: str | None
    started_at: str | None
    ended_at: str | None
    duration_ms: float | None
    tokens: TokenSums | None
    cost_usd: float | None
    model: str | None
    tool_name: str | None
    agent_name: str | None
    summary: str | None


class StepItem(StepMention):
    """A step in the tree of its run."""

    depth: int
    has_children: bool
    orphan: bool = Field(description="its parent is not stored; it stands at the top")
    loop: bool = Field(description="it was its own ancestor; the loop was cut here")


class StepList(Page):
    items: list[StepItem]
    total: int = Field(description="steps of the run, all pages")


class ModelUse(Body):
    model: str | None
    model_calls: int
    tokens: TokenSums | None
    cost_usd: float | None


class RunTotals(Body):
    steps_by_role: dict[str, int]
    by_model: list[ModelUse]
    calls_without_tokens: int = Field(
        description="counted calls that ended well and report no tokens: tokens is a lower bound"
    )
    calls_without_cost: int = Field(description="the same for cost_usd")


class LinkEnd(Body):
    run_id: str
    span_id: str
    step: StepMention | None = Field(description="null: not stored here")


class RunLinks(Body):
    to: list[LinkEnd]
    from_: list[StepMention] = Field(alias="from")


class RunNote(Body):
    note: str
    count: int


class Run(RunItem, Answer):
    annotations: list[AnnotationBody] = Field(description="of the run itself that stand")
    totals: RunTotals
    roots: list[StepItem]
    links: RunLinks
    notes: list[RunNote] = Field(description="what was repaired, missing or refused")


class Hit(Body):
    """A text, in the step that carried it first; highlights are character offsets."""

    run_id: str
    step_id: str
    field: str
    message_role: str | None
    snippet: str
    highlights: list[tuple[int, int]]
    uses: int = Field(description="model calls that sent a message; of other texts, runs")
    uses_truncated: bool
    step: StepMention


class HitList(Page):
    items: list[Hit]


class UsageRow(Body):
    key: str | None = Field(description="null: what names none")
    runs: int
    model_calls: int
    tokens: TokenSums | None
    cost_usd: float | None


class UsageList(Page):
    by: str
    items: list[UsageRow]


class ConversationItem(Body):
    conversation_id: str
    last_run_id: str
    runs: int
    started_at: str
    ended_at: str
    model_calls: int
    tool_calls: int
    error_count: int
    tokens: TokenSums | None
    cost_usd: float | None
    user_id: str | None
    agents: list[str]
    first_input: str | None
    last_output: str | None


class ConversationList(Page):
    items: list[ConversationItem]


class Conversation(ConversationItem, Answer):
    pass


class StoredPayload(Answer):
    """`stored_ref` differs from `ref` where retention took something out."""

    ref: str
    stored: bool
    stored_ref: str | None
    size: int
    redacted: str | None
    reason: str | None = Field(description="why nothing was kept")


class LedgerCount(Body):
    """received = stored + duplicate + rejected + opened + deleted; refused are whole requests."""

    received: int
    stored: int
    duplicate: int
    rejected: int
    opened: int
    deleted: int
    requests: int
    refused: int
    bytes: int


class Sender(LedgerCount):
    service: str
    transport: str
    user_agent: str
    dialect: str
    address: str
    first_at: str
    last_at: str


class Refusal(Body):
    at: str
    service: str
    transport: str
    user_agent: str
    address: str
    signal: str
    code: str
    message: str
    items: int | None = Field(description="null: the whole request")
    bytes: int


class Queue(Body):
    requests: int
    bytes: int
    max_bytes: int


class Drop(Body):
    service: str
    signal: str = Field(description="spans or logs")
    reason: str
    items: int
    processes: int
    first_at: str
    last_at: str


class Ledger(Answer):
    spans: LedgerCount
    logs: LedgerCount
    metric_points: LedgerCount
    senders: list[Sender]
    refusals: list[Refusal]
    drops: list[Drop] = Field(description="what senders report that they dropped")
    queue: Queue | None = Field(description="of this process; null where it only reads")


class Health(Answer):
    status: Literal["ok", "unavailable"]
    product: Literal["hansard"] = Field(description="who answers: senders of open spans ask")
    version: str
    up_seconds: float | None = None
    reason: str | None = None


class SqlRows(Answer):
    """`truncated_cells`: values that were too long; `has_more`: there are further rows."""

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool
    truncated_cells: int


class RunAndSteps(Page):
    """docs/schemas/RunRecord.json, and StepRecord.json for each step in the order they began."""

    run: RunRecord
    steps: list[StepRecord] = Field(description="a page of them")
    total: int = Field(description="steps of the run, all pages")

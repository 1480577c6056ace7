"""The body of one step as OpenAPI describes it; see `models.py`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_store.annotations.queries import AnnotationBody
from hansard_web.api.schemas import Answer, Body, LinkEnd, StepMention, TokenSums
from hansard_web.receipts.schemas import CompilationSummary, Receipt
from hansard_web.replay_page.schemas import ReplayBranch


class CallTokens(TokenSums):
    cache_write_5m: int | None
    cache_write_1h: int | None


class StepMessage(Body):
    role: str
    name: str | None = None
    parts: list[dict[str, Any]]
    hash: str


class CostLine(Body):
    item: str
    usd: float


class Cost(Body):
    usd: float
    source: str
    lines: list[CostLine]
    reported_usd: float | None


class Failure(Body):
    type: str | None
    message: str | None
    http_status: int | None


class Call(Body):
    """A model call in normal form; `sources` names the attribute each field came from."""

    operation: str | None
    provider: str | None
    request_model: str | None
    response_model: str | None
    response_id: str | None
    stream: bool | None
    input: list[StepMessage]
    input_is_delta: bool
    output: list[StepMessage]
    tools: list[dict[str, Any]]
    parameters: dict[str, Any]
    finish_reason: str | None
    finish_reason_raw: str | None
    tokens: CallTokens
    cost: Cost | None
    error: Failure | None
    time_to_first_token_ms: float | None
    sources: dict[str, str]


class Tool(Body):
    name: str | None
    call_id: str | None
    type: str | None
    description: str | None
    arguments: Any
    result: Any


class StepEvent(Body):
    name: str
    time: str | None
    time_ns: str
    attributes: dict[str, Any]


class Log(Body):
    event_name: str | None
    time: str | None
    time_ns: str
    severity_number: int
    severity_text: str | None
    body: Any
    attributes: dict[str, Any]
    scope: str
    resource: dict[str, Any]


class StepLink(LinkEnd):
    attributes: dict[str, Any]
    trace_state: str


class Dropped(Body):
    """What the sender's SDK says it cut."""

    attributes: int
    events: int
    links: int


class Resource(Body):
    attributes: dict[str, Any]
    schema_url: str


class Scope(Body):
    name: str
    version: str
    schema_url: str


class Agent(Body):
    name: str | None
    id: str | None
    description: str | None
    workflow: str | None


class Document(Body):
    id: str | None
    content: str | None
    score: Any
    metadata: dict[str, Any]


class Redaction(Body):
    rule: str
    field: str
    count: int


class NamedPayload(Body):
    """Bytes that an attribute or a message names by digest; `size` is in bytes.

    `missing`: not arrived, lost on the way or deleted. `withheld`: metadata_only keeps neither.
    """

    name: str
    attribute: str | None
    ref: str
    state: Literal["stored", "redacted", "missing", "withheld"]
    media_type: str | None
    size: int | None
    stored_ref: str | None
    url: str | None


class SameName(Body):
    """This duration among the last of the same span name."""

    count: int
    longer_than: int
    median_ms: float


class Origin(Body):
    kind: str
    step_id: str | None
    step_name: str | None


class ContextMessage(Body):
    change: Literal["kept", "added", "dropped", "rewritten", "truncated", "reordered"]
    position: int | None
    previous_position: int | None
    same_bytes: bool
    tokens: int
    origin: Origin


class CacheBreak(Body):
    position: int
    lost_tokens: int
    equal_tokens: int
    cacheable: bool


class Context(Body):
    """How the messages differ from those of the call this one continues (`continues`)."""

    kind: Literal["derived"]
    call_number: int
    calls_in_run: int
    continues: str | None
    tokens: int
    previous_tokens: int
    tokens_basis: Literal["scaled to the billed input", "estimated"]
    messages: list[ContextMessage]
    cache_break: CacheBreak | None


class NativeContext(CompilationSummary):
    """The compile that the step made, named, or has below it; `derived` as for any other call."""

    kind: Literal["native"]
    notes: list[str]
    derived: Context | None


class GateOutcome(Body):
    """The outcome of the draft that a step proposed, not of later ones."""

    approval_id: str | None
    draft: int | None
    states: list[str] = Field(description="in words, in order: requested, approved by rosa, ran …")
    next_draft: int | None = Field(description="the draft that took its place")
    next_step_id: str | None = Field(description="the step that proposed that one")


class Step(StepMention, Answer):
    """Everything about a step; attributes are as sent, after redaction."""

    span_name: str
    kind: str
    trace_state: str
    flags: int
    status_message: str | None
    attributes: dict[str, Any]
    events: list[StepEvent]
    dropped: Dropped
    resource: Resource
    scope: Scope
    received_at: str
    dialect: str
    error: Failure | None
    call: Call | None
    tool: Tool | None
    input: Any
    output: Any
    query: str | None
    documents: list[Document]
    prompt: dict[str, Any]
    evaluations: list[dict[str, Any]] = Field(description="as the span tells them")
    annotations: list[AnnotationBody] = Field(description="notes, scores and tags that stand")
    tags: list[str]
    metadata: dict[str, Any]
    conversation_id: str | None
    user_id: str | None
    agent: Agent
    notes: list[str]
    sources: dict[str, str]
    links: list[StepLink]
    linked_from: list[StepMention]
    logs: list[Log]
    context: NativeContext | Context | None
    receipts: list[Receipt]
    payloads: list[NamedPayload]
    gate: GateOutcome | None = Field(
        description="what the gate did with the call of this step; null where no gate saw it"
    )
    replays: list[ReplayBranch]
    redactions: list[Redaction]
    same_name: SameName | None
    raw_url: str

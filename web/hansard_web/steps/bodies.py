"""The normal form of a step as bodies of the API (DESIGN §7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

import apsw

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.payloads import NamedPayload, named_payloads
from hansard_compiler.calls import Call, Cost, Message, Tool, message_json
from hansard_compiler.renamed import current_attributes
from hansard_store.annotations.queries import AnnotationBody, standing_json
from hansard_store.bodies import Answer, Body, BodyT, Description, body_of
from hansard_store.compilations.receipts import receipts_of
from hansard_store.ingest.redactions import redactions_of
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import (
    StepSkeleton,
    get_step,
    links_from,
    links_to_step,
    recent_durations,
)
from hansard_store.times import time_text
from hansard_web.annotations.panel import target_of
from hansard_web.api.bodies import LinkBody, StepMention, TokensBody, mention_of, skeleton_body
from hansard_web.api.values import plain
from hansard_web.approvals.step_history import gated
from hansard_web.context.bodies import Context, NativeContext, context_body, native_compilation
from hansard_web.receipts.bodies import ReceiptBody, receipt_body
from hansard_web.replay.json import ReplayBranch, replays_of_step


class CallTokens(TokensBody):
    cache_write_5m: int | None
    cache_write_1h: int | None


class StepMessage(Body):
    role: str
    name: NotRequired[str | None]
    parts: list[dict[str, Any]]
    hash: str


class CostLine(Body):
    item: str
    usd: float


class CostBody(Body):
    usd: float
    source: str
    lines: list[CostLine]
    reported_usd: float | None


class FailureBody(Body):
    type: str | None
    message: str | None
    http_status: int | None


class CallBody(Body):
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
    cost: CostBody | None
    error: FailureBody | None
    time_to_first_token_ms: float | None
    sources: dict[str, str]


class ToolBody(Body):
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


class StepLink(LinkBody):
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


class AgentBody(Body):
    name: str | None
    id: str | None
    description: str | None
    workflow: str | None


class DocumentBody(Body):
    id: str | None
    content: str | None
    score: Any
    metadata: dict[str, Any]


class Redaction(Body):
    rule: str
    field: str
    count: int


class NamedPayloadBody(Body):
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


class GateNote(Body):
    """The note that a person added when approving the draft."""

    by: str
    note: str


class GateOutcome(Body):
    """The outcome of the draft that a step proposed, not of later ones."""

    approval_id: str | None
    draft: int | None
    states: Annotated[
        list[str], Description("in words, in order: requested, approved by rosa, ran …")
    ]
    next_draft: Annotated[int | None, Description("the draft that took its place")]
    next_step_id: Annotated[str | None, Description("the step that proposed that one")]
    notes: Annotated[list[GateNote], Description("of the approvals of the draft, in order")]


class StepBody(StepMention, Answer):
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
    error: FailureBody | None
    call: CallBody | None
    tool: ToolBody | None
    input: Any
    output: Any
    query: str | None
    documents: list[DocumentBody]
    prompt: dict[str, Any]
    evaluations: Annotated[list[dict[str, Any]], Description("as the span tells them")]
    annotations: Annotated[list[AnnotationBody], Description("notes, scores and tags that stand")]
    tags: list[str]
    metadata: dict[str, Any]
    conversation_id: str | None
    user_id: str | None
    agent: AgentBody
    notes: list[str]
    sources: dict[str, str]
    links: list[StepLink]
    linked_from: list[StepMention]
    logs: list[Log]
    context: NativeContext | Context | None
    receipts: list[ReceiptBody]
    payloads: list[NamedPayloadBody]
    gate: Annotated[
        GateOutcome | None,
        Description("what the gate did with the call of this step; null where no gate saw it"),
    ]
    replays: list[ReplayBranch]
    redactions: list[Redaction]
    same_name: SameName | None
    raw_url: str


_MAX_NS = 1 << 63


def _plain_body(kind: type[BodyT], record: object, **made: Any) -> BodyT:
    """Return the body of a record whose fields may hold whatever a sender put in them."""
    names = kind.__annotations__.keys() - made.keys()
    return body_of(kind, **{name: plain(getattr(record, name)) for name in names}, **made)


def call_body(call: Call) -> CallBody:
    """Return a model call in the shape of DESIGN §7."""
    return _plain_body(
        CallBody,
        call,
        input=[message_body(message) for message in call.input],
        output=[message_body(message) for message in call.output],
        tokens=_plain_body(CallTokens, call.tokens),
        cost=call.cost and _cost_body(call.cost),
        error=call.error and _plain_body(FailureBody, call.error),
    )


def _cost_body(cost: Cost) -> CostBody:
    lines = [CostLine(item=item, usd=plain(usd)) for item, usd in cost.lines]
    return _plain_body(CostBody, cost, lines=lines)


def message_body(message: Message) -> StepMessage:
    body: StepMessage = plain(message_json(message))
    return {**body, "hash": message.hash.hex()}


def tool_body(tool: Tool) -> ToolBody:
    return _plain_body(ToolBody, tool)


def error_body(reading: StepReading, status: str) -> FailureBody | None:
    """Return what went wrong: as the dialect reads it, else the message of the status."""
    error = reading.normal.error or (reading.normal.call and reading.normal.call.error)
    if error:
        return _plain_body(FailureBody, error)
    if status != "error":
        return None
    message = reading.stored.message.status.message or None
    return {"type": None, "message": message, "http_status": None}


def event_body(event: EventView) -> StepEvent:
    """Return a span event."""
    time, attributes = _time(event.time_ns), plain(event.attributes)
    return body_of(StepEvent, event, time=time, attributes=attributes)


def log_body(log: LogView) -> Log:
    """Return a log record that carries the step's ids."""
    return body_of(
        Log,
        log,
        event_name=log.event_name or None,
        time=_time(log.time_ns),
        severity_text=log.severity_text or None,
        body=plain(log.body),
        attributes=plain(log.attributes),
        scope=log.scope_name,
        resource=plain(log.resource),
    )


def _time(ns: int) -> str | None:
    # 0 is unknown; numbers no calendar holds stay numbers only.
    return time_text(ns) if 0 < ns < _MAX_NS else None


# SpanKind of OTLP; a number the protocol does not know yet is shown as the number.
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


def step_body(connection: apsw.Connection, step_id: str, *, now_ns: int) -> StepBody:
    """Return everything there is to say about a step, as the API and the command line say it."""
    step = get_step(connection, step_id, now_ns=now_ns)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    reading = read_step(connection, step.id)
    native = native_compilation(connection, step, reading, run=run.id)
    receipts = [] if native is None else receipts_of(connection, native.span)
    payloads = named_payloads(connection, reading.view, reading.normal)
    linked = links_to_step(connection, step, now_ns=now_ns)
    redactions = redactions_of(connection, "traces", step.id)
    return body_of(
        StepBody,
        step,
        **mention_of(step),
        **_record(reading),
        **_meaning(reading, step),
        annotations=standing_json(connection, target_of(step)),
        links=_links(connection, step, reading, now_ns=now_ns),
        linked_from=[skeleton_body(other) for other in linked],
        logs=[log_body(log) for log in reading.view.logs],
        context=context_body(connection, run, step, reading, native),
        receipts=[receipt_body(one) for one in receipts],
        payloads=[_payload(one) for one in payloads],
        gate=_gate(connection, step, reading),
        replays=replays_of_step(connection, step.step_id),
        redactions=[body_of(Redaction, one) for one in redactions],
        same_name=_compared(connection, step),
        raw_url=f"/v1/steps/{step.step_id}/raw",
    )


def _gate(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading
) -> GateOutcome | None:
    """Return what the gate did with the draft that a step proposed; None for one it did not see."""
    found = gated(connection, step, reading)
    if found is None:
        return None
    return body_of(
        GateOutcome,
        approval_id=found.approval_id or None,
        draft=found.revision or None,
        states=[label for label, _ in found.states],
        next_draft=found.next_revision or None,
        next_step_id=found.next_step_id or None,
        notes=[GateNote(by=by, note=note) for by, note in found.notes],
    )


def _record(reading: StepReading) -> dict[str, Any]:
    """What was sent, field by field."""
    span, view, stored = reading.stored.message, reading.view, reading.stored
    dropped = Dropped(
        attributes=span.dropped_attributes_count,
        events=span.dropped_events_count,
        links=span.dropped_links_count,
    )
    resource = Resource(attributes=plain(view.resource), schema_url=stored.resource.schema_url)
    scope = Scope(
        name=view.scope_name, version=view.scope_version, schema_url=stored.scope.schema_url
    )
    return {
        "span_name": span.name,
        "kind": _KINDS[span.kind] if span.kind < len(_KINDS) else str(span.kind),
        "trace_state": span.trace_state,
        "flags": span.flags,
        "status_message": span.status.message or None,
        "attributes": plain(view.attributes),
        "events": [event_body(event) for event in view.events],
        "dropped": dropped,
        "resource": resource,
        "scope": scope,
        "received_at": time_text(stored.received_ns),
    }


_READ = (
    "input", "output", "query", "prompt", "evaluations", "tags", "metadata", "conversation_id",
    "user_id",
)  # fmt: skip


def _meaning(reading: StepReading, step: StepSkeleton) -> dict[str, Any]:
    """What the dialect makes of it."""
    normal = reading.normal
    agent = AgentBody(
        name=normal.agent_name,
        id=normal.agent_id,
        description=normal.agent_description,
        workflow=normal.workflow_name,
    )
    return {
        **{name: plain(getattr(normal, name)) for name in _READ},
        "dialect": normal.dialect,
        "error": error_body(reading, step.status),
        "call": normal.call and call_body(normal.call),
        "tool": normal.tool and tool_body(normal.tool),
        "documents": [_plain_body(DocumentBody, one) for one in normal.documents],
        "agent": agent,
        "notes": [*reading.stored.notes, *normal.notes],
        "sources": dict(normal.sources),
    }


def _payload(named: NamedPayload) -> NamedPayloadBody:
    """Return a payload that the step names, with where its bytes are."""
    stored = named.payload
    return body_of(
        NamedPayloadBody,
        named,
        state=named.standing.value,
        media_type=stored and stored.media_type,
        stored_ref=stored and stored.ref,
        url=stored and f"/v1/payloads/{named.ref}",
    )


def _links(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, *, now_ns: int
) -> list[StepLink]:
    """Return the links as sent, each with the step it leads to when that is stored here."""
    sent = reading.stored.message.links
    ends = links_from(connection, [step.id], now_ns=now_ns, limit=len(sent))
    known = {(end.run_id, end.span_id): end.step for end in ends}
    bodies = []
    for link in sent:
        run_id, span_id = link.trace_id.hex(), link.span_id.hex()
        target = known.get((run_id, span_id))
        bodies.append(
            StepLink(
                run_id=run_id,
                span_id=span_id,
                step=None if target is None else skeleton_body(target),
                attributes=plain(current_attributes(attributes_dict(link.attributes))),
                trace_state=link.trace_state,
            )
        )
    return bodies


def _compared(connection: apsw.Connection, step: StepSkeleton) -> SameName | None:
    """Return how this duration stands among the last of the same name; None where none can."""
    others = recent_durations(connection, step)
    if step.duration_ns is None or not others:
        return None
    ordered = sorted(others)
    return SameName(
        count=len(others),
        longer_than=sum(other < step.duration_ns for other in others),
        median_ms=ordered[len(ordered) // 2] / 1_000_000,
    )

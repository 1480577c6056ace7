"""The normal form of a step as bodies of the API (DESIGN §7)."""

from __future__ import annotations

import apsw

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.payloads import NamedPayload, named_payloads
from hansard_compiler.calls import Call, Message, Tool, message_json
from hansard_compiler.renamed import current_attributes
from hansard_store.annotations.queries import standing_json
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
from hansard_web.annotations.panel import target_of
from hansard_web.api.bodies import skeleton_body
from hansard_web.api.values import Body, fields_of, milliseconds, ns_text, plain, time_text
from hansard_web.approvals.step_history import gated
from hansard_web.context.bodies import context_body, native_compilation
from hansard_web.receipts.bodies import receipt_body
from hansard_web.replay.json import replays_of_step

_MAX_NS = 1 << 63
_ERROR = ("type", "message", "http_status")
_TOKENS = (
    "input", "output", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", "reasoning",
)  # fmt: skip


def call_body(call: Call) -> Body:
    """Return a model call in the shape of DESIGN §7."""
    cost = call.cost
    return {
        **fields_of(call, "operation", "provider", "request_model", "response_model"),
        **fields_of(call, "response_id", "stream"),
        "input": [message_body(message) for message in call.input],
        "input_is_delta": call.input_is_delta,
        "output": [message_body(message) for message in call.output],
        **fields_of(call, "tools", "parameters", "finish_reason", "finish_reason_raw"),
        "tokens": fields_of(call.tokens, *_TOKENS),
        "cost": None
        if cost is None
        else {
            "usd": plain(cost.usd),
            "source": cost.source,
            "lines": [{"item": item, "usd": plain(usd)} for item, usd in cost.lines],
            "reported_usd": plain(cost.reported_usd),
        },
        "error": None if call.error is None else fields_of(call.error, *_ERROR),
        **fields_of(call, "time_to_first_token_ms", "sources"),
    }


def message_body(message: Message) -> Body:
    body: Body = plain(message_json(message))
    return {**body, "hash": message.hash.hex()}


def tool_body(tool: Tool) -> Body:
    return fields_of(tool, "name", "call_id", "type", "description", "arguments", "result")


def error_body(reading: StepReading, status: str) -> Body | None:
    """Return what went wrong: as the dialect tells it, else the message of the status."""
    error = reading.normal.error or (reading.normal.call and reading.normal.call.error)
    if error:
        return fields_of(error, *_ERROR)
    if status != "error":
        return None
    message = reading.stored.message.status.message or None
    return {"type": None, "message": message, "http_status": None}


def event_body(event: EventView) -> Body:
    """Return a span event."""
    return {
        "name": event.name,
        "time": _time(event.time_ns),
        "time_ns": ns_text(event.time_ns),
        "attributes": plain(event.attributes),
    }


def log_body(log: LogView) -> Body:
    """Return a log record that carries the step's ids."""
    return {
        "event_name": log.event_name or None,
        "time": _time(log.time_ns),
        "time_ns": ns_text(log.time_ns),
        "severity_number": log.severity_number,
        "severity_text": log.severity_text or None,
        "body": plain(log.body),
        "attributes": plain(log.attributes),
        "scope": log.scope_name,
        "resource": plain(log.resource),
    }


def _time(ns: int) -> str | None:
    # 0 is unknown; numbers no calendar holds stay numbers only.
    return time_text(ns) if 0 < ns < _MAX_NS else None


# SpanKind of OTLP; a number the protocol does not know yet is shown as the number.
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


def step_body(connection: apsw.Connection, step_id: str, *, now_ns: int) -> Body:
    """Return everything there is to say about a step, as the API and the command line say it."""
    step = get_step(connection, step_id, now_ns=now_ns)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    reading = read_step(connection, step.id)
    native = native_compilation(connection, step, reading, run=run.id)
    return {
        **skeleton_body(step),
        **_record(reading),
        **_meaning(reading, step),
        "annotations": standing_json(connection, target_of(step)),
        "links": _links(connection, step, reading, now_ns=now_ns),
        "linked_from": [
            skeleton_body(other) for other in links_to_step(connection, step, now_ns=now_ns)
        ],
        "logs": [log_body(log) for log in reading.view.logs],
        "context": context_body(connection, run, step, reading, native),
        "receipts": []
        if native is None
        else [receipt_body(one) for one in receipts_of(connection, native.span)],
        "payloads": [
            _payload(one) for one in named_payloads(connection, reading.view, reading.normal)
        ],
        "gate": _gate(connection, step, reading),
        "replays": replays_of_step(connection, step.step_id),
        "redactions": [
            fields_of(one, "rule", "field", "count")
            for one in redactions_of(connection, "traces", step.id)
        ],
        "same_name": _compared(connection, step),
        "raw_url": f"/v1/steps/{step.step_id}/raw",
    }


def _gate(connection: apsw.Connection, step: StepSkeleton, reading: StepReading) -> Body | None:
    """Return what the gate did with the draft that a step proposed; None for one it did not see."""
    found = gated(connection, step, reading)
    if found is None:
        return None
    return {
        "approval_id": found.approval_id or None,
        "draft": found.revision or None,
        "states": [label for label, _ in found.states],
        "next_draft": found.next_revision or None,
        "next_step_id": found.next_step_id or None,
    }


def _record(reading: StepReading) -> Body:
    """What was sent, field by field."""
    span, view, stored = reading.stored.message, reading.view, reading.stored
    return {
        "span_name": span.name,
        "kind": _KINDS[span.kind] if span.kind < len(_KINDS) else str(span.kind),
        "trace_state": span.trace_state,
        "flags": span.flags,
        "status_message": span.status.message or None,
        "attributes": plain(view.attributes),
        "events": [event_body(event) for event in view.events],
        "dropped": {
            "attributes": span.dropped_attributes_count,
            "events": span.dropped_events_count,
            "links": span.dropped_links_count,
        },
        "resource": {
            "attributes": plain(view.resource),
            "schema_url": stored.resource.schema_url,
        },
        "scope": {
            "name": view.scope_name,
            "version": view.scope_version,
            "schema_url": stored.scope.schema_url,
        },
        "received_at": time_text(stored.received_ns),
    }


def _meaning(reading: StepReading, step: StepSkeleton) -> Body:
    """What the dialect makes of it."""
    normal = reading.normal
    return {
        "dialect": normal.dialect,
        "error": error_body(reading, step.status),
        "call": None if normal.call is None else call_body(normal.call),
        "tool": None if normal.tool is None else tool_body(normal.tool),
        **fields_of(normal, "input", "output", "query"),
        "documents": [
            fields_of(one, "id", "content", "score", "metadata") for one in normal.documents
        ],
        **fields_of(normal, "prompt", "evaluations", "tags", "metadata"),
        **fields_of(normal, "conversation_id", "user_id"),
        "agent": {
            "name": normal.agent_name,
            "id": normal.agent_id,
            "description": normal.agent_description,
            "workflow": normal.workflow_name,
        },
        "notes": [*reading.stored.notes, *normal.notes],
        "sources": dict(normal.sources),
    }


def _payload(named: NamedPayload) -> Body:
    """Return a payload that the step names, with where its bytes are."""
    stored = named.payload
    return {
        **fields_of(named, "name", "attribute", "ref"),
        "state": named.standing.value,
        "media_type": None if stored is None else stored.media_type,
        "size": named.size,
        "stored_ref": None if stored is None else stored.ref,
        "url": None if stored is None else f"/v1/payloads/{named.ref}",
    }


def _links(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, *, now_ns: int
) -> list[Body]:
    """Return the links as sent, each with the step it leads to when that is stored here."""
    sent = reading.stored.message.links
    ends = links_from(connection, [step.id], now_ns=now_ns, limit=len(sent))
    known = {(end.run_id, end.span_id): end.step for end in ends}
    bodies = []
    for link in sent:
        run_id, span_id = link.trace_id.hex(), link.span_id.hex()
        target = known.get((run_id, span_id))
        bodies.append(
            {
                "run_id": run_id,
                "span_id": span_id,
                "step": None if target is None else skeleton_body(target),
                "attributes": plain(current_attributes(attributes_dict(link.attributes))),
                "trace_state": link.trace_state,
            }
        )
    return bodies


def _compared(connection: apsw.Connection, step: StepSkeleton) -> Body | None:
    """Return how this duration stands among the last of the same name; None where none can."""
    others = recent_durations(connection, step)
    if step.duration_ns is None or not others:
        return None
    ordered = sorted(others)
    return {
        "count": len(others),
        "longer_than": sum(other < step.duration_ns for other in others),
        "median_ms": milliseconds(ordered[len(ordered) // 2]),
    }

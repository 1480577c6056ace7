"""Approvals and events as the API, the command line and the SDK tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard_compiler.calls import Json
from hansard_store.approvals.records import Approval, Draft, Execution, Field, Status
from hansard_store.audit.event_types import Actor, ChainReport, Head, StoredEvent
from hansard_store.database.stored_json import json_of, own_copy
from hansard_store.ids import short_id
from hansard_store.principals.model import AUTHENTICATED, CLAIMED, is_same, person_text
from hansard_store.times import time_text


def approval_json(approval: Approval) -> Json:
    """Return an approval; `drafts` is null where they were not requested."""
    drafts = approval.drafts
    return {
        "approval_id": approval.approval_id,
        "short_id": short_id(approval.approval_id),
        "status": str(approval.status),
        "tool": approval.tool,
        "arguments": own_copy(approval.arguments),
        "arguments_hash": approval.arguments_hash,
        "is_redacted": approval.is_redacted,
        "must_repropose": not approval.is_exact,
        "description": approval.description,
        "fields": [_field(one) for one in approval.fields],
        "effect": approval.effect,
        "agent": approval.agent,
        "run_id": approval.run_id,
        "step_id": approval.step_id,
        "channel": approval.channel,
        "batch_id": approval.batch_id,
        "undo_of": approval.undo_of,
        "undo": _undo(approval),
        "revision": approval.revision,
        "note": approval.note,
        "reason": approval.reason,
        "drafts": None if drafts is None else [_draft(one) for one in drafts],
        "created_at": time_text(approval.created_ns),
        "updated_at": time_text(approval.updated_ns),
        "expires_at": time_text(approval.expires_ns),
        "requested_by": list(approval.requested_by),
        "requested_method": approval.requested_method,
        "decided_by": approval.decided_by,
        "decided_method": approval.decider_method,
        "decided_at": time_text(approval.decided_ns),
        "approvers": _approvers(approval),
        "approvals_required": approval.approvals_required,
        "approvals_left": approval.approvals_left,
        "approved_by": [
            {"name": one.name, "method": one.method or CLAIMED.method, "at": time_text(one.at_ns)}
            for one in approval.grants
        ],
        "policy": _policy(approval),
        "execution": _execution(approval),
    }


def progress_text(approval: Approval) -> str:
    """Return how many approved it so far, where it takes several; else nothing.

    `1 of 2 approved, by ana; 1 more needed`
    """
    if approval.approvals_required == 1:
        return ""
    names = [person_text(one.name, one.method or CLAIMED.method) for one in approval.approved_by]
    by = f", by {listed(names)}" if names else ""
    left = approval.approvals_left
    more = f"; {left} more needed" if left else ""
    return f"{len(names)} of {approval.approvals_required} approved{by}{more}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: `ana, bo and cid`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def is_claimed(event: StoredEvent) -> bool:
    """Whether the name of an event is not authenticated: a program or a terminal user gave it."""
    try:
        body = json_of(event.body)
    except ValueError:
        return True
    method = body.get("auth_method") if isinstance(body, dict) else None
    if event.actor == Actor.SYSTEM:
        return False
    if method is None:  # a person of an earlier version, or of a command
        return event.actor == Actor.ME and bool(event.who)
    return method not in AUTHENTICATED or not is_same(str(body.get("principal")), event.who)


def event_json(event: StoredEvent) -> Json:
    """Return an event; `contents` are the drafts and notes that its body refers to."""
    run_id = event.trace_id.hex() if event.trace_id else None
    return {
        "seq": event.seq,
        "time": time_text(event.time_ns),
        "late": event.late,
        "type": event.type,
        "actor": event.actor,
        "who": event.who,
        "is_claimed": is_claimed(event),
        "action": event.action,
        "source": event.source,
        "subject": event.subject,
        "approval_id": event.approval_id.hex() if event.approval_id else None,
        "run_id": run_id,
        "step_id": f"{run_id}-{event.span_id.hex()}" if run_id and event.span_id else None,
        "body": json_of(event.body),
        "contents": own_copy(dict(event.contents)),
        "prev_hash": event.prev_hash.hex(),
        "hash": event.hash.hex(),
    }


def head_json(head: Head) -> Json:
    """Return the head of the chain; `anchor` is what to keep elsewhere."""
    return {"seq": head.seq, "hash": head.hash.hex(), "anchor": head.text}


def report_json(report: ChainReport) -> Json:
    """Return what checking the chain found."""
    broken = report.broken
    return {
        "valid": report.is_sound,
        "checked": report.checked,
        "head": head_json(report.head),
        "anchor": report.anchor.text if report.anchor else None,
        "heads_checked": report.heads_checked,
        "broken": None if broken is None else {"seq": broken.seq, "problem": broken.problem},
    }


def _field(one: Field) -> Json:
    return {
        "name": one.name,
        "value": own_copy(one.value),
        "flag": one.flag,
        "flag_reason": one.why,
        "is_truncated": one.is_cut,
    }


def _draft(one: Draft) -> Json:
    return {
        "revision": one.revision,
        "arguments": own_copy(one.arguments),
        "description": one.description,
        "by": one.by,
        "at": time_text(one.time_ns),
        "note": one.note,
        "note_by": one.note_by,
        "note_is_claimed": one.note_is_claimed,
    }


def _undo(approval: Approval) -> Json | None:
    if approval.undo is None:
        return None
    return {"tool": approval.undo["tool"], "arguments": own_copy(approval.undo["arguments"])}


def _approvers(approval: Approval) -> list[Any]:
    is_open = approval.status is Status.AWAITING
    return [
        {
            "name": one.name,
            "escalates_after_s": None if one.within_ns is None else one.within_ns / 1e9,
            "is_requested": is_open and number < approval.asked,
        }
        for number, one in enumerate(approval.approvers)
    ]


def _policy(approval: Approval) -> Json:
    note = approval.policy
    return {
        "effect": note.effect,
        "rule_ids": list(note.rule_ids),
        "reason": note.reason,
        "obligations": list(note.obligations),
        "check_id": note.check_id,
        "receipts": list(note.receipts),
    }


def _execution(approval: Approval) -> Json:
    ran = approval.execution
    return {
        "state": ran.state,
        "claimed_at": time_text(ran.claimed_ns),
        "finished_at": time_text(ran.finished_ns),
        "result_ref": ran.result_ref,
        "error": ran.error,
        "settled": _settled(ran),
    }


def _settled(ran: Execution) -> Json | None:
    if ran.settled_by is None:
        return None
    return {
        "by": ran.settled_by,
        "method": ran.settled_method or CLAIMED.method,
        "at": time_text(ran.settled_ns),
        "outcome": "ran" if ran.state == "done" else "did_not_run",
        "note": ran.settled_note,
    }

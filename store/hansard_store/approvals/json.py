"""Approvals and events as the API, the command line and the SDK tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from hansard_store.approvals.records import (
    Approval,
    Draft,
    Effect,
    Execution,
    ExecutionState,
    Flag,
    Outcome,
    Status,
)
from hansard_store.audit.event_types import Actor, ChainReport, Head, StoredEvent
from hansard_store.bodies import Body, BodyT, Description, body_of
from hansard_store.database.stored_json import json_of, own_copy
from hansard_store.ids import short_id
from hansard_store.principals.model import AUTHENTICATED, CLAIMED, Method, is_same, person_text
from hansard_store.times import time_text


class ShownField(Body):
    """An argument as a person is shown it: nothing in its text is invisible."""

    name: str
    value: str
    flag: Flag | None
    flag_reason: str | None
    is_truncated: Annotated[bool, Description("the value is longer than what is shown")]


class ApprovalNoteBody(Body):
    """The note that a person added when approving a draft."""

    note: str
    by: str
    is_claimed: Annotated[bool, Description("nobody authenticated the name in `by`")]
    at: str


class DraftBody(Body):
    revision: int
    arguments: dict[str, Any]
    description: str
    by: str
    at: str
    note: Annotated[str | None, Description("with which the draft was sent back")]
    note_by: str | None
    note_is_claimed: Annotated[bool, Description("nobody authenticated the name in `note_by`")]
    approval_notes: Annotated[
        list[ApprovalNoteBody], Description("added by those who approved the draft, in order")
    ]


class ActionBody(Body):
    tool: str
    arguments: dict[str, Any]


class ApproverBody(Body):
    name: str
    escalates_after_s: float | None
    is_requested: bool


class RecordedApproval(Body):
    """One person's approval of the current draft."""

    name: str
    method: Method
    at: str


class PolicyNoteBody(Body):
    effect: str | None
    rule_ids: list[str]
    reason: str | None
    obligations: list[str]
    check_id: int | None
    receipts: list[str]


class SettledBody(Body):
    """What a person found of an outcome that nobody knew."""

    by: str
    method: Method
    at: str
    outcome: Outcome
    note: Annotated[str, Description("how they know")]


class ExecutionBody(Body):
    state: ExecutionState
    claimed_at: str | None
    finished_at: str | None
    result_ref: str | None
    error: str | None
    settled: SettledBody | None


class ApprovalItem(Body):
    """A pending action in its current state; arguments are without secrets."""

    approval_id: str
    short_id: str
    status: Literal["awaiting", "revised", "approved", "rejected", "expired"]
    tool: str
    arguments: dict[str, Any]
    arguments_hash: str
    is_redacted: bool
    must_repropose: Annotated[
        bool, Description("only a caller with the exact arguments can run it")
    ]
    description: str
    fields: list[ShownField]
    effect: Effect
    agent: str | None
    run_id: str | None
    step_id: str | None
    channel: str | None
    batch_id: str | None
    undo_of: str | None
    undo: ActionBody | None
    revision: int
    note: str | None
    reason: str | None
    drafts: Annotated[list[DraftBody] | None, Description("null in lists")]
    created_at: str
    updated_at: str
    expires_at: str
    requested_by: Annotated[list[str], Description("principals that requested it; none decides")]
    requested_method: Method | None
    decided_by: str | None
    decided_method: Annotated[Method | None, Description("how `decided_by` is known")]
    decided_at: str | None
    approvers: list[ApproverBody]
    approvals_required: Annotated[int, Description("of distinct people")]
    approvals_left: Annotated[int, Description("how many people more; 0 once it is decided")]
    approved_by: Annotated[list[RecordedApproval], Description("of the current draft")]
    policy: PolicyNoteBody
    execution: ExecutionBody


def approval_json(approval: Approval) -> ApprovalItem:
    """Return an approval; `drafts` is null where they were not requested."""
    return approval_body(ApprovalItem, approval)


def approval_body(kind: type[BodyT], approval: Approval, **more: Any) -> BodyT:
    """Return an approval as a body that has `more` than ApprovalItem."""
    drafts, is_open = approval.drafts, approval.status is Status.AWAITING
    return body_of(
        kind,
        approval,
        short_id=short_id(approval.approval_id),
        status=str(approval.status),
        arguments=own_copy(approval.arguments),
        must_repropose=not approval.is_exact,
        fields=[
            body_of(ShownField, one, flag_reason=one.why, is_truncated=one.is_cut)
            for one in approval.fields
        ],
        undo=_undo(approval),
        drafts=None if drafts is None else [_draft(one) for one in drafts],
        decided_method=approval.decider_method,
        approvers=[
            body_of(
                ApproverBody,
                one,
                escalates_after_s=None if one.within_ns is None else one.within_ns / 1e9,
                is_requested=is_open and number < approval.asked,
            )
            for number, one in enumerate(approval.approvers)
        ],
        approved_by=[
            body_of(
                RecordedApproval,
                one,
                method=one.method or CLAIMED.method,
                at=time_text(one.at_ns),
            )
            for one in approval.grants
        ],
        policy=body_of(PolicyNoteBody, approval.policy),
        execution=_execution(approval.execution),
        **more,
    )


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


class AuditEvent(Body):
    """An entry of the audit log; `contents` are drafts and notes that its body refers to."""

    seq: int
    time: str
    late: bool
    type: str
    actor: Literal["agent", "me", "tool", "system"]
    who: str
    is_claimed: Annotated[
        bool, Description("`who` is a name that a program gave, not authenticated")
    ]
    action: str
    source: str
    subject: str
    approval_id: str | None
    run_id: str | None
    step_id: str | None
    body: dict[str, Any]
    contents: dict[str, Any]
    prev_hash: str
    hash: str


class HeadItem(Body):
    seq: int
    hash: str
    anchor: Annotated[str, Description("what to keep elsewhere, and to verify against")]


class Broken(Body):
    seq: int
    problem: str


class ChainReportBody(Body):
    """What checking the chain found; without an anchor a cut end is not seen."""

    valid: bool
    checked: int
    head: HeadItem
    anchor: str | None
    heads_checked: Annotated[int, Description("kept heads that it was held against")]
    broken: Broken | None


def event_json(event: StoredEvent) -> AuditEvent:
    """Return an event; `contents` are the drafts and notes that its body refers to."""
    run_id = event.trace_id.hex() if event.trace_id else None
    return body_of(
        AuditEvent,
        event,
        time=time_text(event.time_ns),
        is_claimed=is_claimed(event),
        approval_id=event.approval_id.hex() if event.approval_id else None,
        run_id=run_id,
        step_id=f"{run_id}-{event.span_id.hex()}" if run_id and event.span_id else None,
        body=json_of(event.body),
        contents=own_copy(dict(event.contents)),
        prev_hash=event.prev_hash.hex(),
        hash=event.hash.hex(),
    )


def head_json(head: Head) -> HeadItem:
    """Return the head of the chain; `anchor` is what to keep elsewhere."""
    return body_of(HeadItem, head, hash=head.hash.hex(), anchor=head.text)


def report_json(report: ChainReport) -> ChainReportBody:
    """Return what checking the chain found."""
    return body_of(
        ChainReportBody,
        report,
        valid=report.is_sound,
        head=head_json(report.head),
        anchor=report.anchor.text if report.anchor else None,
        broken=report.broken and body_of(Broken, report.broken),
    )


def _draft(one: Draft) -> DraftBody:
    return body_of(
        DraftBody,
        one,
        arguments=own_copy(one.arguments),
        at=time_text(one.time_ns),
        approval_notes=[
            body_of(ApprovalNoteBody, note, at=time_text(note.time_ns))
            for note in one.approval_notes
        ],
    )


def _undo(approval: Approval) -> ActionBody | None:
    if approval.undo is None:
        return None
    return {"tool": approval.undo["tool"], "arguments": own_copy(approval.undo["arguments"])}


def _execution(ran: Execution) -> ExecutionBody:
    settled: SettledBody | None = None
    if ran.settled_by is not None:
        settled = body_of(
            SettledBody,
            by=ran.settled_by,
            method=ran.settled_method or CLAIMED.method,
            at=time_text(ran.settled_ns),
            outcome="ran" if ran.state == "done" else "did_not_run",
            note=ran.settled_note,
        )
    return body_of(ExecutionBody, ran, settled=settled)

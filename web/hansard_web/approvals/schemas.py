"""What the routes of approvals and events answer, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_store.principals.model import Method
from hansard_web.api.schemas import Answer, Body, Page

Status = Literal["awaiting", "revised", "approved", "rejected", "expired"]
ExecutionState = Literal["none", "claimed", "done", "failed", "unknown", "not_run"]


class ShownField(Body):
    """An argument as a person is shown it: nothing in its text is invisible."""

    name: str
    value: str
    flag: Literal["not_in_context", "changed", "hidden"] | None
    flag_reason: str | None
    is_truncated: bool = Field(description="the value is longer than what is shown")


class Draft(Body):
    revision: int
    arguments: dict[str, Any]
    description: str
    by: str
    at: str
    note: str | None
    note_by: str | None
    note_is_claimed: bool = Field(description="nobody authenticated the name in `note_by`")


class Action(Body):
    tool: str
    arguments: dict[str, Any]


class Approver(Body):
    name: str
    escalates_after_s: float | None
    is_requested: bool


class RecordedApproval(Body):
    """One person's approval of the current draft."""

    name: str
    method: Method
    at: str


class PolicyNote(Body):
    effect: str | None
    rule_ids: list[str]
    reason: str | None
    obligations: list[str]
    check_id: int | None
    receipts: list[str]


class Settled(Body):
    """What a person found of an outcome that nobody knew."""

    by: str
    method: Method
    at: str
    outcome: Literal["ran", "did_not_run"]
    note: str = Field(description="how they know")


class Execution(Body):
    state: ExecutionState
    claimed_at: str | None
    finished_at: str | None
    result_ref: str | None
    error: str | None
    settled: Settled | None


class ApprovalItem(Body):
    """A pending action in its current state; arguments are without secrets."""

    approval_id: str
    short_id: str
    status: Status
    tool: str
    arguments: dict[str, Any]
    arguments_hash: str
    is_redacted: bool
    must_repropose: bool = Field(description="only a caller with the exact arguments can run it")
    description: str
    fields: list[ShownField]
    effect: Literal["read", "write"]
    agent: str | None
    run_id: str | None
    step_id: str | None
    channel: str | None
    batch_id: str | None
    undo_of: str | None
    undo: Action | None
    revision: int
    note: str | None
    reason: str | None
    drafts: list[Draft] | None = Field(description="null in lists")
    created_at: str
    updated_at: str
    expires_at: str
    requested_by: list[str] = Field(description="principals that requested it; none decides")
    requested_method: Method | None
    decided_by: str | None
    decided_method: Method | None = Field(description="how `decided_by` is known")
    decided_at: str | None
    approvers: list[Approver]
    approvals_required: int = Field(description="of distinct people")
    approvals_left: int = Field(description="how many people more; 0 once it is decided")
    approved_by: list[RecordedApproval] = Field(description="of the current draft")
    policy: PolicyNote
    execution: Execution


class Approval(Answer, ApprovalItem):
    memories: list[str] = Field(description="ids of what was written to memory under it")
    token: str | None = Field(
        default=None, description="to claim with; only for the proposal key, once approved"
    )


class Proposed(Answer, ApprovalItem):
    proposal_key: str = Field(description="keep it: it fetches the token")
    replaced: list[str] = Field(description="approvals that ended for this one")


class ProposedItem(ApprovalItem):
    proposal_key: str
    replaced: list[str]


class ProposedBatch(Answer):
    batch_id: str
    items: list[ProposedItem]


class ApprovedBatch(Answer):
    batch_id: str
    items: list[ApprovalItem]


class Approvals(Page):
    """Approvals, the newest first."""

    items: list[ApprovalItem]
    waiting: dict[str, int] = Field(description="how many are awaiting and revised, in all")


class Claimed(Answer):
    claim_id: str
    arguments: dict[str, Any]
    approval_id: str


class AuditEvent(Body):
    """An entry of the audit log; `contents` are drafts and notes that its body refers to."""

    seq: int
    time: str
    late: bool
    type: str
    actor: Literal["agent", "me", "tool", "system"]
    who: str
    is_claimed: bool = Field(description="`who` is a name that a program gave, not authenticated")
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


class Events(Page):
    """Events, the newest first."""

    items: list[AuditEvent]


class Noted(Answer):
    seq: int


class HeadItem(Body):
    seq: int
    hash: str
    anchor: str = Field(description="what to keep elsewhere, and to verify against")


class Head(Answer, HeadItem):
    pass


class Broken(Body):
    seq: int
    problem: str


class Verified(Answer):
    """What checking the chain found; without an anchor a cut end is not seen."""

    valid: bool
    checked: int
    head: HeadItem
    anchor: str | None
    heads_checked: int = Field(description="kept heads that it was held against")
    broken: Broken | None

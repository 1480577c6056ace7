"""Approvals as records: what is proposed, where it stands, what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, get_args

from hansard_compiler.calls import Json

# The states of an approval, and which may follow which. Pure.
#
# `revised` is not the end: the agent brings the action back to `awaiting` with a new draft. That a
# revised one may also be rejected or expire is our reading (an agent that never answers would block
# for ever); that it cannot be approved follows from there being no draft to approve.


class Status(StrEnum):
    """Where a pending action stands."""

    AWAITING = "awaiting"
    REVISED = "revised"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


PENDING: Final = frozenset({Status.AWAITING, Status.REVISED})
TERMINAL: Final = frozenset(Status) - PENDING
LEGAL: Final = frozenset(
    {
        (Status.AWAITING, Status.APPROVED),
        (Status.AWAITING, Status.REJECTED),
        (Status.AWAITING, Status.REVISED),
        (Status.AWAITING, Status.EXPIRED),
        (Status.REVISED, Status.AWAITING),  # only together with a new draft
        (Status.REVISED, Status.REJECTED),
        (Status.REVISED, Status.EXPIRED),
    }
)


def is_legal(current: Status, target: Status) -> bool:
    """Say whether one state may follow another."""
    return (current, target) in LEGAL


Flag = Literal["not_in_context", "changed", "hidden"]
Effect = Literal["read", "write"]
ExecutionState = Literal["none", "claimed", "done", "failed", "unknown", "not_run"]
EXECUTION_STATES: Final[tuple[ExecutionState, ...]] = get_args(ExecutionState)
Outcome = Literal["ran", "did_not_run"]  # of what nobody knew, as a person found it

SUPERSEDED: Final = "superseded"  # the reason of Hansard's own rejection: a newer proposal
HOUR_NS = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Field:
    """An argument as a person is shown it: its text has nothing invisible in it."""

    name: str
    value: str
    flag: Flag | None = None  # the gravest
    why: str | None = None  # the flag in words
    is_cut: bool = False  # the value is longer than what is shown


@dataclass(frozen=True, slots=True)
class Approver:
    """Somebody who is asked, and how long before the next one is; None: as long as it lives."""

    name: str
    within_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """One person's approval of the draft that is there, where several are needed."""

    name: str
    method: str | None  # how the name is known
    at_ns: int


@dataclass(frozen=True, slots=True)
class Action:
    """A tool and its arguments."""

    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class PolicyNote:
    """What policy decided of an action."""

    effect: str | None = None  # None: no policy decided
    rule_ids: tuple[str, ...] = ()
    reason: str | None = None
    obligations: tuple[str, ...] = ()
    check_id: int | None = None
    receipts: tuple[str, ...] = ()  # event:SEQ of receipts that had to be stored first
    facts: Mapping[str, str] = field(default_factory=dict)  # its facts beside the action
    approvals_required: int = 1  # of distinct people
    approvers: tuple[str, ...] | None = None  # out of whom; None: rules name nobody


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that is to be approved before it runs. Arguments are exact: secrets included."""

    tool: str
    arguments: Mapping[str, Any]
    description: str | None = None
    flags: Mapping[str, Flag] = field(default_factory=dict)  # of arguments, by name
    effect: Effect = "write"
    agent: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    channel: str | None = None
    lifetime_ns: int = HOUR_NS
    one_per_channel: bool = False  # it takes the place of what is pending there
    undo_of: str | None = None
    undo: Action | None = None
    approvers: Sequence[Approver] = ()
    approvals_required: int = 1  # of distinct people, out of the approvers where there are any
    batch_id: str | None = None  # of the proposer's own choice: 32 hex digits
    proposer_policy: PolicyNote | None = None  # the decision of the proposer's own rules
    proposal_key: str | None = None  # sent again, it is the same proposal
    facts: Mapping[str, str] = field(default_factory=dict)  # for policy (policy_port.FACTS)
    requested_by: tuple[str, ...] = ()  # of what undoes an action: who requested the action


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of an approved action."""

    state: ExecutionState = "none"
    claimed_ns: int | None = None
    finished_ns: int | None = None
    result_ref: str | None = None
    error: str | None = None
    holder: str | None = None
    settled_ns: int | None = None
    settled_by: str | None = None  # the person who said so, where its program could not
    settled_note: str | None = None
    settled_method: str | None = None  # how that person is known; None: not on record


@dataclass(frozen=True, slots=True)
class ApprovalNote:
    """The note that a person added when approving a draft."""

    note: str
    by: str  # actor:name
    is_claimed: bool  # nobody authenticated the name in `by`
    time_ns: int


@dataclass(frozen=True, slots=True)
class Draft:
    """One version of the action, as the log has it; `note` is what sent it back."""

    revision: int
    arguments: Json
    description: str
    by: str  # actor:name
    time_ns: int
    note: str | None = None
    note_by: str | None = None
    note_is_claimed: bool = False  # nobody authenticated the name in `note_by`
    approval_notes: tuple[ApprovalNote, ...] = ()  # in order; an approval without a note has none


@dataclass(frozen=True, slots=True)
class Approval:
    """A pending action in its current state. Ids are hex digits, arguments without secrets."""

    number: int
    approval_id: str
    status: Status
    revision: int
    version: int
    tool: str
    arguments: Json
    arguments_hash: str
    is_redacted: bool
    is_exact: bool  # the exact arguments can be had from the record
    description: str
    fields: tuple[Field, ...]
    effect: str
    agent: str | None
    run_id: str | None
    step_id: str | None
    channel: str | None
    batch_id: str | None
    undo_of: str | None
    undo: Json | None
    created_ns: int
    updated_ns: int
    lifetime_ns: int
    expires_ns: int
    approvers: tuple[Approver, ...]
    asked: int  # of them so far
    escalates_ns: int | None
    policy: PolicyNote
    proposal_key: bytes  # its hash
    note: str | None = None
    reason: str | None = None
    decided_by: str | None = None
    decided_ns: int | None = None
    token: bytes | None = None  # its hash
    token_ends_ns: int | None = None
    requested_by: tuple[str, ...] = ()  # the principals that requested it; empty: unknown
    requested_method: str | None = None  # how they are known; None: not on record
    decided_method: str | None = None  # how `decided_by` is known; None: not on record
    approvals_required: int = 1  # of distinct people
    approved_by: tuple[Grant, ...] = ()  # of this draft so far; empty where one is enough
    execution: Execution = Execution()
    drafts: tuple[Draft, ...] | None = None  # None: not requested

    @property
    def is_pending(self) -> bool:
        return self.status in PENDING

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.approval_id)

    @property
    def decider_method(self) -> str | None:
        """How the person who decided is known; None where Hansard did, or nobody has yet.

        Every decision of a person has its method on record. Of an earlier version (0.1) none has:
        those names were claimed, but where time or a newer proposal ended the action.
        """
        if self.decided_by is None or self.decided_method is not None:
            return self.decided_method
        is_own = self.status is Status.EXPIRED or (
            self.status is Status.REJECTED and self.reason == SUPERSEDED
        )
        return None if is_own else "claimed"

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Who approved the draft that is there, also where one is enough."""
        if self.approvals_required > 1 or self.status is not Status.APPROVED:
            return self.approved_by
        return (Grant(self.decided_by or "", self.decided_method, self.decided_ns or 0),)

    @property
    def approvals_left(self) -> int:
        """How many people more have to approve this draft; 0 once it is decided."""
        return self.approvals_required - len(self.grants) if self.is_pending else 0


@dataclass(frozen=True, slots=True)
class Proposed:
    """What the proposer gets; the key fetches the token once the action is approved."""

    approval: Approval
    proposal_key: str
    replaced: tuple[str, ...] = ()  # approvals that ended for this one


@dataclass(frozen=True, slots=True)
class ApprovalClaim:
    """The right to run an action, once, with exactly these arguments."""

    claim_id: str
    approval: Approval
    arguments: Json


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Conditions on approvals, all of which must hold; None leaves one out."""

    status: tuple[str, ...] = ()
    channel: str | None = None
    run_id: str | None = None
    agent: str | None = None
    tool: str | None = None
    batch_id: str | None = None
    execution: ExecutionState | None = None  # claimed or unknown: what needs a look

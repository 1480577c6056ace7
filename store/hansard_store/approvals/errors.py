"""Why an approval, a claim or a proposal is refused.

ApprovalConflict (HTTP 409)   it stands otherwise than the caller believed; `details` say how
├── AlreadyDecided            somebody was first: the details hold the first decision
├── IllegalTransition         that state cannot follow this one
├── ApprovalExpired           its time is over
├── RevisionChanged           another draft than the one that was looked at
├── AnotherApproverRequired             the same person approves the same draft a second time
├── NotAnApprover (HTTP 403)       this person is not, or not yet, among those who are asked
├── RecordAltered             its row is not as Hansard wrote it: look at `hansard verify`
├── ClaimRefused              it may not run: already_claimed not_approved arguments_changed …
├── OutcomeKnown              how it ended is known: nobody has to settle it
├── NotUndoable               there is nothing to undo, or no way to
└── ProposalKeyReused         the key stands for another proposal
ActionBlocked (HTTP 403)      policy denies it
InvalidProposal (HTTP 400)        what cannot be proposed, shown or kept
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hansard_store.errors import StoreError

ClaimCode = Literal[
    "not_approved", "already_claimed", "token_used", "token_expired", "bad_token",
    "arguments_changed", "must_repropose", "record_altered", "not_claimed", "already_finished",
    "settled_already", "store_rolled_back",
]  # fmt: skip


class ApprovalConflict(StoreError):
    """The approval is not in the state that the caller believed it to be in."""

    code = "conflict"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class AlreadyDecided(ApprovalConflict):
    """Somebody else decided first; `details["decision"]` says who and how."""

    code = "already_decided"


class IllegalTransition(ApprovalConflict):
    """That state cannot follow the one it is in."""

    code = "illegal_transition"


class ApprovalExpired(ApprovalConflict):
    """Nobody decided in time."""

    code = "expired"


class RevisionChanged(ApprovalConflict):
    """There is another draft now than the one that was decided on."""

    code = "revision_changed"


class RevisionRequired(ApprovalConflict):
    """It has had several drafts: approve one of them; `details["revision"]` is the current one."""

    code = "revision_required"


class AnotherApproverRequired(ApprovalConflict):
    """Another person has to approve: this one approved the same draft before."""

    code = "another_approver_required"


class NotAnApprover(ApprovalConflict):
    """Others are to decide about this one: `details["requested_approvers"]`. Answered with 403."""

    code = "not_an_approver"


class RecordAltered(ApprovalConflict):
    """The approval is not as Hansard wrote it: nothing is decided by it, and nothing runs."""

    code = "record_altered"


class ClaimRefused(ApprovalConflict):
    """The action may not run; the code says why."""

    def __init__(self, code: ClaimCode, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


class OutcomeKnown(ApprovalConflict):
    """Only an outcome that nobody knows is settled by a person."""

    code = "outcome_known"


class NotUndoable(ApprovalConflict):
    """There is nothing to undo, or nobody said how."""

    code = "not_undoable"


class ProposalKeyReused(ApprovalConflict):
    """The same proposal key came with another proposal."""

    code = "proposal_key_reused"


class ActionBlocked(StoreError):
    """Policy denies the action; nothing was created."""

    code = "blocked"

    def __init__(self, tool: str, reason: str, rule_ids: Sequence[str]) -> None:
        super().__init__(f"policy blocks {tool!r}: {reason}")
        self.details = {"tool": tool, "reason": reason, "rule_ids": list(rule_ids)}


class InvalidProposal(StoreError):
    """Something about a proposal or a decision cannot be meant; `name` is which part."""

    code = "invalid_proposal"

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.details = {"parameter": name}

"""A person's decision from a form: the same calls of the store as the API and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hansard_store.approvals.errors import BadProposal
from hansard_store.approvals.records import Approval
from hansard_store.approvals.service import Accountability
from hansard_web.approvals.argument_editing import read_arguments
from hansard_web.approvals.labels import clean

_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Decision:
    """What a form says; `by` is who decides."""

    kind: str
    by: str
    note: str = ""
    result_ref: str = ""  # of what ran, where a person settles that it did
    revision: int | None = None  # the draft that was looked at
    arguments: str = ""  # as edited, JSON; "" as they are
    seen: Mapping[str, int] = field(default_factory=dict)  # of a batch: approval -> its draft


def decide(store: Accountability, approval_id: str, given: Decision) -> Approval:
    """Take a decision, and return the approval to show then.

    Raises ApprovalConflict (with the first decision), BadProposal, ActionBlocked.
    """
    note, revision = given.note.strip(), given.revision
    match given.kind:
        case "approve":
            edited = read_arguments(given.arguments) if given.arguments else None
            return store.approve(
                approval_id, by=given.by, arguments=edited, revision=revision, comment=note or None
            )
        case "reject":
            return store.reject(approval_id, by=given.by, reason=note or None, revision=revision)
        case "revise":
            return store.revise(approval_id, note=note, by=given.by, revision=revision)
        case "approve_batch":
            return _approve_batch(store, approval_id, given)
        case "ran" | "did_not_run" as outcome:
            return store.settle_outcome(
                approval_id, outcome, note=note, by=given.by, result_ref=given.result_ref or None
            )
        case "undo":
            return store.undo(approval_id, by=given.by).approval
    raise BadProposal("decision", f"there is no decision {clean(given.kind[:40])!r}")


def read_seen(texts: list[str]) -> dict[str, int]:
    """Read which draft of which action was looked at: `ID:REVISION`."""
    found = (one.partition(":") for one in texts)
    return {
        approval_id: int(revision)
        for approval_id, _, revision in found
        if len(approval_id) == _DIGITS and revision.isascii() and revision.isdecimal()
    }


def _approve_batch(store: Accountability, approval_id: str, given: Decision) -> Approval:
    approval = store.approval(approval_id)
    if approval.batch_id is None:
        raise BadProposal("decision", "this action was proposed alone")
    store.approve_batch(approval.batch_id, by=given.by, revisions=given.seen)
    return store.approval(approval_id)

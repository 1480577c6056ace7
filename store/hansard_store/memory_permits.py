"""Who may write memory: a closed list of writers, each with what entitles it.

What a model says is none of them. It lands in memory when the program says so in its own name, when
a person approved it, or when a declared summarizer made it in a step that can be looked at.
"""

from __future__ import annotations

import hmac
from typing import Final

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.memory_models import EndApprovedMemory, WriteMemory
from hansard_store import approvals
from hansard_store.accounting import Who
from hansard_store.approval_claims import find_claim
from hansard_store.approval_records import Approval
from hansard_store.approval_states import Status
from hansard_store.argument_keeping import Keeper
from hansard_store.event_types import Actor
from hansard_store.memory_errors import NotApproved, WriterRefused
from hansard_store.memory_types import NewMemory
from hansard_store.principals.model import METHODS, Method, Principal

INVALIDATE_TOOL: Final = "hansard.invalidate_memory"  # an action of this name ends memory


def check_permit(
    connection: apsw.Connection, asked: WriteMemory, new: NewMemory
) -> Approval | None:
    """Return the approval that permits it, None where none is named.

    Raises WriterRefused unless the writer has what it needs, as the store knows it now.
    """
    approval = None if asked.approval_id is None else _found(connection, asked)
    match asked.writer:
        case "post_step_summarizer":
            if asked.step_id is None:
                raise WriterRefused(asked.writer, "it must name the step that summarized (step_id)")
        case "approved_tool_output":
            approval = _approved(asked, approval)
            if approval.execution.state != "done":
                state = approval.execution.state
                raise WriterRefused(asked.writer, f"the approved call's execution is {state!r}")
        case "human_approved_summary":
            approval = _approved(asked, approval)
            if approval.arguments.get("content") != new.kept.content:
                raise WriterRefused(
                    asked.writer, "its content is not the argument `content` that was approved"
                )
    return approval


def check_end(connection: apsw.Connection, asked: EndApprovedMemory, keeper: Keeper) -> Approval:
    """Return the approved action that ends exactly this memory, and is being run now.

    Raises NotApproved; the claim's id is known to its holder alone.
    """
    claim = find_claim(connection, asked.claim_id)
    if claim is None or claim.approval_id != asked.approval_id:
        raise NotApproved("there is no such claim of this approval")
    approval = approvals.get(connection, asked.approval_id)
    if approval.tool != INVALIDATE_TOOL:
        raise NotApproved(f"the approved action is {approval.tool}")
    if approval.status is not Status.APPROVED or claim.state != "claimed":
        raise NotApproved(f"the approval is {approval.status}, its execution {claim.state}")
    arguments = {"memory_id": asked.memory_id, "reason": asked.reason}
    if not hmac.compare_digest(keeper.hash_of(arguments), approval.arguments_hash):
        raise NotApproved("this memory, or this reason, is not what was approved")
    return approval


def decider_of(approval: Approval) -> Who:
    """Return who approved an action, and how that is known."""
    method: Method = next((one for one in METHODS if one == approval.decided_method), "claimed")
    name = approval.decided_by or ""
    return Who(Actor.ME, name, Principal(name, frozenset(), method))


def _found(connection: apsw.Connection, asked: WriteMemory) -> Approval:
    try:
        return approvals.get(connection, asked.approval_id or "")
    except (NotFoundError, AmbiguousIdError) as error:
        raise WriterRefused(asked.writer, str(error)) from None


def _approved(asked: WriteMemory, approval: Approval | None) -> Approval:
    if approval is None:
        raise WriterRefused(asked.writer, "it needs an approval (approval_id)")
    if approval.status is not Status.APPROVED:
        raise WriterRefused(asked.writer, f"the approval is {approval.status}")
    return approval

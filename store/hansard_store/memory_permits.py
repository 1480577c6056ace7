"""Who may write memory: a closed list of writers, each with what entitles it.

What a model says is none of them. It lands in memory when the program says so in its own name, when
a person approved it, or when a declared summarizer made it in a step that can be looked at.
"""

from __future__ import annotations

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.memory_models import WriteMemory
from hansard_store import approvals
from hansard_store.approval_records import Approval
from hansard_store.approval_states import Status
from hansard_store.memory_errors import WriterRefused
from hansard_store.memory_types import NewMemory


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

"""Who may write memory: a closed list of writers, each with what entitles it.

What a model says is none of them. It lands in memory when the program says so in its own name, when
a person approved it, or when a declared summarizer made it in a step that can be looked at.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_compiler.canonical import content_digest
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.models.memory import EndApprovedMemory, WriteMemory
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.claim_rows import find_claim
from hansard_store.approvals.records import Approval, Status
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor, EventFilter, EventType, StoredEvent
from hansard_store.audit.events import read_events
from hansard_store.content.retention import Retention
from hansard_store.database.stored_json import object_of
from hansard_store.ids import short_id
from hansard_store.memory.errors import NotApproved, WriterRefused
from hansard_store.memory.records import NewMemory
from hansard_store.principals.model import (
    AUTHENTICATED,
    CLAIMED,
    METHODS,
    Method,
    Principal,
    is_same,
)

INVALIDATE_TOOL: Final = "hansard.invalidate_memory"  # an action of this name ends memory


# The name of a tool that remembers, as a person reads it who approves: `remember`, `remember_fact`,
# `hansard.remember_fact`. An approval of any other tool permits no summary.
_REMEMBERS: Final = re.compile(r"(?:.*[./:])?remember(?:_\w+)?", re.ASCII)
_MAY_HAVE_RUN: Final = ("none", "claimed", "done")
_OF_APPROVAL: Final = frozenset({"writer", "by", "approval_id"})  # not compared with arguments
_MOST_EVENTS: Final = 1_000
_APPROVED_WRITERS: Final = ("approved_tool_output", "human_approved_summary")


@dataclass(frozen=True, slots=True)
class _Permit:
    """The approval that permits a write."""

    approval: Approval
    record: bytes | None = None  # written under it before; only this one may be repeated

    def refuse_second(self, writer: str, *, outcome: str, memory_id: bytes) -> None:
        """Raise WriterRefused for a second record: an approval entitles to one."""
        if self.record is not None and (outcome, memory_id) != ("repeat", self.record):
            raise WriterRefused(
                writer,
                f"the approval was used already, for memory {short_id(self.record.hex())}: one "
                "approval entitles to one record",
            )

    def refuse_superseding(self, request: WriteMemory, superseded: Sequence[bytes]) -> None:
        """Raise WriterRefused where a summary supersedes a record that its approver did not see.

        The person approved the content. What it supersedes follows from `replaces`, or from the
        subject and attribute.
        """
        named = {name for name in ("attribute", "replaces") if getattr(request, name)}
        unseen = sorted(({"subject"} | named) - self.approval.arguments.keys())
        if request.writer == "human_approved_summary" and superseded and unseen:
            raise WriterRefused(
                request.writer,
                f"it would supersede memory {short_id(superseded[0].hex())}, and the approved "
                f"arguments name no {' and no '.join(unseen)}",
            )


def check_permit(
    connection: apsw.Connection,
    request: WriteMemory,
    new: NewMemory,
    *,
    principal: Principal,
    keeper: Retention,
) -> _Permit | None:
    """Return the approval that permits it, None where none is named.

    Raises WriterRefused unless the writer has what it needs, as the store knows it now.
    """
    if request.writer == "post_step_summarizer" and request.step_id is None:
        raise WriterRefused(request.writer, "it must name the step that summarized (step_id)")
    if request.approval_id is None:
        if request.writer in _APPROVED_WRITERS:
            raise WriterRefused(request.writer, "it needs an approval (approval_id)")
        return None
    approval = _approved(connection, request, principal)
    match request.writer:
        case "approved_tool_output":
            _check_output(connection, request, approval, keeper)
        case "human_approved_summary":
            _check_summary(request, new, approval)
        case _:
            return _Permit(approval)
    return _Permit(approval, _written_under(connection, approval))


def _approved(connection: apsw.Connection, request: WriteMemory, principal: Principal) -> Approval:
    """Return the approval that a write names: granted, unaltered, requested by the same program."""
    try:
        approval = approvals.get(connection, request.approval_id or "")
    except (NotFoundError, AmbiguousIdError) as error:
        raise WriterRefused(request.writer, str(error)) from None
    if approval.status is not Status.APPROVED:
        raise WriterRefused(request.writer, f"the approval is {approval.status}")
    if approvals.is_altered(connection, approval):
        raise WriterRefused(request.writer, "the approval is not as Hansard wrote it")
    if principal.method == CLAIMED.method:
        return approval  # a program with the data folder at hand
    own = [one for one in approval.requested_by if is_same(one, principal.name)]
    if not own and (principal.is_authenticated or approval.requested_by):
        raise WriterRefused(request.writer, "the approval was requested by another program")
    return approval


def _check_output(
    connection: apsw.Connection, request: WriteMemory, approval: Approval, keeper: Retention
) -> None:
    """Raise unless an approved call returned exactly this content."""
    if approval.execution.state != "done":
        state = approval.execution.state
        raise WriterRefused(request.writer, f"the approved call's execution is {state!r}")
    digest = content_digest(request.content)
    events = _events(connection, EventType.ACTION_EXECUTED, approval)
    result = object_of(events[0].body).get("result") if events else None
    if result is None and not (approval.execution.result_ref or "").startswith("sha256:"):
        raise WriterRefused(
            request.writer,
            "no digest of the call's result is on record (result_digest), so the content cannot be "
            "compared with it; write it as `app`",
        )
    is_known = result == keeper.reference(digest) or approval.execution.result_ref == digest
    if digest is None or not is_known:
        raise WriterRefused(request.writer, "its content is not what the approved call returned")


def _check_summary(request: WriteMemory, new: NewMemory, approval: Approval) -> None:
    """Raise unless a person approved remembering exactly this."""
    writer, state = request.writer, approval.execution.state
    if not _REMEMBERS.fullmatch(approval.tool):
        raise WriterRefused(
            writer,
            f"the approved action is {approval.tool!r}; one that remembers is called `remember` or "
            "`remember_…`",
        )
    if state not in _MAY_HAVE_RUN:
        raise WriterRefused(writer, f"the approved action's execution is {state!r}")
    if not _is_equal(approval.arguments.get("content"), new.retained.content):
        raise WriterRefused(writer, "its content is not the argument `content` that was approved")
    cleaned = {"content", "subject", "attribute", "scope", "metadata"}
    fields = request.model_dump(mode="json")
    fields |= {
        name: getattr(new.retained, name) for name in cleaned if fields.get(name) is not None
    }
    for name in (WriteMemory.model_fields.keys() - _OF_APPROVAL) & approval.arguments.keys():
        if not _is_what_was_approved(approval.arguments[name], fields[name]):
            raise WriterRefused(writer, f"its {name} is not the argument {name!r} of the approval")


def _is_what_was_approved(approved: Any, written: Any) -> bool:
    """Whether a field is as it was approved; of an object what is null is left out."""
    if isinstance(approved, dict) and isinstance(written, dict):
        approved, written = (
            {name: one for name, one in value.items() if one is not None}
            for value in (approved, written)
        )
    return _is_equal(approved, written)


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two values of JSON are equal: 1 and 1.0 are, in Python 1 and `True` as well."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if left != right or isinstance(left, bool) is not isinstance(right, bool):
            return False
        if isinstance(left, dict):
            pairs += ((left[name], right[name]) for name in left)
        elif isinstance(left, list | tuple):
            pairs += zip(left, right, strict=True)
    return True


def _written_under(connection: apsw.Connection, approval: Approval) -> bytes | None:
    """Return the record that was written under an approval, by the log: it forgets nothing."""
    for event in reversed(_events(connection, EventType.MEMORY_WRITTEN, approval)):
        if object_of(event.body).get("writer") in _APPROVED_WRITERS:
            return bytes.fromhex(event.subject.removeprefix("memory:"))
    return None


def _events(
    connection: apsw.Connection, type: EventType, approval: Approval
) -> Sequence[StoredEvent]:
    return read_events(
        connection, EventFilter(type=type, approval_id=approval.key), limit=_MOST_EVENTS
    )


def written_method(new: NewMemory, permit: _Permit | None, principal: Principal) -> str | None:
    """Return how the name of a writer is known; None without a name.

    It is authenticated where it is the principal's that sends the write, and in a summary that a
    person approved where it is an approver's, who was. Any other name is what the sender says.
    """
    if new.written_by is None:
        return None
    if principal.is_authenticated and is_same(principal.name, new.written_by):
        return principal.method
    if permit is not None and new.writer == "human_approved_summary":
        for one in permit.approval.grants:
            if one.method in AUTHENTICATED and is_same(one.name, new.written_by):
                return one.method
    return CLAIMED.method


def check_end(
    connection: apsw.Connection, request: EndApprovedMemory, keeper: Retention
) -> Approval:
    """Return the approved action that ends exactly this memory, and is being run now.

    Raises NotApproved; the claim's id is known to its holder alone.
    """
    claim = find_claim(connection, request.claim_id)
    if claim is None or claim.approval_id != request.approval_id:
        raise NotApproved("there is no such claim of this approval")
    approval = approvals.get(connection, request.approval_id)
    if approvals.is_altered(connection, approval):
        raise NotApproved("the approval is not as Hansard wrote it")
    if approval.tool != INVALIDATE_TOOL:
        raise NotApproved(f"the approved action is {approval.tool}")
    if approval.status is not Status.APPROVED or claim.state != "claimed":
        raise NotApproved(f"the approval is {approval.status}, its execution {claim.state}")
    arguments = {"memory_id": request.memory_id, "reason": request.reason}
    if not hmac.compare_digest(keeper.hash_of(arguments), approval.arguments_hash):
        raise NotApproved("this memory, or this reason, is not what was approved")
    return approval


def decider_of(approval: Approval) -> Who:
    """Return who approved an action, and how that is known."""
    method: Method = next((one for one in METHODS if one == approval.decided_method), "claimed")
    name = approval.decided_by or ""
    return Who(Actor.ME, name, Principal(name, frozenset(), method))

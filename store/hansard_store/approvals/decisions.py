"""Deciding on a pending action: approve, reject, send back; and what time decides by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from hansard_store.approvals import rows as approvals
from hansard_store.approvals.errors import (
    AlreadyDecided,
    AnotherApproverRequired,
    ApprovalExpired,
    InvalidProposal,
    NotAnApprover,
    RevisionChanged,
    RevisionRequired,
)
from hansard_store.approvals.proposals import (
    decided,
    end,
    next_escalation,
    repropose,
    requested_with,
    require,
    unaltered,
)
from hansard_store.approvals.records import Approval, Grant, PolicyNote, Status
from hansard_store.approvals.unit_of_work import (
    SYSTEM,
    ApprovalRefusal,
    Who,
    Work,
    hash_of_secret,
    token_of,
)
from hansard_store.audit import clock
from hansard_store.audit.event_types import Content, EventType
from hansard_store.ids import short_id
from hansard_store.principals.errors import CredentialsRequired, SelfApproval
from hansard_store.principals.model import CLAIMED, is_same, person_text, read_as

# A record from the future by more than this: the clock was set back, and would give more time.
_CLOCK_SLACK_NS = 60 * 1_000_000_000
_ASKED = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)  # a pending action's time begins


def is_over(connection: apsw.Connection, approval: Approval, now_ns: int) -> bool:
    """Return whether a pending action's time is over, noticed or not."""
    if not approval.is_pending:
        return False
    lost_ns = clock.lost_ns(connection, approval.key, _ASKED)
    return now_ns + lost_ns >= approval.expires_ns or is_from_the_future(approval, now_ns)


def is_from_the_future(approval: Approval, now_ns: int) -> bool:
    """Say whether a record was written later than now: then no deadline of it can be judged."""
    return approval.updated_ns > now_ns + _CLOCK_SLACK_NS


def settle(work: Work, approval: Approval) -> Approval:
    """Do what the time demands: expire an action, or ask the next person about it."""
    if is_over(work.connection, approval, work.now_ns):
        return end(work, approval, Status.EXPIRED, who=SYSTEM, reason="expired")
    now_ns = work.now_ns + clock.lost_ns(work.connection, approval.key, _ASKED)
    while approval.escalates_ns is not None and approval.escalates_ns <= now_ns:
        approval = _escalate(work, approval)
    return approval


def settle_due(work: Work, *, limit: int) -> list[Approval]:
    """Settle everything whose time has come, and return it."""
    now_ns = work.now_ns + clock.most_lost_ns(work.connection)
    due = approvals.due_ids(work.connection, now_ns=now_ns, limit=limit)
    later = approvals.ids_to_escalate(work.connection, now_ns=now_ns, limit=limit)
    keys = dict.fromkeys([*due, *later])
    return [settle(work, approvals.get(work.connection, one)) for one in keys]


def approve(
    work: Work,
    approval_id: str,
    who: Who,
    *,
    revision: int | None = None,
    edited: Mapping[str, Any] | None = None,
    note: PolicyNote | None = None,
    comment: str | None = None,
) -> Approval | ApprovalRefusal:
    """Grant the action as it is shown, or as the person edited it; the tool is never another one.

    An edit is a draft of its own: sent back, proposed again and approved, all at once. Policy was
    asked about it before (`note`). Where several people are needed, each approves the same draft,
    and it awaits until the last of them has. `comment` is what the person says with it.
    """
    approval = settle(work, unaltered(work, approval_id))
    edited_hash = None if edited is None else work.keeper.hash_of(edited)
    is_mine = approval.status is Status.APPROVED and is_same(approval.decided_by, _name(who))
    if is_mine and edited_hash in (None, approval.arguments_hash):
        return approval
    if refusal := _refusal(work, approval, Status.APPROVED, who, revision):
        return refusal
    is_edit = edited is not None and edited_hash != approval.arguments_hash
    if edited is not None and is_edit:
        approval = _edit(work, approval, edited, who, note or PolicyNote())
        if refusal := _refusal(work, approval, Status.APPROVED, who, approval.revision):
            raise refusal.error  # rules ask others about the new draft: nothing of it stays
    elif refusal := _refusal_of_second(approval, who):
        return refusal
    text = work.keeper.words("note", comment.strip()) if comment and comment.strip() else ""
    notes = [work.keeper.content("note", text)] if text else []
    if approval.approvals_left > 1:
        return _add_approval(work, approval, who, is_edit=is_edit, notes=notes)
    return _grant(work, approval, who, is_edit=is_edit, notes=notes)


def _add_approval(
    work: Work, approval: Approval, who: Who, *, is_edit: bool, notes: Sequence[Content]
) -> Approval:
    """Note one approval of several: the action goes on awaiting the others."""
    added = approvals.change(
        work.connection, approval, approved_by=_with(work, approval, who), updated_ns=work.now_ns
    )
    body = {"arguments": added.arguments_hash, "edited": is_edit or None, **_count(added)}
    work.tell_of(EventType.ACTION_APPROVAL_ADDED, who, added, body=body, contents=notes)
    return added


def _grant(
    work: Work, approval: Approval, who: Who, *, is_edit: bool, notes: Sequence[Content]
) -> Approval:
    """Approve the action: the last person that it needs has."""
    several = approval.approvals_required > 1
    ends_ns = work.now_ns + approval.lifetime_ns
    approved_by = _with(work, approval, who) if several else ()
    granted = decided(
        work, approval, Status.APPROVED, who,
        approved_by=approved_by, token_ends_ns=ends_ns, token=None,
    )  # fmt: skip
    token = hash_of_secret(token_of(work.keeper.key, granted))
    granted = approvals.change(work.connection, granted, token=token)
    body = {
        "arguments": granted.arguments_hash,
        "edited": is_edit or None,
        "token_ends_ns": str(ends_ns),
        **(_count(granted) if several else {}),
    }
    work.tell_of(EventType.ACTION_APPROVED, who, granted, body=body, contents=notes)
    return granted


def _with(work: Work, approval: Approval, who: Who) -> tuple[Grant, ...]:
    return (*approval.approved_by, Grant(_name(who), who.method, work.now_ns))


def _count(approval: Approval) -> dict[str, Any]:
    """Return what the event of an approval says of how many there are."""
    return {
        "approvals": len(approval.approved_by),
        "approvals_required": approval.approvals_required,
    }


def _refusal_of_second(approval: Approval, who: Who) -> ApprovalRefusal | None:
    """Return why an approval does not count beside those that the draft has."""
    names = [one.name for one in approval.approved_by]
    known = read_as(_name(who), names)
    if known is None:
        return None
    was = "you approved" if is_same(known, _name(who)) else f"{known!r}, a name like it, approved"
    return ApprovalRefusal(
        AnotherApproverRequired(
            f"{_name(who)!r} counts once: {was} draft {approval.revision} already; "
            f"{approval.approvals_left} more of {approval.approvals_required} approvals needed, "
            "each of another person",
            approved_by=names,
            approvals_required=approval.approvals_required,
            approvals_left=approval.approvals_left,
        )
    )


def reject(
    work: Work,
    approval_id: str,
    who: Who,
    *,
    reason: str | None = None,
    revision: int | None = None,
) -> Approval | ApprovalRefusal:
    """End the action; nothing runs."""
    approval = settle(work, unaltered(work, approval_id))
    if approval.status is Status.REJECTED and is_same(approval.decided_by, _name(who)):
        return approval
    if refusal := _refusal(work, approval, Status.REJECTED, who, revision):
        return refusal
    stored_reason = None if not reason else work.keeper.words("reason", reason)
    return end(work, approval, Status.REJECTED, who=who, reason=stored_reason)


def revise(
    work: Work, approval_id: str, who: Who, *, note: str, revision: int | None = None
) -> Approval | ApprovalRefusal:
    """Send the action back with a note, which is stored word for word but for secrets."""
    if not note.strip():
        raise InvalidProposal("note", "say what is to be changed: a note is needed")
    stored_note = work.keeper.words("note", note)
    approval = settle(work, unaltered(work, approval_id))
    is_mine = is_same(approval.decided_by, _name(who)) and approval.note == stored_note
    if approval.status is Status.REVISED and is_mine:
        return approval
    if refusal := _refusal(work, approval, Status.REVISED, who, revision):
        return refusal
    return _send_back(work, approval, who, stored_note)


def _send_back(work: Work, approval: Approval, who: Who, note: str) -> Approval:
    require(approval, Status.REVISED)
    changed = decided(work, approval, Status.REVISED, who, approved_by=(), note=note)
    content = [work.keeper.content("note", note)]
    work.tell_of(EventType.ACTION_REVISED, who, changed, contents=content)
    return changed


def _edit(
    work: Work, approval: Approval, edited: Mapping[str, Any], who: Who, note: PolicyNote
) -> Approval:
    retained = work.keeper.keep(edited)
    if not retained.is_exact:
        raise InvalidProposal(
            "arguments",
            "the edited arguments hold a secret, which is not kept: nothing could run them; "
            "send the action back with a note instead",
        )
    back = _send_back(work, approval, who, "arguments edited by the approver")
    return repropose(work, back, edited, note, who=who)


def _refusal(
    work: Work, approval: Approval, target: Status, who: Who, revision: int | None
) -> ApprovalRefusal | None:
    """Return why a decision is not taken; what time decided meanwhile is kept."""
    if isinstance(revision, bool):  # Python's True is 1, and no draft
        raise InvalidProposal("revision", f"the revision is a number, not {revision}")
    if approval.status is Status.EXPIRED:
        return refuse_expired(approval)
    if not approval.is_pending:
        return ApprovalRefusal(
            AlreadyDecided(
                f"approval {short_id(approval.approval_id)} is {approval.status} already, by "
                f"{person_text(approval.decided_by, approval.decider_method)}",
                decision=decision_of(approval),
            )
        )
    if revision is not None and revision != approval.revision:
        return ApprovalRefusal(
            RevisionChanged(
                f"draft {revision} was decided on, and draft {approval.revision} is there now",
                revision=approval.revision,
            )
        )
    if target is Status.APPROVED and revision is None and approval.revision > 1:
        return ApprovalRefusal(
            RevisionRequired(
                f"approval {short_id(approval.approval_id)} has had {approval.revision} drafts, "
                f"and draft {approval.revision} is there now: say which one you looked at "
                "(revision)",
                revision=approval.revision,
            )
        )
    require_other(work, approval, who)
    if target is Status.APPROVED:
        _require_counted(work, approval, who)
    if refusal := refuse_not_awaiting(approval, who, requested_count=approval.asked):
        return refusal
    require(approval, target)
    return None


def refuse_not_awaiting(
    approval: Approval, who: Who, *, requested_count: int | None = None
) -> ApprovalRefusal | None:
    """Return why somebody may not decide: they are not among the approvers.

    `requested_count` is how many of them are asked so far, in their order; None: all.
    """
    names = [one.name for one in approval.approvers[:requested_count]]
    if not names or any(is_same(_name(who), one) for one in names):
        return None
    return ApprovalRefusal(_not_awaiting(approval, _name(who), names))


def require_other(work: Work, approval: Approval, who: Who) -> None:
    """Raise SelfApproval where the requester of an action decides about it.

    A name that nobody checked is held against the agent's, which nobody checked either. A name that
    reads like the requester's is the requester's.
    """
    if work.is_open:
        return
    is_proved = who.principal is not None and who.principal.is_authenticated
    agents = () if is_proved else (approval.agent,)
    if own := read_as(_name(who), (*approval.requested_by, *agents)):
        raise SelfApproval(_name(who), own)


def _require_counted(work: Work, approval: Approval, who: Who) -> None:
    """Raise where a name is no second person's: what several people approve takes proof of each.

    Of what was requested through a server, a name that nobody checked counts for nobody; in an
    embedded store the agent that asks cannot be one of them.
    """
    if approval.approvals_required == 1 or work.is_open:
        return
    is_served = approval.requested_method not in (None, CLAIMED.method)
    if is_served and (who.principal is None or not who.principal.is_authenticated):
        raise CredentialsRequired
    if own := read_as(_name(who), (approval.agent,)):
        raise SelfApproval(_name(who), own)


def _not_awaiting(approval: Approval, name: str, requested: Sequence[str]) -> NotAnApprover:
    later = [one.name for one in approval.approvers[len(requested) :]]
    then = f", then {', '.join(later)}" if later else ""
    names = f"{', '.join(requested)}{then}"
    others = [one.name for one in approval.approvers if not is_same(name, one.name)]
    other = read_as(name, others)
    alike = f"; it is read like {other!r}, and is another name" if other is not None else ""
    return NotAnApprover(
        f"{name!r} is not among those who decide about this one: {names}{alike}",
        requested_approvers=list(requested),
        approvers=[one.name for one in approval.approvers],
    )


def refuse_expired(approval: Approval) -> ApprovalRefusal:
    """Return that nobody decided in time."""
    return ApprovalRefusal(
        ApprovalExpired(
            f"approval {short_id(approval.approval_id)} is expired: nobody decided in time",
            decision=decision_of(approval),
        )
    )


def decision_of(approval: Approval) -> dict[str, Any]:
    """Return who decided and how, for the loser of a race."""
    return {
        "status": str(approval.status),
        "decided_by": approval.decided_by,
        "decided_method": approval.decider_method,
        "decided_ns": None if approval.decided_ns is None else str(approval.decided_ns),
        "approved_by": [one.name for one in approval.grants],
        "revision": approval.revision,
        "reason": approval.reason,
    }


def _escalate(work: Work, approval: Approval) -> Approval:
    due_ns, requested = approval.escalates_ns, approval.asked
    assert due_ns is not None
    then = requested_with(approval.approvers, requested)
    changed = approvals.change(
        work.connection,
        approval,
        asked=then,
        escalates_ns=next_escalation(approval.approvers, then, due_ns),
        updated_ns=work.now_ns,
    )
    following = ", ".join(one.name for one in approval.approvers[requested:then])
    body = {"from": approval.approvers[requested - 1].name, "to": following}
    work.tell_of(EventType.ACTION_ESCALATED, SYSTEM, changed, body=body)
    return changed


def _name(who: Who) -> str:
    return who.name or str(who.actor)

"""Running what was approved: claimed once before it begins, reported when it ends, or lost."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from hansard_compiler.calls import Json
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.claim_rows import (
    ClaimRow,
    add_claim,
    claim_key,
    end_claim,
    find_claim,
    lose_claim,
    lost_claims,
    settle_claim,
    this_process,
)
from hansard_store.approvals.decisions import (
    decision_of,
    is_from_the_future,
    refuse_not_awaiting,
    require_other,
    settle,
)
from hansard_store.approvals.errors import ClaimRefused, InvalidProposal, OutcomeKnown
from hansard_store.approvals.proposals import kept_undo, unaltered
from hansard_store.approvals.records import Action, Approval, ApprovalClaim, Outcome, Status
from hansard_store.approvals.unit_of_work import (
    SYSTEM,
    ApprovalRefusal,
    Who,
    Work,
    hash_of_secret,
    token_of,
)
from hansard_store.audit import clock
from hansard_store.audit.event_types import Actor, EventFilter, EventType, StoredEvent
from hansard_store.database.stored_json import object_of
from hansard_store.ids import new_id, short_id
from hansard_store.policy.stored_policy import RECEIPT
from hansard_store.principals.model import distinct, is_same

_MOST_EVENTS = 1_000  # of one approval and type
_GRANTED, _CLAIMED = EventType.ACTION_APPROVED, EventType.ACTION_CLAIMED


@dataclass(frozen=True, slots=True)
class Claiming:
    """What somebody who wants to run an action brings along."""

    arguments: Mapping[str, Any] | None = None  # None: those of the record
    token: str | None = None
    proposal_key: str | None = None
    lease_ns: int | None = None  # None: this process runs it, and is watched instead
    holder: str | None = None
    is_trusted: bool = True  # it has the data folder in hand, and needs no token


def claim(work: Work, approval_id: str, bringing: Claiming) -> ApprovalClaim | ApprovalRefusal:
    """Take the right to run an approved action, once, with exactly the approved arguments.

    When policy demands a receipt, it is stored in the same transaction, before anything runs.
    """
    approval = settle(work, unaltered(work, approval_id))
    refused = (
        _refuse(work, approval, bringing)
        or _refuse_arguments(work, approval, bringing)
        or _refuse_claimed(work, approval)
        or _refuse_too_few(work, approval)
    )
    if refused is not None:
        return ApprovalRefusal(refused)
    claim_id = new_id().hex()
    add_claim(
        work.connection,
        approval.key,
        claim_id,
        holder=bringing.holder or this_process(),
        lease_ns=None if bringing.lease_ns is None else work.now_ns + bringing.lease_ns,
        now_ns=work.now_ns,
    )
    who = Who(Actor.AGENT, approval.agent or "")
    if RECEIPT in approval.policy.obligations:
        approval = _receipt(work, approval)
    body = {"claim_id": claim_key(claim_id).hex(), "arguments": approval.arguments_hash}
    work.tell_of(EventType.ACTION_CLAIMED, who, approval, body=body)
    arguments = approval.arguments if bringing.arguments is None else dict(bringing.arguments)
    return ApprovalClaim(claim_id, approvals.get(work.connection, approval.approval_id), arguments)


def finish(
    work: Work,
    claim_id: str,
    *,
    is_ok: bool | None,
    result_ref: str | None = None,
    error: str | None = None,
    undo: Action | None = None,
    approval_id: str | None = None,
    result_digest: str | None = None,
) -> Approval | ApprovalRefusal:
    """Record how an action ended; also one whose outcome was believed unknown.

    With `is_ok` None its program does not know either: it was cut off half-way. `result_digest` is
    the `content_digest` of the result, and is stored as a keyed hash.
    Raises ClaimRefused for a claim that is none, or has its result already. What comes after a
    person settled it is logged and changes nothing.
    """
    found = find_claim(work.connection, claim_id)
    if found is None or (approval_id is not None and found.approval_id != approval_id):
        raise ClaimRefused("not_claimed", f"there is no claim {claim_id[:32]!r}")
    error_text = None if error is None else work.keeper.content_text("error", error)
    if is_ok is None:
        return _cut_off(work, found, error_text)
    ref = None if result_ref is None else work.keeper.name("result_ref", result_ref)
    is_first = end_claim(
        work.connection, claim_id, is_ok=is_ok, result_ref=ref, error=error_text, now_ns=work.now_ns
    )
    approval = approvals.get(work.connection, found.approval_id)
    if not is_first and approval.execution.settled_by is not None:
        return _too_late(work, approval, claim_id, is_ok=is_ok)
    if not is_first:
        raise _already_reported(approval)
    how_to_undo = kept_undo(work.keeper, undo)
    if how_to_undo is not None:
        approval = approvals.change(work.connection, approval, undo=how_to_undo)
    contents = [] if error_text is None else [work.keeper.content("error", error_text)]
    who = Who(Actor.TOOL, approval.tool)
    key = claim_key(claim_id).hex()
    body: Json = {"claim_id": key, "ok": is_ok, "result_ref": ref}
    body["result"] = None if result_digest is None else work.keeper.reference(result_digest)
    work.tell_of(EventType.ACTION_EXECUTED, who, approval, body=body, contents=contents)
    if not is_ok:
        work.tell_of(EventType.FAILURE, who, approval, body={"claim_id": key})
    return approvals.get(work.connection, found.approval_id)


def _already_reported(approval: Approval) -> ClaimRefused:
    message = f"how {short_id(approval.approval_id)} ended was reported already"
    return ClaimRefused("already_finished", message, state=approval.execution.state)


def _cut_off(work: Work, found: ClaimRow, error: str | None) -> Approval | ApprovalRefusal:
    """Mark the outcome of a claim as unknown, as its own program reports; once."""
    approval = approvals.get(work.connection, found.approval_id)
    if lose_claim(work.connection, approval.key):
        contents = [] if error is None else [work.keeper.content("error", error)]
        body = {"claimed_ns": str(found.claimed_ns)}
        who = Who(Actor.TOOL, approval.tool)
        work.tell_of(EventType.ACTION_UNKNOWN, who, approval, body=body, contents=contents)
    elif approval.execution.state != "unknown":
        raise _already_reported(approval)
    return approvals.get(work.connection, found.approval_id)


def recover(work: Work) -> list[Approval]:
    """Mark claims as of unknown outcome whose process is gone; nothing is ever run again."""
    lost = []
    most_ns = work.now_ns + clock.most_lost_ns(work.connection)
    for one in lost_claims(work.connection, now_ns=most_ns):
        approval = approvals.get(work.connection, one.approval_id)
        if one.lease_ns is not None and _now_ns(work, approval, _CLAIMED) < one.lease_ns:
            continue
        if lose_claim(work.connection, approval.key):
            body = {"claimed_ns": str(one.claimed_ns)}
            work.tell_of(EventType.ACTION_UNKNOWN, SYSTEM, approval, body=body)
            lost.append(approvals.get(work.connection, one.approval_id))
    return lost


def settle_outcome(
    work: Work,
    approval_id: str,
    who: Who,
    *,
    outcome: Outcome,
    note: str,
    result_ref: str | None = None,
) -> Approval | ApprovalRefusal:
    """Write down whether an action whose outcome nobody knew had run, as a person found it.

    Nothing runs by that, now or later: the approval is used up either way.
    """
    note = work.keeper.words("note", note.strip())
    if not note:
        raise InvalidProposal("note", "say how you know: what you looked at, and what was there")
    ref = None if result_ref is None else work.keeper.name("result_ref", result_ref)
    approval = unaltered(work, approval_id)
    if approval.execution.state == "claimed":  # maybe its lease is over, and nobody has looked
        recover(work)
        approval = unaltered(work, approval.approval_id)
    require_other(work, approval, who)
    if refusal := refuse_not_awaiting(approval, who):
        return refusal
    by, has_run = who.name or str(who.actor), outcome == "ran"
    is_settled = settle_claim(
        work.connection,
        approval.key,
        has_run=has_run,
        result_ref=ref,
        by=by,
        method=who.method,
        note=note,
        now_ns=work.now_ns,
    )
    if not is_settled:
        return _known(approval, by, has_run=has_run)
    settled = approvals.get(work.connection, approval.approval_id)
    work.tell_of(
        EventType.ACTION_SETTLED,
        who,
        settled,
        body={"outcome": outcome, "result_ref": ref},
        contents=[work.keeper.content("note", note)],
    )
    return settled


def is_proposer(approval: Approval, proposal_key: str | None) -> bool:
    """Say whether somebody holds the key of the proposal."""
    if proposal_key is None:
        return False
    return hmac.compare_digest(hash_of_secret(proposal_key), approval.proposal_key)


def require_proposer(approval: Approval, proposal_key: str | None) -> None:
    """Raise ClaimRefused for a wrong key."""
    if proposal_key is not None and not is_proposer(approval, proposal_key):
        raise ClaimRefused("bad_token", "this is not the key of this proposal")


def granted_token(key: bytes, approval: Approval, *, now_ns: int) -> str | None:
    """Return the token of an approved action that nobody has claimed, while it is good."""
    is_open = approval.status is Status.APPROVED and approval.execution.state == "none"
    if not is_open or approval.token_ends_ns is None or now_ns >= approval.token_ends_ns:
        return None
    return token_of(key, approval)


def as_it_counts(connection: apsw.Connection, approval: Approval, now_ns: int) -> Approval:
    """Return an approval with the deadlines that a claim goes by, for its reader.

    They are nearer than the row has them where the clock was set back since they were granted.
    """
    ends_ns = approval.token_ends_ns
    if approval.status is not Status.APPROVED or approval.execution.state != "none":
        return approval
    lost_ns = clock.lost_ns(connection, approval.key, (_GRANTED,))
    if ends_ns is not None and is_from_the_future(approval, now_ns):
        lost_ns = max(lost_ns, ends_ns - now_ns)
    if not lost_ns:
        return approval
    return replace(
        approval,
        expires_ns=approval.expires_ns - lost_ns,
        token_ends_ns=None if ends_ns is None else ends_ns - lost_ns,
    )


def _now_ns(work: Work, approval: Approval, began: EventType) -> int:
    """Return the time as a deadline of an approval has it: no earlier for a clock set back."""
    return work.now_ns + clock.lost_ns(work.connection, approval.key, (began,))


def _refuse(work: Work, approval: Approval, bringing: Claiming) -> ClaimRefused | None:
    token = token_of(work.keeper.key, approval)
    is_token = bringing.token is not None and hmac.compare_digest(
        bringing.token.encode("utf-8", "surrogatepass"), token.encode()
    )
    short = short_id(approval.approval_id)
    if approval.status is not Status.APPROVED:
        return ClaimRefused(
            "not_approved", f"approval {short} is {approval.status}", decision=decision_of(approval)
        )
    state = approval.execution.state
    if state != "none":
        return ClaimRefused(
            "token_used" if is_token else "already_claimed",
            f"approval {short} was claimed already; its action is {state}",
            state=state,
        )
    if approval.token is None or not hmac.compare_digest(hash_of_secret(token), approval.token):
        return ClaimRefused("record_altered", f"approval {short} is not what was approved")
    if bringing.token is not None and not is_token:
        return ClaimRefused("bad_token", "this is not the token of this draft")
    if bringing.proposal_key is not None and not is_proposer(approval, bringing.proposal_key):
        return ClaimRefused("bad_token", "this is not the key of this proposal")
    if not bringing.is_trusted and bringing.token is None and bringing.proposal_key is None:
        return ClaimRefused("bad_token", "the token, or the key of the proposal, is needed")
    now_ns, ends_ns = _now_ns(work, approval, _GRANTED), approval.token_ends_ns
    if ends_ns is None or now_ns >= ends_ns or is_from_the_future(approval, work.now_ns):
        return ClaimRefused("token_expired", f"approval {short} was not run in time")
    return None


def _refuse_arguments(work: Work, approval: Approval, bringing: Claiming) -> ClaimRefused | None:
    if bringing.arguments is not None:
        if work.keeper.hash_of(bringing.arguments) == approval.arguments_hash:
            return None
        return ClaimRefused(
            "arguments_changed",
            "these are not the arguments that were approved",
            revision=approval.revision,
            approved_by=approval.decided_by,
        )
    if not approval.is_exact:
        return ClaimRefused(
            "must_repropose",
            "the arguments hold what is not kept: only the program that proposed them has it",
        )
    if work.keeper.hash_of(approval.arguments) != approval.arguments_hash:
        return ClaimRefused("record_altered", "the arguments are not those that were approved")
    return None


def _refuse_claimed(work: Work, approval: Approval) -> ClaimRefused | None:
    """Return why not where the log has a claim of it whose row is gone: it may have run."""
    filters = EventFilter(type=EventType.ACTION_CLAIMED, approval_id=approval.key)
    found = work.log.read(filters, limit=1)
    if not found:
        return None
    return ClaimRefused(
        "record_altered",
        f"approval {short_id(approval.approval_id)} has no claim, and event {found[0].seq} claimed "
        "it: the claim was removed; look at `hansard verify`",
    )


def _refuse_too_few(work: Work, approval: Approval) -> ClaimRefused | None:
    """Return why not where the log has fewer approvals of the draft than were required of it."""

    def read(type: EventType) -> Sequence[StoredEvent]:
        filters = EventFilter(type=type, approval_id=approval.key)
        return work.log.read(filters, limit=_MOST_EVENTS)

    drafts = [*read(EventType.ACTION_CREATED), *read(EventType.ACTION_REPROPOSED)]
    required = max((_number_in(one, "approvals_required") or 1 for one in drafts), default=1)
    if required == approval.approvals_required == 1:
        return None
    events = [*read(EventType.ACTION_APPROVAL_ADDED), *read(_GRANTED)]
    names = distinct(
        one.who or one.actor for one in events if _number_in(one, "revision") == approval.revision
    )
    if len(names) >= required == approval.approvals_required:
        return None
    return ClaimRefused(
        "record_altered",
        f"approval {short_id(approval.approval_id)} requires {required} approvals, and by the "
        f"audit log {len(names)} people approved this draft; look at `hansard verify`",
    )


def _number_in(event: StoredEvent, name: str) -> int | None:
    found = object_of(event.body).get(name)  # of an altered body nothing is known
    return found if isinstance(found, int) else None


def _known(approval: Approval, by: str, *, has_run: bool) -> Approval | ApprovalRefusal:
    """Return what stands already: the same word of the same person is answered again."""
    ran = approval.execution
    if is_same(ran.settled_by, by) and ran.state == ("done" if has_run else "not_run"):
        return approval
    short = short_id(approval.approval_id)
    outcome = {"execution": ran.state, "settled_by": ran.settled_by}
    if ran.settled_by is not None:
        found = "ran" if ran.state == "done" else "did not run"
        return ApprovalRefusal(
            OutcomeKnown(f"{ran.settled_by} settled already that {short} {found}", **outcome)
        )
    stands = "has not begun" if ran.state == "none" else f"is {ran.state}"
    return ApprovalRefusal(
        OutcomeKnown(f"the outcome of {short} is not unknown: it {stands}", **outcome)
    )


def _too_late(work: Work, approval: Approval, claim_id: str, *, is_ok: bool) -> ApprovalRefusal:
    """Log what a program tells of an action that a person settled before it did."""
    ran, outcome = approval.execution, "returned" if is_ok else "failed"
    found = "ran" if ran.state == "done" else "did not run"
    error = f"its program tells that it {outcome}, after {ran.settled_by} settled that it {found}"
    work.tell_of(
        EventType.FAILURE,
        Who(Actor.TOOL, approval.tool),
        approval,
        body={"claim_id": claim_key(claim_id).hex(), "ok": is_ok},
        contents=[work.keeper.content("error", error)],
    )
    short = short_id(approval.approval_id)
    return ApprovalRefusal(
        ClaimRefused(
            "settled_already",
            f"{ran.settled_by} settled already that {short} {found}",
            state=ran.state,
            settled_by=ran.settled_by,
        )
    )


def _receipt(work: Work, approval: Approval) -> Approval:
    body = {"arguments": approval.arguments_hash, "rule_ids": list(approval.policy.rule_ids)}
    seq = work.tell_of(EventType.ACTION_RECEIPTED, SYSTEM, approval, body=body)
    note = replace(approval.policy, receipts=(*approval.policy.receipts, f"event:{seq}"))
    return approvals.change(work.connection, approval, policy=note)

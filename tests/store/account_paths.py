"""Every compound write of accountability: how its store is prepared, and what it does then.

Walked by the tests that fail it, kill it, or drop one of its events.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.approvals import rows as approvals
from hansard_store.approvals.errors import ActionBlocked, ClaimRefused
from hansard_store.approvals.records import (
    PENDING,
    Action,
    ApprovalClaim,
    ApprovalFilter,
    Approver,
    PolicyNote,
    Status,
)
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import EventFilter, EventType
from hansard_store.policy.stored_policy import PolicyQuestion
from hansard_store.principals.model import Principal, Scope
from tests.store.accounts import EMAIL, HOUR, MINUTE, RUN, STEP, Clock, proposal

Prepare = Callable[[ApprovalService, Clock], Any]
Act = Callable[[ApprovalService, Any], Any]


@dataclass(frozen=True, slots=True)
class CompoundWrite:
    """One way to write, and the types of its events."""

    prepare: Prepare
    act: Act
    types: tuple[EventType, ...]


def rules(asked: PolicyQuestion) -> PolicyNote:
    """Deny payments; ask about e-mail and want its receipt."""
    if asked.tool == "pay":
        return PolicyNote("deny", ("no-pay",), "no payments", ("deny",))
    if asked.tool == "send_email":
        effects = ("require_approval", "require_receipt")
        return PolicyNote("require_approval", ("ask",), "a person decides", effects)
    return PolicyNote("allow")


_KEY = "hpk_shared_by_two"


def _principal(name: str) -> Principal:
    return Principal(name, frozenset(Scope), "token")


def _nothing(desk: ApprovalService, clock: Clock) -> None:
    return None


def _awaiting(desk: ApprovalService, clock: Clock) -> str:
    made = desk.propose(proposal(run_id=RUN, step_id=STEP, channel="c"))
    return made.approval.approval_id


def _revised(desk: ApprovalService, clock: Clock) -> str:
    found = _awaiting(desk, clock)
    desk.revise(found, note="warmer", by="ann")
    return found


def _due(desk: ApprovalService, clock: Clock) -> str:
    found = _awaiting(desk, clock)
    _revised(desk, clock)
    clock.advance(HOUR)
    return found


def _to_escalate(desk: ApprovalService, clock: Clock) -> str:
    people = [Approver("ann", MINUTE), Approver("bob", MINUTE)]
    found = desk.propose(proposal(approvers=people)).approval.approval_id
    clock.advance(MINUTE)
    return found


def _approved(desk: ApprovalService, clock: Clock) -> str:
    found = _awaiting(desk, clock)
    desk.approve(found, by="ann")
    return found


def _by_two(desk: ApprovalService, clock: Clock) -> str:
    return desk.propose(proposal(channel="c", approvals_required=2)).approval.approval_id


def _half_approved(desk: ApprovalService, clock: Clock) -> str:
    found = _by_two(desk, clock)
    desk.approve(found, by="ann", comment="the address is right")
    return found


def _claimed(desk: ApprovalService, clock: Clock) -> ApprovalClaim:
    return desk.claim(_approved(desk, clock))


def _abandoned(desk: ApprovalService, clock: Clock) -> str:
    found = _approved(desk, clock)
    desk.claim(found, lease_s=1)
    clock.advance(MINUTE)
    return found


def _lost(desk: ApprovalService, clock: Clock) -> str:
    found = _abandoned(desk, clock)
    desk.recover()
    return found


def _settled(desk: ApprovalService, clock: Clock) -> str:
    found = _approved(desk, clock)
    claim_id = desk.claim(found, lease_s=1).claim_id
    clock.advance(MINUTE)
    desk.recover()
    desk.settle_outcome(found, "did_not_run", by="ann", note="the outbox is empty")
    return claim_id


def _told_too_late(desk: ApprovalService, claim_id: str) -> None:
    with suppress(ClaimRefused):
        desk.finish(claim_id, ok=True)


def _undoable(desk: ApprovalService, clock: Clock) -> str:
    claim = _claimed(desk, clock)
    desk.finish(claim, ok=True, undo=Action("recall_email", {"id": 7}))
    return claim.approval.approval_id


def _batch(desk: ApprovalService, clock: Clock) -> str:
    made = desk.propose_batch([proposal(arguments={"n": n}) for n in range(2)])
    batch_id = made[0].approval.batch_id
    assert batch_id is not None
    return batch_id


def _blocked(desk: ApprovalService, _: Any) -> None:
    with suppress(ActionBlocked):
        desk.propose(proposal(tool="pay"))


_T = EventType
_GATED = (_T.ACTION_CREATED, _T.POLICY_GATED)
WRITES: dict[str, CompoundWrite] = {
    "propose": CompoundWrite(_nothing, lambda desk, _: desk.propose(proposal()), _GATED),
    "propose again as another principal": CompoundWrite(
        lambda desk, _: desk.acting(_principal("bot")).propose(proposal(proposal_key=_KEY)),
        lambda desk, _: desk.acting(_principal("helper")).propose(proposal(proposal_key=_KEY)),
        (_T.ACTION_REQUESTED,),
    ),
    "propose in place of another": CompoundWrite(
        _awaiting,
        lambda desk, _: desk.propose(proposal(channel="c", one_per_channel=True)),
        (_T.ACTION_REJECTED, *_GATED),
    ),
    "propose a batch": CompoundWrite(
        _nothing,
        lambda desk, _: desk.propose_batch([proposal(), proposal()]),
        (*_GATED, *_GATED),
    ),
    "propose what policy denies": CompoundWrite(_nothing, _blocked, (_T.POLICY_BLOCKED,)),
    "approve": CompoundWrite(
        _awaiting, lambda desk, one: desk.approve(one, by="ann"), (_T.ACTION_APPROVED,)
    ),
    "approve with edited arguments": CompoundWrite(
        _awaiting,
        lambda desk, one: desk.approve(one, by="ann", arguments={**EMAIL, "body": "Dear"}),
        (_T.ACTION_REVISED, _T.ACTION_REPROPOSED, _T.POLICY_GATED, _T.ACTION_APPROVED),
    ),
    "approve as the first of two": CompoundWrite(
        _by_two,
        lambda desk, one: desk.approve(one, by="ann", comment="fine"),
        (_T.ACTION_APPROVAL_ADDED,),
    ),
    "approve as the second of two": CompoundWrite(
        _half_approved, lambda desk, one: desk.approve(one, by="bob"), (_T.ACTION_APPROVED,)
    ),
    "edit what another one approved": CompoundWrite(
        _half_approved,
        lambda desk, one: desk.approve(one, by="bob", arguments={**EMAIL, "body": "Dear"}),
        (_T.ACTION_REVISED, _T.ACTION_REPROPOSED, _T.POLICY_GATED, _T.ACTION_APPROVAL_ADDED),
    ),
    "approve a batch": CompoundWrite(
        _batch,
        lambda desk, batch: desk.approve_batch(batch, by="ann"),
        (_T.ACTION_APPROVED, _T.ACTION_APPROVED),
    ),
    "reject": CompoundWrite(
        _awaiting, lambda desk, one: desk.reject(one, by="ann", reason="no"), (_T.ACTION_REJECTED,)
    ),
    "revise": CompoundWrite(
        _awaiting, lambda desk, one: desk.revise(one, by="ann", note="x"), (_T.ACTION_REVISED,)
    ),
    "repropose": CompoundWrite(
        _revised,
        lambda desk, one: desk.repropose(one, {**EMAIL, "body": "Dear"}),
        (_T.ACTION_REPROPOSED, _T.POLICY_GATED),
    ),
    "expire": CompoundWrite(
        _due, lambda desk, _: desk.expire_due(), (_T.ACTION_EXPIRED, _T.ACTION_EXPIRED)
    ),
    "escalate": CompoundWrite(
        _to_escalate, lambda desk, _: desk.expire_due(), (_T.ACTION_ESCALATED,)
    ),
    "claim": CompoundWrite(
        _approved, lambda desk, one: desk.claim(one), (_T.ACTION_RECEIPTED, _T.ACTION_CLAIMED)
    ),
    "tell the result": CompoundWrite(
        _claimed, lambda desk, claim: desk.finish(claim, ok=True), (_T.ACTION_EXECUTED,)
    ),
    "tell a failure": CompoundWrite(
        _claimed,
        lambda desk, claim: desk.finish(claim, ok=False, error="boom"),
        (_T.ACTION_EXECUTED, _T.FAILURE),
    ),
    "recover": CompoundWrite(_abandoned, lambda desk, _: desk.recover(), (_T.ACTION_UNKNOWN,)),
    "settle an outcome": CompoundWrite(
        _lost,
        lambda desk, one: desk.settle_outcome(one, "ran", by="ann", note="it is in the outbox"),
        (_T.ACTION_SETTLED,),
    ),
    "tell the result of what was settled": CompoundWrite(_settled, _told_too_late, (_T.FAILURE,)),
    "undo": CompoundWrite(_undoable, lambda desk, one: desk.undo(one), (_T.ACTION_CREATED,)),
    "message in": CompoundWrite(
        _nothing, lambda desk, _: desk.message_in("c", text="hi"), (_T.MESSAGE_INBOUND,)
    ),
    "message out": CompoundWrite(
        _nothing, lambda desk, _: desk.message_out("c", text="hi"), (_T.MESSAGE_OUTBOUND,)
    ),
    "tool called": CompoundWrite(
        _nothing, lambda desk, _: desk.tool_called("find", {"q": 1}), (_T.TOOL_CALLED,)
    ),
    "tool returned": CompoundWrite(
        _nothing,
        lambda desk, _: desk.tool_returned("find", ok=False, error="boom"),
        (_T.TOOL_RETURNED,),
    ),
    "gate blocks": CompoundWrite(
        _nothing, lambda desk, _: desk.blocked("pay", {}, reason="no class"), (_T.POLICY_BLOCKED,)
    ),
    "failure": CompoundWrite(_nothing, lambda desk, _: desk.failed("find", "boom"), (_T.FAILURE,)),
    "receipt": CompoundWrite(
        _nothing, lambda desk, _: desk.receipt("pay", {"sum": 1}), (_T.ACTION_RECEIPTED,)
    ),
}

_ENDS = {
    _T.ACTION_CREATED: Status.AWAITING,
    _T.ACTION_REVISED: Status.REVISED,
    _T.ACTION_REPROPOSED: Status.AWAITING,
    _T.ACTION_APPROVED: Status.APPROVED,
    _T.ACTION_REJECTED: Status.REJECTED,
    _T.ACTION_EXPIRED: Status.EXPIRED,
}
_RAN = {_T.ACTION_CLAIMED: {"claimed"}, _T.ACTION_EXECUTED: {"done", "failed"}}
_RAN[_T.ACTION_UNKNOWN] = {"unknown"}
_RAN[_T.ACTION_SETTLED] = {"done", "not_run"}
_TABLES = ("approval", "approval_claim", "event", "event_content")


def state_of(connection: apsw.Connection) -> list[Any]:
    """Return everything that accountability has stored."""
    return [connection.execute(f"SELECT * FROM {one}").fetchall() for one in _TABLES]


def disagreement(desk: ApprovalService) -> str | None:
    """Return how record and log contradict each other; None where they agree."""
    if (broken := desk.verify().broken) is not None:
        return f"event {broken.seq} {broken.problem}"
    told: dict[str, list[str]] = {}
    for event in reversed(desk.events(limit=10_000)):
        if event.approval_id is not None:
            told.setdefault(event.approval_id.hex(), []).append(event.type)
    records = approvals.list_approvals(desk._connections.get(), ApprovalFilter(), limit=10_000)
    if told.keys() != {one.approval_id for one in records}:
        return "an approval without events, or events without an approval"
    for one in records:
        types = told[one.approval_id]
        states = [_ENDS[EventType(type)] for type in types if EventType(type) in _ENDS]
        drafts = types.count(_T.ACTION_CREATED) + types.count(_T.ACTION_REPROPOSED)
        ran = [_RAN[EventType(type)] for type in types if EventType(type) in _RAN]
        if states[-1] is not one.status or drafts != one.revision:
            return f"{one.status}, draft {one.revision} against {types}"
        if one.execution.state not in (ran[-1] if ran else {"none"}):
            return f"its action is {one.execution.state} against {types}"
        if one.status in PENDING and ran:
            return "it ran while it was pending"
        added = 0
        for type in types:
            if type in (_T.ACTION_CREATED, _T.ACTION_REPROPOSED, _T.ACTION_REVISED):
                added = 0
            added += type in (_T.ACTION_APPROVAL_ADDED, _T.ACTION_APPROVED)
        if one.approvals_required > 1 and len(one.approved_by) != added:
            return f"{len(one.approved_by)} approvals against {types}"
    return None


def history(desk: ApprovalService) -> list[str]:
    """Return the types of all events, in order."""
    return [one.type for one in desk.events(EventFilter(), limit=10_000)][::-1]

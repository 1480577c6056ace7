"""The state machine of approvals: the whole matrix, in theory and in the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_store.approvals import proposals
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.errors import ApprovalConflict, IllegalTransition
from hansard_store.approvals.records import LEGAL, PENDING, TERMINAL, Approval, Status, is_legal
from hansard_store.approvals.service import ApprovalService
from hansard_store.approvals.unit_of_work import SYSTEM, Who, Work
from hansard_store.audit.event_types import Actor
from tests.store.account_paths import state_of
from tests.store.accounts import EMAIL, HOUR, Clock, account, proposal

ALL = [(before, after) for before in Status for after in Status]
BY_HAND = {
    "awaiting": {"approved", "rejected", "revised", "expired"},
    "revised": {"awaiting", "rejected", "expired"},
    "approved": set(),
    "rejected": set(),
    "expired": set(),
}


@pytest.mark.covers(
    "CF-03", "CF-04", "CF-05", "CF-06", "CF-07", "CF-08", "CF-09", "CF-10", "CF-11", "CF-29"
)
def test_state_machine_allows_what_is_written_down_and_nothing_else() -> None:
    assert {str(one) for one in Status} == BY_HAND.keys()
    assert {(a, b) for a, b in ALL if is_legal(a, b)} == LEGAL
    assert {(a, b) for a in BY_HAND for b in BY_HAND[a]} == {(str(a), str(b)) for a, b in LEGAL}
    assert frozenset(Status) == PENDING | TERMINAL


def brought_to(desk: ApprovalService, clock: Clock, status: Status) -> str:
    """Return an approval in a state."""
    found = desk.propose(proposal()).approval.approval_id
    match status:
        case Status.REVISED:
            desk.revise(found, note="warmer", by="first")
        case Status.APPROVED:
            desk.approve(found, by="first")
        case Status.REJECTED:
            desk.reject(found, by="first")
        case Status.EXPIRED:
            clock.advance(HOUR)
            desk.expire_due()
    return found


def attempt(desk: ApprovalService, clock: Clock, wanted: Status) -> Callable[[str], object]:
    """Return what would bring an approval to a state."""

    def expire(one: str) -> object:
        def do(work: Work) -> Approval:

            found = approvals.get(work.connection, one)
            return proposals.end(work, found, Status.EXPIRED, who=SYSTEM, reason="expired")

        return desk._write(do)

    return {
        Status.AWAITING: lambda one: desk.repropose(one, {**EMAIL, "body": "new"}),
        Status.REVISED: lambda one: desk.revise(one, note="again", by="second"),
        Status.APPROVED: lambda one: desk.approve(one, by="second"),
        Status.REJECTED: lambda one: desk.reject(one, by="second"),
        Status.EXPIRED: expire,
    }[wanted]


@pytest.mark.covers("CF-10", "CF-11", "CF-29")
@pytest.mark.parametrize(("before", "after"), ALL)
def test_state_machine_of_the_store_follows_the_matrix(
    tmp_path: Path, before: Status, after: Status
) -> None:
    clock = Clock()
    with account(tmp_path, clock) as desk:
        found = brought_to(desk, clock, before)
        stored = state_of(desk._connections.get())
        act = attempt(desk, clock, after)

        if is_legal(before, after):
            act(found)
            assert desk.approval(found).status is after
            return
        with pytest.raises(ApprovalConflict) as refused:
            act(found)

        assert state_of(desk._connections.get()) == stored
        if before is Status.REVISED:
            assert isinstance(refused.value, IllegalTransition)


def test_who_acts_is_named_with_what_they_are() -> None:
    assert Who(Actor.ME, "ann").text == "me:ann"
    assert Who(Actor.AGENT).text == "agent"

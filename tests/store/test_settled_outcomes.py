"""Settling an outcome that nobody knows: a person looks, and nothing ever runs by it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hansard_store.approvals.errors import (
    ClaimRefused,
    InvalidProposal,
    NotAnApprover,
    NotUndoable,
    OutcomeKnown,
)
from hansard_store.approvals.records import Action, ApprovalFilter, Approver, Outcome
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import EventFilter
from tests.store.accounts import MINUTE, SECOND, Clock, account, proposal

NOTE = "it is in the sent folder, 10:42"


def lost(desk: ApprovalService, clock: Clock, **changes: object) -> tuple[str, str]:
    """Return an approval whose outcome nobody knows, and its claim."""
    undo = Action("recall_email", {"id": 7})
    made = desk.propose(proposal(undo=undo, **changes)).approval.approval_id
    desk.approve(made, by="ann")
    claim = desk.claim(made, lease_s=1)
    clock.advance(MINUTE)
    desk.recover()
    return made, claim.claim_id


@pytest.mark.covers("CG-17")
@pytest.mark.parametrize(("outcome", "state"), [("ran", "done"), ("did_not_run", "not_run")])
def test_a_person_settles_what_nobody_knew_with_a_word_of_how_they_know(
    desk: ApprovalService, clock: Clock, outcome: Outcome, state: str
) -> None:
    made, _ = lost(desk, clock)

    settled = desk.settle_outcome(made, outcome, by="bob", note=f" {NOTE} ")

    ran = settled.execution
    assert (ran.state, ran.settled_by, ran.settled_note) == (state, "bob", NOTE)
    assert (ran.settled_ns, ran.finished_ns) == (clock.now_ns, None)
    assert desk.approvals(ApprovalFilter(execution="unknown")) == []
    event = desk.history(made)[-1]
    assert (event.type, event.actor, event.who) == ("action.settled", "me", "bob")
    assert event.contents == {"note": NOTE}
    assert desk.verify().is_sound


def test_an_outcome_is_unknown_once_the_lease_is_over_whoever_has_looked(
    desk: ApprovalService, clock: Clock
) -> None:
    made = desk.propose(proposal()).approval.approval_id
    desk.approve(made, by="ann")
    desk.claim(made, lease_s=1)
    with pytest.raises(OutcomeKnown):
        desk.settle_outcome(made, "ran", by="bob", note=NOTE)
    clock.advance(SECOND)

    settled = desk.settle_outcome(made, "ran", by="bob", note=NOTE)

    assert settled.execution.state == "done"
    types = [one.type for one in desk.history(made)[-2:]]
    assert types == ["action.unknown", "action.settled"]


def test_only_approvers_settle_what_they_were_asked_about(
    desk: ApprovalService, clock: Clock
) -> None:
    asked = (Approver("ann", within_ns=MINUTE), Approver("cid"))
    made, _ = lost(desk, clock, approvers=asked)

    with pytest.raises(
        NotAnApprover, match="'bob' is not among those who decide about this one: ann"
    ):
        desk.settle_outcome(made, "ran", by="bob", note=NOTE)

    assert desk.approval(made).execution.state == "unknown"
    assert desk.settle_outcome(made, "ran", by="cid", note=NOTE).execution.settled_by == "cid"


@pytest.mark.parametrize("outcome", ["ran", "did_not_run"])
def test_what_was_settled_never_runs(desk: ApprovalService, clock: Clock, outcome: Outcome) -> None:
    made, _ = lost(desk, clock)
    desk.settle_outcome(made, outcome, note=NOTE)

    with pytest.raises(ClaimRefused, match="claimed already"):
        desk.claim(made)


def test_what_a_person_saw_ran_can_be_undone_and_what_did_not_run_cannot(
    desk: ApprovalService, clock: Clock
) -> None:
    ran, _ = lost(desk, clock)
    never, _ = lost(desk, clock)
    desk.settle_outcome(ran, "ran", note=NOTE)
    desk.settle_outcome(never, "did_not_run", note=NOTE)

    assert desk.undo(ran).approval.tool == "recall_email"
    with pytest.raises(NotUndoable, match="not_run"):
        desk.undo(never)


@pytest.mark.covers("CF-28")
@pytest.mark.parametrize("note", ["", "  \n"])
def test_a_settlement_says_how_it_is_known(desk: ApprovalService, clock: Clock, note: str) -> None:
    made, _ = lost(desk, clock)

    with pytest.raises(InvalidProposal, match="how you know"):
        desk.settle_outcome(made, "ran", note=note)
    assert desk.approval(made).execution.state == "unknown"


def test_only_an_unknown_outcome_is_settled(desk: ApprovalService) -> None:
    made = desk.propose(proposal()).approval.approval_id
    desk.approve(made)
    with pytest.raises(OutcomeKnown, match="has not begun"):
        desk.settle_outcome(made, "ran", note=NOTE)

    claim = desk.claim(made)
    with pytest.raises(OutcomeKnown, match="is claimed"):
        desk.settle_outcome(made, "ran", note=NOTE)

    desk.finish(claim, ok=True)
    with pytest.raises(OutcomeKnown, match="is done"):
        desk.settle_outcome(made, "did_not_run", note=NOTE)
    assert [one.type for one in desk.history(made)].count("action.settled") == 0


def test_the_first_word_stands_and_the_same_one_is_answered_again(
    desk: ApprovalService, clock: Clock
) -> None:
    made, _ = lost(desk, clock)
    first = desk.settle_outcome(made, "did_not_run", by="bob", note=NOTE)

    assert desk.settle_outcome(made, "did_not_run", by="bob", note="again") == first
    with pytest.raises(OutcomeKnown, match=r"bob settled already that .* did not run"):
        desk.settle_outcome(made, "ran", by="eve", note=NOTE)
    assert len(desk.events(EventFilter(type="action.settled"))) == 1


def test_of_many_who_settle_at_once_one_is_first(tmp_path: Path) -> None:
    clock = Clock()
    with account(tmp_path, clock) as desk:
        for _ in range(20):
            made, _ = lost(desk, clock)
            with ThreadPoolExecutor(4) as people:
                told = list(people.map(lambda n, one=made: _settles(desk, one, n), range(4)))
            assert told.count(True) == 1

        assert len(desk.events(EventFilter(type="action.settled"), limit=500)) == 20


def _settles(desk: ApprovalService, made: str, number: int) -> bool:
    try:
        desk.settle_outcome(made, "ran" if number % 2 else "did_not_run", by=f"p{number}", note="x")
    except OutcomeKnown:
        return False
    return True


def test_what_its_program_tells_too_late_is_logged_and_changes_nothing(
    desk: ApprovalService, clock: Clock
) -> None:
    made, claim_id = lost(desk, clock)
    desk.settle_outcome(made, "did_not_run", by="bob", note=NOTE)
    clock.advance(SECOND)

    with pytest.raises(ClaimRefused, match="bob settled already") as refused:
        desk.finish(claim_id, ok=True)

    assert refused.value.code == "settled_already"
    assert desk.approval(made).execution.state == "not_run"
    last = desk.history(made)[-1]
    assert (last.type, last.actor) == ("failure", "tool")
    assert "returned, after bob settled that it did not run" in last.contents["error"]


def test_secrets_in_what_a_person_writes_are_cut_out(desk: ApprovalService, clock: Clock) -> None:
    made, _ = lost(desk, clock)
    canary = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"

    settled = desk.settle_outcome(made, "ran", note=f"seen with {canary}")

    assert canary not in str(settled.execution.settled_note)
    assert canary.encode() not in desk.folder.database.read_bytes()
    assert all(canary not in str(one.contents) for one in desk.history(made))

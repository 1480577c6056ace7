"""Approvals that take several people (n of m): who counts, for which draft, and what holds it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hansard_compiler.policy.rules import parse_rule_set
from hansard_store.approvals.errors import (
    AlreadyDecided,
    AnotherApproverRequired,
    ApprovalExpired,
    ClaimRefused,
    InvalidProposal,
    NotAnApprover,
    RecordAltered,
    RevisionChanged,
)
from hansard_store.approvals.records import Action, Approval, Approver, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.policy.rules import RuleSetInput, put_policy
from hansard_store.principals.errors import CredentialsRequired, SelfApproval
from hansard_store.principals.model import NOBODY, Principal, Scope
from hansard_store.verification.integrity import verify_store
from tests.store.account_paths import disagreement, history
from tests.store.accounts import EMAIL, HOUR, MINUTE, Clock, account, proposal
from tests.store.by_hand import triggers_dropped
from tests.store.test_account_races import answer, racer, tell

RACES = 200


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[ApprovalService]:
    with account(tmp_path, clock) as made:
        yield made


def by_two(desk: ApprovalService, **changes: object) -> str:
    made = desk.propose(proposal(**{"approvals_required": 2, **changes}))
    return made.approval.approval_id


def served(desk: ApprovalService, name: str = "") -> ApprovalService:
    """The same store as a server uses it: for a principal, or a request without a credential."""
    acting = desk.acting(Principal(name, frozenset({Scope.DECIDE}), "token") if name else NOBODY)
    return acting


def test_it_is_approved_by_the_last_of_those_that_it_needs_and_runs_then(
    desk: ApprovalService,
) -> None:
    found = by_two(desk, approvals_required=3)

    first = desk.approve(found, by="ann", comment="the address is right")
    second = desk.approve(found, by="bob")
    with pytest.raises(ClaimRefused, match="is awaiting"):
        desk.claim(found)
    third = desk.approve(found, by="cid")

    assert [one.status for one in (first, second, third)] == ["awaiting", "awaiting", "approved"]
    assert [one.approvals_left for one in (first, second, third)] == [2, 1, 0]
    assert [(one.name, one.method) for one in third.approved_by] == [
        ("ann", "claimed"), ("bob", "claimed"), ("cid", "claimed"),
    ]  # fmt: skip
    assert third.decided_by == "cid"
    told = [one for one in desk.history(found) if one.type.startswith("action.appro")]
    assert [(one.type, one.who) for one in told] == [
        ("action.approval_added", "ann"), ("action.approval_added", "bob"),
        ("action.approved", "cid"),
    ]  # fmt: skip
    assert told[0].contents == {"note": "the address is right"}
    body = json.loads(told[0].body)
    assert (body["revision"], body["arguments"]) == (1, third.arguments_hash)
    assert (body["approvals"], body["approvals_required"]) == (1, 3)
    desk.finish(desk.claim(found), ok=True)
    assert disagreement(desk) is None
    assert verify_store(desk.folder).findings == []


@pytest.mark.parametrize("again", ["ann", "ANN", " ann", "an\u200bn", "\u202eann", "аnn"])
def test_one_person_counts_once_however_the_name_is_written(
    desk: ApprovalService, again: str
) -> None:
    found = by_two(desk)
    desk.approve(found, by="ann")

    with pytest.raises(AnotherApproverRequired) as refused:
        desk.approve(found, by=again)

    assert refused.value.details["approvals_left"] == 1
    assert desk.approval(found).approvals_left == 1
    assert history(desk).count("action.approval_added") == 1


def test_one_person_rejects_or_sends_back_what_others_approved(desk: ApprovalService) -> None:
    rejected, revised = by_two(desk), by_two(desk)
    for one in (rejected, revised):
        desk.approve(one, by="ann")

    assert desk.reject(rejected, by="bob").status == "rejected"
    assert desk.revise(revised, by="bob", note="warmer").approved_by == ()
    with pytest.raises(AlreadyDecided):
        desk.approve(rejected, by="cid")
    with pytest.raises(ClaimRefused):
        desk.claim(rejected)
    assert verify_store(desk.folder).findings == []


def test_approvals_of_a_draft_are_of_that_draft_alone(desk: ApprovalService) -> None:
    found = by_two(desk)
    desk.approve(found, by="ann")
    desk.revise(found, by="bob", note="warmer")
    desk.repropose(found, {**EMAIL, "body": "Dear Alice"})

    with pytest.raises(RevisionChanged):
        desk.approve(found, by="bob", revision=1)
    once = desk.approve(found, by="bob", revision=2)

    assert (once.status, once.approvals_left) == ("awaiting", 1)
    assert desk.approve(found, by="ann", revision=2).status == "approved"
    assert verify_store(desk.folder).findings == []


def test_who_edits_approves_the_new_draft_and_takes_away_the_approvals_of_the_other(
    desk: ApprovalService,
) -> None:
    found = by_two(desk)
    desk.approve(found, by="ann")

    edited = desk.approve(found, by="bob", arguments={**EMAIL, "body": "Dear"})
    with pytest.raises(AnotherApproverRequired):
        desk.approve(found, by="bob", arguments={**EMAIL, "body": "Dear"})

    assert (edited.status, edited.revision) == (Status.AWAITING, 2)
    assert [one.name for one in edited.approved_by] == ["bob"]
    assert desk.approve(found, by="ann", revision=2).status == "approved"
    assert desk.claim(found).arguments["body"] == "Dear"
    assert verify_store(desk.folder).findings == []


@pytest.mark.parametrize(
    ("people", "required"),
    [
        (["ann"], 2),
        (["ann", "Ann", "ANN"], 2),
        (["ann", "аnn"], 2),
        (["ann", "bob"], 3),
        ([], 0),
        ([], 21),
    ],
)
def test_more_approvals_than_there_are_approvers_cannot_be_proposed(
    desk: ApprovalService, people: list[str], required: int
) -> None:
    with pytest.raises(InvalidProposal) as refused:
        by_two(desk, approvers=[Approver(one) for one in people], approvals_required=required)

    assert refused.value.details == {"parameter": "approvals_required"}
    assert desk.approvals() == []


def test_who_requested_it_is_not_counted_among_its_approvers(desk: ApprovalService) -> None:
    people = [Approver("ann"), Approver("bot")]

    with pytest.raises(InvalidProposal, match="requested it"):
        served(desk, "bot").propose(proposal(approvers=people, approvals_required=2))


def test_the_agent_that_asks_is_none_of_them(desk: ApprovalService) -> None:
    found = by_two(desk)

    with pytest.raises(SelfApproval):
        desk.approve(found, by="Clerk")


def test_of_what_came_through_a_server_a_name_that_nobody_checked_counts_for_nobody(
    desk: ApprovalService,
) -> None:
    found = served(desk).propose(proposal(approvals_required=2)).approval.approval_id

    with pytest.raises(CredentialsRequired):
        desk.approve(found, by="ann")
    served(desk, "ann").approve(found)
    with pytest.raises(AnotherApproverRequired):
        served(desk, "Ann").approve(found)

    granted = served(desk, "bob").approve(found)
    assert [(one.name, one.method) for one in granted.approved_by] == [
        ("ann", "token"), ("bob", "token"),
    ]  # fmt: skip


def test_as_many_are_asked_at_once_as_have_to_approve_and_the_next_in_time(
    desk: ApprovalService, clock: Clock
) -> None:
    people = [Approver("ann", MINUTE), Approver("bob", MINUTE), Approver("cid", MINUTE)]
    found = by_two(desk, approvers=people)
    with pytest.raises(NotAnApprover) as early:
        desk.approve(found, by="cid")
    desk.approve(found, by="bob")
    clock.advance(MINUTE)

    assert desk.approve(found, by="CID").status == "approved"
    assert early.value.details == {
        "requested_approvers": ["ann", "bob"],
        "approvers": ["ann", "bob", "cid"],
    }
    assert "ann, bob, then cid" in str(early.value)
    assert disagreement(desk) is None


def test_approvers_without_a_time_of_their_own_are_all_asked(desk: ApprovalService) -> None:
    people = [Approver("ann"), Approver("bob")]
    found = desk.propose(proposal(approvers=people)).approval.approval_id

    assert desk.approve(found, by="bob").status == "approved"


def test_it_expires_with_one_approval_and_a_clock_set_back_gives_no_more_time(
    desk: ApprovalService, clock: Clock
) -> None:
    found = by_two(desk)
    desk.approve(found, by="ann")
    clock.advance(HOUR)

    with pytest.raises(ApprovalExpired):
        desk.approve(found, by="bob")
    clock.advance(-2 * HOUR)

    with pytest.raises(ApprovalExpired):
        desk.approve(found, by="bob")
    assert desk.approval(found).status == "expired"


def test_what_undoes_it_takes_as_many(desk: ApprovalService) -> None:
    found = by_two(desk)
    desk.approve(found, by="ann")
    desk.approve(found, by="bob")
    desk.finish(desk.claim(found), ok=True, undo=Action("recall_email", {"id": 7}))

    undoing = desk.undo(found, by="ann").approval

    assert desk.approve(undoing.approval_id, by="ann").status == "awaiting"
    assert desk.approve(undoing.approval_id, by="bob").status == "approved"


def test_a_batch_leaves_out_what_this_person_has_approved(desk: ApprovalService) -> None:
    made = desk.propose_batch([proposal(approvals_required=2), proposal(tool="note")])
    batch_id = made[0].approval.batch_id or ""

    first = desk.approve_batch(batch_id, by="ann")
    second = desk.approve_batch(batch_id, by="ann")
    third = desk.approve_batch(batch_id, by="bob")

    assert [one.status for one in first] == ["awaiting", "approved"]
    assert second == []
    assert [one.status for one in third] == ["approved"]


@pytest.mark.slow
def test_two_processes_that_approve_at_once_are_two_approvals(tmp_path: Path) -> None:
    with account(tmp_path) as desk, ExitStack() as racing:
        sides = {name: racing.enter_context(racer(tmp_path, name)) for name in ("ann", "bob")}
        for number in range(RACES):
            found = by_two(desk, arguments={"n": number})
            for side in sides.values():
                tell(side, f"add {found}")
            told = [answer(side)["told"] for side in sides.values()]

            approval = desk.approval(found)
            assert approval.status == "approved"
            assert sorted(one.name for one in approval.approved_by) == ["ann", "bob"]
            assert sum(one.count("awaiting") for one in told) == 1
        assert history(desk).count("action.approval_added") == RACES
        assert history(desk).count("action.approved") == RACES
        assert disagreement(desk) is None


# ---- by rules

LARGE = {
    "id": "large",
    "name": "Two people for large amounts",
    "applies_to": {"action": "do"},
    "conditions": {"tool.name": "wire", "arguments.amount": {"at_least": 100}},
    "effect": "require_approval",
    "metadata": {"approvals_required": 2, "approvers": ["ann", "bob", "cid"]},
}


@pytest.fixture
def ruled(tmp_path: Path, clock: Clock) -> Iterator[ApprovalService]:
    document = {"schema_version": 1, "name": "house", "version": "1", "rules": [LARGE]}
    with account(tmp_path, clock) as made:
        given = [RuleSetInput(parse_rule_set(document), document)]
        put_policy(
            made.folder, given, source="api", actor="t", policy_hash="h", expected=None, now_ns=1
        )
        yield made


def wire(desk: ApprovalService, amount: int, **changes: object) -> Approval:
    told: dict[str, object] = {"tool": "wire", "arguments": {"amount": amount}, **changes}
    return desk.propose(proposal(**told)).approval


def test_a_rule_requires_several_people_whatever_the_proposer_says(ruled: ApprovalService) -> None:
    small, large = wire(ruled, 5), wire(ruled, 500)
    narrowed = wire(ruled, 500, approvers=[Approver("Bob"), Approver("eve"), Approver("cid")])

    assert (small.approvals_required, small.approvers) == (1, ())
    assert large.approvals_required == 2
    assert [one.name for one in large.approvers] == ["ann", "bob", "cid"]
    assert [one.name for one in narrowed.approvers] == ["Bob", "cid"]
    with pytest.raises(NotAnApprover):
        ruled.approve(large.approval_id, by="eve")
    for people in (["eve"], ["eve", "bob"]):
        with pytest.raises(InvalidProposal):
            wire(ruled, 500, approvers=[Approver(one) for one in people])


def test_an_edit_that_makes_it_larger_takes_the_people_that_the_rule_demands(
    ruled: ApprovalService,
) -> None:
    found = wire(ruled, 5).approval_id

    edited = ruled.approve(found, by="ann", arguments={"amount": 500})
    with pytest.raises(ClaimRefused):
        ruled.claim(found)
    done = ruled.approve(found, by="bob", revision=2)

    assert (edited.status, edited.approvals_left) == ("awaiting", 1)
    assert done.status == "approved"
    assert ruled.claim(found).arguments == {"amount": 500}
    assert disagreement(ruled) is None
    assert verify_store(ruled.folder).findings == []


def test_who_is_no_approver_of_the_rule_cannot_edit_it_into_reach(ruled: ApprovalService) -> None:
    found = wire(ruled, 5).approval_id

    with pytest.raises(NotAnApprover):
        ruled.approve(found, by="eve", arguments={"amount": 500})

    assert ruled.approval(found).arguments == {"amount": 5}


# ---- with nothing but sqlite3

FORGED = '[{"at_ns":"1","method":"claimed","name":"bob"}]'
ALTERED = {
    "fewer approvals are required": (
        "UPDATE approval SET approvals_required = 1", "half",
        "has approvals_required 1, and 2 by event"),
    "a person who did not approve": (
        f"UPDATE approval SET approved_by = '{FORGED}'", "half", "has approved_by"),
    "no person any more": (
        "UPDATE approval SET approved_by = NULL", "done", "has approved_by [], and"),
    "approved with one of two": (
        "UPDATE approval SET status = 'approved', decided_by = 'ann'", "half",
        "is approved, and awaiting by event"),
    "who may approve": (
        "UPDATE approval SET approvers = '[[\"eve\",null],[\"ann\",null]]'", "named",
        "has approvers"),
    "an approval's event is gone": (
        "DELETE FROM event WHERE type = 'action.approval_added'", "done", "with 1 of 2 approvals"),
}  # fmt: skip


def altered(desk: ApprovalService, sql: str, approval_id: str) -> None:
    desk.close()
    with sqlite3.connect(desk.folder.database) as plain:
        plain.execute("PRAGMA foreign_keys = OFF")
        where = " AND" if "WHERE" in sql else " WHERE"
        with triggers_dropped(plain):
            changed = plain.execute(f"{sql}{where} approval_id = ?", (bytes.fromhex(approval_id),))
        assert changed.rowcount > 0
    plain.close()


@pytest.mark.parametrize("name", ALTERED)
def test_what_was_altered_is_named_by_its_row(desk: ApprovalService, name: str) -> None:
    sql, which, message = ALTERED[name]
    ids = {one: by_two(desk) for one in ("half", "done")}
    ids["named"] = by_two(desk, approvers=[Approver("ann"), Approver("bob")])
    for one in ids.values():
        desk.approve(one, by="ann")
    desk.approve(ids["done"], by="bob")
    assert verify_store(desk.folder).findings == []

    altered(desk, sql, ids[which])

    found = [one for one in verify_store(desk.folder).findings if one.check == "approvals"]
    assert {one.row for one in found} == {ids[which]}
    assert message in " ".join(one.message for one in found)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE approval SET approvals_required = 1",
        f"UPDATE approval SET approved_by = '{FORGED}'",
    ],
)
def test_what_was_made_to_need_one_person_alone_does_not_run(tmp_path: Path, sql: str) -> None:
    with account(tmp_path) as desk:
        found = by_two(desk)
    altered(desk, sql, found)

    with account(tmp_path) as desk:
        with pytest.raises(RecordAltered):
            desk.approve(found, by="ann")
        with pytest.raises(RecordAltered, match="nothing is decided by it, and nothing runs"):
            desk.claim(found)

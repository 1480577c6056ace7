"""What binds an approval: policy, tokens, the record itself; several approvers; batch; undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_compiler.policy.rules import parse_rule_set
from hansard_store.approvals.errors import (
    ActionBlocked,
    ApprovalExpired,
    ClaimRefused,
    InvalidProposal,
    NotAnApprover,
    NotUndoable,
    ProposalKeyReused,
    RevisionChanged,
)
from hansard_store.approvals.records import Action, ApprovalFilter, Approver, PolicyNote, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.errors import StoreBusyError
from hansard_store.policy.checks import list_checks
from hansard_store.policy.rules import RuleSetInput, put_policy
from tests.store.account_paths import disagreement, history, rules
from tests.store.accounts import EMAIL, HOUR, MINUTE, RUN, STEP, Clock, Rules, account, proposal


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[ApprovalService]:
    with account(tmp_path, clock, policy=rules) as made:
        yield made


def refusal(desk: ApprovalService, approval_id: str, **brought: object) -> str:
    with pytest.raises(ClaimRefused) as refused:
        desk.claim(approval_id, **brought)  # type: ignore[arg-type]
    return refused.value.code


# ---- policy


@pytest.mark.covers("EV-04", "PO-05")
def test_what_policy_denies_is_not_created_and_is_logged(desk: ApprovalService) -> None:
    with pytest.raises(ActionBlocked, match="no payments") as blocked:
        desk.propose(proposal(tool="pay", arguments={"sum": 5}))

    assert blocked.value.details["rule_ids"] == ["no-pay"]
    assert desk.approvals() == []
    (event,) = desk.events()
    assert (event.type, event.contents) == ("policy.blocked", {"reason": "no payments"})


def test_a_batch_with_a_denied_part_creates_nothing(desk: ApprovalService) -> None:
    with pytest.raises(ActionBlocked):
        desk.propose_batch([proposal(), proposal(tool="pay")])

    assert desk.approvals() == []
    assert history(desk) == ["policy.blocked"]


@pytest.mark.covers("PO-20")
def test_a_gated_action_carries_rules_reason_and_receipts(desk: ApprovalService) -> None:
    own = PolicyNote(rule_ids=("mine",), reason="my rule", receipts=("rcpt-1",))
    made = desk.propose(proposal(proposer_policy=own, facts={"tool_class": "mail"})).approval

    note = made.policy
    assert (note.effect, note.rule_ids, note.receipts) == (
        "require_approval", ("ask", "mine"), ("rcpt-1",),
    )  # fmt: skip
    assert note.reason == "a person decides"
    assert history(desk) == ["action.created", "policy.gated"]


@pytest.mark.covers("PO-06")
def test_an_action_that_needs_a_receipt_runs_only_once_it_is_stored(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id
    desk.approve(found)
    connection = desk._connections.get()
    connection.pragma("query_only", value=True)
    with pytest.raises(StoreBusyError):
        desk.claim(found)
    with pytest.raises(StoreBusyError):
        desk.receipt("send_email", EMAIL)
    connection.pragma("query_only", value=False)

    claim = desk.claim(found)

    (receipt,) = claim.approval.policy.receipts
    assert history(desk)[-2:] == ["action.receipted", "action.claimed"]
    assert receipt == f"event:{desk.head().seq - 1}"


@pytest.mark.covers("PO-23")
def test_the_rules_of_the_store_judge_and_every_check_is_kept(tmp_path: Path) -> None:
    document = {
        "schema_version": 1,
        "name": "house",
        "version": "1",
        "rules": [
            {
                "id": "no-pay",
                "name": "no",
                "effect": "deny",
                "applies_to": {"action": "do"},
                "conditions": {"tool.name": "pay"},
            }
        ],
    }
    with account(tmp_path) as desk:
        first = desk.propose(proposal()).approval  # no rules yet: nobody was asked
        given = [RuleSetInput(parse_rule_set(document), document)]
        put_policy(
            desk.folder, given, source="api", actor="t", policy_hash="h", expected=None, now_ns=1
        )
        with pytest.raises(ActionBlocked):
            desk.propose(proposal(tool="pay"))
        allowed = desk.propose(proposal(run_id=RUN, step_id=STEP)).approval

        checks = list_checks(desk._connections.get())

    assert first.policy.effect is None
    assert [one.row.effect for one in checks] == ["allow", "deny"]
    assert allowed.policy.check_id == checks[0].id
    assert checks[0].trace_id is not None


def test_a_policy_that_cannot_be_asked_blocks(tmp_path: Path) -> None:
    def broken(_: object) -> PolicyNote:
        raise StoreBusyError("the store cannot write now")

    with account(tmp_path, policy=broken) as desk, pytest.raises(StoreBusyError):
        desk.propose(proposal())

    with account(tmp_path) as desk:
        assert (desk.approvals(), history(desk)) == ([], [])


def test_an_edit_is_a_draft_that_policy_judges_and_the_tool_stays(
    tmp_path: Path, clock: Clock
) -> None:
    asked = Rules()
    with account(tmp_path, clock, policy=asked) as desk:
        found = desk.propose(proposal(facts={"tool_class": "mail"})).approval.approval_id

        granted = desk.approve(found, by="ann", arguments={**EMAIL, "body": "Dear"})
        claim = desk.claim(found)

        assert [one.tool for one in asked.asked] == ["send_email", "send_email"]
        assert asked.asked[1].arguments["body"] == "Dear"
        assert asked.asked[1].facts == {"tool_class": "mail"}
        assert (granted.status, granted.revision, granted.tool) == ("approved", 2, "send_email")
        assert claim.arguments["body"] == "Dear"
        assert [one.type for one in desk.history(found)][1:4] == [
            "action.revised", "action.reproposed", "action.approved",
        ]  # fmt: skip
        assert {one.who for one in desk.history(found)[1:4]} == {"ann"}
        assert disagreement(desk) is None


def test_an_edit_that_holds_a_secret_or_a_marker_is_refused(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id
    for body in ("sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD", "‹withheld:3›"):
        with pytest.raises(InvalidProposal):
            desk.approve(found, arguments={**EMAIL, "body": body})

    assert desk.approval(found).status is Status.AWAITING
    assert desk.approval(found).revision == 1


def test_a_decision_on_an_older_draft_is_refused(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id
    desk.revise(found, note="x")
    desk.repropose(found, {"to": "eve@evil.example"})

    for decide in (desk.approve, desk.reject):
        with pytest.raises(RevisionChanged):
            decide(found, revision=1)
    with pytest.raises(RevisionChanged):
        desk.revise(found, note="y", revision=1)


# ---- tokens, and the record itself


@pytest.mark.covers("PO-21")
def test_a_token_is_of_one_draft_one_use_and_one_time(desk: ApprovalService, clock: Clock) -> None:
    made = desk.propose(proposal())
    other = desk.propose(proposal())
    for one in (made, other):
        desk.approve(one.approval.approval_id)
    found = made.approval.approval_id
    token = desk.token(found, made.proposal_key)
    assert token is not None

    foreign = desk.token(other.approval.approval_id, other.proposal_key)
    wrong = [refusal(desk, found, token=foreign), refusal(desk, found, proposal_key="hpk_x")]
    bare = refusal(desk, found, is_trusted=False)
    changed = refusal(desk, found, arguments={"to": "eve"}, token=token)
    clock.advance(HOUR)
    late = refusal(desk, found, token=token)

    assert (wrong, bare, changed, late) == (
        ["bad_token", "bad_token"], "bad_token", "arguments_changed", "token_expired",
    )  # fmt: skip
    assert desk.token(found, made.proposal_key) is None
    with pytest.raises(ClaimRefused):
        desk.token(found, "hpk_x")


@pytest.mark.covers("CG-09")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE approval SET arguments = replace(arguments, 'alice', 'eve')",
        "UPDATE approval SET arguments_hash = 'hmac-sha256:00'",
        "UPDATE approval SET tool = 'wire_money'",
        "UPDATE approval SET revision = 2",
        "UPDATE approval SET token_ends_ns = token_ends_ns + 1",
        "UPDATE approval SET token = zeroblob(32)",
    ],
)
def test_a_record_that_was_altered_after_its_approval_does_not_run(
    desk: ApprovalService, sql: str
) -> None:
    found = desk.propose(proposal()).approval.approval_id
    desk.approve(found)
    desk._connections.get().execute(sql)

    assert refusal(desk, found) == "record_altered"


def test_an_approval_written_by_hand_does_not_run(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id
    desk._connections.get().execute(
        "UPDATE approval SET status = 'approved', token_ends_ns = 1 << 62, decided_by = 'me'"
    )

    assert refusal(desk, found) == "record_altered"


def test_neither_token_nor_key_is_in_the_store(desk: ApprovalService, tmp_path: Path) -> None:
    made = desk.propose(proposal())
    desk.approve(made.approval.approval_id)
    token = desk.token(made.approval.approval_id, made.proposal_key)
    assert token is not None

    for path in (tmp_path / "data").iterdir():
        if path.is_file():
            assert token.encode() not in path.read_bytes()
            assert made.proposal_key.encode() not in path.read_bytes()


def test_a_proposal_sent_again_with_its_key_is_the_same(desk: ApprovalService) -> None:
    first = desk.propose(proposal(proposal_key="key-of-sixteen-c"))
    again = desk.propose(proposal(proposal_key="key-of-sixteen-c"))

    with pytest.raises(ProposalKeyReused):
        desk.propose(proposal(proposal_key="key-of-sixteen-c", arguments={"to": "eve"}))

    assert again.approval == first.approval
    assert len(desk.approvals()) == 1


# ---- one per channel


@pytest.mark.covers("CG-10")
def test_a_new_action_of_a_channel_ends_what_waited_there(desk: ApprovalService) -> None:
    told = {"channel": "chat", "one_per_channel": True, "lifetime_ns": 5 * MINUTE}
    first = desk.propose(proposal(**told)).approval
    elsewhere = desk.propose(proposal(channel="other")).approval

    second = desk.propose(proposal(**told))

    ended = desk.approval(first.approval_id, with_drafts=True)
    assert (ended.status, ended.reason, ended.decided_by) == ("rejected", "superseded", "hansard")
    assert desk.history(first.approval_id)[-1].actor == "system"
    assert second.replaced == (first.approval_id,)
    waiting = desk.approvals(ApprovalFilter(status=("awaiting",)))
    assert {one.approval_id for one in waiting} == {
        second.approval.approval_id,
        elsewhere.approval_id,
    }


def test_what_is_proposed_together_does_not_end_one_another(desk: ApprovalService) -> None:
    told = {"channel": "chat", "one_per_channel": True}
    desk.propose(proposal(**told))

    made = desk.propose_batch([proposal(**told, arguments={"n": n}) for n in range(3)])

    waiting = desk.approvals(ApprovalFilter(status=("awaiting",)))
    assert len(waiting) == len(made) == 3


# ---- batch


@pytest.mark.covers("CG-27")
def test_a_batch_is_approved_at_once_without_what_was_taken_out(desk: ApprovalService) -> None:
    made = desk.propose_batch([proposal(tool="note", arguments={"n": n}) for n in range(5)])
    batch_id = made[0].approval.batch_id
    assert batch_id is not None
    desk.reject(made[1].approval.approval_id, by="ann")

    granted = desk.approve_batch(batch_id, by="ann")

    assert [one.arguments["n"] for one in granted] == [0, 2, 3, 4]
    statuses = [one.status for one in desk.approvals(ApprovalFilter(batch_id=batch_id))]
    assert sorted(statuses) == ["approved"] * 4 + ["rejected"]


def test_a_batch_is_granted_whole_or_not_at_all(desk: ApprovalService, clock: Clock) -> None:
    people = [Approver("bob")]
    made = desk.propose_batch(
        [proposal(lifetime_ns=MINUTE), proposal(), proposal(approvers=people)]
    )
    batch_id = made[0].approval.batch_id
    assert batch_id is not None
    clock.advance(MINUTE)

    with pytest.raises(NotAnApprover):
        desk.approve_batch(batch_id, by="ann")
    refused = [one.status for one in desk.approvals(ApprovalFilter(batch_id=batch_id))]
    granted = desk.approve_batch(batch_id, by="bob")

    assert sorted(refused) == ["awaiting", "awaiting", "expired"]
    assert len(granted) == 2
    assert disagreement(desk) is None


# ---- several approvers


@pytest.mark.covers("PO-26")
def test_the_second_is_asked_when_the_first_does_not_answer(
    desk: ApprovalService, clock: Clock
) -> None:
    people = [Approver("ann", 5 * MINUTE), Approver("bob", 10 * MINUTE), Approver("cid", MINUTE)]
    found = desk.propose(proposal(approvers=people)).approval.approval_id
    with pytest.raises(NotAnApprover) as early:
        desk.approve(found, by="bob")

    clock.advance(5 * MINUTE)
    (changed,) = desk.expire_due()
    granted = desk.approve(found, by="bob")

    assert early.value.details["requested_approvers"] == ["ann"]
    assert changed.asked == 2
    assert granted.decided_by == "bob"
    escalated = desk.history(found)[2]
    assert (escalated.type, escalated.body) == (
        "action.escalated", '{"from":"ann","revision":1,"to":"bob"}',
    )  # fmt: skip


@pytest.mark.covers("PO-26")
def test_when_nobody_of_them_answers_it_expires(desk: ApprovalService, clock: Clock) -> None:
    people = [Approver("ann", MINUTE), Approver("bob", MINUTE)]
    made = desk.propose(proposal(approvers=people)).approval
    clock.advance(90 * MINUTE // 60)
    assert desk.approvals()[0].asked == 2  # whoever reads it sees who is asked now
    clock.advance(MINUTE)

    with pytest.raises(ApprovalExpired):
        desk.approve(made.approval_id, by="bob")

    assert made.expires_ns - made.created_ns == 2 * MINUTE


# ---- undo


@pytest.mark.covers("CG-28")
def test_an_executed_action_is_undone_through_the_same_gate(desk: ApprovalService) -> None:
    made = desk.propose(proposal(run_id=RUN, step_id=STEP)).approval.approval_id
    with pytest.raises(NotUndoable):
        desk.undo(made)
    desk.approve(made)
    claim = desk.claim(made)
    desk.finish(claim, ok=True, undo=Action("recall_email", {"id": 7}))

    undoing = desk.undo(made, by="ann").approval
    with pytest.raises(NotUndoable) as twice:
        desk.undo(made)

    assert (undoing.tool, undoing.arguments, undoing.undo_of) == ("recall_email", {"id": 7}, made)
    assert (undoing.status, undoing.run_id) == ("awaiting", RUN)
    (created,) = [one for one in desk.history(undoing.approval_id) if one.contents]
    assert (created.actor, created.who) == ("me", "ann")
    assert twice.value.details["approval_id"] == undoing.approval_id


def test_what_nobody_can_undo_says_so(desk: ApprovalService) -> None:
    made = desk.propose(proposal()).approval.approval_id
    desk.approve(made)
    desk.finish(desk.claim(made), ok=True)

    with pytest.raises(NotUndoable, match="did not say how"):
        desk.undo(made)


# ---- what ended


def test_a_result_is_told_once_and_also_after_it_was_believed_lost(
    desk: ApprovalService, clock: Clock
) -> None:
    found = desk.propose(proposal()).approval.approval_id
    desk.approve(found)
    claim = desk.claim(found, lease_s=60)
    clock.advance(MINUTE)
    (lost,) = desk.recover()
    assert lost.execution.state == "unknown"
    unknown = desk.approvals(ApprovalFilter(execution="unknown"))
    assert [one.approval_id for one in unknown] == [found]

    done = desk.finish(claim, ok=True, result_ref="m1")
    with pytest.raises(ClaimRefused) as twice:
        desk.finish(claim, ok=False)
    with pytest.raises(ClaimRefused) as none:
        desk.finish("00" * 16, ok=True)

    assert (done.execution.state, done.execution.result_ref) == ("done", "m1")
    assert [twice.value.code, none.value.code] == ["already_finished", "not_claimed"]
    assert disagreement(desk) is None

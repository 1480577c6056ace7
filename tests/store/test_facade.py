"""ApprovalService as its callers see it: approvals, their events, and nothing beside the facade.

The same tests pass with the audit log in SQLite and with one in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_store.approvals.errors import (
    AlreadyDecided,
    ApprovalExpired,
    ClaimRefused,
    IllegalTransition,
)
from hansard_store.approvals.records import ApprovalFilter, Status
from hansard_store.approvals.service import ApprovalService, open_accountability
from hansard_store.audit.event_types import EventFilter, EventType
from tests.store.accounts import (
    EMAIL,
    HOUR,
    MINUTE,
    RUN,
    SECOND,
    STEP,
    Clock,
    MemoryEventLog,
    account,
    proposal,
)
from tests.store.by_hand import triggers_dropped


@pytest.fixture(params=["sqlite", "memory"])
def desk(tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[ApprovalService]:
    told = {} if request.param == "sqlite" else {"open_log": MemoryEventLog().of}
    made = account(tmp_path, clock, **told)
    yield made
    made.close()


def types(desk: ApprovalService, approval_id: str | None = None) -> list[str]:
    key = None if approval_id is None else bytes.fromhex(approval_id)
    return [one.type for one in desk.events(EventFilter(approval_id=key), limit=500)][::-1]


@pytest.mark.covers("CF-01", "CF-02", "CF-16", "CF-17", "CF-30", "EV-05", "EV-17")
def test_integration_an_action_is_proposed_approved_claimed_and_run(
    desk: ApprovalService, clock: Clock
) -> None:
    made = desk.propose(proposal(run_id=RUN, step_id=STEP))
    waiting = made.approval
    clock.advance(SECOND)

    granted = desk.approve(waiting.approval_id[-8:], by="ann")
    token = desk.token(waiting.approval_id, made.proposal_key)
    claim = desk.claim(waiting.approval_id, EMAIL, token=token)
    done = desk.finish(claim, ok=True, result_ref="msg-17")

    assert (waiting.status, waiting.revision, waiting.arguments) == ("awaiting", 1, EMAIL)
    assert (granted.status, granted.decided_by) == ("approved", "ann")
    assert claim.arguments == EMAIL
    assert (done.execution.state, done.execution.result_ref) == ("done", "msg-17")
    assert types(desk, waiting.approval_id) == [
        "action.created", "action.approved", "action.claimed", "action.executed",
    ]  # fmt: skip
    assert desk.verify().is_sound


@pytest.mark.covers("CF-13", "CF-14", "CF-28", "CF-30", "EV-14", "EV-15")
def test_integration_every_draft_and_note_of_a_revision_cycle_is_in_the_log(
    desk: ApprovalService,
) -> None:
    first = desk.propose(proposal()).approval.approval_id
    for number in (1, 2, 3):
        desk.revise(first, note=f"shorter,  {number}×", by="ann")
        desk.repropose(first, {**EMAIL, "body": f"draft {number + 1}"})

    found = desk.approval(first, with_drafts=True)

    assert (found.status, found.revision, found.arguments["body"]) == ("awaiting", 4, "draft 4")
    assert found.drafts is not None
    bodies = [one.arguments["body"] for one in found.drafts]
    assert bodies == [EMAIL["body"], "draft 2", "draft 3", "draft 4"]
    assert [one.note for one in found.drafts] == [
        "shorter,  1×",
        "shorter,  2×",
        "shorter,  3×",
        None,
    ]
    assert len(desk.approvals()) == 1
    assert desk.verify().is_sound


@pytest.mark.covers("CF-07", "CF-18", "CF-22", "CF-23", "CF-30")
def test_integration_what_nobody_decides_in_time_expires_even_before_it_is_swept(
    desk: ApprovalService, clock: Clock
) -> None:
    first = desk.propose(proposal()).approval
    second = desk.propose(proposal()).approval
    clock.advance(HOUR - 1)
    assert desk.approval(first.approval_id).status is Status.AWAITING
    clock.advance(1)

    with pytest.raises(ApprovalExpired):
        desk.approve(first.approval_id)
    swept = desk.expire_due()

    assert first.expires_ns - first.created_ns == HOUR
    assert [one.approval_id for one in swept] == [second.approval_id]
    assert types(desk, first.approval_id) == ["action.created", "action.expired"]
    assert desk.approval(first.approval_id).status is Status.EXPIRED


def test_an_expired_action_is_expired_for_whoever_reads_it(
    desk: ApprovalService, clock: Clock
) -> None:
    found = desk.propose(proposal()).approval.approval_id
    clock.advance(2 * HOUR)

    assert desk.approval(found).status is Status.EXPIRED
    clock.advance(-2 * HOUR)  # the clock is set back

    assert desk.approval(found).status is Status.EXPIRED
    assert desk.approvals(ApprovalFilter(status=("awaiting",))) == []
    assert types(desk, found) == ["action.created", "action.expired"]


def test_a_clock_set_back_gives_no_more_time_to_decide(desk: ApprovalService, clock: Clock) -> None:
    found = desk.propose(proposal()).approval.approval_id
    clock.advance(-HOUR)

    with pytest.raises(ApprovalExpired):
        desk.approve(found)

    events = desk.events()
    assert [(one.seq, one.type, one.action) for one in events] == [
        (3, EventType.ACTION_EXPIRED, "send_email"),
        (2, EventType.FAILURE, "clock"),
        (1, EventType.ACTION_CREATED, "send_email"),
    ]
    assert json.loads(events[1].body)["set_back_ns"] == str(HOUR)
    assert events[0].time_ns < events[2].time_ns  # the order is that of the numbers


def test_what_a_clock_that_was_set_back_ended_is_on_no_list(
    desk: ApprovalService, clock: Clock
) -> None:
    desk.propose(proposal())
    desk.propose(proposal())
    clock.advance(-HOUR)

    assert desk.approvals(ApprovalFilter(status=("awaiting",))) == []
    assert desk.urgent(ApprovalFilter()) == []
    assert [one.status for one in desk.approvals()] == [Status.EXPIRED, Status.EXPIRED]


@pytest.mark.covers("CF-09")
def test_a_new_draft_lives_as_long_again(desk: ApprovalService, clock: Clock) -> None:
    found = desk.propose(proposal(lifetime_ns=5 * MINUTE)).approval.approval_id
    clock.advance(4 * MINUTE)
    desk.revise(found, note="again")
    assert desk.approval(found).expires_ns == clock.now_ns + MINUTE

    back = desk.repropose(found, EMAIL)

    assert back.expires_ns == clock.now_ns + 5 * MINUTE


def test_the_same_decision_of_the_same_person_is_taken_once(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id

    first = desk.approve(found, by="ann")
    again = desk.approve(found, by="ann")
    with pytest.raises(AlreadyDecided) as other:
        desk.reject(found, by="bob")

    assert first == again
    assert other.value.details["decision"]["decided_by"] == "ann"
    assert types(desk, found) == ["action.created", "action.approved"]


def test_an_action_is_claimed_once_and_only_when_approved(desk: ApprovalService) -> None:
    made = desk.propose(proposal())
    found = made.approval.approval_id
    with pytest.raises(ClaimRefused) as early:
        desk.claim(found)
    desk.approve(found)
    token = desk.token(found, made.proposal_key)
    desk.claim(found, token=token)

    with pytest.raises(ClaimRefused) as again:
        desk.claim(found)
    with pytest.raises(ClaimRefused) as used:
        desk.claim(found, token=token)

    assert [one.value.code for one in (early, again, used)] == [
        "not_approved", "already_claimed", "token_used",
    ]  # fmt: skip
    assert desk.token(found, made.proposal_key) is None


@pytest.mark.covers("CF-12")
def test_there_is_no_limit_on_revisions(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal()).approval.approval_id
        for number in range(1_000):
            desk.revise(found, note=f"again {number}")
            desk.repropose(found, {**EMAIL, "body": str(number)})

        whole = desk.approval(found, with_drafts=True)

    assert whole.revision == 1_001
    assert whole.drafts is not None
    assert len(whole.drafts) == 1_001


@pytest.mark.covers("CF-21", "CF-30", "EV-16", "CF-14")
def test_a_fresh_store_knows_what_is_pending_though_the_log_is_empty(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        ids = [desk.propose(proposal()).approval.approval_id for _ in range(3)]
        desk.revise(ids[0], note="warmer")
        before = desk.approvals()
        connection = desk._connections.get()
        with triggers_dropped(connection):
            connection.execute("DELETE FROM event_content")
            connection.execute("DELETE FROM event")

    with account(tmp_path) as fresh:
        assert fresh.approvals() == before
        assert fresh.approvals()[-1].note == "warmer"
        assert fresh.repropose(ids[0], EMAIL).status is Status.AWAITING
        assert fresh.approve(ids[1]).status is Status.APPROVED


def test_only_events_of_tools_that_read_do_not_wait_for_the_disk(desk: ApprovalService) -> None:
    connection, normal, full = desk._connections.get(), 1, 2

    levels = []
    for effect in ("read", "read", "write", "read", None):
        desk.tool_called("find", effect=effect)
        levels.append(connection.pragma("synchronous"))
    desk.propose(proposal())

    assert levels == [normal, normal, full, normal, full]
    assert connection.pragma("synchronous") == full


def test_a_note_is_needed_to_send_an_action_back(desk: ApprovalService) -> None:
    found = desk.propose(proposal()).approval.approval_id

    with pytest.raises(Exception, match="a note is needed"):
        desk.revise(found, note="  ")
    desk.revise(found, note="x")
    with pytest.raises(IllegalTransition):
        desk.approve(found)

    assert types(desk, found) == ["action.created", "action.revised"]


def test_a_data_folder_is_opened_by_the_name_in_the_entry_point(tmp_path: Path) -> None:
    with open_accountability(tmp_path / "new") as desk:
        made = desk.propose(proposal())

    assert made.approval.status is Status.AWAITING

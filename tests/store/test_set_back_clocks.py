"""A clock that is set back gives nothing more time: no decision, no run, no claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hansard_store.approvals.errors import ApprovalExpired, ClaimRefused
from hansard_store.approvals.records import Approver, Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.clock import Uptime
from hansard_store.principals.errors import NameReserved
from tests.store.empty import empty_store

MINUTE_NS = 60 * 1_000_000_000
START_NS = 1_800_000_000 * 1_000_000_000


@dataclass
class Machine:
    """A store on a machine whose wall clock anybody may set; its uptime nobody."""

    store: ApprovalService
    wall_ns: int = START_NS
    up_ns: int = 0
    boot: str = "one"
    tells_uptime: bool = True

    def passes(self, minutes: float) -> None:
        self.wall_ns += int(minutes * MINUTE_NS)
        self.up_ns += int(minutes * MINUTE_NS)

    def set_back(self, minutes: float) -> None:
        self.wall_ns -= int(minutes * MINUTE_NS)

    def uptime(self) -> Uptime | None:
        return Uptime(self.boot, self.up_ns) if self.tells_uptime else None

    def asked(self, minutes: float = 5) -> str:
        proposal = Proposal(
            tool="pay", arguments={"kroner": 100}, lifetime_ns=int(minutes * MINUTE_NS)
        )
        return self.store.propose(proposal).approval.approval_id

    def approved(self, minutes: float = 5) -> str:
        return self.store.approve(self.asked(minutes), by="ana").approval_id

    def refused(self, approval_id: str) -> None:
        with pytest.raises(ClaimRefused, match="was not run in time"):
            self.store.claim(approval_id)
        assert self.store.approval(approval_id).execution.state == "none"

    def set_backs(self) -> list[str]:
        return [one.contents["error"] for one in self.store.events() if one.action == "clock"]


@pytest.fixture(params=[True, False], ids=["uptime", "no uptime"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    made: list[Machine] = []
    with ApprovalService(
        empty_store(tmp_path / "data"),
        clock=lambda: made[0].wall_ns if made else START_NS,
        uptime=lambda: made[0].uptime(),
    ) as store:
        made.append(Machine(store, tells_uptime=request.param))
        yield made[0]
        assert store.verify().broken is None


def test_an_approval_is_shown_with_the_deadline_that_its_claim_goes_by(machine: Machine) -> None:
    identity = machine.approved()
    machine.passes(4)
    machine.asked()  # a write keeps the time, and the next one notices that it was set back
    machine.set_back(3)
    machine.asked()

    shown = machine.store.approval(identity)
    [listed] = [one for one in machine.store.approvals() if one.approval_id == identity]

    assert shown.token_ends_ns == listed.token_ends_ns
    assert shown.token_ends_ns is not None
    assert shown.token_ends_ns <= machine.wall_ns + 2 * MINUTE_NS
    machine.passes(2.5)
    machine.refused(identity)
    late = machine.store.approval(identity)
    assert late.token_ends_ns is not None
    assert late.token_ends_ns < machine.wall_ns
    assert late.expires_ns < machine.wall_ns


@pytest.mark.parametrize("back", [1.5, 3, 5.9, 60, 600])
def test_what_was_refused_as_too_late_is_too_late_for_ever(machine: Machine, back: float) -> None:
    identity = machine.approved()
    machine.passes(6)
    machine.refused(identity)

    machine.set_back(back)

    machine.refused(identity)
    machine.passes(0.5)
    machine.refused(identity)


def test_time_that_passed_unseen_counts_as_well(machine: Machine) -> None:
    if not machine.tells_uptime:
        machine.asked()  # else nobody saw the time that passed
    identity = machine.approved()
    machine.passes(4)
    if not machine.tells_uptime:
        machine.asked()
    machine.set_back(3)
    machine.asked()
    machine.passes(1.5)

    machine.refused(identity)


def test_what_has_time_left_keeps_just_that(machine: Machine) -> None:
    early, late = machine.approved(), machine.approved()
    machine.passes(3)
    machine.asked()
    machine.set_back(2)
    machine.asked()
    machine.passes(1)
    machine.store.claim(early)
    machine.passes(1.5)

    machine.refused(late)
    assert len(machine.set_backs()) == 1
    assert machine.set_backs()[0].startswith("the clock was set back by 120 s")


def test_what_is_asked_after_a_set_back_has_its_whole_time(machine: Machine) -> None:
    machine.asked()
    machine.passes(30)
    machine.asked()
    machine.set_back(20)
    identity = machine.approved()
    machine.passes(4)

    assert machine.store.claim(identity).claim_id


def test_a_decision_has_no_more_time(machine: Machine) -> None:
    identity = machine.asked()
    machine.passes(3)
    machine.asked()
    machine.set_back(2.5)
    machine.asked()
    machine.passes(2.5)

    assert machine.store.approval(identity).status == "expired"
    assert identity not in [
        one.approval_id for one in machine.store.approvals() if one.status == "awaiting"
    ]
    with pytest.raises(ApprovalExpired):
        machine.store.approve(identity, by="ana")


def test_a_sweep_and_the_next_approver_have_no_later_hour(machine: Machine) -> None:
    chain = [Approver("ana", within_ns=5 * MINUTE_NS), Approver("bob")]
    identity = machine.store.propose(
        Proposal(tool="pay", arguments={}, approvers=chain)
    ).approval.approval_id
    short = machine.asked()
    machine.passes(3)
    machine.asked(90)
    machine.set_back(2.5)
    machine.asked(90)
    machine.passes(2.5)

    assert {one.approval_id for one in machine.store.expire_due()} == {identity, short}
    assert machine.store.approval(identity).asked == 2


def test_a_claim_is_not_awaited_longer(machine: Machine) -> None:
    identity = machine.approved()
    machine.store.claim(identity, lease_s=300)
    machine.passes(3)
    machine.asked()
    machine.set_back(2)
    machine.asked()
    machine.passes(1)
    assert machine.store.recover() == []
    machine.passes(1.5)

    assert [one.approval_id for one in machine.store.recover()] == [identity]


def test_a_clock_that_is_only_adjusted_or_set_ahead_is_no_event(machine: Machine) -> None:
    machine.approved()
    machine.passes(1)
    machine.set_back(0.005)
    machine.asked()
    machine.set_back(-60)
    machine.asked()

    assert machine.set_backs() == []


def test_after_a_reboot_the_latest_time_that_was_seen_counts(machine: Machine) -> None:
    identity = machine.approved()
    machine.passes(6)
    machine.refused(identity)
    machine.boot, machine.up_ns = "two", 0
    machine.set_back(4)

    machine.refused(identity)


def test_nobody_else_logs_a_set_back(machine: Machine) -> None:
    identity = machine.approved()
    said = "the clock was set back by 3600 s"
    for agent in (None, "clock"):
        machine.store.failed("clock", said, agent=agent)
    for own in ("hansard", "system"):
        with pytest.raises(NameReserved):
            machine.store.failed("clock", said, agent=own)
    machine.passes(4)

    assert machine.store.claim(identity).claim_id

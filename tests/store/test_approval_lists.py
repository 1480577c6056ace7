"""Lists of approvals: filtered by index whatever is asked, and paged without a gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.records import ApprovalFilter, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.transactions import transaction
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from tests.store.accounts import HOUR, MINUTE, RUN, account, proposal
from tests.store.plans import QueryPlans

FILTERS: list[dict[str, Any]] = [
    {},
    {"status": ("awaiting",)},
    {"status": ("awaiting", "revised")},
    {"channel": "c"},
    {"run_id": RUN},
    {"agent": "clerk"},
    {"tool": "send_email"},
    {"batch_id": "00" * 16},
    {"tool": "send_email", "status": ("rejected",), "agent": "clerk"},
    {"status": ("awaiting", "revised"), "tool": "send_email"},
    {"execution": "unknown"},
    {"execution": "claimed", "tool": "send_email"},
    {"execution": "done", "tool": "send_email"},
    {"execution": "failed"},
]


def scans(plans: QueryPlans) -> list[tuple[str, str]]:
    """Return what reads a whole table; some indexes hold nothing but what is asked for."""
    partial = ("approval_pending", "approval_due")
    return [one for one in plans.scans() if not one[0].endswith(partial)]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_a_list_searches_and_never_reads_everything(
    tmp_path: Path, plans: QueryPlans, wanted: dict[str, Any]
) -> None:
    with account(tmp_path) as desk:
        desk.propose(proposal())

        with plans.watch(desk._connections.get()):
            desk.approvals(ApprovalFilter(**wanted))
            desk.urgent(ApprovalFilter(**wanted))
            desk.waiting()

    assert scans(plans) == []
    if "execution" not in wanted:
        assert plans.sorts() == []


def test_one_approval_is_read_without_a_scan(tmp_path: Path, plans: QueryPlans) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal(channel="c")).approval.approval_id

        with plans.watch(desk._connections.get()):
            desk.approval(found[-8:], with_drafts=True)
            desk.propose(proposal(channel="c", one_per_channel=True))
            desk.approve(desk.approvals()[0].approval_id)
            desk.claim(desk.approvals()[0].approval_id)
            desk.expire_due()
            desk.recover()
            approvals.list_of_step(desk._connections.get(), f"{'a' * 32}-{'b' * 16}")

    assert scans(plans) == []
    assert plans.sorts() == []


def filled(desk: ApprovalService, count: int) -> None:
    """Add approvals in every state."""
    first = desk.propose(proposal()).approval
    with transaction(desk._connections.get()):
        for number in range(1, count):
            approvals.add(
                desk._connections.get(),
                replace(
                    first,
                    approval_id=f"{number:032x}",
                    status=list(Status)[number % 5],
                    tool=f"t{number % 3}",
                    proposal_key=number.to_bytes(32, "big"),
                ),
            )


def test_what_waits_is_listed_by_its_deadline_however_much_waits(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        lives = [HOUR, 3 * MINUTE, 40 * MINUTE, 2 * MINUTE]
        made = [desk.propose(proposal(lifetime_ns=one)).approval.approval_id for one in lives]
        desk.revise(made[3], note="warmer")

        urgent = [one.approval_id for one in desk.urgent(ApprovalFilter(), limit=3)]
        awaiting = [one.approval_id for one in desk.urgent(ApprovalFilter(status=("awaiting",)))]

    assert urgent == [made[3], made[1], made[2]]
    assert awaiting == [made[1], made[2], made[0]]


@pytest.mark.parametrize("few", [2, 10_000])
def test_a_list_by_outcome_is_the_same_whether_few_or_many_had_it(
    tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "_FEW", few)
    with account(tmp_path) as desk:
        made = [desk.propose(proposal()).approval.approval_id for _ in range(5)]
        for number, one in enumerate(made[:4]):
            desk.approve(one)
            desk.finish(desk.claim(one), ok=number != 2)

        done = [one.approval_id for one in desk.approvals(ApprovalFilter(execution="done"))]
        failed = [one.approval_id for one in desk.approvals(ApprovalFilter(execution="failed"))]
        none = [one.approval_id for one in desk.approvals(ApprovalFilter(execution="none"))]

    assert (done, failed, none) == ([made[3], made[1], made[0]], [made[2]], [made[4]])


@pytest.mark.parametrize(
    "wanted",
    [{}, {"status": ("awaiting", "revised")}, {"status": ("approved", "expired")}, {"tool": "t1"},
     {"tool": "t1", "status": ("rejected",)}],
    ids=str,
)  # fmt: skip
def test_pages_joined_are_what_one_page_would_hold(tmp_path: Path, wanted: dict[str, Any]) -> None:
    with account(tmp_path) as desk:
        filled(desk, 40)
        whole = [one.number for one in desk.approvals(ApprovalFilter(**wanted), limit=500)]
        pages: list[int] = []
        cursor: str | None = None
        while True:
            found = desk.approvals(
                ApprovalFilter(**wanted), before=approvals.read_cursor(cursor), limit=7
            )
            pages += [one.number for one in found]
            cursor = approvals.cursor_after(found, limit=7)
            if cursor is None:
                break

    assert pages == whole == sorted(whole, reverse=True)
    assert 0 < len(whole) <= 40


def test_a_prefix_must_be_long_and_belong_to_one(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        filled(desk, 3)

        with pytest.raises(AmbiguousIdError):
            desk.approval("00000000")
        for bad in ("0000000", "zzzzzzzz", "f" * 33, "", "ffffffff"):
            with pytest.raises(NotFoundError):
                desk.approval(bad)
        with pytest.raises(InvalidQueryError, match="no id"):
            desk.approvals(ApprovalFilter(batch_id="mine"))
        with pytest.raises(InvalidCursorError):
            approvals.read_cursor("nonsense")

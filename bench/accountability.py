"""The audit log and approvals: what an event costs, verifying, lists of many, two processes."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, below, percentile
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.errors import AlreadyDecided
from hansard_store.approvals.records import Approval, ApprovalFilter, Proposal, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.transactions import transaction
from hansard_web.approvals.page import read_inbox
from hansard_web.approvals.page_state import InboxState

_EVENTS = 10_000
_APPROVALS = 100_000
_WAITING = 300
_ROUNDS = 100
_EACH = 500
_REPEATS = 20


def run() -> list[Figure]:
    """Measure on fresh stores, on the disk that temporary files lie on."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        return [*_events(folder / "events"), *_lists(folder / "lists"), *_races(folder / "races")]


def _events(folder: Path) -> list[Figure]:
    with ApprovalService(folder) as desk:
        desk.head()
        took = [_timed(lambda n=n: desk.tool_called("find", {"n": n})) for n in range(1_000)]  # type: ignore[misc]
        cycle = [_timed(lambda: _cycle(desk)) for _ in range(50)]
        while desk.head().seq < _EVENTS:
            desk.tool_called("find", {"q": "rest"})
        verified = min(_timed(desk.verify) for _ in range(3))
        count = desk.verify().checked
    return [
        below(f"{count:,} events verified", verified, "s", bar=1),
        Figure(
            "an event, committed with fsync",
            median(took) * 1000,
            "ms",
            note=f"p99 {percentile(took, 0.99) * 1000:.2f} ms",
        ),
        Figure(
            "propose, approve, claim, tell the result",
            median(cycle) * 1000,
            "ms",
            note="four transactions",
        ),
    ]


def _cycle(desk: ApprovalService) -> None:
    made = desk.propose(Proposal("send_email", {"to": "a@b.example", "body": "x" * 500}))
    desk.approve(made.approval.approval_id)
    desk.finish(desk.claim(made.approval.approval_id), ok=True)


def _lists(folder: Path) -> list[Figure]:
    with ApprovalService(folder) as desk:
        first = desk.propose(Proposal("tool0", {"n": 0}, agent="a0")).approval
        _fill(desk, first)
        asked: dict[str, Callable[[], Any]] = {
            "newest 50": lambda: desk.approvals(),
            "those that wait": lambda: desk.approvals(
                ApprovalFilter(status=("awaiting", "revised"))
            ),
            "a tool's that were rejected": lambda: desk.approvals(
                ApprovalFilter(status=("rejected",), tool="tool7")
            ),
            "those that failed": lambda: desk.approvals(ApprovalFilter(execution="failed")),
            "how many wait": desk.waiting,
            "all that the page lists": lambda: read_inbox(desk, InboxState()),
        }
        took = {name: _repeated(act) for name, act in asked.items()}
    return [
        below(f"approvals: {name}, of {_APPROVALS:,}", ms, "ms", bar=30)
        for name, ms in took.items()
    ]


def _fill(desk: ApprovalService, first: Approval) -> None:
    """Copy an approval 100,000 times; all but some hundred are decided."""
    connection = desk._connections.get()
    with transaction(connection):
        for number in range(1, _APPROVALS):
            waits = number % (_APPROVALS // _WAITING) == 0
            ended = Status.REJECTED if number % 50 == 0 else Status.APPROVED
            approvals.add(
                connection,
                replace(
                    first,
                    approval_id=f"{number:032x}",
                    status=Status.AWAITING if waits else ended,
                    tool=f"tool{number % 20}",
                    agent=f"a{number % 7}",
                    proposal_key=number.to_bytes(32, "big"),
                ),
            )


def _races(folder: Path) -> list[Figure]:
    with ApprovalService(folder) as desk:
        ids = [desk.propose(Proposal("t", {"n": n})).approval.approval_id for n in range(_ROUNDS)]
        before = desk.head().seq
        spawn = multiprocessing.get_context("spawn")
        together, outcomes = spawn.Barrier(2), spawn.Queue()
        sides = [
            spawn.Process(target=_side, args=(folder, name, ids, together, outcomes))
            for name in ("ann", "bob")
        ]
        for side in sides:
            side.start()
        told = [outcomes.get() for _ in sides]
        for side in sides:
            side.join()
        report = desk.verify()
    wins = [one["wins"] for one in told]
    appended = report.head.seq - before - _ROUNDS
    took_s = max(one["took_s"] for one in told)
    return [
        below(
            f"rounds of {_ROUNDS} that two processes both won, or neither",
            abs(sum(wins) - _ROUNDS),
            "rounds",
            bar=1,
            note=f"{wins[0]} against {wins[1]}",
        ),
        below(
            f"gaps in {2 * _EACH:,} events of two processes",
            2 * _EACH - appended if report.is_sound else 2 * _EACH,
            "gaps",
            bar=1,
            note=f"{2 * _EACH / took_s:,.0f} events/s together",
        ),
    ]


def _side(folder: Path, name: str, ids: list[str], together: Any, outcomes: Any) -> None:
    """Decide on everything the other side decides on, then append beside it."""
    wins = 0
    with ApprovalService(folder) as desk:
        for one in ids:
            together.wait()
            try:
                desk.approve(one, by=name)
                wins += 1
            except AlreadyDecided:
                pass
        together.wait()
        began = time.perf_counter()
        for number in range(_EACH):
            desk.tool_called("find", {"n": number}, agent=name)
        outcomes.put({"wins": wins, "took_s": time.perf_counter() - began})


def _repeated(act: Callable[[], Any]) -> float:
    return median(_timed(act) for _ in range(_REPEATS)) * 1000


def _timed(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began

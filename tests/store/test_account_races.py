"""Two processes at once: one decision wins, and no event gets lost or takes another's place."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from hansard_store.approvals.errors import ClaimRefused
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import EventFilter
from tests.store.account_paths import disagreement
from tests.store.accounts import account, proposal

ROOT = Path(__file__).parents[2]
ROUNDS = 100


@contextmanager
def racer(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process with a store of its own on the same file."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.racing", str(folder), name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


@pytest.mark.slow
@pytest.mark.covers("CF-31")
def test_of_two_processes_deciding_at_once_exactly_one_wins(tmp_path: Path) -> None:
    wins = {"ann": 0, "bob": 0}
    with account(tmp_path) as desk, ExitStack() as racing:
        sides = {name: racing.enter_context(racer(tmp_path, name)) for name in wins}
        for number in range(ROUNDS):
            found = desk.propose(proposal(arguments={"n": number})).approval.approval_id
            for side in sides.values():
                tell(side, found)
            told = {name: answer(side) for name, side in sides.items()}

            winners = [name for name, one in told.items() if one["won"]]
            assert len(winners) == 1
            assert {one["first"] for one in told.values()} == set(winners)
            assert desk.approval(found).decided_by == winners[0]
            wins[winners[0]] += 1

        assert sum(wins.values()) == ROUNDS
        assert disagreement(desk) is None


@pytest.mark.slow
@pytest.mark.covers("PO-21", "CG-16")
def test_of_two_processes_claiming_at_once_exactly_one_may_run(tmp_path: Path) -> None:
    claims = {"ann": 0, "bob": 0}
    with account(tmp_path) as desk, ExitStack() as racing:
        sides = {name: racing.enter_context(racer(tmp_path, name)) for name in claims}
        for number in range(ROUNDS):
            found = desk.propose(proposal(arguments={"n": number})).approval.approval_id
            desk.approve(found, by="ann")
            for side in sides.values():
                tell(side, f"claim {found}")
            told = {name: answer(side)["claimed"] for name, side in sides.items()}

            [winner] = [name for name, claimed in told.items() if claimed is True]
            assert set(told.values()) == {True, "already_claimed"}
            claims[winner] += 1

        assert sum(claims.values()) == ROUNDS
        assert disagreement(desk) is None


@pytest.mark.slow
def test_a_thousand_events_of_two_processes_have_no_gap(tmp_path: Path) -> None:
    with account(tmp_path) as desk, ExitStack() as racing:
        sides = [racing.enter_context(racer(tmp_path, name)) for name in ("ann", "bob")]
        desk.head()  # the store is there
        for side in sides:
            tell(side, "500")
        assert [answer(side) for side in sides] == [{"done": 500}] * 2

        report = desk.verify()
        mine = [len(desk.events(EventFilter(who=name), limit=1_000)) for name in ("ann", "bob")]

    assert (report.is_sound, report.checked, report.head.seq) == (True, 1_000, 1_000)
    assert mine == [500, 500]


@pytest.mark.covers("PO-21")
def test_of_many_threads_that_claim_exactly_one_may_run(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal()).approval.approval_id
        desk.approve(found)
        outcomes: list[str] = []
        together = Barrier(8)

        def claim() -> None:
            together.wait()
            try:
                desk.claim(found)
                outcomes.append("mine")
            except ClaimRefused as refused:
                outcomes.append(refused.code)

        threads = [Thread(target=claim) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        assert sorted(outcomes) == ["already_claimed"] * 7 + ["mine"]


@pytest.mark.slow
def test_what_a_killed_process_had_claimed_is_of_unknown_outcome(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal()).approval.approval_id
        desk.approve(found)
        done = subprocess.run(
            [sys.executable, "-c", _CLAIM_AND_DIE, str(tmp_path), found],
            cwd=ROOT,
            check=False,
            capture_output=True,
        )
        assert done.returncode == -9, done.stderr

        lost = desk.recover()
        with pytest.raises(ClaimRefused) as again:
            desk.claim(found)

        assert [one.approval_id for one in lost] == [found]
        assert desk.approval(found).execution.state == "unknown"
        assert again.value.code == "already_claimed"
        assert desk.recover() == []
        assert disagreement(desk) is None


_CLAIM_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tests.store.accounts import account
desk = account(Path(sys.argv[1]))
desk.claim(sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_claim_of_a_living_process_is_not_lost(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal()).approval.approval_id
        desk.approve(found)
        claim = desk.claim(found)

        assert desk.recover() == []
        assert desk.finish(claim, ok=True).execution.state == "done"


@pytest.mark.slow
def test_a_child_of_a_fork_has_connections_of_its_own(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        desk.failed("before", "x")
        done = subprocess.run(
            [sys.executable, "-c", _FORK, str(tmp_path)], cwd=ROOT, check=True, timeout=240
        )

        assert done.returncode == 0
        assert desk.verify().checked == 3


_FORK = """
import os, sys
from pathlib import Path
from tests.store.accounts import account
desk = account(Path(sys.argv[1]))
desk.failed("parent", "x")
child = os.fork()
if child == 0:
    desk.failed("child", "x")
    os._exit(0)
os.waitpid(child, 0)
assert desk.verify().checked == 3
"""


def test_threads_share_a_desk(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        desk.head()
        threads = [Thread(target=_append, args=(desk, number)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        assert desk.verify().checked == 100


def test_the_connection_of_a_thread_ends_with_it(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        desk.head()
        for number in range(10):
            thread = Thread(target=desk.failed, args=(f"thread{number}", "x"))
            thread.start()
            thread.join()
        gc.collect()

        assert len(desk._connections._opened) == 1
        assert desk.verify().checked == 10


def _append(desk: ApprovalService, number: int) -> None:
    for _ in range(25):
        desk.failed(f"thread{number}", "x")

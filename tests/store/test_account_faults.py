"""What fails half-way leaves nothing behind: an error, or a kill, before every single statement."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from hansard_store.approvals.service import ApprovalService
from hansard_store.errors import StoreBusyError, StoreError
from tests.store.account_paths import WRITES, disagreement, rules, state_of
from tests.store.accounts import Clock, account, proposal

SOME = ["propose", "approve", "claim", "tell the result", "tool called"]
ROOT = Path(__file__).parents[2]


def fail_before(desk: ApprovalService, statement: int) -> Callable[[], bool]:
    """Make the nth statement fail as a broken disk would; the answer tells whether it did."""
    left, has_failed = statement, False

    def trace(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        nonlocal left, has_failed
        left -= 1
        if left == -1:
            has_failed = True
            raise apsw.IOError("disk I/O error")
        return True

    desk._connections.get().exec_trace = trace
    return lambda: has_failed


@pytest.mark.covers("CF-16", "CF-17", "CF-18", "CF-20", "CF-29", "PO-06")
@pytest.mark.parametrize("name", WRITES)
def test_a_statement_that_fails_undoes_record_and_event(tmp_path: Path, name: str) -> None:
    write, clock, walked = WRITES[name], Clock(), 0
    with account(tmp_path, clock, policy=rules) as desk:
        given = write.prepare(desk, clock)
        connection = desk._connections.get()
        before = state_of(connection)

        while True:
            has_failed = fail_before(desk, walked)
            with contextlib.suppress(StoreError):
                write.act(desk, given)
            connection.exec_trace = None
            if not has_failed():
                break
            assert state_of(connection) == before, f"statement {walked}"
            assert disagreement(desk) is None
            walked += 1

        assert walked >= 4  # BEGIN, the head, the event, COMMIT
        assert state_of(connection) != before
        assert disagreement(desk) is None


@pytest.mark.slow
@pytest.mark.covers("CF-16", "CF-17", "CF-18", "CF-20", "CF-21")
def test_a_kill_before_any_statement_leaves_all_or_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.killed_accounts", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)

    assert {name: one["problems"] for name, one in found.items()} == {name: [] for name in WRITES}
    assert all(one["kills"] >= 4 for one in found.values()), found


def test_a_full_disk_is_a_typed_error_and_nothing_is_half_done(tmp_path: Path) -> None:
    clock = Clock()
    with account(tmp_path, clock, policy=rules) as desk:
        found = desk.propose(proposal()).approval.approval_id
        connection = desk._connections.get()
        before = state_of(connection)
        connection.pragma("max_page_count", int(connection.pragma("page_count")))

        for write in (
            lambda: desk.propose(proposal(arguments={"body": "x" * 100_000})),
            lambda: desk.revise(found, note="x" * 20_000),
            lambda: desk.failed("find", "x" * 20_000),
        ):
            with pytest.raises(StoreBusyError, match="full"):
                write()
            assert state_of(connection) == before
            assert disagreement(desk) is None
        connection.pragma("max_page_count", 1 << 30)

        assert desk.revise(found, note="x" * 20_000).status == "revised"


@pytest.mark.parametrize("name", SOME)
def test_a_read_only_store_is_a_typed_error(tmp_path: Path, name: str) -> None:
    write, clock = WRITES[name], Clock()
    with account(tmp_path, clock, policy=rules) as desk:
        given = write.prepare(desk, clock)
        connection = desk._connections.get()
        before = state_of(connection)
        connection.pragma("query_only", value=True)

        with pytest.raises(StoreBusyError, match="cannot write"):
            write.act(desk, given)

        assert state_of(connection) == before


@pytest.mark.parametrize("name", SOME)
def test_a_store_that_another_process_holds_is_a_typed_error(tmp_path: Path, name: str) -> None:
    write, clock = WRITES[name], Clock()
    with account(tmp_path, clock, policy=rules) as desk:
        given = write.prepare(desk, clock)
        connection = desk._connections.get()
        connection.set_busy_timeout(10)
        before = state_of(connection)
        other = apsw.Connection(str(desk.folder.database))
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusyError, match="locked"):
            write.act(desk, given)
        other.execute("ROLLBACK")
        other.close()

        assert state_of(connection) == before
        write.act(desk, given)


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")

    with pytest.raises(StoreError, match="cannot use"):
        ApprovalService(tmp_path / "data")

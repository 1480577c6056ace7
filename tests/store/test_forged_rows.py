"""Rows that somebody changed with SQL: nothing follows from them, and they stay named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.approvals.errors import RecordAltered
from hansard_store.approvals.records import Approver
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.sealer import seal
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.errors import StoreReplacedError
from hansard_store.principals.model import CLAIMED, Principal, Scope
from hansard_store.principals.service import Principals
from hansard_store.verification.integrity import verify_store
from tests.store.accounts import Clock, account, proposal
from tests.store.by_hand import triggers_dropped
from tests.store.empty import empty_store

SERVER = "server-1"


def alter(folder: DataFolder, sql: str, *given: object) -> None:
    # Not with sqlite3: a second library in this process would take the locks from the first.
    with closing(apsw.Connection(str(folder.database))) as plain, plain, triggers_dropped(plain):
        plain.execute(sql, given)
        assert plain.changes()


def named(folder: DataFolder) -> set[str]:
    return {one.table for one in verify_store(folder).findings}


# ---- credentials


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Principals]:
    with closing(Principals(empty_store(tmp_path))) as made:
        yield made


def add(people: Principals, name: str, *scopes: Scope) -> str:
    return people.add(name, frozenset(scopes), by=CLAIMED, who="test")


@pytest.mark.covers("RC-30")
def test_a_token_with_scopes_written_by_hand_is_none_and_stays_named(
    people: Principals, tmp_path: Path
) -> None:
    folder, secret = DataFolder(tmp_path), add(people, "ana", Scope.READ)
    assert people.authenticate(secret) is not None
    assert (signed_in := people.sign_in(secret)) is not None

    alter(folder, "UPDATE principal_token SET scopes = 'admin'")

    assert people.authenticate(secret) is None
    assert people.sign_in(secret) is None
    assert people.of_cookie(signed_in.cookie) is None
    people.flush_uses()
    people.revoke("ana", by=CLAIMED, who="test")
    assert named(folder) == {"principal_token"}


@pytest.mark.parametrize("sql", ["name = 'alice'", "scopes = 'admin'", "expires_ns = 9 << 60"])
def test_a_session_written_by_hand_is_none(people: Principals, tmp_path: Path, sql: str) -> None:
    signed_in = people.sign_in(add(people, "ana", Scope.READ))
    assert signed_in is not None

    alter(DataFolder(tmp_path), f"UPDATE browser_session SET {sql}")

    assert people.of_cookie(signed_in.cookie) is None


def test_a_link_written_by_hand_signs_nobody_in(people: Principals, tmp_path: Path) -> None:
    people.add_link("ana", server=SERVER, is_once=False)
    code = people.add_link("bo", server=SERVER, is_once=False)

    alter(DataFolder(tmp_path), "UPDATE sign_in_link SET token = 1 WHERE token = 2")

    assert people.use_link(code, server=SERVER) is None


def test_a_name_whose_token_was_altered_signs_in_with_a_new_one(
    people: Principals, tmp_path: Path
) -> None:
    people.add_link("ana", server=SERVER, is_once=False)
    alter(DataFolder(tmp_path), "UPDATE principal_token SET scopes = 'read'")

    code = people.add_link("ana", server=SERVER, is_once=False)

    found = people.use_link(code, server=SERVER)
    assert found is not None
    assert found.principal.name == "ana"


# ---- approvals

FORGED = [
    "status = 'awaiting'", "status = 'approved', decided_by = 'ann'", "approvers = '[]'",
    "requested_by = '[]'", "description = 'Water the plants'", "arguments = '{}'",
    "expires_ns = expires_ns + 3600000000000", "approvals_required = 1", "revision = 7",
]  # fmt: skip


@pytest.mark.covers("CG-09", "RC-30")
@pytest.mark.parametrize(
    ("after", "sql"),
    [
        (after, sql)
        for after in ("proposed", "rejected", "revised", "approved")
        for sql in FORGED
        if (after, sql) != ("proposed", "status = 'awaiting'")  # it is so: nothing is forged
    ],
)
@pytest.mark.parametrize("is_sealed", [True, False])
def test_nothing_is_decided_or_run_by_an_approval_that_was_written_by_hand(
    tmp_path: Path, clock: Clock, sql: str, after: str, is_sealed: bool
) -> None:
    folder = DataFolder(tmp_path / "data")
    with account(tmp_path, clock) as desk:
        people = [Approver(name) for name in ("ann", "bob", "cid")]
        asked = proposal(approvers=people, approvals_required=2)

        def acting(name: str) -> ApprovalService:
            return desk.acting(Principal(name, frozenset(Scope), "token"))

        made = acting("bot").propose(asked).approval.approval_id
        steps: dict[str, Callable[[], object]] = {
            "proposed": lambda: None,
            "rejected": lambda: desk.reject(made, by="ann"),
            "revised": lambda: desk.revise(made, by="ann", note="to whom?"),
            "approved": lambda: [acting(name).approve(made) for name in ("ann", "bob")],
        }
        steps[after]()
    if is_sealed:
        with closing(open_for_maintenance(folder)) as connection:
            seal(connection, folder.key())
    before = _row(folder)
    alter(folder, f"UPDATE approval SET {sql}")
    assert _row(folder) != before

    with account(tmp_path, clock) as desk:
        for act in _acts(desk, made):
            with pytest.raises(RecordAltered):
                act()
        clock.advance(40 * 86_400_000_000_000)
        desk.expire_due()

    assert "approval" in named(folder)


def _row(folder: DataFolder) -> Any:
    with closing(apsw.Connection(str(folder.database))) as plain:
        return plain.execute("SELECT * FROM approval").fetchone()


def _acts(desk: ApprovalService, made: str) -> list[Callable[[], object]]:
    return [
        lambda: desk.approve(made, by="bob"),
        lambda: desk.reject(made, by="bob"),
        lambda: desk.revise(made, by="bob", note="no"),
        lambda: desk.claim(made),
        lambda: desk.settle_outcome(made, "ran", by="bob", note="seen"),
        lambda: desk.undo(made, by="bob"),
    ]


# ---- the file itself


@pytest.mark.parametrize("is_moved", [True, False])
def test_nothing_is_written_into_a_file_that_was_replaced(tmp_path: Path, is_moved: bool) -> None:
    folder = empty_store(tmp_path)
    with closing(open_for_maintenance(folder)) as connection:
        if is_moved:
            folder.database.rename(tmp_path / "elsewhere")
            empty_store(tmp_path)
        else:
            folder.database.unlink()

        with (
            pytest.raises(StoreReplacedError, match="removed or replaced"),
            transaction(connection),
        ):
            pass

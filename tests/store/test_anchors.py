"""A store that was put back to an earlier state runs nothing that it may have run already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hansard_store.approvals.errors import ClaimRefused
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.anchors import store_id
from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.audit.events import append
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreBusyError
from hansard_store.maintenance.backup import back_up, restore
from hansard_store.verification.integrity import verify_store
from tests.store.accounts import Clock, account, proposal


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    return tmp_path / "state" / "heads"


def opened(path: Path, copies: Path | str) -> ApprovalService:
    return account(path, clock=Clock(), heads_copy=str(copies))


def approved(desk: ApprovalService) -> str:
    made = desk.propose(proposal()).approval.approval_id
    desk.approve(made, by="ann")
    return made


def run(desk: ApprovalService, approval_id: str) -> None:
    desk.finish(desk.claim(approval_id), ok=True)


def put_back(tmp_path: Path, copies: Path) -> tuple[ApprovalService, str]:
    """Return a store that was put back to before an approved action ran, and the approval."""
    desk = opened(tmp_path, copies)
    made = approved(desk)
    desk.close()
    shutil.copytree(desk.folder.path, tmp_path / "earlier")
    desk = opened(tmp_path, copies)
    run(desk, made)
    desk.close()
    for name in ("hansard.db", "hansard.db-wal", "hansard.db-shm"):
        (desk.folder.path / name).unlink(missing_ok=True)
        if (tmp_path / "earlier" / name).exists():
            shutil.copy(tmp_path / "earlier" / name, desk.folder.path / name)
    return opened(tmp_path, copies), made


@pytest.mark.parametrize("left", ["both", "heads", "copy"])
def test_an_older_database_runs_no_approved_action(tmp_path: Path, copies: Path, left: str) -> None:
    desk, made = put_back(tmp_path, copies)
    if left == "heads":
        shutil.rmtree(copies)
    if left == "copy":
        shutil.rmtree(desk.folder.heads)

    with pytest.raises(ClaimRefused, match="had come to event") as refused:
        desk.claim(made)

    assert refused.value.code == "store_rolled_back"
    assert "accept-head" in str(refused.value)
    assert desk.approval(made).execution.state == "none"
    report = verify_store(desk.folder, heads_copy=str(copies))
    assert [one.check for one in report.findings] == ["audit log"]
    assert "its end was removed" in report.findings[0].message


def test_an_older_database_that_went_on_past_the_kept_head_runs_no_approved_action(
    tmp_path: Path, copies: Path
) -> None:
    desk, made = put_back(tmp_path, copies)
    for _ in range(5):
        approved(desk)

    with pytest.raises(ClaimRefused, match="went another way"):
        desk.claim(made)

    assert "written anew" in verify_store(desk.folder, heads_copy=str(copies)).findings[0].message


def test_an_older_head_is_valid_again_when_somebody_accepts_it(
    tmp_path: Path, copies: Path
) -> None:
    desk, made = put_back(tmp_path, copies)

    given_up = desk.accept_head(by="ann", note="the outbox is empty")

    assert {one.head.seq for one in given_up} == {desk.head().seq}
    event = desk.events(limit=1)[0]
    assert (event.type, event.who) == ("head.accepted", "ann")
    assert event.contents == {"note": "the outbox is empty"}
    run(desk, made)
    assert verify_store(desk.folder, heads_copy=str(copies)).is_sound


def test_an_event_that_hansard_did_not_sign_makes_no_older_head_valid(
    tmp_path: Path, copies: Path
) -> None:
    desk, made = put_back(tmp_path, copies)
    with pytest.raises(ClaimRefused) as refused:
        desk.claim(made)
    given_up = [refused.value.details["kept"]]
    body = {"head": desk.head().text, "given_up": given_up, "mac": "00" * 32}
    forged = Event(EventType.HEAD_ACCEPTED, Actor.ME, "accept_head", "cli", "store", 1, body=body)
    append(desk._connections.get(), forged)

    with pytest.raises(ClaimRefused, match="went another way"):
        desk.claim(made)


def test_a_copy_of_a_store_that_is_older_runs_nothing_and_leaves_the_first_one_alone(
    tmp_path: Path, copies: Path
) -> None:
    desk = opened(tmp_path, copies)
    made = approved(desk)
    desk.close()
    shutil.copytree(desk.folder.path, tmp_path / "copied" / "data")
    first, copied = opened(tmp_path, copies), opened(tmp_path / "copied", copies)
    run(first, made)

    with pytest.raises(ClaimRefused, match="had come to event"):
        copied.claim(made)

    assert verify_store(copied.folder, heads_copy=str(copies)).is_sound  # it is whole, and older
    copied.accept_head(by="ann")
    run(copied, made)
    run(first, approved(first))
    run(copied, approved(copied))
    run(first, approved(first))


def test_a_restored_backup_is_valid_where_it_lies_and_its_store_too(
    tmp_path: Path, copies: Path
) -> None:
    desk = opened(tmp_path, copies)
    made = approved(desk)
    back_up(desk.folder, tmp_path / "backup")
    run(desk, made)
    restore(tmp_path / "backup", DataFolder(tmp_path / "restored" / "data"))
    restored = opened(tmp_path / "restored", copies)

    with pytest.raises(ClaimRefused):
        restored.claim(made)
    restored.accept_head(by="ann", note="restored")

    run(restored, made)
    run(desk, approved(desk))


def test_a_store_that_was_moved_goes_on(tmp_path: Path, copies: Path) -> None:
    desk = opened(tmp_path, copies)
    made = approved(desk)
    desk.close()
    (tmp_path / "elsewhere").mkdir()
    desk.folder.path.rename(tmp_path / "elsewhere" / "data")

    run(opened(tmp_path / "elsewhere", copies), made)


def test_heads_are_one_small_file_a_store_and_none_where_that_is_off(
    tmp_path: Path, copies: Path
) -> None:
    desk = opened(tmp_path, copies)
    for _ in range(3):
        run(desk, approved(desk))

    [kept] = copies.iterdir()
    assert kept.name == store_id(desk.folder.key())
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text().split(" ")[2].strip() == str(desk.folder.path.resolve())
    assert sorted(one.name for one in desk.folder.heads.iterdir()) == ["latest"]
    shutil.rmtree(copies)
    without = opened(tmp_path, "off")
    run(without, approved(without))
    assert not copies.exists()


def test_a_second_copy_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    desk = opened(tmp_path, tmp_path / "state" / "heads")

    run(desk, approved(desk))

    assert verify_store(desk.folder, heads_copy=str(tmp_path / "state" / "heads")).is_sound


def test_nothing_is_claimed_where_the_head_cannot_be_kept(tmp_path: Path, copies: Path) -> None:
    desk = opened(tmp_path, copies)
    made = approved(desk)
    shutil.rmtree(desk.folder.heads)
    desk.folder.heads.write_text("a file")

    with pytest.raises(StoreBusyError, match="cannot be kept"):
        desk.claim(made)

    assert desk.approval(made).execution.state == "none"


def test_a_damaged_head_stops_claims_until_the_head_is_accepted(
    tmp_path: Path, copies: Path
) -> None:
    desk = opened(tmp_path, copies)
    made = approved(desk)
    (desk.folder.heads / "latest").write_text("no head")

    with pytest.raises(StoreBusyError, match="holds no head"):
        desk.claim(made)
    assert not verify_store(desk.folder, heads_copy=str(copies)).is_sound
    desk.accept_head(by="ann")

    run(desk, made)
    assert verify_store(desk.folder, heads_copy=str(copies)).is_sound

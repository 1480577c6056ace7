"""Heads of the audit log kept day by day, outside the database: a cut end is seen by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard_store.approvals.service import ApprovalService, open_accountability
from hansard_store.audit.daily_heads import read_heads
from hansard_store.audit.event_types import Head
from hansard_store.verification.integrity import verify_store
from tests.store.accounts import HOUR, Clock, account
from tests.store.by_hand import triggers_dropped

DAY = 24 * HOUR


def kept(desk: ApprovalService) -> list[Head]:
    return [one.head for one in read_heads(desk.folder)]


def test_an_empty_log_has_nothing_to_keep(desk: ApprovalService) -> None:
    assert desk.keep_head() is None
    assert not desk.folder.heads.exists()


def test_a_head_is_kept_once_a_day_and_only_when_something_came(
    desk: ApprovalService, clock: Clock
) -> None:
    desk.tool_called("find")
    assert desk.keep_head() is None  # the day is not over
    clock.advance(DAY)
    first = desk.keep_head()
    desk.tool_called("find")
    assert desk.keep_head() is None  # that was today

    clock.advance(DAY)
    second = desk.keep_head()
    clock.advance(DAY)
    assert desk.keep_head() is None  # nothing came since

    assert kept(desk) == [first, second]
    assert second == desk.head()


def test_a_kept_head_is_an_anchor_as_it_stands_in_its_file(
    desk: ApprovalService, clock: Clock
) -> None:
    desk.tool_called("find")
    clock.advance(DAY)
    desk.keep_head()

    [place] = desk.folder.heads.iterdir()

    assert place.name == "2027-01-16"
    assert place.read_text() == f"{desk.head().text}\n"
    assert place.stat().st_mode & 0o777 == 0o600


def files(desk: ApprovalService) -> list[str]:
    return sorted(one.name for one in desk.folder.heads.iterdir())


def test_where_a_clock_was_set_back_days_that_come_again_are_kept_as_well(
    desk: ApprovalService, clock: Clock
) -> None:
    for _ in range(3):
        desk.tool_called("find")
        clock.advance(DAY)
        desk.keep_head()
    clock.advance(-2 * DAY)  # to the day of the first file

    desk.tool_called("after it was set back")
    assert desk.keep_head() is None  # that was today
    clock.advance(DAY)
    again = desk.keep_head()
    assert desk.keep_head() is None

    assert files(desk) == ["2027-01-16", "2027-01-17", "2027-01-17.2", "2027-01-18"]
    assert again == kept(desk)[-1] == desk.head()
    assert desk.verify().is_sound
    cut(desk, beyond=3)
    assert desk.verify().broken is not None


def test_an_event_of_a_clock_that_ran_ahead_keeps_no_later_head_from_being_kept(
    desk: ApprovalService, clock: Clock
) -> None:
    clock.advance(400 * DAY)
    desk.tool_called("find")
    clock.advance(-400 * DAY)

    assert desk.keep_head() == desk.head()
    clock.advance(DAY)
    desk.tool_called("find")
    clock.advance(DAY)
    assert desk.keep_head() == desk.head()


def cut(desk: ApprovalService, *, beyond: int) -> None:
    """Remove the end of the log, as somebody with the file in hand could."""
    connection = desk._connections.get()
    with triggers_dropped(connection):
        connection.execute("DELETE FROM event_content WHERE event > ?", (beyond,))
        connection.execute("DELETE FROM event WHERE seq > ?", (beyond,))


@pytest.mark.covers("RC-30")
def test_an_end_that_was_cut_off_is_seen_without_an_anchor(
    desk: ApprovalService, clock: Clock
) -> None:
    for _ in range(5):
        desk.tool_called("find")
    clock.advance(DAY)
    desk.keep_head()
    assert (desk.verify().is_sound, desk.verify().heads_checked) == (True, 1)

    cut(desk, beyond=3)

    broken = desk.verify().broken
    assert broken is not None
    assert (broken.seq, "before the anchor 5: its end was removed" in broken.problem) == (4, True)
    [found] = [one for one in verify_store(desk.folder).findings if one.check == "audit log"]
    assert "its end was removed" in found.message


def test_a_log_that_was_written_anew_is_seen(desk: ApprovalService, clock: Clock) -> None:
    for _ in range(3):
        desk.tool_called("find")
    clock.advance(DAY)
    desk.keep_head()
    cut(desk, beyond=0)
    for _ in range(4):
        desk.tool_called("something else")

    broken = desk.verify().broken

    assert broken is not None
    assert (broken.seq, "written anew" in broken.problem) == (3, True)


def test_what_is_no_head_is_said(desk: ApprovalService, clock: Clock) -> None:
    desk.tool_called("find")
    clock.advance(DAY)
    desk.keep_head()
    [place] = desk.folder.heads.iterdir()
    place.write_text("17:not a hash")

    broken = desk.verify().broken

    assert broken is not None
    assert "2027-01-16' holds no head" in broken.problem


def test_what_cannot_be_read_is_said(desk: ApprovalService, clock: Clock) -> None:
    desk.tool_called("find")
    clock.advance(DAY)
    (desk.folder.heads / "2027-01-15").mkdir(parents=True)

    broken = desk.verify().broken

    assert broken is not None
    assert "2027-01-15' cannot be read" in broken.problem
    assert verify_store(desk.folder).findings


def test_a_program_that_opens_its_gate_keeps_the_head_of_the_day(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        desk.tool_called("find", time_ns=1)  # long before today
        folder = desk.folder

    with open_accountability(folder.path) as opened:
        assert kept(opened) == [opened.head()]

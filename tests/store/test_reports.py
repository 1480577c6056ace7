"""Reports as files: private, whole, one acknowledgement a person, gone with what they are about."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hansard_compiler.errors import NotFoundError
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.database.data_folder import DataFolder
from hansard_store.maintenance.deletion import delete_run
from hansard_store.principals.model import ALL_SCOPES, CLAIMED, Principal
from hansard_store.reports.files import (
    MOST_REPORTS,
    InvalidAcknowledgement,
    Reports,
    ReportsUnusable,
)
from tests.store.empty import empty_store
from tests.store.maker import NOW, SECOND, StoreMaker, trace_id
from tests.store.memory_maker import MemoryMaker

ANA = Who(Actor.ME, "ana", CLAIMED)
KIM = Who(Actor.ME, "kim", Principal("kim", ALL_SCOPES, "token"))


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


@pytest.fixture
def reports(folder: DataFolder) -> Reports:
    return Reports(folder)


@pytest.mark.covers("DI-25")
def test_a_report_is_a_private_file_and_its_ack_stands_beside_it(
    reports: Reports, folder: DataFolder
) -> None:
    made = reports.add("# Status\n", now_ns=NOW)
    reports.acknowledge(made.name, ANA, now_ns=NOW + SECOND)

    found = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.reports.iterdir()}
    assert made.name == "REPORT-20270115T080000Z"
    assert found == {f"{made.name}.md": 0o600, f"{made.name}.ack": 0o600}
    assert stat.S_IMODE(folder.reports.stat().st_mode) == 0o700
    (line,) = (folder.reports / f"{made.name}.ack").read_text().splitlines()
    assert json.loads(line) == {
        "who": "ana", "at_ns": str(NOW + SECOND), "method": "claimed",
    }  # fmt: skip


@pytest.mark.covers("DI-25", "DI-28")
def test_each_person_acknowledges_once_and_by_the_name_that_is_known(reports: Reports) -> None:
    name = reports.add("# Status\n", now_ns=NOW).name
    for who in (ANA, KIM, ANA, Who(Actor.ME, "ANA", CLAIMED)):
        found = reports.acknowledge(name, who, now_ns=NOW)

    assert [(one.who, one.method) for one in found.acks] == [("ana", "claimed"), ("kim", "token")]


@pytest.mark.covers("DI-26")
def test_the_newest_unread_one_is_another_one_for_each_person(reports: Reports) -> None:
    old = reports.add("# Old\n", now_ns=NOW)
    new = reports.add("# New\n", now_ns=NOW + SECOND)
    reports.acknowledge(new.name, ANA, now_ns=NOW)

    def unread(who: str | None) -> str | None:
        found = reports.newest_unacknowledged(who)
        return None if found is None else found.name

    assert (unread("ana"), unread("kim"), unread(None)) == (old.name, new.name, old.name)
    reports.acknowledge(old.name, ANA, now_ns=NOW)
    assert (unread("ana"), unread(None)) == (None, None)


def test_reports_of_one_second_have_names_of_their_own_in_their_order(reports: Reports) -> None:
    names = [reports.add(f"{number}\n", now_ns=NOW).name for number in range(12)]

    assert [one.name for one in reports.list()] == names[::-1]
    assert reports.text(names[10]) == "10\n"


def test_two_who_write_and_acknowledge_at_once_lose_nothing(reports: Reports) -> None:
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(lambda n: reports.add(f"{n}\n", now_ns=NOW).name, range(16)))
        people = [Who(Actor.ME, f"person{number}", CLAIMED) for number in range(16)]
        list(threads.map(lambda who: reports.acknowledge(names[0], who, now_ns=NOW), people))

    assert len(set(names)) == 16
    assert {one.who for one in reports.get(names[0]).acks} == {one.name for one in people}


@pytest.mark.parametrize("name", ["../key", "REPORT-1", "REPORT-20261125T224606Z/../../key", ""])
def test_a_name_that_is_none_is_not_found(reports: Reports, name: str) -> None:
    with pytest.raises(NotFoundError):
        reports.text(name)


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_somebody_acknowledges_it_or_nobody(reports: Reports, name: str) -> None:
    made = reports.add("# Status\n", now_ns=NOW)

    with pytest.raises(InvalidAcknowledgement):
        reports.acknowledge(made.name, Who(Actor.ME, name, CLAIMED), now_ns=NOW)
    assert reports.get(made.name).acks == ()


def test_lines_of_an_ack_file_that_are_none_are_passed_over(
    reports: Reports, folder: DataFolder
) -> None:
    name = reports.add("# Status\n", now_ns=NOW).name
    (folder.reports / f"{name}.ack").write_text('nonsense\n{"who": 3}\n[]\n"x"\n')
    reports.acknowledge(name, ANA, now_ns=NOW)

    assert [one.who for one in reports.get(name).acks] == ["ana"]


def test_the_oldest_reports_make_room(reports: Reports, folder: DataFolder) -> None:
    first = reports.add("# First\n", now_ns=NOW)
    reports.acknowledge(first.name, ANA, now_ns=NOW)
    for number in range(1, MOST_REPORTS):
        (folder.reports / f"REPORT-20280101T000000Z-{number % 999 + 1}.md").write_text("x")
    for number in range(5):
        reports.add("# Last\n", now_ns=NOW + (number + 1) * 10**9)

    assert reports.count() <= MOST_REPORTS
    assert not list(folder.reports.glob(f"{first.name}.*"))


def test_a_folder_that_cannot_be_used_is_told_in_words(
    reports: Reports, folder: DataFolder
) -> None:
    folder.reports.write_text("somebody's file")

    with pytest.raises(ReportsUnusable, match="cannot use"):
        reports.add("# Status\n", now_ns=NOW)


def test_words_of_a_run_leave_the_reports_with_it(tmp_path: Path) -> None:
    store = StoreMaker(tmp_path / "data")
    store.span("step", run="run")
    run_id = trace_id("run").hex()
    reports = Reports(store.folder)
    name = reports.add(
        f"# Status\n- `secret words` (step {run_id[:8]}-12345678)\n- other (step 99999999-1)\n",
        now_ns=NOW,
    ).name
    delete_run(store.ingest, trace_id("run"), reason="by hand")
    store.close()

    assert reports.text(name).splitlines() == [
        "# Status",
        "- (removed with what it was about)",
        "- other (step 99999999-1)",
    ]
    assert stat.S_IMODE(reports.path(name).stat().st_mode) == 0o600


def test_words_of_a_memory_leave_the_reports_when_it_is_purged(tmp_path: Path) -> None:
    memory = MemoryMaker(tmp_path / "data")
    memory_id = memory.write("a secret")["memory"]["memory_id"]
    reports = Reports(memory.folder)
    name = reports.add(f"# Status\n- `a secret` (memory {memory_id[-8:]})\n", now_ns=NOW).name
    from hansard_compiler.models.memory import EndMemory

    memory.book.purge(EndMemory(memory_id=memory_id, reason="asked", by="ana"))
    memory.close()

    assert "a secret" not in reports.text(name)

"""Reports altered by hand: `hansard verify` names them, page and API show nothing as true."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import Result

from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.model import ALL_SCOPES, CLAIMED, Principal
from hansard_store.reports import files
from hansard_store.reports.files import Reports
from tests.store.empty import empty_store
from tests.web.cli.conftest import Cli

KIM = Who(Actor.ME, "kim", Principal("kim", ALL_SCOPES, "token"))
FORGED = json.dumps({"who": "ceo", "at_ns": "1795647908885587726", "method": "token"}) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


@pytest.fixture
def reports(folder: DataFolder) -> Reports:
    return Reports(folder)


@pytest.fixture
def name(reports: Reports) -> str:
    made = reports.add("# Status\n- `words` (step 12345678-1)\n", now_ns=time.time_ns())
    reports.acknowledge(made.name, KIM, now_ns=time.time_ns())
    return made.name


def verified(cli: Cli, folder: DataFolder) -> Result:
    return cli("verify", HANSARD_DATA=str(folder.path))


def test_what_hansard_wrote_is_sound(anywhere: Cli, folder: DataFolder, name: str) -> None:
    result = verified(anywhere, folder)

    assert result.exit_code == 0, result.output
    assert "report" not in result.stdout


def test_a_forged_acknowledgement_is_named(anywhere: Cli, folder: DataFolder, name: str) -> None:
    with (folder.reports / f"{name}.ack").open("a") as file:
        file.write(FORGED)

    result = verified(anywhere, folder)
    listed = anywhere("report", "--list", HANSARD_DATA=str(folder.path))

    assert result.exit_code == 1
    assert f"{name}: has an acknowledgement by ceo (token) that no event holds" in result.stdout
    assert "kim, ceo (not recorded)" in listed.stdout


@pytest.mark.parametrize("deep", [(), ("--deep",)])
def test_an_altered_report_is_named(
    anywhere: Cli, folder: DataFolder, name: str, deep: tuple[str, ...]
) -> None:
    (folder.reports / f"{name}.md").write_text("# All is well\n")

    result = anywhere("verify", *deep, HANSARD_DATA=str(folder.path))

    assert result.exit_code == 1
    assert f"report {name}: is not as it was written" in result.stdout


def test_a_removed_folder_is_named(anywhere: Cli, folder: DataFolder, name: str) -> None:
    shutil.rmtree(folder.reports)

    result = verified(anywhere, folder)

    assert result.exit_code == 1
    assert f"report {name}: is missing" in result.stdout


def test_a_report_without_an_event_is_a_note_and_does_not_wait_again(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str
) -> None:
    (folder.reports / "REPORT-20260101T000000Z.md").write_text("# Old\n")
    (folder.reports / "REPORT-20260101T000000Z.ack").write_text(FORGED)

    result = verified(anywhere, folder)

    assert result.exit_code == 0
    assert "note: reports: report REPORT-20260101T000000Z: not recorded" in result.stdout
    assert reports.newest_unacknowledged() is None
    found = reports.get("REPORT-20260101T000000Z")
    assert (found.state, found.acks) == ("not_recorded", ())


def test_a_line_that_is_missing_is_a_note_and_written_again(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str
) -> None:
    (folder.reports / f"{name}.ack").unlink()

    result = verified(anywhere, folder)
    acks = reports.get(name).acks
    reports.acknowledge(name, KIM, now_ns=1)
    after = verified(anywhere, folder)

    assert result.exit_code == 0
    assert "has no line of the acknowledgement by kim" in result.stdout
    assert [one.who for one in acks] == ["kim"]
    assert "report" not in after.stdout


def test_words_that_are_removed_leave_a_sound_store(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str
) -> None:
    before = reports.path(name).read_bytes()
    assert reports.forget("12345678" + "0" * 24) == 1

    after = verified(anywhere, folder)
    reports.path(name).write_bytes(before)  # as a kill between event and file leaves it
    put_back = verified(anywhere, folder)

    assert after.exit_code == 0
    assert "report" not in after.stdout
    assert put_back.exit_code == 0
    assert "which removed lines of it" in put_back.stdout


def test_an_altered_report_stays_altered_when_words_are_removed_from_it(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str
) -> None:
    with reports.path(name).open("a") as file:
        file.write("- all is well\n")
    reports.forget("12345678" + "0" * 24)

    assert "words" not in reports.text(name)
    assert verified(anywhere, folder).exit_code == 1


def test_reports_that_make_room_leave_a_sound_store(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_REPORTS", 1)
    reports.add("# Next\n", now_ns=time.time_ns() + 10**10)

    result = verified(anywhere, folder)

    assert [one.name for one in reports.list()] != [name]
    assert result.exit_code == 0
    assert "report" not in result.stdout


def test_a_backup_has_its_reports_and_is_sound(
    anywhere: Cli, folder: DataFolder, reports: Reports, name: str, tmp_path: Path
) -> None:
    for target in ("copy", "copy.tar.zst"):
        made = anywhere("backup", str(tmp_path / target), HANSARD_DATA=str(folder.path))
        assert made.exit_code == 0, made.output
        back = DataFolder(tmp_path / f"{target}-back")
        put = anywhere("restore", str(tmp_path / target), HANSARD_DATA=str(back.path))
        assert put.exit_code == 0, put.output

        result = verified(anywhere, back)

        assert result.exit_code == 0, result.output
        assert "report" not in result.stdout
        assert Reports(back).get(name).acks == reports.get(name).acks


def test_the_events_say_who_and_hold_digests(folder: DataFolder, anywhere: Cli, name: str) -> None:
    listed = anywhere("events", "list", "--json", HANSARD_DATA=str(folder.path))
    events = json.loads(listed.stdout)["items"]

    acknowledged, written = events[:2]
    assert (acknowledged["type"], acknowledged["who"]) == ("report.acknowledged", "kim")
    assert (written["type"], written["subject"]) == ("report.written", f"report:{name}")
    assert acknowledged["body"]["principal"] == "kim"
    assert acknowledged["body"]["sha256"] == written["body"]["sha256"]


def test_a_name_that_nobody_checked_is_claimed_in_the_event(reports: Reports, name: str) -> None:
    found = reports.acknowledge(name, Who(Actor.ME, "ana", CLAIMED), now_ns=2)

    assert [(one.who, one.method) for one in found.acks] == [("kim", "token"), ("ana", "claimed")]

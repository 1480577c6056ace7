"""hansard report: written, read once a person, listed, passed on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_store.reports.files import Reports
from tests.store.maker import StoreMaker
from tests.store.task_maker import TaskMaker
from tests.web.cli.conftest import Cli


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[TaskMaker]:
    store = StoreMaker(tmp_path / "data")
    maker = TaskMaker(store, now_ns=time.time_ns())
    yield maker
    maker.close()
    store.close()


@pytest.fixture
def run(anywhere: Cli, failing: TaskMaker) -> Cli:
    def run(*arguments: str, **environment: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(failing.store.folder.path), **environment)

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.covers("DI-23", "DI-24")
def test_it_writes_a_report_of_sixty_lines_at_most_and_prints_it(
    run: Cli, failing: TaskMaker
) -> None:
    failing.fail_often(60)

    result = run("report")

    (file,) = (failing.store.folder.reports).glob("*.md")
    assert result.exit_code == 0
    assert result.stdout == file.read_text()
    assert "60 calls failed in the last 24 hours" in result.stdout
    assert result.stdout.count("\n") <= 60
    assert str(file) in result.stderr


@pytest.mark.covers("DI-26")
def test_latest_prints_the_newest_unread_one_then_the_next_then_none(
    run: Cli, failing: TaskMaker
) -> None:
    reports = Reports(failing.store.folder)
    for number in (1, 2):
        reports.add(f"# Report {number}\n", now_ns=number * 10**9)

    printed = [run("report", "--latest") for _ in range(3)]

    assert [one.stdout for one in printed] == ["# Report 2\n", "# Report 1\n", ""]
    assert [one.exit_code for one in printed] == [0, 0, 0]
    assert "No report is unread" in printed[2].stderr
    assert all(one.acks for one in reports.list())


@pytest.mark.covers("DI-28")
def test_each_person_reads_it_and_the_list_says_who_it_waits_for(
    run: Cli, failing: TaskMaker
) -> None:
    reports = Reports(failing.store.folder)
    now_ns = time.time_ns()
    reports.add("# New\n", now_ns=now_ns)
    reports.add("# Old\n", now_ns=now_ns - 13 * 3_600 * 10**9)
    people = {"HANSARD_RECIPIENTS": "ana kim", "HANSARD_REPORT_ESCALATION": "12h"}

    before = told(run("report", "--pending", "--json", **people))["items"]
    run("report", "--latest", "--as", "kim", **people)
    run("report", "--latest", "--as", "kim", **people)
    after = told(run("report", "--pending", "--json", **people))["items"]
    table = run("report", "--list", **people)

    assert [(one["next_recipient"], one["escalated_past"]) for one in before] == [
        ("ana", []),
        ("kim", ["ana"]),
    ]
    assert [one["next_recipient"] for one in after] == ["ana"]  # the old one was kim's to read
    assert "kim (claimed)" in table.stdout
    third = run("report", "--latest", "--as", "kim", **people)
    assert "No report is unread by kim" in third.stderr


def test_json_has_the_text_and_the_acknowledgement(run: Cli, failing: TaskMaker) -> None:
    made = told(run("report", "--json"))["report"]
    read = told(run("report", "--latest", "--as", "ana", "--json"))["report"]
    none = told(run("report", "--latest", "--as", "ana", "--json"))["report"]

    assert made["name"] == read["name"]
    assert read["text"] == made["text"]
    assert [(one["who"], one["method"]) for one in read["acks"]] == [("ana", "claimed")]
    assert none is None


def test_what_does_not_go_together_is_refused(run: Cli) -> None:
    assert run("report", "--latest", "--list").exit_code == 2
    assert run("report", "--recipients", "two words").exit_code == 2


def test_a_folder_that_cannot_be_written_is_one_line(run: Cli, failing: TaskMaker) -> None:
    failing.store.folder.reports.write_text("a file in its place", encoding="utf-8")

    ended = run("report")

    assert ended.exit_code == 1
    assert "Traceback" not in ended.output
    assert len(ended.output.strip().splitlines()) == 1


@pytest.mark.covers("DI-11")
def test_numbers_of_the_detector_can_be_set_for_good(run: Cli, failing: TaskMaker) -> None:
    failing.fail_often(3)
    numbers = {"HANSARD_DETECT_THRESHOLD": "repeated_errors=3"}

    usual = told(run("detect", "--dry-run", "--json"))
    found = told(run("detect", "--dry-run", "--json", **numbers))
    beaten = told(
        run("detect", "--dry-run", "--json", "--threshold", "repeated_errors=4", **numbers)
    )

    assert usual["action"] == beaten["action"] == []
    assert found["action"][0]["threshold"] == 3
    assert run("detect", HANSARD_DETECT_THRESHOLD="many").exit_code == 2
    assert run("detect", HANSARD_DETECT_THRESHOLD="nothing=3").exit_code == 1

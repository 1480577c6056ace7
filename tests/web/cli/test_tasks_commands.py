"""hansard detect and hansard tasks: what repeats is found, shown and decided about."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_store.detection.rules import RULES
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
    """Run a command on the store."""

    def run(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(failing.store.folder.path))

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.covers("DI-01", "DI-02")
def test_detect_tells_of_three_levels_and_opens_a_task_for_each_pattern(
    run: Cli, failing: TaskMaker
) -> None:
    failing.fail_often(4)
    none = told(run("detect", "--json"))
    failing.fail()

    found = told(run("detect", "--json"))

    assert [none[level] for level in ("action", "component", "architecture")] == [[], [], []]
    (one,) = found["action"]
    assert (one["outcome"], one["count"], one["sample"]) == ("opened", 5, "connection refused")
    assert (found["component"], found["architecture"], found["opened"]) == ([], [], 1)
    assert one["task_id"] == failing.tasks()[0].task_id
    assert {rule["level"] for rule in found["rules"]} == {"action", "component", "architecture"}


@pytest.mark.covers("DI-14")
def test_detect_twice_opens_one_task(run: Cli, failing: TaskMaker) -> None:
    failing.fail_often(5)

    first, second = run("detect"), run("detect")

    assert "opened" in first.stdout
    assert "known" in second.stdout
    assert len(failing.tasks()) == 1


@pytest.mark.covers("DI-11")
def test_thresholds_and_windows_are_options_and_shown_in_what_is_found(
    run: Cli, failing: TaskMaker
) -> None:
    failing.fail_often(3, ago_s=30 * 3600)
    options = ("--threshold", "repeated_errors=3", "--window", "48h")

    (found,) = told(run("detect", "--json", *options))["action"]

    assert (found["threshold"], found["window_ns"]) == (3, str(48 * 3600 * 10**9))
    shown = run("tasks", "show", found["task_id"]).stdout
    assert "3 times or more within 48 hours" in shown


def test_a_dry_run_says_what_would_be_and_opens_nothing(run: Cli, failing: TaskMaker) -> None:
    failing.fail_often(5)

    assert "would open" in run("detect", "--dry-run").stdout
    assert failing.tasks() == []
    failing.detect()
    failing.fail()
    (found,) = told(run("detect", "--dry-run", "--json"))["action"]
    assert (found["outcome"], failing.tasks()[0].count) == ("would_count", 5)


def test_where_nothing_repeats_detect_says_so_and_ends_well(run: Cli) -> None:
    ended = run("detect")

    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "Nothing repeats.\n")
    assert "hansard detect" in run("tasks", "list").stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--threshold", "many"), "a number, or a rule"),
        (("--window", "soon"), "a number and a unit"),
    ],
)
def test_options_that_cannot_be_meant_are_wrong_use(
    run: Cli, options: tuple[str, ...], why: str
) -> None:
    ended = run("detect", *options)

    assert ended.exit_code == 2
    assert why in ended.stderr


def test_a_rule_that_is_none_is_refused_by_name(run: Cli) -> None:
    ended = run("detect", "--threshold", "nothing=3")

    assert ended.exit_code == 1
    names = ", ".join(sorted(rule.name for rule in RULES))
    assert f"'nothing' is no rule; the rules are {names}\n" in ended.stderr


def test_a_window_longer_than_clocks_can_say_is_refused(run: Cli) -> None:
    ended = run("detect", "--window", "999999999d")

    assert ended.exit_code == 1
    assert "a window is 100 years or less" in ended.stderr


def test_tasks_are_listed_shown_approved_and_closed(run: Cli, failing: TaskMaker) -> None:
    failing.fail_often(5)
    task_id = failing.detect_one().task_id

    listed = run("tasks", "list").stdout
    early = run("tasks", "done", task_id)
    approved = run("tasks", "approve", task_id[-8:], "--note", "mend it", "--by", "noor")
    other = run("tasks", "dismiss", task_id, "--by", "kim")
    shown = run("tasks", "show", task_id).stdout
    done = told(run("tasks", "done", task_id, "--by", "mender", "--json"))["task"]

    assert "The tool run_tests keeps failing in the same way" in listed
    assert "connection refused" in listed
    assert (early.exit_code, approved.stdout) == (1, f"approved {task_id}\n")
    assert "blocked until a person approves it" in early.stderr
    assert (other.exit_code, "was approved already by noor" in other.stderr) == (1, True)
    for words in ("mend it", "by noor", "5 times or more within 24 hours", "connection refused"):
        assert words in shown
    assert (done["state"], done["done"]["by"], done["decision"]["origin"]) == (
        "done", "mender", "cli",
    )  # fmt: skip
    assert told(run("tasks", "list", "--json"))["items"] == []
    assert len(told(run("tasks", "list", "--state", "all", "--json"))["items"]) == 1

"""The detector: what repeats at each level, and what does not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import (
    LEVELS,
    RULES,
    DetectionFinding,
    adjusted_rules,
    rule_named,
)
from hansard_store.detection.scan import MOST_FINDINGS, scan
from hansard_store.errors import InvalidQueryError
from hansard_store.steps.flags import SpanFlag
from tests.store.accounts import HOUR, SECOND, Clock, proposal
from tests.store.memory_maker import MemoryMaker
from tests.store.plans import QueryPlans
from tests.store.task_maker import HOUR_S, TaskMaker, task_maker

DAY = 24 * HOUR
EXPIRED_APPROVALS = rule_named("expired_approvals")
REPEATED_CORRECTIONS = rule_named("repeated_corrections")
REPEATED_ERRORS = rule_named("repeated_errors")
STALE_CONTRADICTIONS = rule_named("stale_contradictions")
UNKNOWN_OUTCOMES = rule_named("unknown_outcomes")


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[TaskMaker]:
    with task_maker(tmp_path / "data") as maker:
        yield maker


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryMaker]:
    maker = MemoryMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def reader(desk: ApprovalService, tmp_path: Path) -> Iterator[apsw.Connection]:
    """The store of the desk, as the detector reads it."""
    connection = open_reader(DataFolder(tmp_path / "data"))
    yield connection
    connection.close()


def patterns(findings: Sequence[DetectionFinding]) -> list[tuple[str, str, int]]:
    return [(one.rule.name, one.subject, len(one.occurrences)) for one in findings]


# ---- actions


@pytest.mark.covers("DI-02", "DI-03")
def test_four_like_errors_of_a_tool_are_none_and_five_are_a_pattern(failing: TaskMaker) -> None:
    for number in range(4):
        failing.fail(f"no such file: /tmp/{number}.txt (request a{number}b)", ago_s=60 * number)
    before = failing.scan().findings

    failing.fail("no such file: /srv/other.txt (request 77)", ago_s=23 * HOUR_S)

    (found,) = failing.scan().findings
    assert before == []
    assert (found.rule, found.subject_kind, found.subject) == (REPEATED_ERRORS, "tool", "run_tests")
    assert len(found.occurrences) == 5
    assert found.signature == "no such file: <path> (request <#>)"


def test_other_words_other_tools_and_older_errors_do_not_add_up(failing: TaskMaker) -> None:
    failing.fail_often(4)
    failing.fail("connection reset by peer")
    failing.fail(tool="read_file")
    failing.fail(ago_s=25 * HOUR_S)

    assert failing.scan().findings == []


def test_models_and_plain_steps_fail_too(failing: TaskMaker) -> None:
    failing.fail_often(5, "overloaded", role="llm", tool=None, model="gpt-4o")
    for number in range(5):
        failing.fail("no plan", role="workflow", tool=None, name="plan", run=f"run {number}")

    found = {(one.subject_kind, one.subject): one.title for one in failing.scan().findings}

    assert found == {
        ("model", "gpt-4o"): "The model gpt-4o keeps failing in the same way",
        ("step", "plan"): "The step plan keeps failing in the same way",
    }


def test_an_error_that_goes_up_through_its_callers_counts_for_the_tool_alone(
    failing: TaskMaker,
) -> None:
    for number in range(5):
        run = f"run {number}"
        root = failing.fail(role="agent", tool=None, name="agent", run=run)
        tool = failing.fail(parent=root, name="tool", run=run)
        failing.fail(role="other", tool=None, parent=tool, name="GET", run=run)
        failing.fail(parent=tool, name="again", run=run, flags=SpanFlag.DUPLICATE)

    assert patterns(failing.scan().findings) == [("repeated_errors", "run_tests", 5)]


def test_what_an_agent_says_in_words_of_its_own_counts_beside_its_tool(
    failing: TaskMaker,
) -> None:
    for number in range(5):
        run = f"run {number}"
        root = failing.fail("gave up", role="agent", tool=None, name="mender", run=run)
        failing.fail(parent=root, run=run, ago_s=65)  # it went on after that

    assert patterns(failing.scan().findings) == [
        ("repeated_errors", "mender", 5),
        ("repeated_errors", "run_tests", 5),
    ]


def test_each_long_message_of_one_run_is_read_to_its_own_end(failing: TaskMaker) -> None:
    for number in range(5):
        for what in ("zebra", "aardvark", "mole"):
            path = f"/{what}{number}/" + "x" * 120
            failing.fail(f"the {what} in {path} has lost its {what}s: {'no ' * 900}", run="one")

    said = sorted(one.signature[:40] for one in failing.scan().findings)
    assert said == [
        f"the {what} in <path> has lost its {what}s: no"[:40]
        for what in ("aardvark", "mole", "zebra")
    ]


def test_long_messages_are_told_apart_by_their_whole_words(failing: TaskMaker) -> None:
    for number in range(5):
        path = "/".join(["", *("folder" * number, "x" * 100), f"{number}.py"])
        failing.fail(f"cannot compile {path}: the syntax is of a newer version", run=f"r{number}")
        failing.fail(f"cannot compile {path}: no room is left on the disk", run=f"q{number}")

    assert sorted(one.signature for one in failing.scan().findings) == [
        "cannot compile <path>: no room is left on the disk",
        "cannot compile <path>: the syntax is of a newer version",
    ]


def test_errors_that_say_nothing_are_alike(failing: TaskMaker) -> None:
    failing.fail_often(5, "")

    assert patterns(failing.scan().findings) == [("repeated_errors", "run_tests", 5)]


@pytest.mark.covers("DI-11")
def test_thresholds_and_windows_are_what_was_asked_for(failing: TaskMaker) -> None:
    failing.fail_often(3, ago_s=30 * HOUR_S)
    windows = {"": 48 * HOUR}

    assert failing.scan(adjusted_rules(windows_ns=windows)).findings == []
    assert failing.scan(adjusted_rules(thresholds={"repeated_errors": 3})).findings == []
    (found,) = failing.scan(
        adjusted_rules(thresholds={"repeated_errors": 3}, windows_ns=windows)
    ).findings
    assert (found.rule.threshold, found.rule.window_ns) == (3, 48 * HOUR)


@pytest.mark.parametrize(
    ("thresholds", "why"),
    [({"nothing": 3}, "no rule; the rules are"), ({"repeated_errors": 0}, "1 or more")],
)
def test_a_rule_that_is_none_and_a_number_that_finds_nothing_are_refused(
    thresholds: dict[str, int], why: str
) -> None:
    with pytest.raises(InvalidQueryError, match=why):
        adjusted_rules(thresholds=thresholds)


def test_a_scan_has_a_bound_and_says_what_it_leaves_off(failing: TaskMaker) -> None:
    with failing.store.batch():
        for number in range(MOST_FINDINGS + 3):
            failing.fail(tool=f"tool {number}")
    every = adjusted_rules(thresholds={"repeated_errors": 1})

    found = failing.scan(every)

    assert (len(found.findings), found.left_off) == (MOST_FINDINGS, 3)


def test_activity_is_how_often_it_happened_in_each_part_of_the_window(failing: TaskMaker) -> None:
    failing.fail_often(4, ago_s=23.5 * HOUR_S)
    failing.fail(ago_s=1)

    (found,) = failing.scan().findings

    assert found.activity(failing.now_ns) == (4, *[0] * 22, 1)


def test_a_look_searches_and_scans_no_table(failing: TaskMaker, plans: QueryPlans) -> None:
    failing.fail_often(5)

    with plans.watch(failing.store.db):
        failing.scan()

    assert plans.lines
    assert plans.scans() == []


# ---- components


def test_calls_that_nobody_decides_on_in_time_are_a_pattern(
    desk: ApprovalService, clock: Clock, reader: apsw.Connection
) -> None:
    found = []
    for number in (4, 1):
        for _ in range(number):
            desk.propose(proposal(lifetime_ns=HOUR))
        clock.advance(2 * HOUR)
        desk.expire_due()
        found.append(scan(reader, now_ns=clock.now_ns).findings)
    clock.advance(2 * DAY)

    assert [patterns(one) for one in found] == [[], [("expired_approvals", "send_email", 5)]]
    assert found[1][0].rule is EXPIRED_APPROVALS
    assert scan(reader, now_ns=clock.now_ns).findings == []


def test_outcomes_that_stay_unknown_are_a_pattern_until_a_person_settles_them(
    desk: ApprovalService, clock: Clock, reader: apsw.Connection
) -> None:
    for _ in range(3):
        made = desk.propose(proposal()).approval.approval_id
        desk.approve(made, by="noor")
        desk.claim(made, lease_s=1)
    clock.advance(10 * SECOND)
    desk.recover()

    before = scan(reader, now_ns=clock.now_ns).findings
    desk.settle_outcome(made, "did_not_run", note="the log has none", by="noor")
    after = scan(reader, now_ns=clock.now_ns).findings

    assert patterns(before) == [("unknown_outcomes", "send_email", 3)]
    assert before[0].rule is UNKNOWN_OUTCOMES
    assert after == []


# ---- architecture


@pytest.mark.covers("DI-09")
def test_a_memory_corrected_twice_in_48_hours_is_none_and_three_times_is_a_pattern(
    memory: MemoryMaker,
) -> None:
    memory.write("Python 3.10", subject="ci")
    memory.write("short titles", subject="commits")
    found = []
    for version in ("3.11", "3.10", "3.12"):
        memory.now_ns += 10 * HOUR
        memory.write(f"Python {version}", subject="ci")
        found.append(patterns(scan(memory.connection, now_ns=memory.now_ns).findings))
    memory.now_ns += 30 * HOUR

    assert found == [[], [], [("repeated_corrections", "constraint", 3)]]
    assert scan(memory.connection, now_ns=memory.now_ns).findings == []


def test_a_plan_that_changes_is_no_correction(memory: MemoryMaker) -> None:
    for step in range(6):
        memory.work("plan", f"step {step}")

    assert scan(memory.connection, now_ns=memory.now_ns).findings == []


@pytest.mark.covers("DI-10")
def test_contradictions_that_wait_for_long_are_a_pattern(memory: MemoryMaker) -> None:
    for subject in ("a", "b", "c"):
        memory.write("sure", subject=subject, confidence=0.9)
        memory.write("unsure", subject=subject, confidence=0.1)
    fresh = scan(memory.connection, now_ns=memory.now_ns).findings
    memory.now_ns += 8 * DAY

    (found,) = scan(memory.connection, now_ns=memory.now_ns).findings

    assert fresh == []
    assert found.rule is STALE_CONTRADICTIONS
    assert len(found.occurrences) == 3


def test_there_are_rules_at_each_level() -> None:
    assert {rule.level for rule in RULES} == set(LEVELS)
    assert REPEATED_CORRECTIONS in RULES

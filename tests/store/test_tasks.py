"""The queue of tasks: one open task a pattern, blocked until a person decides, kept for good."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.models.tasks import Decision
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import adjusted_rules
from hansard_store.errors import InvalidCursorError
from hansard_store.maintenance.deletion import delete_run
from hansard_store.tasks import rows as tasks
from hansard_store.tasks.errors import (
    InvalidDecision,
    NoteNotRetained,
    TaskDecided,
    TaskNotApproved,
    TaskRefused,
)
from hansard_store.tasks.json import task_json
from hansard_store.tasks.rows import Task, count_tasks, list_tasks
from hansard_store.tasks.service import MOST_EVIDENCE, TaskService
from tests.store.maker import NOW, SECOND, trace_id
from tests.store.plans import QueryPlans
from tests.store.task_maker import HOUR_S, TaskMaker, task_maker

HOUR = HOUR_S * SECOND
SECRET = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7" * 2


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[TaskMaker]:
    with task_maker(tmp_path / "data") as maker:
        yield maker


def outcomes(maker: TaskMaker) -> list[str]:
    return [one.outcome for one in maker.detect()]


# ---- opening and counting


@pytest.mark.covers("DI-12")
def test_a_pattern_opens_a_blocked_task_for_review_that_survives_a_restart(tmp_path: Path) -> None:
    with task_maker(tmp_path / "data") as failing:
        failing.fail_often(5)
        failing.detect()
        folder = failing.store.folder

    connection = open_reader(folder)
    (task,) = list_tasks(connection, limit=10).items
    connection.close()

    assert (task.state, task.review, task.level) == ("blocked", True, "action")
    assert task.title == "The tool run_tests keeps failing in the same way"
    assert "somebody has to look for the cause" in task.description
    assert (task.count, task.first_ns, task.last_ns) == (5, NOW - 300 * SECOND, NOW - 60 * SECOND)
    assert len(task.evidence) == 5
    assert task.created_ns == NOW


@pytest.mark.covers("DI-11")
def test_a_task_shows_the_threshold_and_the_window_that_were_in_force(failing: TaskMaker) -> None:
    failing.fail_often(3)
    asked = adjusted_rules(thresholds={"": 3}, windows_ns={"": 2 * HOUR})

    failing.detect(asked)

    told = task_json(failing.store.db, failing.tasks()[0])
    assert (told["threshold"], told["window_ns"]) == (3, str(2 * HOUR))


@pytest.mark.covers("DI-14")
def test_the_same_pattern_opens_no_second_task_and_the_open_one_counts_on(
    failing: TaskMaker,
) -> None:
    failing.fail_often(5)
    first = failing.detect_one()
    again = outcomes(failing)
    failing.fail("connection refused", ago_s=10)
    failing.now_ns += SECOND

    then = outcomes(failing)

    (task,) = failing.tasks()
    assert (again, then) == (["known"], ["counted"])
    assert (task.task_id, task.count) == (first.task_id, 6)
    assert (task.last_ns, task.updated_ns) == (NOW - 10 * SECOND, NOW + SECOND)


def test_two_looks_at_once_open_one_task(failing: TaskMaker) -> None:
    failing.fail_often(5)
    findings = failing.scan().findings

    with ThreadPoolExecutor(6) as threads:
        recorded = list(threads.map(lambda _: failing.book.record(findings), range(6)))

    told = [one.outcome for (one,) in recorded]
    assert (told.count("opened"), told.count("known")) == (1, 5)
    assert failing.tasks()[0].count == 5


def test_a_step_that_is_told_late_counts_once(failing: TaskMaker) -> None:
    failing.fail_often(5)
    failing.detect()
    failing.fail(ago_s=900)

    assert outcomes(failing) == ["counted"]
    (task,) = failing.tasks()
    assert (task.count, task.first_ns) == (6, NOW - 900 * SECOND)
    assert outcomes(failing) == ["known"]


def test_the_evidence_is_the_first_one_and_the_newest(failing: TaskMaker) -> None:
    failing.fail_often(50)
    task = failing.detect_one()

    ago = [(NOW - one.at_ns) // (60 * SECOND) for one in task.evidence]

    assert ago == [50, *range(MOST_EVIDENCE - 1, 0, -1)]
    assert task.count == 50


def test_a_task_has_no_recorded_words_and_a_deleted_run_leaves_none(failing: TaskMaker) -> None:
    failing.fail_often(5, "cannot reach canary-hall")
    task = failing.detect_one()
    told = task_json(failing.store.db, task)
    row: Any = failing.store.db.execute("SELECT * FROM task").fetchone()

    delete_run(failing.store.ingest, trace_id("run"), reason="by hand")

    assert told["sample"] == "cannot reach canary-hall"
    assert "canary" not in repr(row)
    after = task_json(failing.store.db, failing.task(task.task_id))
    assert (after["sample"], after["count"]) == (None, 5)


# ---- deciding


@pytest.mark.covers("DI-13")
def test_a_task_is_blocked_until_a_person_approves_it(failing: TaskMaker) -> None:
    failing.fail_often(5)
    task = failing.detect_one()

    with pytest.raises(TaskNotApproved, match="blocked until a person approves it"):
        failing.decide(task, "done")

    assert failing.task(task.task_id) == task
    approved = failing.decide(task, "approve", note="the fixture is missing")
    done = failing.decide(task, "done", by="mender")
    assert (approved.state, approved.review, approved.note) == (
        "approved", False, "the fixture is missing",
    )  # fmt: skip
    assert (done.state, done.decided_by, done.done_by) == ("done", "noor", "mender")


@pytest.mark.parametrize("first", ["approve", "dismiss"])
def test_the_first_decision_stands_and_the_same_one_again_changes_nothing(
    failing: TaskMaker, first: Decision
) -> None:
    other: Decision = "dismiss" if first == "approve" else "approve"
    failing.fail_often(5)
    task = failing.detect_one()
    decided = failing.decide(task, first)
    failing.now_ns += SECOND

    assert failing.decide(task, first) == decided
    with pytest.raises(TaskDecided, match="already by noor") as refused:
        failing.decide(task, other)

    assert refused.value.details["decision"]["decision"] == first
    assert failing.task(task.task_id) == decided


def test_of_two_who_decide_at_once_one_is_first(failing: TaskMaker) -> None:
    failing.fail_often(5)
    task = failing.detect_one()

    def decide(number: int) -> str:
        try:
            return failing.decide(
                task, "approve" if number % 2 else "dismiss", by=str(number)
            ).state
        except TaskDecided:
            return "late"

    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(decide, range(8)))

    assert told.count("late") == 7
    assert failing.task(task.task_id).state in told


def test_what_was_dismissed_opens_again_only_when_it_repeats_as_often(failing: TaskMaker) -> None:
    failing.fail_often(5)
    failing.decide(failing.detect_one(), "dismiss")
    at_once = outcomes(failing)
    failing.fail_often(4, ago_s=20)
    too_few = outcomes(failing)
    failing.fail(ago_s=5)

    assert (at_once, too_few, outcomes(failing)) == (["decided"], ["decided"], ["opened"])
    newest, dismissed = failing.tasks()
    assert (newest.state, newest.count, dismissed.state) == ("blocked", 5, "dismissed")


def test_an_approved_task_is_open_and_counts_on(failing: TaskMaker) -> None:
    failing.fail_often(5)
    failing.decide(failing.detect_one(), "approve")
    failing.fail(ago_s=5)

    assert outcomes(failing) == ["counted"]
    (task,) = failing.tasks()
    assert (task.state, task.count, task.note) == ("approved", 6, None)


def test_secrets_are_cut_out_of_notes(failing: TaskMaker) -> None:
    failing.fail_often(5)

    task = failing.decide(failing.detect_one(), "dismiss", note=f"rotate {SECRET}")

    assert task.note
    assert SECRET not in task.note
    assert "‹redacted:" in task.note


def test_where_no_words_are_kept_a_note_is_refused_and_a_bare_decision_is_taken(
    failing: TaskMaker,
) -> None:
    failing.fail_often(5)
    task = failing.detect_one()
    book = TaskService(failing.store.folder, RetentionMode.METADATA_ONLY)

    with pytest.raises(NoteNotRetained):
        book.decide_json(task.task_id, {"decision": "approve", "note": "why"})

    assert book.decide_json(task.task_id, {"decision": "approve", "note": " "}).state == "approved"
    book.close()


@pytest.mark.parametrize("told", [{"decision": "delete"}, {}, {"decision": "done", "extra": 1}])
def test_a_decision_that_is_none_is_refused(failing: TaskMaker, told: dict[str, Any]) -> None:
    with pytest.raises(InvalidDecision):
        failing.book.decide_json("00" * 16, told)


def test_refusals_are_of_one_kind() -> None:
    assert all(
        issubclass(kind, TaskRefused)
        for kind in (InvalidDecision, TaskDecided, TaskNotApproved, NoteNotRetained)
    )


# ---- lists


def filled(failing: TaskMaker) -> None:
    """Open five tasks: one dismissed, one approved, three blocked."""
    for number in range(5):
        failing.fail_often(5, tool=f"tool {number}")
    failing.detect()
    first, second, *_ = failing.tasks()
    failing.decide(first, "dismiss")
    failing.decide(second, "approve")


def test_all_pages_together_are_the_whole_list(failing: TaskMaker) -> None:
    filled(failing)
    found: list[Task] = []
    cursor = None
    while True:
        page = list_tasks(failing.store.db, limit=2, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break

    assert found == failing.tasks()
    assert [task.id for task in found] == sorted((task.id for task in found), reverse=True)


def test_lists_are_narrowed_by_state_and_level(failing: TaskMaker) -> None:
    filled(failing)

    def count(**wanted: Any) -> int:
        return len(list_tasks(failing.store.db, limit=100, **wanted).items)

    assert [count(state=state) for state in tasks.STATES] == [3, 1, 1, 0]
    assert (count(state="open"), count(level="action"), count(level="component")) == (4, 5, 0)
    assert (count(state="open", level="action"), count(state="open", level="component")) == (4, 0)
    assert count_tasks(failing.store.db) == {
        "blocked": 3, "approved": 1, "dismissed": 1, "done": 0,
    }  # fmt: skip


def test_ids_are_found_by_their_beginning_and_bad_ones_are_told(failing: TaskMaker) -> None:
    filled(failing)
    task = failing.tasks()[0]

    assert failing.task(task.task_id[-8:]) == task
    for wanted in ("00" * 16, "short", "no hex!!"):
        with pytest.raises((NotFoundError, AmbiguousIdError)):
            failing.task(wanted)
    with pytest.raises(InvalidCursorError):
        list_tasks(failing.store.db, limit=5, cursor="x")


def test_lists_search_and_neither_scan_nor_sort(failing: TaskMaker, plans: QueryPlans) -> None:
    filled(failing)
    db = failing.store.db
    with plans.watch(db):
        for state in (*tasks.STATES, "open"):
            list_tasks(db, state=state, limit=5)  # type: ignore[arg-type]  # each of the states
        list_tasks(db, level="action", limit=5)
        failing.task(failing.tasks()[0].task_id)
        tasks.find_open(db, failing.tasks()[0].pattern)
        tasks.counted_until(db, failing.tasks()[0].pattern)

    # The list of all tasks is read by their numbers, which is no scan of a page's depth.
    assert [line for line in plans.scans() if "task" not in line[0]] == []
    assert plans.sorts() == []


def test_the_table_holds_one_open_task_a_pattern_and_no_flag_beside_its_state(
    failing: TaskMaker,
) -> None:
    failing.fail_often(5)
    failing.detect()
    copy = "INSERT INTO task SELECT NULL, randomblob(16), {} FROM task"
    names = ", ".join(tasks._NAMES[2:])

    with pytest.raises(apsw.ConstraintError, match=r"UNIQUE constraint failed: task\.pattern"):
        failing.store.ingest.execute(copy.format(names))
    with pytest.raises(apsw.ConstraintError, match="CHECK constraint failed"):
        failing.store.ingest.execute("UPDATE task SET state = 'done'")

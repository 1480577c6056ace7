"""The detector on the heartbeat itself: evaluation, maintenance, escalation, reports, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.detection.rules import (
    DetectionFinding,
    DetectionRule,
    adjusted_rules,
    rule_named,
)
from hansard_store.detection.scan import scan
from hansard_store.heartbeat import EVALUATED, WARNED, CycleLog, PhaseRecord
from hansard_store.principals.model import CLAIMED
from hansard_store.reports.files import Reports
from hansard_store.tasks.json import scan_json
from tests.store.maker import NOW, SECOND
from tests.store.memory_maker import MemoryMaker
from tests.store.plans import QueryPlans
from tests.store.task_maker import HOUR_S, TaskMaker, task_maker

HOUR = HOUR_S * SECOND
DAY = 24 * HOUR
EVALUATION_BLIND_SPOT = rule_named("evaluation_blind_spot")
FREQUENT_WARNINGS = rule_named("frequent_warnings")
IDLE_MAINTENANCE = rule_named("idle_maintenance")
MEMORY_OUTGROWS_MAINTENANCE = rule_named("memory_outgrows_maintenance")
RARE_WARNINGS = rule_named("rare_warnings")
UNREAD_REPORTS = rule_named("unread_reports")
NOTHING_FOUND: Mapping[str, Any] = {"contradictions_found": 0, "contradictions": {"pairs": 4}}


class System:
    """A store on which a heartbeat has run; its clock stands at NOW."""

    def __init__(self, maker: TaskMaker, memory: MemoryMaker) -> None:
        self.failing, self.memory = maker, memory
        self.now_ns = NOW
        self._runs = self._checks = 0
        memory.now_ns = NOW

    def ran(self, phase: str, *, ago_ns: int = HOUR, **figures: Any) -> None:
        """Record a cycle with one phase that was done so long ago."""
        self._runs += 1
        cycle_id, at_ns = f"{self._runs:032x}", self.now_ns - ago_ns
        log = CycleLog(self.failing.store.folder, clock=lambda: at_ns)
        log.begin(cycle_id, origin="command")
        step_id = f"{cycle_id}-{self._runs:016x}"
        log.add(PhaseRecord(cycle_id, phase, step_id, "done", at_ns, at_ns, "done", figures))
        log.end(cycle_id)
        log.close()

    def checked(self, commands: int, *, warned: int, ago_ns: int = HOUR) -> None:
        """Store what a hook records of each command that it looked at before it ran."""
        store, at_ns = self.failing.store, self.now_ns - ago_ns
        with store.batch():
            for number in range(commands):
                self._checks += 1
                stored = store.log(f"command {self._checks}", span=f"step {self._checks}")
                name = WARNED if number < warned else EVALUATED
                store.ingest.execute(
                    "UPDATE log_record SET event_name = ?, time_ns = ? WHERE id = ?",
                    (name, at_ns, stored),
                )

    def correct(self, subject: str = "tests", **more: Any) -> None:
        """Write a correction as evaluation does."""
        self.memory.write(
            "it fails",
            memory_type="correction",
            subject=subject,
            attribute="correction",
            writer="post_step_summarizer",
            **more,
        )

    def found(self, rule: DetectionRule, **changed: Mapping[str, int]) -> list[DetectionFinding]:
        rules = adjusted_rules(**changed)
        found = scan(self.failing.store.db, rules, now_ns=self.now_ns).findings
        return [one for one in found if one.rule.name == rule.name]


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with task_maker(tmp_path / "data") as maker:
        memory = MemoryMaker(tmp_path / "data")
        yield System(maker, memory)
        memory.close()


# ---- evaluation


@pytest.mark.covers("DI-04")
def test_many_errors_without_a_correction_are_a_blind_spot_of_evaluation(system: System) -> None:
    system.ran("evaluation")
    system.failing.fail_often(19)
    before = system.found(EVALUATION_BLIND_SPOT)
    system.failing.fail("another error", tool="read_file")

    (found,) = system.found(EVALUATION_BLIND_SPOT)

    assert before == []
    assert len(found.occurrences) == 20
    assert found.title == "Evaluation corrects nothing while much fails"
    assert "20 errors or more without a correction within 24 hours" in found.description


def test_one_correction_shows_that_evaluation_sees(system: System) -> None:
    system.ran("evaluation")
    system.failing.fail_often(30)
    system.correct()

    assert system.found(EVALUATION_BLIND_SPOT) == []


def test_a_correction_that_is_only_counted_again_shows_it_too(system: System) -> None:
    system.memory.now_ns = NOW - 3 * DAY
    system.correct()
    system.memory.now_ns = NOW - HOUR
    system.ran("evaluation")
    system.failing.fail_often(30)
    blind = system.found(EVALUATION_BLIND_SPOT)
    system.correct()

    assert len(blind) == 1
    assert system.found(EVALUATION_BLIND_SPOT) == []


def test_where_evaluation_did_not_run_it_is_not_blind(system: System) -> None:
    system.ran("evaluation", ago_ns=2 * DAY)
    system.failing.fail_often(30)

    assert system.found(EVALUATION_BLIND_SPOT) == []


# ---- maintenance


@pytest.mark.covers("DI-05")
def test_maintenance_that_finds_nothing_in_ten_runs_is_a_pattern(system: System) -> None:
    for number in range(9):
        system.ran(
            "maintenance",
            ago_ns=number * HOUR + 1,
            contradictions_found=0,
            contradictions={"pairs": 4},
        )
    before = system.found(IDLE_MAINTENANCE)
    system.ran("maintenance", ago_ns=2 * DAY, contradictions_found=0, contradictions={"pairs": 1})

    (found,) = system.found(IDLE_MAINTENANCE)

    assert before == []
    assert {one.kind for one in found.occurrences} == {"step"}
    assert "10 runs or more within 7 days" in found.description


@pytest.mark.parametrize(
    "figures",
    [
        {"contradictions_found": 1, "contradictions": {"pairs": 4}},
        {"contradictions_found": 0, "contradictions": {"pairs": 0}},
        {"contradictions_found": 0, "contradictions": None},
    ],
)
def test_a_contradiction_and_runs_that_compared_nothing_are_no_sign(
    system: System, figures: dict[str, Any]
) -> None:
    for number in range(9):
        system.ran(
            "maintenance",
            ago_ns=number * HOUR + 1,
            contradictions_found=0,
            contradictions={"pairs": 4},
        )
    system.ran("maintenance", ago_ns=HOUR // 2, **figures)

    assert system.found(IDLE_MAINTENANCE) == []


@pytest.mark.covers("DI-08")
def test_memory_that_grows_faster_than_maintenance_compares_is_a_pattern(system: System) -> None:
    system.memory.now_ns = NOW - HOUR
    for number in range(12):
        system.memory.write(f"fact {number}", subject=f"subject {number}")
    few = {"thresholds": {MEMORY_OUTGROWS_MAINTENANCE.name: 10}}
    never_ran = system.found(MEMORY_OUTGROWS_MAINTENANCE, **few)
    system.ran("maintenance", contradictions={"new": 2})
    (found,) = system.found(MEMORY_OUTGROWS_MAINTENANCE, **few)
    system.ran("maintenance", ago_ns=HOUR // 2, contradictions={"new": 1})
    kept_pace = system.found(MEMORY_OUTGROWS_MAINTENANCE, **few)

    assert (never_ran, kept_pace) == ([], [])
    assert found.occurrences[0].id == (
        "12 records were written, 2 were compared by maintenance, 10 are left"
    )


def test_notes_of_the_heartbeat_about_itself_are_no_growth(system: System) -> None:
    system.ran("maintenance", contradictions={"new": 0})
    for number in range(12):
        system.memory.write(
            f"note {number}",
            subject=f"heartbeat {number}",
            namespace={"agent": "hansard.heartbeat"},
        )

    few = {"thresholds": {MEMORY_OUTGROWS_MAINTENANCE.name: 10}}
    assert system.found(MEMORY_OUTGROWS_MAINTENANCE, **few) == []


# ---- escalation


@pytest.mark.covers("DI-06")
def test_warnings_on_a_third_of_commands_are_too_many(system: System) -> None:
    system.checked(19, warned=19)
    too_few_cases = system.found(FREQUENT_WARNINGS)
    system.checked(21, warned=0)

    (found,) = system.found(FREQUENT_WARNINGS)

    assert too_few_cases == []
    assert found.occurrences[0].id == "19 of 40 checked commands drew a warning"
    assert system.found(FREQUENT_WARNINGS, thresholds={FREQUENT_WARNINGS.name: 50}) == []


@pytest.mark.covers("DI-07")
def test_almost_no_warning_on_many_commands_is_too_few(system: System) -> None:
    least = {"leasts": {RARE_WARNINGS.name: 50}}
    system.checked(49, warned=0)
    too_few_cases = system.found(RARE_WARNINGS, **least)
    system.checked(51, warned=0)

    (found,) = system.found(RARE_WARNINGS, **least)
    system.checked(10, warned=5)

    assert too_few_cases == []
    assert "0 of 100 checked commands" in found.occurrences[0].id
    assert "less than 1 % of at least 50 checked commands within 7 days" in found.description
    assert system.found(RARE_WARNINGS, **least) == []


@pytest.mark.covers("DI-12", "DI-14")
def test_a_share_opens_one_task_and_counts_once_in_a_window(system: System) -> None:
    system.checked(40, warned=40)
    first = system.failing.detect()
    system.checked(40, warned=40)
    second = system.failing.detect()

    wanted = FREQUENT_WARNINGS.name
    assert [one.outcome for one in first if one.finding.rule.name == wanted] == ["opened"]
    assert [one.outcome for one in second if one.finding.rule.name == wanted] == ["known"]
    assert len(system.failing.tasks()) == 1


# ---- reports


@pytest.mark.covers("DI-15")
def test_ten_reports_that_nobody_acknowledged_are_a_pattern(system: System) -> None:
    reports = Reports(system.failing.store.folder)
    for number in range(9):
        reports.add("# Report\n", now_ns=NOW - (number + 1) * DAY)
    before = system.found(UNREAD_REPORTS)
    read = reports.add("# Report\n", now_ns=NOW - HOUR)

    (found,) = system.found(UNREAD_REPORTS)
    reports.acknowledge(read.name, Who(Actor.ME, "ana", CLAIMED), now_ns=NOW)

    assert before == []
    assert found.occurrences[-1].id == read.name
    assert system.found(UNREAD_REPORTS) == []


# ---- corrections


@pytest.mark.covers("DI-09")
def test_the_same_correction_written_three_times_in_48_hours_is_a_pattern(system: System) -> None:
    found = []
    for hours in (40, 20, 1):
        system.memory.now_ns = NOW - hours * HOUR
        system.correct()
        found.append(len(scan(system.failing.store.db, now_ns=NOW).findings))

    assert found == [0, 0, 1]
    (one,) = scan(system.failing.store.db, now_ns=NOW).findings
    assert one.title == "A correction in memory is corrected again and again"


def test_notes_that_each_cycle_replaces_are_no_corrections(system: System) -> None:
    for number in range(6):
        system.memory.now_ns = NOW - number * HOUR
        system.memory.write(
            f"done {number}", subject="heartbeat scan", namespace={"agent": "hansard.heartbeat"}
        )

    assert scan(system.failing.store.db, now_ns=NOW).findings == []


# ---- all of them


@pytest.mark.covers("DI-11")
def test_every_finding_shows_the_numbers_in_force(system: System) -> None:
    system.checked(8, warned=8)
    rules = adjusted_rules(
        thresholds={FREQUENT_WARNINGS.name: 60},
        windows_ns={FREQUENT_WARNINGS.name: 5 * HOUR},
        leasts={FREQUENT_WARNINGS.name: 8},
    )
    found = scan(system.failing.store.db, rules, now_ns=NOW)

    told = scan_json(system.failing.store.db, found, system.failing.book.look_up(found.findings))

    (one,) = told["component"]
    assert (one["threshold"], one["least"], one["window_ns"]) == (60, 8, str(5 * HOUR))
    assert one["applied"] == "60 % or more of at least 8 checked commands within 5 hours"
    assert one["applied"] in one["description"]


def test_no_rule_scans_a_table(system: System, plans: QueryPlans) -> None:
    system.ran("evaluation")
    system.ran("maintenance", contradictions={"new": 1})
    system.failing.fail_often(30)
    system.checked(3, warned=1)
    system.correct()

    with plans.watch(system.failing.store.db):
        scan(system.failing.store.db, now_ns=NOW)

    assert plans.lines
    assert plans.scans() == []

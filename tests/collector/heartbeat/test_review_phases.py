"""The phases that review, compare, detect and report, run as a heartbeat runs them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.heartbeat.cycle import Heartbeat
from hansard_collector.heartbeat.phase import DAY_NS, HeartbeatSettings, Phase
from hansard_collector.heartbeat.phases import (
    run_detection,
    run_log_review,
    run_longitudinal,
    run_report,
)
from hansard_collector.judges import Judges
from hansard_store.heartbeat import PhaseRecord, list_diagnostics
from hansard_store.reports.files import Reports
from tests.store.task_maker import TaskMaker, task_maker

HOUR = 3_600 * 10**9
PHASES = (
    Phase("log_review", run_log_review),
    Phase("longitudinal", run_longitudinal, every_ns=DAY_NS),
    Phase("detection", run_detection),
    Phase("report", run_report),
)


class Beats:
    """Cycles over a store in which things fail, under a clock that the test turns."""

    def __init__(self, maker: TaskMaker) -> None:
        self.failing = maker
        self.now_ns = maker.now_ns
        self.options: dict[str, Any] = {}

    def beat(self) -> dict[str, PhaseRecord]:
        result = Heartbeat(
            self.failing.store.folder, Judges(), phases=PHASES, clock=lambda: self.now_ns,
            settings=HeartbeatSettings(options=self.options),
        ).run()  # fmt: skip
        return {one.name: one for one in result.phases}


@pytest.fixture
def beats(tmp_path: Path) -> Iterator[Beats]:
    # The spans of cycles are written by the real clock: the one that is turned begins with it.
    with task_maker(tmp_path / "data", now_ns=time.time_ns()) as maker:
        yield Beats(maker)


@pytest.mark.covers("HB-02", "DI-12", "DI-23")
def test_a_cycle_detects_opens_reviews_and_leaves_one_report(beats: Beats) -> None:
    beats.failing.fail_often(6)

    first = beats.beat()
    second = beats.beat()

    assert {one.status for one in first.values()} == {"done"}
    assert first["detection"].figures["opened"] == 1
    assert first["detection"].figures["levels"]["action"] == 1
    assert second["detection"].figures["opened"] == 0
    assert second["longitudinal"].status == second["report"].status == "skipped"
    (made,) = Reports(beats.failing.store.folder).list()
    assert made.name == first["report"].figures["report"]
    assert "1 review waits for a person" in Reports(beats.failing.store.folder).text(made.name)


def test_a_new_review_brings_the_next_report_forward_but_not_within_the_hour(beats: Beats) -> None:
    beats.beat()
    beats.now_ns += HOUR // 2
    beats.failing.now_ns = beats.now_ns
    beats.failing.fail_often(6)
    too_soon = beats.beat()["report"]
    beats.now_ns += HOUR
    early = beats.beat()["report"]
    beats.now_ns += HOUR
    quiet = beats.beat()["report"]
    beats.now_ns += DAY_NS
    due = beats.beat()["report"]

    statuses = [one.status for one in (too_soon, early, quiet, due)]
    assert statuses == ["skipped", "done", "skipped", "done"]


@pytest.mark.covers("HB-06")
def test_weeks_are_compared_weekly_and_rises_are_looked_for_daily(beats: Beats) -> None:
    beats.failing.fail_often(3)
    found = []
    for _ in range(9):
        found.append("weekly" in beats.beat()["longitudinal"].figures)
        beats.now_ns += DAY_NS

    assert found == [True, *[False] * 6, True, False]


@pytest.mark.covers("DI-28")
def test_a_report_that_passes_to_the_next_recipient_is_a_diagnostic(beats: Beats) -> None:
    beats.options = {"recipients": ("ana", "kim"), "report_escalation": 12 * HOUR}
    beats.beat()
    beats.now_ns += DAY_NS

    beats.beat()

    (line, *_) = list_diagnostics(beats.failing.store.db, component="heartbeat.report")
    escalated = [
        one
        for one in list_diagnostics(beats.failing.store.db, component="heartbeat.report")
        if one.signature == "escalated"
    ]
    assert line.component == "heartbeat.report"
    assert [one.level for one in escalated] == ["warning"]


@pytest.mark.covers("DI-11")
def test_numbers_of_rules_are_those_of_the_settings(beats: Beats) -> None:
    beats.options = {"detect_threshold": {"repeated_errors": 2}}
    beats.failing.fail_often(2)

    assert beats.beat()["detection"].figures["rules"] == ["repeated_errors"]

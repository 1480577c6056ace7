"""A cycle of the heartbeat: every phase once, each by itself, and on record."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.heartbeat.cycle import CycleResult, Heartbeat
from hansard_collector.heartbeat.phase import (
    DAY_NS,
    CycleContext,
    EvaluationResult,
    HeartbeatRunning,
    Phase,
    PhaseResult,
    PhaseSkipped,
)
from hansard_collector.heartbeat.phases import PHASES
from hansard_collector.judges import Judges
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.heartbeat import last_phase, list_cycles, list_diagnostics, phase_history
from hansard_store.memory.queries import MemoryFilter, list_memories
from tests.journeys.processes import HANSARD, environment, hansard
from tests.store.empty import empty_store

HOUR_NS = 3_600 * 10**9


class Clock:
    def __init__(self) -> None:
        self.now_ns = 1_790_000_000 * 10**9

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


def beat(folder: DataFolder, *phases: Phase, **more: Any) -> CycleResult:
    return Heartbeat(folder, Judges(), phases=phases or PHASES, **more).run()


def found(_: CycleContext) -> PhaseResult:
    return PhaseResult("two pairs were found", {"pairs": 2, "names": ["a", "b"]})


def raising(error: Exception) -> Any:
    def run(_: CycleContext) -> PhaseResult:
        raise error

    return run


@pytest.mark.slow
@pytest.mark.covers("HB-01", "HB-02")
def test_the_command_runs_every_phase_and_shows_how_each_ended(folder: DataFolder) -> None:
    answer = hansard("heartbeat", "--once", "--json", "--data", str(folder.path))

    assert answer.returncode == 0, answer.stderr
    phases = json.loads(answer.stdout)["phases"]
    assert [one["name"] for one in phases] == [one.name for one in PHASES]
    assert {one["status"] for one in phases} <= {"done", "skipped"}


@pytest.mark.covers("HB-03")
@pytest.mark.parametrize("error", [ValueError("nobody expected it"), HeartbeatRunning()])
def test_a_phase_that_fails_stops_no_other_and_is_on_record(
    folder: DataFolder, error: Exception
) -> None:
    result = beat(folder, Phase("broken", raising(error)), Phase("pairs", found))

    assert [(one.name, one.status) for one in result.phases] == [
        ("broken", "failed"),
        ("pairs", "done"),
    ]
    assert result.failed == ["broken"]
    with closing(open_reader(folder)) as connection:
        (diagnostic,) = list_diagnostics(connection, component="heartbeat.broken")
        (step,) = connection.execute(
            "SELECT status FROM steps WHERE name = ?",
            ("heartbeat broken",),
        )
    assert diagnostic.level == "error"
    assert diagnostic.step_id == result.phases[0].step_id
    assert step[0] == "error"


@pytest.mark.covers("HB-04", "EL-12", "MM-15")
def test_the_result_of_a_phase_is_in_the_log_and_in_memory_marked_diagnostic(
    folder: DataFolder,
) -> None:
    result = beat(folder, Phase("pairs", found))

    with closing(open_reader(folder)) as connection:
        (row,) = connection.execute(
            "SELECT tool, level, message, run_id, step_id FROM diagnostics WHERE tool LIKE 'heart%'"
        )
        (note,) = list_memories(
            connection, MemoryFilter(memory_type="note"), now_ns=result.ended_ns
        ).items
    assert row == (
        "heartbeat.pairs", "info", "two pairs were found",
        result.cycle_id, result.phases[0].step_id,
    )  # fmt: skip
    assert note.content == "[pairs] done: two pairs were found"
    assert (note.metadata["origin"], note.writer) == ("diagnostic", "post_step_summarizer")
    assert note.source_steps == (result.phases[0].step_id,)
    assert note.namespace == {"agent": "hansard.heartbeat"}  # of no project and of no user


@pytest.mark.slow
@pytest.mark.covers("EL-12")
def test_a_tool_that_failed_is_an_error_among_the_diagnostics(folder: DataFolder) -> None:
    script = (
        "import hansard\n"
        "hansard.init(embedded=True)\n"
        "@hansard.tool\n"
        "def fetch(page):\n"
        "    if page == 2: raise ValueError('gone')\n"
        "    return page\n"
        "with hansard.start_run('reader'):\n"
        "    fetch(1)\n"
        "    try: fetch(2)\n"
        "    except ValueError: pass\n"
        "hansard.shutdown()\n"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        env=environment(HANSARD_DATA=str(folder.path)),
        check=True,
        timeout=240,
    )

    with closing(open_reader(folder)) as connection:
        rows = connection.execute("SELECT tool, level FROM diagnostics ORDER BY time_ns").fetchall()
    assert rows == [("fetch", "info"), ("fetch", "error")]


def test_an_equal_result_makes_no_second_note(folder: DataFolder) -> None:
    for _ in range(3):
        beat(folder, Phase("pairs", found))

    with closing(open_reader(folder)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM memory").fetchone()
    assert count == 1


def test_a_store_without_content_gets_no_notes(folder: DataFolder) -> None:
    result = beat(folder, Phase("pairs", found), mode=RetentionMode.METADATA_ONLY)

    assert [one.status for one in result.phases] == ["done"]
    with closing(open_reader(folder)) as connection:
        assert connection.execute("SELECT count(*) FROM memory").get == 0


@pytest.mark.covers("HB-09")
def test_a_cycle_is_a_trace_and_each_phase_a_span_of_it(folder: DataFolder) -> None:
    result = beat(folder, Phase("pairs", found), Phase("broken", raising(ValueError())))

    with closing(open_reader(folder)) as connection:
        (run,) = connection.execute("SELECT run_id, name, status, step_count FROM runs")
        steps = connection.execute(
            "SELECT step_id, name, status FROM steps WHERE parent_span_id <> '' ORDER BY name"
        ).fetchall()
    assert run == (result.cycle_id, "heartbeat", "error", 3)
    assert steps == [
        (result.phases[1].step_id, "heartbeat broken", "error"),
        (result.phases[0].step_id, "heartbeat pairs", "ok"),
    ]


def test_a_phase_is_skipped_with_its_reason_and_leaves_no_note(folder: DataFolder) -> None:
    skipped = raising(PhaseSkipped("no classifier is configured"))
    result = beat(folder, Phase("pairs", skipped))

    assert (result.phases[0].status, result.phases[0].summary) == (
        "skipped",
        "no classifier is configured",
    )
    with closing(open_reader(folder)) as connection:
        assert connection.execute("SELECT count(*) FROM memory").get == 0


def test_a_daily_phase_runs_once_a_day(folder: DataFolder) -> None:
    clock = Clock()
    daily = Phase("pairs", found, every_ns=DAY_NS)
    ends = []
    for hours in (0, 1, 22, 2, 1):
        clock.now_ns += hours * HOUR_NS
        ends += [one.status for one in beat(folder, daily, clock=clock).phases]

    assert ends == ["done", "skipped", "skipped", "done", "skipped"]


def test_phases_see_what_they_did_before_and_the_history_is_read_by_name(
    folder: DataFolder,
) -> None:
    seen = []

    def look(context: CycleContext) -> PhaseResult:
        before = context.last("pairs")
        seen.append(None if before is None else before.figures["pairs"])
        return PhaseResult("counted", {"pairs": len(seen)})

    for _ in range(3):
        beat(folder, Phase("pairs", look))

    assert seen == [None, 1, 2]
    with closing(open_reader(folder)) as connection:
        history = phase_history(connection, "pairs")
        last = last_phase(connection, "pairs")
    assert [one.figures["pairs"] for one in history] == [3, 2, 1]
    assert last == history[0]
    with pytest.raises(TypeError):
        last.figures["pairs"] = 7  # type: ignore[index]  # rows of the store are read-only


@pytest.mark.slow
@pytest.mark.covers("EL-11")
def test_an_evaluation_result_is_on_the_step_that_it_judges(folder: DataFolder) -> None:
    judged = beat(folder, Phase("pairs", found)).phases[0].step_id

    def judge(_: CycleContext) -> PhaseResult:
        result = EvaluationResult(judged, "claim", "contradicted", "the last run failed", 0.0)
        return PhaseResult("judged", {}, (result,))

    beat(folder, Phase("judge", judge))

    shown = hansard("steps", "show", judged, "--json", "--data", str(folder.path))
    assert shown.returncode == 0, shown.stderr
    listed = hansard("annotations", "list", "--json", "--data", str(folder.path))
    (annotation,) = json.loads(listed.stdout)["items"]
    assert annotation["name"] == "claim"
    assert annotation["score"] == {"value": 0.0, "label": "contradicted"}
    assert annotation["step_id"] == judged


# ---- never twice at once, and killed at any time


@pytest.mark.slow
def test_a_second_cycle_is_refused_while_one_runs(folder: DataFolder) -> None:
    is_inside, may_end = threading.Event(), threading.Event()

    def wait(_: CycleContext) -> PhaseResult:
        is_inside.set()
        may_end.wait(30)
        return PhaseResult("waited", {})

    first = threading.Thread(target=beat, args=(folder, Phase("wait", wait)))
    first.start()
    try:
        assert is_inside.wait(30)
        answer = hansard("heartbeat", "--once", "--data", str(folder.path))
    finally:
        may_end.set()
        first.join()

    assert answer.returncode == 1
    assert "a heartbeat is under way" in answer.stderr
    with closing(open_reader(folder)) as connection:
        assert len(list_cycles(connection)) == 1


def _killed(path: Path) -> None:
    def die(_: CycleContext) -> PhaseResult:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    beat(DataFolder(path), Phase("pairs", found), Phase("die", die))


@pytest.mark.slow
@pytest.mark.covers("HB-05")
def test_a_killed_cycle_keeps_what_it_had_and_hinders_no_other(folder: DataFolder) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_killed, args=(folder.path,))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL

    result = beat(folder, Phase("pairs", found))

    with closing(open_reader(folder)) as connection:
        newer, older = list_cycles(connection)
    assert (newer.cycle_id, newer.ended_ns is None) == (result.cycle_id, False)
    assert ([one.name for one in older.phases], older.ended_ns) == (["pairs"], None)
    verified = hansard("verify", "--deep", "--data", str(folder.path))
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.slow
@pytest.mark.covers("HB-10")
def test_a_server_runs_no_cycle_unless_it_is_told_to(folder: DataFolder) -> None:
    answer = hansard("doctor", "--data", str(folder.path))

    line = next(one for one in answer.stdout.splitlines() if "heartbeat" in one)
    assert "off on servers; no cycle has run" in line


@pytest.mark.slow
def test_doctor_names_phases_that_failed_in_the_last_cycle(folder: DataFolder) -> None:
    beat(folder, Phase("broken", raising(ValueError())))

    answer = hansard("doctor", "--data", str(folder.path))

    line = next(one for one in answer.stdout.splitlines() if "heartbeat" in one)
    assert line.startswith("warn")
    assert "failed: broken" in line


@pytest.mark.slow
def test_every_runs_cycles_again_and_again_until_it_is_stopped(folder: DataFolder) -> None:
    command = [HANSARD, "heartbeat", "--every", "1s", "--data", str(folder.path)]
    with subprocess.Popen(
        command, env=environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        heads = 0
        for line in child.stdout:
            heads += line.startswith("PHASE")
            if heads == 2:
                break
        child.terminate()

    with closing(open_reader(folder)) as connection:
        assert len(list_cycles(connection)) >= 2

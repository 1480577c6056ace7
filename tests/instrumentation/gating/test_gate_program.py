"""A gate in processes that end, are killed, and start again; their telemetry is switched off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_store.approvals.service import ApprovalService
from tests.journeys.processes import environment
from tests.store.empty import empty_store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return empty_store(tmp_path / "data").path


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.instrumentation.gating.gate_program", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(
                HANSARD_DATA=str(data), PAID=str(tmp_path / "paid"), OTEL_SDK_DISABLED="true"
            ),
            timeout=240,
        )

    return run


@pytest.mark.covers("CG-17")
def test_a_kill_between_claim_and_result_is_an_unknown_outcome_and_never_a_second_run(
    run: Run, data: Path, tmp_path: Path
) -> None:
    killed = run("ask", "killed")
    again = run("run", killed.stdout)

    with ApprovalService(data) as store:
        found = store.approval(killed.stdout)
        last = store.events(limit=1)[0]
    assert killed.returncode == -9
    assert (again.stdout, again.stderr) == ("[]outcome_unknown", "")
    assert (tmp_path / "paid").read_text() == "7\n"
    assert (found.status, found.execution.state) == ("approved", "unknown")
    assert last.type == "action.unknown"


@pytest.mark.covers("OT-15", "CG-18")
def test_a_gate_works_where_telemetry_is_switched_off(run: Run, data: Path, tmp_path: Path) -> None:
    asked = run("ask", "whole")
    ran = run("run", asked.stdout)

    assert (ran.stdout, asked.stderr + ran.stderr) == ("['paid']already_claimed", "")
    assert (tmp_path / "paid").read_text() == "7\n"
    with ApprovalService(data) as store:
        assert store.approval(asked.stdout).execution.state == "done"


# ---- async tools

WAYS = ("run", "arun", "run_all_approved", "arun_all_approved", "resume", "aresume")


@pytest.fixture
def act(data: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def act(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.instrumentation.gating.async_program", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(
                HANSARD_DATA=str(data), PAID=str(tmp_path / "paid"), OTEL_SDK_DISABLED="true"
            ),
        )

    return act


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_kill_half_way_is_unknown_after_a_restart_and_never_run_again(
    act: Callable[..., subprocess.Popen[str]], data: Path, tmp_path: Path, kind: str, way: str
) -> None:
    identity, _ = act(kind, "ask").communicate(timeout=240)
    killed = act(kind, way, identity, "killed")
    killed.communicate(timeout=240)
    again, _ = act(kind, "run", identity).communicate(timeout=240)

    assert killed.returncode == -9
    assert again == "outcome_unknown"
    assert (tmp_path / "paid").read_text() == "begun\n"
    with ApprovalService(data) as store:
        assert store.approval(identity).execution.state == "unknown"
        assert store.events(limit=1)[0].type == "action.unknown"
        assert "action.executed" not in [one.type for one in store.events()]


@pytest.mark.parametrize("ways", [("run", "arun"), ("arun_all_approved", "run_all_approved")])
def test_of_two_processes_that_run_an_async_tool_at_once_one_does(
    act: Callable[..., subprocess.Popen[str]],
    data: Path,
    tmp_path: Path,
    ways: tuple[str, str],
) -> None:
    identity, _ = act("async", "ask").communicate(timeout=240)
    both = [act("async", way, identity) for way in ways]
    told = sorted(one.communicate(timeout=240)[0] for one in both)

    assert told[1] == "ran"
    assert told[0] in ("already_claimed", "nothing")
    assert (tmp_path / "paid").read_text() == "begun\npaid\n"
    with ApprovalService(data) as store:
        assert store.approval(identity).execution.state == "done"

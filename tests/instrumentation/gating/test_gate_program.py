"""A gate in processes that end, are killed, and start again; their telemetry is switched off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_store.facade import Accountability
from tests.journeys.processes import environment
from tests.store.empty import empty_store

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
            timeout=60,
        )

    return run


@pytest.mark.covers("CG-17")
def test_a_kill_between_claim_and_result_is_an_unknown_outcome_and_never_a_second_run(
    run: Run, data: Path, tmp_path: Path
) -> None:
    killed = run("ask", "killed")
    again = run("run", killed.stdout)

    with Accountability(data) as store:
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
    with Accountability(data) as store:
        assert store.approval(asked.stdout).execution.state == "done"

"""Where only the loopback exists: the sidecar, and some tests of every floor, in two orders."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hansard_web.health.offline import prove_offline

ROOT = Path(__file__).parents[2]
# Some of each floor below the pages, quick ones: all are run in random order anyway.
SOME = (
    "compiler/test_policy_decider.py", "store/test_ledger_periods.py",
    "instrumentation/test_decorators.py", "collector/receivers/test_two_pipelines.py",
)  # fmt: skip
SIDECAR = """
import subprocess, sys
from pathlib import Path
from tests.journeys.processes import serving
with serving(Path(sys.argv[1])) as server:
    command = ["sh", "examples/sidecar.sh", server.http]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(server.get("/v1/runs").decode())
"""


@pytest.mark.covers("AC-08", "AC-15")
def test_an_agent_uses_the_sidecar_where_there_is_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    proof = prove_offline(sys.executable, "-c", SIDECAR, str(tmp_path / "data"))

    assert proof.is_possible, proof.story
    assert proof.has_worked, proof.story
    assert "% is used." in proof.story
    assert '"agent":"disk watcher"' in proof.story
    assert proof.attempts == 0


@pytest.mark.covers("TS-23")
@pytest.mark.parametrize(("seed", "zone"), [("1", "UTC"), ("2", "Asia/Kathmandu")])
def test_tests_need_no_network_key_zone_or_order(
    monkeypatch: pytest.MonkeyPatch, seed: str, zone: str
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TZ", zone)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]

    proof = prove_offline(*command, f"--randomly-seed={seed}", *(f"tests/{one}" for one in SOME))

    assert proof.is_possible, proof.story
    assert proof.has_worked, proof.story
    assert " passed" in proof.story
    assert " skipped" not in proof.story
    assert proof.attempts == 0

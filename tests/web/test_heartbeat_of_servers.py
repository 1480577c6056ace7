"""A server that was told to runs the heartbeat beside itself, and ends it when it ends."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.heartbeat import list_cycles
from hansard_web.app.config import load_config
from hansard_web.heartbeat.process import HeartbeatProcesses
from tests.journeys.processes import hansard
from tests.store.empty import empty_store

pytestmark = pytest.mark.slow


def wait_for_cycles(folder: DataFolder, count: int) -> list[str]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with closing(open_reader(folder)) as connection:
            found = [one for one in list_cycles(connection) if one.ended_ns is not None]
        if len(found) >= count:
            return [one.origin for one in found]
        time.sleep(0.1)
    raise AssertionError("no cycle has ended")


@pytest.mark.covers("HB-05", "HB-10")
def test_cycles_run_in_processes_of_their_own_one_after_the_other(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    config = load_config({"data": str(folder.path)}, {})

    with HeartbeatProcesses(config, every_s=0.1).working():
        origins = wait_for_cycles(folder, 2)

    assert set(origins) == {"server"}
    answer = hansard("heartbeat", "--history", "--json", "--data", str(folder.path))
    begun = [one["started_at"] for one in json.loads(answer.stdout)["items"]]
    ended = [one["ended_at"] for one in json.loads(answer.stdout)["items"] if one["ended_at"]]
    assert begun[0] > ended[-1]  # the newest began after the oldest had ended


def test_the_end_of_a_server_ends_a_cycle_that_runs(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    config = load_config({"data": str(folder.path)}, {})
    began = time.monotonic()

    with HeartbeatProcesses(config, every_s=0.05).working():
        time.sleep(0.5)  # it has begun, and loads

    assert time.monotonic() - began < 20
    assert hansard("heartbeat", "--once", "--data", str(folder.path)).returncode == 0


@pytest.mark.parametrize("text", ["10s", "now", "0m", "-5m"])
def test_an_interval_below_a_minute_is_refused(text: str) -> None:
    answer = hansard("serve", "--heartbeat", text)

    assert answer.returncode == 2
    assert "off, or a minute or more" in answer.stderr or "a number and a unit" in answer.stderr

"""A full disk: ingest stops before it is full, and its owner is never locked out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import environment

ROOT = Path(__file__).parents[2]


def _seen(disk: Path, size: str) -> list[dict[str, Any]]:
    """Return what was seen on a disk of a size, mounted where only that program sees it."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "-r"]
    ended = subprocess.run(
        [*own, sys.executable, "-m", "tests.journeys.full_disk", str(disk), size],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0
    told: list[dict[str, Any]] = json.loads(ended.stdout)
    return told


@pytest.fixture(scope="module", params=["24m", "40m"])
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What was seen on a disk of 24 MB, on which a quarter is kept, and on one of 40 MB."""
    return _seen(tmp_path_factory.mktemp("d"), request.param)


def test_ingest_stops_before_the_disk_is_full(seen: list[dict[str, Any]]) -> None:
    told = seen[0]

    assert told["sent"] > 5
    assert told["status"] == 503  # may be sent again
    assert told["left_bytes"] > 4 << 20
    assert told["healthz"][0] == 503
    assert "the disk is nearly full" in told["healthz"][1]


def test_pages_answer_on_a_full_disk_and_the_server_ends_in_order(
    seen: list[dict[str, Any]],
) -> None:
    assert set(seen[0]["pages"].values()) == {200}
    assert seen[0]["full"] == 503
    assert seen[0]["exit"] == 0


def test_a_server_starts_on_a_full_disk_and_runs_can_be_deleted(seen: list[dict[str, Any]]) -> None:
    assert set(seen[1]["pages"].values()) == {200}
    assert seen[1]["delete"] == [0, ""]
    assert seen[1]["deleted"] == 404
    assert seen[1]["exit"] == 0
    assert seen[3]["left"] == []


def test_gc_makes_room_on_a_full_disk_and_ingest_goes_on(seen: list[dict[str, Any]]) -> None:
    told = seen[2]

    assert (told["list"], told["gc"]) == (0, [0, ""])
    assert told["free_bytes"] > 4 << 20
    assert (told["status"], told["healthz"], told["exit"]) == (200, 200, 0)
    assert told["reserve"] in (6 << 20, 8 << 20)  # of a disk of 24 MB a quarter
    assert seen[3]["verify"][0] == 0

"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.collector.ingesting import Ingesting
from tests.write_slow import SLOW

# Time is no part of a property: tests share their machine with others.
# `--hypothesis-profile=thorough` tries five times as many examples.
settings.register_profile("hansard", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("hansard")

_RAM_DISK = Path("/dev/shm")
_ENOUGH_BYTES = 4 * 2**30
# Journeys, and tests that make an app with a store of its own: half of all processor time.
_SLOW_FOLDERS = (Path(__file__).parent / "journeys", Path(__file__).parent / "web")
_SLOW_FIXTURES = {"browser", "story"}
_GC_OBJECTS = 50_000  # as the `hansard` command sets it


def pytest_configure() -> None:
    """Set up what costs every test time, whatever the environment says of it."""
    # Else each run rewrites every test module, and each server of a test compiles all of Hansard.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A commit that waits for a disk proves no more than one that waits for memory.
    if os.access(_RAM_DISK, os.W_OK) and shutil.disk_usage(_RAM_DISK).free > _ENOUGH_BYTES:
        tempfile.tempdir = os.environ.setdefault("TMPDIR", str(_RAM_DISK))
    # Second copies of heads go to the user's state folder; those of tests do not. Workers have one
    # each: a store that is made once and copied for all of them goes on differently in each.
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    state = os.path.join(tempfile.gettempdir(), f"hansard-tests-state-{worker}")
    os.environ["XDG_STATE_HOME"] = state
    os.environ.pop("HANSARD_HEADS_COPY", None)


@pytest.fixture(scope="module", autouse=True)
def _own_state() -> Iterator[None]:
    """Give each module a state folder of its own.

    Copies of one store have one id and go on differently: the head that one module's copy left
    would make the next module's copy an older store, on which nothing may be claimed.
    """
    shared = os.environ["XDG_STATE_HOME"]
    with tempfile.TemporaryDirectory(prefix="hansard-state-", ignore_cleanup_errors=True) as own:
        os.environ["XDG_STATE_HOME"] = own
        yield
    os.environ["XDG_STATE_HOME"] = shared


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: a third of the time of a test it waits for another process."""
    return (os.cpu_count() or 1) * 3 // 2 or 1


def pytest_collection_finish() -> None:
    """Spare tests the walks for garbage over what was collected: a tenth of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before "-m" selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole folders, tests of a browser or a demo, and what `write_slow` found to be slow."""
    measured = set(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        in_folder = any(item.path.is_relative_to(folder) for folder in _SLOW_FOLDERS)
        is_measured = item.nodeid.partition("[")[0] in measured
        if in_folder or is_measured or not _SLOW_FIXTURES.isdisjoint(fixtures):
            item.add_marker(pytest.mark.slow)
        if "browser" in fixtures:
            # Chromium lays pages out in its own time, and on a busy machine between two questions
            # of a test. A second run is listed in the summary; no other test gets one.
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    """A running pipeline that keeps everything, on a fresh store."""
    made = Ingesting(tmp_path / "data")
    yield made
    made.close()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their length: compressed ones hold the time, and names must not change."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None

"""Memory, transcripts, tasks, stories: what fails half-way, or is killed, leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from hansard_store.errors import StoreError
from tests.store.book_paths import WRITES, books, broken, logged, states, stored
from tests.store.tripping import tripping

ROOT = Path(__file__).parents[2]


def _as_a_broken_disk() -> None:
    raise apsw.IOError("disk I/O error")


@pytest.mark.covers("EV-11")
@pytest.mark.parametrize("name", WRITES)
def test_a_statement_that_fails_undoes_record_and_event(tmp_path: Path, name: str) -> None:
    write, walked = WRITES[name], 0
    with books(tmp_path) as made:
        given = write.prepare(made)
        before, events = stored(made), len(logged(made))

    while True:
        with (
            tripping(walked, _as_a_broken_disk) as wire,
            books(tmp_path) as made,
            contextlib.suppress(StoreError),
        ):
            write.act(made, given)
        with books(tmp_path) as made:
            after = stored(made)
            if not wire.has_tripped:
                break
            assert after == before, f"statement {walked}"
        walked += 1

    assert walked >= 3  # BEGIN, the row, COMMIT
    assert after != before
    with books(tmp_path) as made:
        assert tuple(logged(made)[events:]) == write.types
        assert not write.states or states(made) == write.states
        assert broken(made) is None


@pytest.mark.slow
def test_a_kill_before_any_statement_leaves_all_or_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.killed_books", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)

    assert {name: one["problems"] for name, one in found.items()} == {name: [] for name in WRITES}
    assert all(one["kills"] >= 3 for one in found.values()), found

"""Replays as rows: found by id and by step, ended once, deleted with either run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.database.connections import open_for_ingest, open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import transaction
from hansard_store.errors import InvalidCursorError
from hansard_store.replays import (
    ReplayRow,
    add_replay,
    change_replay,
    get_replay,
    interrupt_replay,
    list_replays,
    release_replays,
    replay_that_made,
    running_replays,
)

SOURCE, MADE = "aa" * 16, "bb" * 16
STEP = f"{SOURCE}-{'1' * 16}"


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data")
    made.create()
    open_for_ingest(made).close()
    return made


@pytest.fixture
def reader(folder: DataFolder) -> Iterator[apsw.Connection]:
    connection = open_reader(folder)
    yield connection
    connection.close()


def row(number: int = 1, **changes: object) -> ReplayRow:
    made = ReplayRow(
        replay_id=f"{number:032x}",
        source_run_id=SOURCE,
        source_step_id=STEP,
        run_id=None,
        mode="exact",
        is_recorded=False,
        repeats=1,
        state="running",
        reason=None,
        request_hash=None,
        steps=[],
        started_ns=5,
        ended_ns=None,
        holder="6f1e09ab6f1e09ab",
        report={"notes": ["as asked"]},
    )
    return made._replace(**changes)


def test_a_replay_is_read_back_as_it_was_written_and_ends_once(
    folder: DataFolder, reader: apsw.Connection
) -> None:
    add_replay(folder, row())
    ended = row(state="done", run_id=MADE, steps=[{"step_id": "x"}], ended_ns=9)

    assert get_replay(reader, row().replay_id) == row()
    assert change_replay(folder, ended)
    assert not change_replay(folder, row(state="failed", ended_ns=10))
    assert get_replay(reader, row().replay_id) == ended
    assert replay_that_made(reader, MADE) == ended
    assert replay_that_made(reader, SOURCE) is None


def test_a_replay_is_found_by_a_unique_beginning_of_its_id(
    folder: DataFolder, reader: apsw.Connection
) -> None:
    for number in (0x11 << 96, (0x11 << 96) + 1, 0x22 << 96):
        add_replay(folder, row(number))

    assert get_replay(reader, "00000022").replay_id == f"{0x22 << 96:032x}"
    with pytest.raises(AmbiguousIdError) as several:
        get_replay(reader, "00000011")
    assert len(several.value.matches) == 2
    for wrong in ("0000002", "zzzzzzzz", "0" * 33, "99999999"):
        with pytest.raises(NotFoundError):
            get_replay(reader, wrong)


def test_replays_of_a_step_are_listed_newest_first_page_by_page(
    folder: DataFolder, reader: apsw.Connection
) -> None:
    for number in range(1, 6):
        add_replay(folder, row(number))
    add_replay(folder, row(6, source_step_id="another"))

    first = list_replays(reader, step_id=STEP, limit=2, cursor=None)
    rest = list_replays(reader, step_id=STEP, limit=9, cursor=first.next_cursor)

    assert [int(one.replay_id, 16) for one in (*first.items, *rest.items)] == [5, 4, 3, 2, 1]
    assert rest.next_cursor is None
    assert len(list_replays(reader, limit=50, cursor=None).items) == 6
    with pytest.raises(InvalidCursorError):
        list_replays(reader, limit=2, cursor="last")


def test_what_a_dead_process_left_running_is_told_as_interrupted(
    folder: DataFolder, reader: apsw.Connection
) -> None:
    add_replay(folder, row(1))
    add_replay(folder, row(2, state="refused", reason="bytes_missing"))

    assert running_replays(reader) == [(f"{1:032x}", "6f1e09ab6f1e09ab")]
    interrupt_replay(folder, f"{1:032x}", now_ns=11)

    found = get_replay(reader, f"{1:032x}")
    assert (found.state, found.reason, found.ended_ns) == ("failed", "interrupted", 11)
    assert running_replays(reader) == []


def test_a_replay_goes_with_the_run_it_is_of_and_with_the_run_it_made(
    folder: DataFolder, reader: apsw.Connection
) -> None:
    add_replay(folder, row(1))
    add_replay(folder, row(2, source_run_id="cc" * 16, run_id=SOURCE))
    add_replay(folder, row(3, source_run_id="cc" * 16, run_id=MADE))
    connection = open_for_maintenance(folder)

    with transaction(connection):
        gone = release_replays(connection, bytes.fromhex(SOURCE), most=50)
    connection.close()

    assert gone == 2
    left = list_replays(reader, limit=50, cursor=None).items
    assert [int(one.replay_id, 16) for one in left] == [3]

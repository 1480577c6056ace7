"""A transaction that cannot even be undone: a typed error, and the connection is not used again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hansard_store.database.connections import OwnConnections, open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import is_open, limited, snapshot, transaction
from hansard_store.errors import ConnectionLostError
from tests.store.empty import empty_store
from tests.store.failing_disk import FailingDisk, failing_disk

NOTE = "INSERT INTO setting (name, value) VALUES (?, 1)"
COUNT = "SELECT count(*) FROM setting WHERE name = ?"


class ProgramError(Exception):
    """What a program raises inside of a transaction."""


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with failing_disk() as disk:
        yield disk


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path)


def lose(connection: apsw.Connection, disk: FailingDisk) -> None:
    """Fail in a transaction, and again while it is undone."""
    connection.pragma("cache_size", 5)  # pages: what is undone has to be read again
    with transaction(connection):
        connection.executemany(NOTE, [(f"{number:04} {'lost' * 200}",) for number in range(500)])
        disk.is_gone = True
        raise ProgramError


def test_a_rollback_that_fails_is_a_typed_error_and_closes_the_connection(
    disk: FailingDisk, folder: DataFolder
) -> None:
    connection = open_for_accountability(folder)

    with pytest.raises(ConnectionLostError, match="disk I/O error") as lost:
        lose(connection, disk)

    assert isinstance(lost.value.__cause__, ProgramError)
    assert not is_open(connection)
    disk.is_gone = False
    after = open_for_accountability(folder)
    assert after.execute("SELECT count(*) FROM setting WHERE name LIKE '%lost'").get == 0
    with transaction(after):
        after.execute(NOTE, ("kept",))
    assert after.execute(COUNT, ("kept",)).get == 1
    after.close()


def test_a_thread_gets_another_connection_in_the_place_of_a_lost_one(
    disk: FailingDisk, folder: DataFolder
) -> None:
    connections = OwnConnections(folder)
    lost = connections.get()
    with pytest.raises(ConnectionLostError):
        lose(lost, disk)
    disk.is_gone = False

    found = connections.get()

    assert found is not lost
    with transaction(found):
        found.execute(NOTE, ("kept",))
    connections.close()


def test_a_reader_whose_snapshot_cannot_be_ended_is_a_typed_error_too(
    disk: FailingDisk, folder: DataFolder
) -> None:
    reader = open_reader(folder)
    refuse_rollback(reader)

    with (
        pytest.raises(ConnectionLostError),
        limited(reader, timeout_ms=1000),
        snapshot(reader),
    ):
        assert reader.execute(COUNT, ("epoch",)).get == 1

    assert not is_open(reader)


def refuse_rollback(connection: apsw.Connection) -> None:
    """Let ROLLBACK fail as a broken disk would."""

    def trace(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        if sql == "ROLLBACK":
            raise apsw.IOError("disk I/O error")
        return True

    connection.exec_trace = trace

"""Opening a store: who may read it, who may write it, what is refused in words."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from hansard_store.database.connections import open_for_accountability, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import data_version, open_reader
from hansard_store.database.transactions import (
    latest_version,
    limited,
    schema_version,
    snapshot,
    transaction,
)
from hansard_store.errors import QueryLimitError, StoreBusyError, StoreError, StoreNewerError
from tests.store.maker import StoreMaker


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.covers("ST-12")
def test_files_are_the_owners_alone_even_where_they_were_not(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.path.mkdir(mode=0o755)
    folder.database.touch(mode=0o644)
    before = os.umask(0)
    try:
        connection = open_for_ingest(folder)
        folder.key()
        connection.execute("INSERT INTO setting VALUES ('probe', 1)")
        modes = {path.name: mode(path) for path in folder.path.iterdir()}
    finally:
        os.umask(before)
    connection.close()

    assert mode(folder.path) == 0o700
    assert modes == {
        "hansard.db": 0o600,
        "hansard.db-wal": 0o600,
        "hansard.db-shm": 0o600,
        "blobs": 0o700,
        "key": 0o600,
    }


def test_the_key_is_made_once_however_many_ask_at_once(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    barrier = threading.Barrier(8)

    def ask(_: int) -> bytes:
        barrier.wait()
        return folder.key()

    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(ask, range(8)))

    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.slow
def test_two_processes_may_make_a_store_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    children = [context.Process(target=_open, args=(tmp_path, barrier)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0] * 4
    assert schema_version(open_reader(DataFolder(tmp_path))) == latest_version()


def _open(path: Path, barrier: threading.Barrier) -> None:
    barrier.wait()
    open_for_ingest(DataFolder(path)).close()


@pytest.mark.covers("ST-08")
def test_a_store_of_a_newer_version_is_refused_in_words_and_left_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    connection = open_for_ingest(folder)
    connection.pragma("user_version", 999)
    connection.close()

    with pytest.raises(StoreNewerError, match="schema 999, this version knows up to") as refused:
        open_for_ingest(folder)

    assert (refused.value.found, refused.value.known) == (999, latest_version())
    assert schema_version(open_reader(folder)) == 999


@pytest.mark.parametrize("content", [b"this is no database " * 100, b"SQLite format 3\0" * 40])
def test_a_file_that_is_no_database_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    folder = DataFolder(tmp_path)
    folder.database.write_bytes(content)

    with pytest.raises(StoreError, match=r"hansard\.db"):
        open_for_ingest(folder)

    assert folder.database.read_bytes() == content


def test_a_reader_cannot_write(store: StoreMaker) -> None:
    with pytest.raises(apsw.ReadOnlyError):
        store.db.execute("DELETE FROM setting")


def test_a_query_over_its_time_is_stopped_and_the_next_one_is_not(store: StoreMaker) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"

    with pytest.raises(QueryLimitError, match=r"0\.05 s"), limited(store.db, timeout_ms=50):
        store.db.execute(endless).fetchall()

    assert store.db.execute("SELECT 1").get == 1


def test_a_snapshot_sees_one_state_whatever_is_committed_meanwhile(store: StoreMaker) -> None:
    store.span("one")
    with snapshot(store.db), snapshot(store.db):
        before = store.db.execute("SELECT count(*) FROM span").get
        store.span("two")
        assert store.db.execute("SELECT count(*) FROM span").get == before

    assert store.db.execute("SELECT count(*) FROM span").get == 2


def test_the_data_version_changes_with_every_commit_of_another(store: StoreMaker) -> None:
    before = data_version(store.db)
    store.span("one")

    assert data_version(store.db) != before


def test_accountability_commits_survive_a_power_cut_and_ingest_those_of_full(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path)
    levels = [
        open_for_ingest(folder).pragma("synchronous"),
        open_for_ingest(folder, durability="full").pragma("synchronous"),
        open_for_accountability(folder).pragma("synchronous"),
    ]

    assert levels == [1, 2, 2]


def test_a_failed_transaction_leaves_nothing_and_the_connection_usable(store: StoreMaker) -> None:
    def fail() -> None:
        with transaction(store.ingest):
            store.ingest.execute("INSERT INTO setting VALUES ('probe', 1)")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert store.db.execute("SELECT count(*) FROM setting WHERE name = 'probe'").get == 0
    store.span("one")


def test_a_full_store_is_busy_and_writes_again_once_there_is_room(store: StoreMaker) -> None:
    store.ingest.pragma("max_page_count", store.ingest.pragma("page_count"))
    noise = secrets.token_hex(100_000)

    with pytest.raises(StoreBusyError, match="full"):
        store.span("one", attributes={"k": noise})
    store.ingest.pragma("max_page_count", 1_000_000)
    store.span("one", attributes={"k": noise})

    assert store.db.execute("SELECT count(*) FROM span").get == 1


def test_a_store_locked_by_another_is_busy_and_writes_again_when_it_is_free(
    store: StoreMaker,
) -> None:
    other = open_for_accountability(store.folder)
    store.ingest.set_busy_timeout(10)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusyError, match="locked"):
        store.span("one")
    other.execute("ROLLBACK")
    store.span("one")

    assert store.db.execute("SELECT count(*) FROM span").get == 1
    other.close()


def test_what_a_link_in_its_place_leads_to_is_not_changed(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.path.mkdir()
    target = tmp_path / "notes.txt"
    target.write_text("mine, and no database; " * 100)
    target.chmod(0o644)
    folder.database.symlink_to(target)

    with pytest.raises(StoreError):
        open_for_ingest(folder)

    assert mode(target) == 0o644
    assert target.read_text().startswith("mine")
    target.unlink()
    with pytest.raises(StoreError, match="leads nowhere"):
        open_for_ingest(folder)
    assert not target.exists()

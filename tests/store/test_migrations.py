"""Migrations: every older store becomes like a fresh one, keeps its rows, and a copy is kept."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.audit.sealer import adopt
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.migrations import APPLICATION_ID
from hansard_store.database.transactions import latest_version, schema_version
from hansard_store.errors import NoSpaceError, SchemaAlteredError
from hansard_store.verification.integrity import verify_store
from hansard_store.verification.seals import SealCheck
from tests.collector.ingesting import Ingesting, span, traces

pytestmark = pytest.mark.slow

SCRIPTS = sorted(
    (int(entry.name.partition("_")[0]), entry.read_text(encoding="utf-8"))
    for entry in files("hansard_store").joinpath("migrations").iterdir()
    if entry.name.endswith(".sql")
)
OLDER = [number for number, _ in SCRIPTS if number < latest_version()]


def store_of_version(path: Path, version: int) -> DataFolder:
    """Make a store as an older version left it, with a row in it."""
    folder = DataFolder(path)
    folder.create()
    connection = apsw.Connection(str(folder.database))
    connection.pragma("journal_mode", "WAL")
    for number, sql in SCRIPTS:
        if number <= version:
            connection.execute(sql)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", version)
    connection.execute("INSERT INTO setting (name, value) VALUES ('mine', 'kept')")
    connection.close()
    return folder


def schema(folder: DataFolder) -> list[Any]:
    connection = apsw.Connection(str(folder.database))
    try:
        sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
        return list(connection.execute(sql))
    finally:
        connection.close()


def test_numbers_are_unique_and_without_a_gap() -> None:
    assert [number for number, _ in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The schema of a store that all migrations made."""
    folder = DataFolder(tmp_path_factory.mktemp("fresh"))
    open_for_ingest(folder).close()
    return schema(folder)


@pytest.mark.covers("ST-08")
@pytest.mark.parametrize("version", OLDER)
def test_an_older_store_becomes_like_a_fresh_one_and_a_copy_stays_as_it_was(
    tmp_path: Path, fresh: list[Any], version: int
) -> None:
    older = store_of_version(tmp_path, version)
    before = schema(older)

    connection = open_for_ingest(older)

    assert schema_version(connection) == latest_version()
    assert connection.execute("SELECT value FROM setting WHERE name = 'mine'").get == "kept"
    connection.close()
    assert schema(older) == fresh != before
    kept = tmp_path / f"hansard-schema-{version}.db"
    assert kept.stat().st_mode & 0o777 == 0o600
    connection = apsw.Connection(str(kept), flags=apsw.SQLITE_OPEN_READONLY)
    assert schema_version(connection) == version
    assert connection.execute("SELECT value FROM setting WHERE name = 'mine'").get == "kept"
    connection.close()


def test_a_fresh_store_and_one_of_this_version_are_not_copied(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    open_for_ingest(folder).close()
    open_for_ingest(folder).close()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "hansard.db", "key"]


_OPEN = """
import sys
from pathlib import Path
from hansard_store.database.connections import DataFolder, open_for_ingest

print("ready", flush=True)
sys.stdin.read()
open_for_ingest(DataFolder(Path(sys.argv[1]))).close()
"""


@pytest.mark.parametrize("version", [0, 1, OLDER[-2]])
def test_processes_that_open_a_store_at_once_leave_one_copy_of_an_older_one(
    tmp_path: Path, version: int
) -> None:
    older = store_of_version(tmp_path, version) if version else DataFolder(tmp_path)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.close()  # all of them go on at once
    errors = [(one.wait(60), one.stderr.read() if one.stderr else "") for one in started]
    for one in started:
        for stream in (one.stdout, one.stderr):
            if stream is not None:
                stream.close()

    assert [text for status, text in errors if status] == []
    assert sum("migrating" in text for _, text in errors) == (1 if version else 0)
    copies = [f"hansard-schema-{version}.db"] if version else []
    assert sorted(path.name for path in tmp_path.glob("*hansard-schema*")) == copies
    connection = apsw.Connection(str(older.database))
    assert schema_version(connection) == latest_version()
    connection.close()


def test_opening_waits_while_another_process_writes_without_a_log(tmp_path: Path) -> None:
    # As a new file is, until the first process has switched it over to a log.
    folder = DataFolder(tmp_path)
    open_for_ingest(folder).close()
    other = apsw.Connection(str(folder.database))
    assert other.pragma("journal_mode", "DELETE") == "delete"
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(lambda: open_for_ingest(folder).close())
        with pytest.raises(TimeoutError):
            opening.result(0.5)
        other.execute("ROLLBACK")
        opening.result(30)
    other.close()


def test_without_room_for_a_copy_nothing_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = store_of_version(tmp_path, 1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))

    with pytest.raises(NoSpaceError, match="a copy of the older store"):
        open_for_ingest(older)

    connection = apsw.Connection(str(older.database))
    assert schema_version(connection) == 1
    connection.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    made, dropped = (
        re.compile(rf"{verb} (?:TABLE|VIEW|INDEX) (\w+)") for verb in ("CREATE", "DROP")
    )
    new = [(n, [*set(made.findall(sql)) - set(dropped.findall(sql))]) for n, sql in SCRIPTS]
    number, names = [(n, found) for n, found in new if found][-1]
    older = store_of_version(tmp_path, number - 1)
    connection = apsw.Connection(str(older.database))
    connection.execute(f"CREATE TABLE {names[-1]} (in_the_way)")
    connection.close()
    before = schema(older)

    with pytest.raises(SchemaAlteredError, match=f"table '{names[-1]}' is not of Hansard"):
        open_for_ingest(older)

    assert schema(older) == before


_BEFORE_TABLES_WERE_RENAMED = 37
_RENAMED = {
    "asked": ("idempotency_key", (b"key", b"body", 5, 200, "{}")),
    "loss": ("sender_drop", ("shop", "one", "spans", "spool full", 3, 5, 6)),
    "pulse": ("process_keepalive", (4, 7)),
    "session_claim": ("traced_turn", (b"turn", b"trace")),
    "span_loser": ("span_duplicate", (1, 1, b"mac", 5, b"record")),
}


@pytest.fixture
def sealed(tmp_path: Path) -> DataFolder:
    """A store of before tables were renamed, with a sealed row in each of them."""
    folder = store_of_version(tmp_path, _BEFORE_TABLES_WERE_RENAMED)
    connection = apsw.Connection(str(folder.database))
    connection.execute("BEGIN")
    for table, (_, values) in _RENAMED.items():
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)
    adopt(connection, folder.key(), ["asked", "loss", "span_loser"])
    connection.execute("COMMIT")
    connection.close()
    return folder


def _events(folder: DataFolder) -> list[Any]:
    connection = apsw.Connection(str(folder.database))
    try:
        return list(connection.execute("SELECT * FROM event ORDER BY seq"))
    finally:
        connection.close()


def _broken(folder: DataFolder) -> list[tuple[str, str]]:
    connection = open_for_ingest(folder)
    try:
        found = SealCheck(connection, folder.key()).run()
        return sorted((table, message) for table, _, message in found)
    finally:
        connection.close()


def test_rows_of_renamed_tables_are_carried_over_with_their_seals(sealed: DataFolder) -> None:
    before = _events(sealed)

    connection = open_for_ingest(sealed)

    for name, values in _RENAMED.values():
        assert list(connection.execute(f"SELECT * FROM {name}")) == [values]
    leaves = "SELECT DISTINCT table_name FROM seal_row ORDER BY table_name"
    assert [name for (name,) in connection.execute(leaves)] == [
        "idempotency_key",
        "sender_drop",
        "span_duplicate",
    ]
    connection.close()
    assert _broken(sealed) == []
    assert _events(sealed)[: len(before)] == before


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE loss SET items = 1",
        "DELETE FROM loss",
        "INSERT INTO loss VALUES ('', '', '', '', 1, 1, 1)",
    ],
)
def test_a_row_that_was_altered_before_its_table_was_renamed_stays_named(
    sealed: DataFolder, sql: str
) -> None:
    connection = apsw.Connection(str(sealed.database))
    connection.execute(sql)
    connection.close()

    open_for_ingest(sealed).close()

    ((table, message),) = _broken(sealed)
    assert table == "sender_drop"
    assert "by something other than Hansard" in message


def test_a_row_that_an_earlier_seal_names_is_named_by_its_table_of_now(sealed: DataFolder) -> None:
    connection = apsw.Connection(str(sealed.database))
    connection.execute("BEGIN")
    adopt(connection, sealed.key(), [], lost=[("loss", "1")])
    connection.execute("COMMIT")
    connection.close()

    assert {table for table, _ in _broken(sealed)} == {"sender_drop"}


def test_a_migrated_store_works(tmp_path: Path) -> None:
    store_of_version(tmp_path, 1)
    migrated = Ingesting(tmp_path)
    migrated.send(traces([span(1)]))

    assert verify_store(migrated.folder).findings == []
    migrated.close()

"""Rows of every primary table, changed with nothing but `sqlite3`: the seals name each."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.audit.event_types import EventFilter
from hansard_store.audit.log import AuditService
from hansard_store.audit.schedule import SealSchedule
from hansard_store.audit.seal_tables import APPEND_ONLY, NUMBERED, marked_tables
from hansard_store.audit.sealer import MOST_ROWS, adopt, seal
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import begin_first, transaction
from tests.store.by_hand import triggers_dropped
from tests.store.empty import empty_store
from tests.store.killed_seals import found

ROOT = Path(__file__).parents[2]
_ROWS = 3
_BYTES = {"BLOB": lambda n: bytes([n]) * 16, "REAL": lambda n: n / 2, "TEXT": lambda n: f"w {n}"}


@cache
def _schema() -> dict[str, tuple[str, ...]]:
    """Return what is sealed of each table: the columns that must not change."""
    with tempfile.TemporaryDirectory() as path:
        reader = open_reader(empty_store(Path(path) / "data"))
        columns = {name: one.columns for name, one in marked_tables(reader).items()}
        reader.close()
    return columns | {name: tuple(of.columns.split(", ")) for name, of in NUMBERED.items()}


def _types(connection: apsw.Connection, table: str) -> dict[str, str]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return {str(name): str(type) for name, type in rows}


def _value(type: str, number: int) -> Any:
    return _BYTES[type](number) if type in _BYTES else number


def _fill(connection: apsw.Connection, table: str, numbers: range) -> None:
    types = _types(connection, table)
    marks = ", ".join("?" * len(types))
    names = ", ".join(f'"{name}"' for name in types)
    for number in numbers:
        values = [_value(type, number) for type in types.values()]
        connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)


def _own(folder: DataFolder) -> apsw.Connection:
    """Return a connection of Hansard's that takes any row."""
    connection = open_for_maintenance(folder)
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    return connection


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three rows in every sealed table, two of them sealed, and the last one not."""
    folder = empty_store(tmp_path_factory.mktemp("filled") / "data")
    connection = _own(folder)
    with triggers_dropped(connection):
        for table in _schema():
            _fill(connection, table, range(1, _ROWS))
    assert seal(connection, folder.key()) is not None
    with triggers_dropped(connection):
        for table in _schema():
            _fill(connection, table, range(_ROWS, _ROWS + 1))
    connection.close()
    return folder.path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> DataFolder:
    shutil.copytree(filled, tmp_path / "data")
    return DataFolder(tmp_path / "data")


def _alter(folder: DataFolder, sql: str, *values: Any) -> int:
    """Change the database as anybody can who has its file."""
    [changed] = _alter_each(folder, [(sql, values)])
    return changed


def _alter_each(folder: DataFolder, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[int]:
    """Change the database by several statements; how many rows each changed."""
    plain = sqlite3.connect(folder.database)
    plain.execute("PRAGMA ignore_check_constraints = ON")
    with triggers_dropped(plain):
        changed = [plain.execute(sql, values).rowcount for sql, values in statements]
    plain.commit()
    plain.close()
    return changed


def _key_of(table: str) -> str:
    return NUMBERED[table].id if table in NUMBERED else _schema()[table][0]


def _key(types: dict[str, dict[str, str]], table: str, number: int) -> Any:
    """Return the key of the row that `_fill` gave this number."""
    return number if table in NUMBERED else _value(types[table][_key_of(table)], number)


def _set(table: str, column: str) -> str:
    return f'UPDATE "{table}" SET "{column}" = ? WHERE "{_key_of(table)}" = ?'


def _named(folder: DataFolder) -> set[str]:
    """Return the tables whose rows the seals name."""
    return {name for name, _, _ in found(folder)[0]}


def test_rows_as_hansard_wrote_them_fit_and_what_is_not_sealed_is_counted(
    store: DataFolder,
) -> None:
    problems, report = found(store)

    assert problems == []
    assert report.unsealed == len(_schema())  # one of each
    connection = _own(store)
    seal(connection, store.key())
    connection.close()
    problems, report = found(store)
    assert (problems, report.unsealed) == ([], 0)


# ---- every table: each column changed, a row removed, a row added; sealed, and not sealed yet
#
# Half of the tables are altered at once: each of them is named, and none of the other half. A test
# by bits has for each two tables a half that holds the one and not the other, either way round: a
# table that is named because of another one is seen.


def _halves(*without: Iterable[str]) -> pytest.MarkDecorator:
    """Run a test for every other table, and for the rest."""
    tables = sorted(_schema().keys() - {table for some in without for table in some})
    return pytest.mark.parametrize(
        "tables", [tables[::2], tables[1::2]], ids=["every other table", "the other tables"]
    )


def _bits(*without: Iterable[str]) -> pytest.MarkDecorator:
    """Run a test for the tables whose number has a bit set, and for the rest; for each bit."""
    tables = sorted(_schema().keys() - {table for some in without for table in some})
    halves = {
        f"bit {bit} is {value}": [one for n, one in enumerate(tables) if n >> bit & 1 == value]
        for bit in range((len(tables) - 1).bit_length())
        for value in (0, 1)
    }
    return pytest.mark.parametrize("tables", halves.values(), ids=halves.keys())


def _types_of(folder: DataFolder) -> dict[str, dict[str, str]]:
    reader = open_reader(folder)
    types = {table: _types(reader, table) for table in _schema()}
    reader.close()
    return types


@pytest.mark.slow
@pytest.mark.covers("RC-30")
@_halves()
def test_another_value_in_any_column_of_a_sealed_row_is_named(
    store: DataFolder, tables: list[str]
) -> None:
    types, wrong = _types_of(store), []
    for at in range(max(len(_schema()[table]) for table in tables)):
        copy = DataFolder(store.path.with_name("copy"))
        shutil.copytree(store.path, copy.path)
        altered = {t: _schema()[t][at] for t in tables if at < len(_schema()[t])}
        changed = _alter_each(
            copy,
            [
                (_set(table, column), (_value(types[table][column], 9), _key(types, table, 1)))
                for table, column in altered.items()
            ],
        )
        if set(changed) != {1} or _named(copy) != altered.keys():
            wrong.append((altered, _named(copy) ^ altered.keys()))
        shutil.rmtree(copy.path)

    assert wrong == []


@_bits()
def test_a_row_that_is_removed_is_named(store: DataFolder, tables: list[str]) -> None:
    types = _types_of(store)
    changed = _alter_each(
        store,
        [
            (f'DELETE FROM "{table}" WHERE "{_schema()[table][0]}" = ?', [value])
            for table in tables
            for value in (_value(types[table][_schema()[table][0]], 1),)
        ],
    )

    problems = found(store)[0]

    assert set(changed) == {1}
    assert sorted(name for name, _, _ in problems) == tables
    assert all(row for _, row, _ in problems)
    assert {message for _, _, message in problems} == {
        "was removed by something other than Hansard"
    }


@_bits(NUMBERED)  # of those, what is added looks like what was sent
def test_a_row_that_is_added_is_named(store: DataFolder, tables: list[str]) -> None:
    types = _types_of(store)
    statements = []
    for table in tables:
        names = ", ".join(f'"{one}"' for one in types[table])
        marks = ", ".join("?" * len(types[table]))
        values = [_value(one, 8) for one in types[table].values()]
        statements.append((f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values))
    _alter_each(store, statements)

    problems = found(store)[0]

    assert sorted(name for name, _, _ in problems) == tables
    assert {message for _, _, message in problems} == {
        "was written by something other than Hansard"
    }


def _alter_last(folder: DataFolder, tables: Iterable[str], number: int, value: int = 9) -> None:
    """Change the last column of the row with this number in each table."""
    types = _types_of(folder)
    changed = _alter_each(
        folder,
        [
            (_set(table, last), (_value(types[table][last], value), _key(types, table, number)))
            for table in tables
            for last in (_schema()[table][-1],)
        ],
    )
    assert set(changed) == {1}


@_bits(NUMBERED)
def test_a_change_of_a_row_that_is_not_sealed_yet_is_named(
    store: DataFolder, tables: list[str]
) -> None:
    _alter_last(store, tables, _ROWS)

    assert _named(store) == set(tables)


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("number", [1, _ROWS], ids=["sealed", "not sealed yet"])
@_bits(NUMBERED, APPEND_ONLY)
def test_a_change_stays_named_after_hansard_changed_the_row_itself(
    store: DataFolder, tables: list[str], number: int
) -> None:
    types = _types_of(store)
    _alter_last(store, tables, number)

    connection = _own(store)
    for _ in range(2):
        for table in tables:
            last = _schema()[table][-1]
            values = (_value(types[table][last], 8), _key(types, table, number))
            connection.execute(_set(table, last), values)
        assert _named(store) == set(tables)
        seal(connection, store.key())
    connection.close()

    assert _named(store) == set(tables)


def test_a_row_of_ingest_below_the_last_sealed_one_cannot_be_added(store: DataFolder) -> None:
    connection = _own(store)
    _fill(connection, "content", range(10, 12))
    seal(connection, store.key())
    connection.close()

    _alter(store, "INSERT INTO content VALUES (5, x'05', 5, x'05')")

    assert found(store)[0] == [("content", "5", "was written by something other than Hansard")]


# ---- rows that something else altered, before Hansard itself changed or removed them


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("table", sorted(NUMBERED))
def test_a_change_of_ingest_stays_named_after_hansard_changed_the_row_itself(
    store: DataFolder, table: str
) -> None:
    column, of = _schema()[table][-1], NUMBERED[table].id
    type = _types(open_reader(store), table)[column]
    altered = f'UPDATE "{table}" SET "{column}" = ? WHERE {of} = 1'
    assert _alter(store, altered, _value(type, 9))

    connection = _own(store)
    for number in (8, 7):
        connection.execute(altered, (_value(type, number),))
        assert [(name, row) for name, row, _ in found(store)[0]] == [(table, "1")]
        seal(connection, store.key())
    connection.close()

    assert [(name, row) for name, row, _ in found(store)[0]] == [(table, "1")]


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("number", [1, _ROWS], ids=["sealed", "not sealed yet"])
@_bits(APPEND_ONLY)
def test_a_change_stays_named_after_hansard_removed_the_row(
    store: DataFolder, tables: list[str], number: int
) -> None:
    """Alterations of rows that ingest adds are found from their first seal on."""
    types = _types_of(store)
    tables = [table for table in tables if number == 1 or table not in NUMBERED]
    _alter_last(store, tables, number)

    connection = _own(store)
    for table in tables:
        gone = f'DELETE FROM "{table}" WHERE "{_key_of(table)}" = ?'
        connection.execute(gone, (_key(types, table, number),))
    assert _named(store) == set(tables)
    seal(connection, store.key())
    assert _named(store) == set(tables)
    with triggers_dropped(connection):
        for table in tables:
            _fill(connection, table, range(number, number + 1))  # its key is given again
    assert _named(store) == set(tables)
    seal(connection, store.key())
    connection.close()

    assert _named(store) == set(tables)


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("number", [1, _ROWS], ids=["sealed", "not sealed yet"])
@_bits(NUMBERED)
def test_a_removed_row_stays_named_after_hansard_wrote_one_of_its_key(
    store: DataFolder, tables: list[str], number: int
) -> None:
    types = _types_of(store)
    gone = [
        (f'DELETE FROM "{table}" WHERE "{_key_of(table)}" = ?', [_key(types, table, number)])
        for table in tables
    ]
    assert set(_alter_each(store, gone)) == {1}

    connection = _own(store)
    with triggers_dropped(connection):
        for table in tables:
            _fill(connection, table, range(number, number + 1))
    assert _named(store) == set(tables)
    seal(connection, store.key())
    connection.close()

    assert _named(store) == set(tables)


@pytest.mark.covers("RC-30")
def test_a_forged_mark_does_not_hide_a_row_removed_by_hand_when_its_key_is_given_again(
    store: DataFolder,
) -> None:
    assert _alter(store, "DELETE FROM memory WHERE id = 1")
    forged = "INSERT INTO seal_due (table_name, row_key, after, mark) VALUES ('memory', '1', 99, ?)"
    assert _alter(store, forged, bytes(32))

    connection = _own(store)
    with triggers_dropped(connection):
        _fill(connection, "memory", range(1, 2))
    seal(connection, store.key())
    connection.close()

    assert [name for name, _, _ in found(store)[0]] == ["memory"]


# ---- the seals themselves


OF_SEALS = {
    "a leaf of a row": "UPDATE seal_row SET leaf = zeroblob(16) WHERE id = 2",
    "the number of its seal": "UPDATE seal_row SET after = 9 WHERE id = 2",
    "a leaf removed": "DELETE FROM seal_row WHERE id = 2",
    "leaves of ingest": "UPDATE seal_block SET leaves = zeroblob(48) WHERE table_name = 'span'",
    "a block removed": "DELETE FROM seal_block WHERE table_name = 'span'",
    "a leaf added": "INSERT INTO seal_row VALUES (999, 'memory', '999', 0, zeroblob(16))",
    "a mark altered": "UPDATE seal_due SET mark = zeroblob(32) WHERE table_name = 'memory'",
    "a mark of a removal, forged": (
        "INSERT INTO seal_due VALUES (9999, 'memory', '1', 1, zeroblob(32))"
    ),
    "a mark removed": "DELETE FROM seal_due WHERE table_name = 'memory'",
}


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("name", OF_SEALS)
def test_what_is_altered_in_the_seals_themselves_is_found(store: DataFolder, name: str) -> None:
    assert _alter(store, OF_SEALS[name])

    assert found(store)[0]


def test_a_row_removed_with_its_leaf_is_found_by_the_chain(store: DataFolder) -> None:
    _alter(store, "DELETE FROM memory WHERE id = 1")
    _alter(store, "DELETE FROM seal_row WHERE table_name = 'memory' AND row_key = '1'")

    assert [name for name, _, _ in found(store)[0]] == ["seal_row"]


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (
            (
                "DELETE FROM memory WHERE id = 1",
                "DELETE FROM seal_row WHERE table_name = 'memory' AND row_key = '1'",
            ),
            "seal_row",
        ),
        (
            (
                "DELETE FROM content WHERE id = 1",
                "UPDATE seal_block SET leaves = CAST(zeroblob(32) || substr(leaves, 33) AS BLOB) "
                "WHERE table_name = 'content'",
            ),
            "seal_block",
        ),
        (
            ("DELETE FROM seal_block WHERE table_name = 'content'", "DELETE FROM content"),
            "seal_block",
        ),
    ],
    ids=["leaf", "leaf of ingest", "block of ingest"],
)
def test_leaves_that_were_altered_stay_named_after_the_next_seal(
    store: DataFolder, statements: tuple[str, ...], named: str
) -> None:
    for sql in statements:
        assert _alter(store, sql)

    connection = _own(store)
    for number in range(10, 13):
        connection.execute("UPDATE task SET title = ? WHERE id = 1", (str(number),))
        _fill(connection, "content", range(number, number + 1))
        seal(connection, store.key())
    connection.close()

    assert named in {name for name, _, _ in found(store)[0]}


def test_a_seal_that_hansard_did_not_sign_makes_nothing_valid(store: DataFolder) -> None:
    reader = open_reader(store)
    [(body,)] = reader.execute("SELECT body FROM event WHERE type = 'record.sealed'").fetchall()
    reader.close()
    _alter(store, "DELETE FROM memory WHERE id = 1")
    _alter(
        store,
        "INSERT INTO event SELECT seq + 1, time_ns, late, type, actor, who, action, source, "
        "subject, approval_id, trace_id, span_id, ?, hash, hash FROM event",
        str(body),
    )

    problems = found(store)[0]

    assert ("event", "2", "is no seal of Hansard's: its signature does not fit") in problems
    assert "memory" in {name for name, _, _ in problems}


def test_a_row_and_its_mark_of_earlier_do_not_make_each_other_valid(store: DataFolder) -> None:
    connection = _own(store)
    seal(connection, store.key())
    connection.execute("UPDATE memory SET confidence = 0.5 WHERE id = 1")
    early = connection.execute("SELECT * FROM seal_due WHERE row_key = '1'").fetchall()
    seal(connection, store.key())
    connection.execute("UPDATE memory SET confidence = 0.1 WHERE id = 1")
    seal(connection, store.key())
    connection.close()

    _alter(store, "UPDATE memory SET confidence = 0.5 WHERE id = 1")
    _alter(store, "INSERT INTO seal_due VALUES (?, ?, ?, ?, ?)", *early[0])

    assert found(store)[0] == [("memory", "1", "is not as Hansard wrote it")]


def test_seals_of_another_key_are_said_to_be_that(store: DataFolder) -> None:
    store.key_file.write_bytes(bytes(32))

    [(_, _, message)] = found(store)[0]

    assert "the seals are of another key" in message


# ---- what Hansard itself does


def _walk(connection: apsw.Connection) -> Iterator[None]:
    """Change rows as Hansard does, a transaction at a time."""
    for sql in (
        "UPDATE memory SET confidence = 0.25 WHERE id = 1",
        "DELETE FROM memory WHERE id = 2",
        "INSERT INTO memory_tag VALUES ('t', 7)",
        "UPDATE span_record SET notes = 'n' WHERE span = 1",
        "DELETE FROM span_record WHERE span = 2",
        "DELETE FROM content WHERE id = 3",
        "INSERT INTO content VALUES (3, x'33', 3, x'33')",  # its number is given again
        "DELETE FROM memory_tag WHERE memory = 7",
    ):
        with transaction(connection):
            connection.execute(sql)
        yield


def test_changes_by_hansard_fit_at_each_moment_sealed_or_not(store: DataFolder) -> None:
    connection = _own(store)
    for number, _ in enumerate(_walk(connection)):
        assert found(store)[0] == []
        if number % 2:
            seal(connection, store.key())
            assert found(store)[0] == []
    connection.close()
    with AuditService(store, heads_copy="off") as desk:
        SealSchedule(desk.seal).end()
        assert desk.verify().is_sound
    problems, report = found(store)
    assert (problems, report.unsealed) == ([], 0)


def test_a_change_between_reading_and_sealing_is_sealed_the_next_time(store: DataFolder) -> None:
    first, second = _own(store), _own(store)
    first.execute("UPDATE memory SET confidence = 0.3 WHERE id = 1")
    changed = False

    def between(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        nonlocal changed
        if sql.startswith("BEGIN IMMEDIATE") and not changed:
            changed = True
            second.execute("UPDATE memory SET confidence = 0.4 WHERE id = 1")
        return True

    first.exec_trace = between
    seal(first, store.key())
    first.exec_trace = None

    assert changed
    assert found(store)[0] == []
    seal(first, store.key())
    problems, report = found(store)
    assert (problems, report.unsealed) == ([], 0)


@pytest.mark.slow
def test_a_kill_before_any_statement_of_a_seal_raises_no_alarm(store: DataFolder) -> None:
    program = [sys.executable, "-m", "tests.store.killed_seals", str(store.path)]
    ended = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, timeout=570, check=True)
    told = json.loads(ended.stdout)

    assert told["named"] == []
    assert told["kills"] > 10
    problems, report = found(store)
    assert (problems, report.unsealed) == ([], 0)


def test_a_large_backlog_is_sealed_in_several_seals(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    connection = _own(folder)
    connection.execute(
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO content SELECT i, CAST(i AS BLOB), 1, x'00' FROM n",
        (MOST_ROWS + 10,),
    )
    assert found(folder)[1].unsealed == MOST_ROWS + 10

    first, second = seal(connection, folder.key()), seal(connection, folder.key())

    assert first is not None
    assert (first.rows, first.is_all) == (MOST_ROWS, False)
    assert second is not None
    assert (second.rows, second.is_all) == (10, True)
    assert seal(connection, folder.key()) is None
    connection.close()
    assert found(folder)[0] == []


def test_seals_are_events_that_lists_leave_out_unless_they_are_asked_for(
    store: DataFolder,
) -> None:
    with AuditService(store, heads_copy="off") as desk:
        desk.failed("x", "boom")
        told = [one.type for one in desk.events()]
        asked = [one.type for one in desk.events(EventFilter(type="record.sealed"))]
        every = [one.type for one in desk.events(EventFilter(with_seals=True))]

    assert (told, asked, every) == (
        ["failure"], ["record.sealed"], ["failure", "record.sealed"],
    )  # fmt: skip


def test_a_table_that_a_migration_altered_is_sealed_again(store: DataFolder) -> None:
    _alter(store, "ALTER TABLE task ADD COLUMN mood TEXT")
    assert found(store)[0] == []  # what was there has none
    _alter(store, "UPDATE task SET mood = 'fine'")
    assert found(store)[0]

    connection = _own(store)
    begin_first(connection)  # as a migration, before its schema is that of its version
    adopt(connection, store.key(), ["task"])
    connection.execute("COMMIT")
    connection.close()

    assert found(store)[0] == []


_LATER = """
-- seals again: task, log_record
UPDATE task SET title = upper(title);
UPDATE log_record SET received_ns = received_ns + 1;
"""
_OPEN = """
import sys
from pathlib import Path
import hansard_store
from hansard_store.database.connections import DataFolder, open_for_ingest
assert Path(hansard_store.__file__).parents[1] == Path(sys.argv[2])
open_for_ingest(DataFolder(Path(sys.argv[1]))).close()
"""


@pytest.fixture(scope="module")
def later_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of a version whose newest migration rewrites sealed tables."""
    home = tmp_path_factory.mktemp("later")
    shutil.copytree(ROOT / "store" / "hansard_store", home / "hansard_store")
    migrations = home / "hansard_store" / "migrations"
    number = max(int(one.name[:4]) for one in migrations.glob("*.sql")) + 1
    (migrations / f"{number:04}_later.sql").write_text(_LATER)
    return home


def _upgrade(folder: DataFolder, home: Path) -> list[tuple[str, str, str]]:
    """Open a store with a later version, and return what its seals name then."""
    arguments = [sys.executable, "-c", _OPEN, str(folder.path), str(home)]
    subprocess.run(arguments, env={"PYTHONPATH": str(home)}, timeout=240, check=True)
    return found(folder)[0]


@pytest.mark.slow
@pytest.mark.covers("RC-30")
@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT 1", []),
        ("UPDATE task SET title = 'other' WHERE id = 1", [("task", "1")]),
        ("UPDATE task SET title = 'other' WHERE id = 3", [("task", "3")]),
        ("DELETE FROM task WHERE id = 2", [("task", "2")]),
        ("UPDATE log_record SET record = x'09' WHERE id = 1", [("log_record", "1")]),
        ("DELETE FROM log_record WHERE id = 1", [("log_record", "1")]),
    ],
)
def test_what_was_altered_before_a_migration_rewrote_it_is_named_after(
    store: DataFolder, later_version: Path, sql: str, named: list[tuple[str, str]]
) -> None:
    _alter(store, sql)

    upgraded = _upgrade(store, later_version)

    assert [(table, row) for table, row, _ in upgraded] == named
    connection = sqlite3.connect(store.database)
    assert {title for (title,) in connection.execute("SELECT title FROM task")} <= {
        "W 1", "W 2", "W 3", "OTHER",
    }  # fmt: skip
    connection.close()

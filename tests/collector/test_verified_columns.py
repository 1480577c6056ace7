"""Every column of every table: another value is named by verify or --deep, or is said to be free.

The columns come from the schema, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.schedule import SealSchedule
from hansard_store.audit.schema import Shipped, migrations
from hansard_store.audit.seal_tables import COUNTERS, NOT_SEALED, NUMBERED
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.upkeep_slices import Pace
from hansard_store.errors import StoppedError
from hansard_store.figures.rollup import compute_hour, due_hours
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.verification.integrity import IntegrityFinding, verify_store
from tests.collector.ingesting import Ingesting, span, traces
from tests.collector.sessions.maker import request
from tests.collector.sessions.test_order import SESSIONS
from tests.collector.test_rebuild import record_everything
from tests.docs.unprovable_columns import ALL, UNPROVABLE
from tests.store.by_hand import triggers_dropped

# Their columns are tried one by one in tests/store/test_seals.py, which takes them from the schema.
_SEALED_COLUMNS: Final = {name: set(one.columns.split(", ")) for name, one in NUMBERED.items()}


def _tables() -> dict[str, list[str]]:
    """Return the columns of each table that are not sealed as they are, keys first."""
    shipped = Shipped.of(migrations()[-1][0])
    names = shipped.connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name"
    ).fetchall()
    found = {}
    for (name,) in names:
        if name in NOT_SEALED or name in NUMBERED:
            columns = [row[1] for row in shipped.columns(name)]
            found[name] = [one for one in columns if one not in _SEALED_COLUMNS.get(name, ())]
    return found


def _is_free(table: str, column: str) -> bool:
    free = UNPROVABLE.get(table, {})
    return ALL in free or column in free


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A store with a row in each of these tables, sealed."""
    ingesting = Ingesting(tmp_path_factory.mktemp("made") / "data")
    record_everything(ingesting)
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))
    ingesting.close()
    with closing(open_for_maintenance(ingesting.folder)) as connection:
        for hour in due_hours(connection)[1:]:  # one stays due
            compute_hour(connection, hour)
    with ApprovalService(ingesting.folder.path) as desk:
        asked = desk.propose(Proposal("wire", {"kroner": 100})).approval.approval_id
        desk.approve(asked, by="ann")
        SealSchedule(desk.seal).end()
        desk.propose(Proposal("later", {"kroner": 1}))  # its marks are not sealed
    return ingesting.folder


def _altered(made: DataFolder, to: Path, columns: Iterable[tuple[str, str]]) -> DataFolder:
    """Return a copy in which each column has another value, in one row of its table."""
    shutil.copytree(made.path, to)
    folder = DataFolder(to)
    plain = sqlite3.connect(folder.database)
    plain.execute("PRAGMA foreign_keys = OFF")
    plain.execute("PRAGMA ignore_check_constraints = ON")
    with triggers_dropped(plain):
        for table, column in columns:
            _alter(plain, table, column)
    plain.commit()
    plain.close()
    return folder


def _alter(plain: sqlite3.Connection, table: str, column: str) -> None:
    rows = plain.execute(f'SELECT * FROM "{table}" LIMIT 1')
    names = [one[0] for one in rows.description]
    row: Any = rows.fetchone()
    assert row is not None, f"{table} has no row to be altered"
    types = dict(plain.execute("SELECT name, type FROM pragma_table_info(?)", (table,)))
    value = _another(dict(zip(names, row, strict=True))[column], types[column])
    where = " AND ".join(f'"{name}" IS ?' for name in names)
    changed = plain.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {where}', (value, *row))
    assert changed.rowcount == 1


def _another(value: Any, kind: str) -> Any:
    if kind in ("INTEGER", "REAL"):
        return (value or 0) + 1_000_003  # not the key of another row
    if kind == "BLOB":
        return bytes([(value[0] + 1) % 256]) + value[1:] if value else b"\1" * 8
    return f"{value or ''}x"


def _named(found: Iterable[IntegrityFinding]) -> set[tuple[str, str]]:
    """Return (table, column) of each difference that names its column."""
    return {
        (one.table, column)
        for one in found
        for column in re.findall(r"(?:has|;) (\w+) ", one.message)
    }


def test_the_store_is_sound_before(made: DataFolder) -> None:
    assert verify_store(made).findings == []
    assert verify_derived(made) == []


@pytest.mark.parametrize("table", _tables())
def test_another_value_in_any_column_is_named(made: DataFolder, tmp_path: Path, table: str) -> None:
    """First all columns in one copy; those that are not named with their column: one by one."""
    columns = [one for one in _tables()[table] if not _is_free(table, one)]
    left = []
    for column in columns:
        folder = _altered(made, tmp_path / column, [(table, column)])
        if not verify_store(folder).broken:
            left.append(column)

    missed = []
    if left:
        together = _altered(made, tmp_path / "all", [(table, column) for column in left])
        named = _named(verify_derived(together))
        missed = [column for column in left if (table, column) not in named]
    unnamed = [one for one in missed if not _is_named_alone(made, tmp_path, table, one)]

    assert unnamed == []


def _is_named_alone(made: DataFolder, tmp_path: Path, table: str, column: str) -> bool:
    folder = _altered(made, tmp_path / f"{column} alone", [(table, column)])
    return any(one.is_certain for one in verify_derived(folder))


def test_a_column_that_is_not_sealed_is_on_the_list() -> None:
    assert [
        (table, column)
        for table, columns in COUNTERS.items()
        for column in columns
        if not _is_free(table, column)
    ] == []


def test_the_page_lists_what_is_free() -> None:
    page = (Path(__file__).parents[2] / "docs/accountability.md").read_text(encoding="utf-8")
    section = page.partition("### Columns that no check proves")[2]

    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)

    assert rows == [
        (table, "every column" if name == ALL else name, why)
        for table, free in UNPROVABLE.items()
        for name, why in free.items()
    ]


def test_what_is_free_exists_and_has_a_reason() -> None:
    tables = _tables()

    for table, free in UNPROVABLE.items():
        assert all(free.values())
        columns = tables[table] if table in tables else COUNTERS[table]
        assert {name.split()[0] for name in free} <= {*columns, ALL}


def test_words_that_a_replaced_report_left_are_a_note_and_no_finding(tmp_path: Path) -> None:
    tool = {"openinference.span.kind": "TOOL", "tool.name": "find"}
    ingesting = Ingesting(tmp_path / "data")
    begun = span(2, 1, duration_s=None, attributes=tool | {"input.value": "some words"})
    ingesting.send(traces([begun]))
    ingesting.send(traces([span(2, 1, attributes=tool | {"input.value": "other words"})]))
    for agent, records in SESSIONS.values():
        for record in records:
            ingesting.send(request([record], agent))
    ingesting.close()

    found = verify_derived(ingesting.folder)

    assert {one.table for one in found} == {"text", "text_use"}
    assert not any(one.is_certain for one in found)
    rebuild(ingesting.folder)
    with closing(open_for_maintenance(ingesting.folder)) as connection:
        collect_garbage(ingesting.folder, connection)
    assert verify_derived(ingesting.folder) == []


def test_records_of_sessions_that_came_in_any_order_are_sound(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path / "data")
    for agent, records in SESSIONS.values():
        for record in reversed(records):
            ingesting.send(request([record], agent))
    ingesting.close()

    assert [one for one in verify_derived(ingesting.folder) if one.is_certain] == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("key", ["gen_ai.input.messages", "gen_ai.output.messages"])
def test_a_number_that_json_has_not_is_stored_as_its_hash_says(
    tmp_path: Path, key: str, number: float
) -> None:
    ingesting = Ingesting(tmp_path / "data")
    chat = {"gen_ai.operation.name": "chat", key: number}
    ingesting.send(traces([span(1, 1, attributes=chat)]))
    ingesting.close()

    assert verify_store(ingesting.folder).findings == []
    assert verify_derived(ingesting.folder) == []


def test_beside_an_unfinished_rebuild_verify_says_so_and_names_no_step(made: DataFolder) -> None:
    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return True

    folder = DataFolder(shutil.copytree(made.path, made.path.with_name("cut off")))
    with pytest.raises(StoppedError):
        rebuild(folder, pace=Pace(hold_s=0, pause_s=0, stop=Stopping()))

    report = verify_store(folder)

    assert report.findings == []
    assert any("a rebuild is unfinished" in note for note in report.notes)


def test_a_run_that_names_a_step_that_is_not_there_is_named_and_rebuilt(
    made: DataFolder, tmp_path: Path
) -> None:
    columns = [("run", name) for name in ("root_span", "agent_span", "notes")]
    folder = _altered(made, tmp_path / "data", columns)

    assert set(columns) <= _named(verify_derived(folder))
    rebuild(folder)
    assert verify_derived(folder) == []

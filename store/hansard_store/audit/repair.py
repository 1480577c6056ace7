"""Restoring the shipped schema of a store that somebody altered.

The database is copied as it is first. What was added is removed, what is missing or altered is made
again, and an altered table is made anew with the rows that it has. One transaction, with an event
that names what was done and who had it done. Rows that somebody else's trigger wrote stay: the next
seal says of them that the schema was altered (audit/altered.py).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_store.audit.schema import Alteration, SchemaObject, Shipped, alterations, columns_of
from hansard_store.audit.schema_events import note_repair
from hansard_store.database.connections import open_for_repair, without_foreign_keys
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.migrations import keep_copy
from hansard_store.database.transactions import (
    begin_first,
    latest_version,
    rolled_back_on_error,
    schema_version,
)
from hansard_store.errors import StoreError
from hansard_store.search import indexes

_FIRST: Final = ("trigger", "view", "index", "table")  # the order in which things are dropped
_TABLES_FIRST: Final = ("table", "index", "view", "trigger")
_WITHOUT_ROWID: Final = "WITHOUT ROWID"
_HOLD: Final = "hansard_repair_hold"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair mended, and the copy of the database as it was; None where nothing was."""

    mended: tuple[Alteration, ...] = ()
    kept_as: str | None = None


def repair_schema(folder: DataFolder, *, by: str) -> Repaired:
    """Restore the schema that the migrations make, and return what was mended.

    Indexes that somebody added, and that refuse no row, stay. Raises StoreError where rows do not
    fit the shipped tables, or SQLite refuses: a backup is needed then; NoSpaceError without room
    for the copy.
    """
    connection = open_for_repair(folder)
    try:
        _refuse_other_version(connection)
        if not _to_mend(connection):
            return Repaired()
        copy = keep_copy(folder, f"hansard-altered-{time.time_ns() // 1_000_000_000}.db")
        with without_foreign_keys(connection):
            begin_first(connection)
            with rolled_back_on_error(connection):
                mended = _to_mend(connection)
                _mend(connection, mended)
                if schema_version(connection) == latest_version():
                    note_repair(connection, mended, by=by)
                connection.execute("COMMIT")
        return Repaired(tuple(mended), copy)
    except apsw.Error as error:
        raise StoreError(
            f"the schema cannot be repaired: {error}; `hansard restore` a backup"
        ) from error
    finally:
        connection.close()


def _refuse_other_version(connection: apsw.Connection) -> None:
    """Refuse a database whose version was set back: its own tables would be taken for added."""
    later = Shipped.of(latest_version()).objects
    found = schema_version(connection)
    added = [one for one in _to_mend(connection) if one.state == "added"]
    if any((one.kind, one.name) in later for one in added if one.kind == "table"):
        raise StoreError(
            f"the database says that its schema is {found}, and has tables of later ones: somebody "
            f"set the number. It is {latest_version()} if this version wrote it (`PRAGMA "
            "user_version`); else `hansard restore` a backup"
        )


def _to_mend(connection: apsw.Connection) -> list[Alteration]:
    return [one for one in alterations(connection) if not _may_stay(one)]


def _may_stay(one: Alteration) -> bool:
    return one.is_harmless and one.state == "added"


def _mend(connection: apsw.Connection, mended: Sequence[Alteration]) -> None:
    shipped = Shipped.of(schema_version(connection)).objects
    held = []
    for kind in _FIRST:
        for one in mended:
            if one.kind == kind and one.state != "missing":
                if kind == "table" and one.state == "altered":
                    held.append(_hold(connection, shipped["table", one.name]))
                _drop(connection, one)
    for rows in held:
        connection.execute(str(shipped["table", rows.name].sql))
        rows.put_back(connection)
    for lost in _absent(connection, shipped):
        connection.execute(str(lost.sql))
    indexes.configure(connection)
    if left := _to_mend(connection):
        raise StoreError(
            f"the schema cannot be repaired: {left[0]}; `hansard restore` a backup of before"
        )


def _drop(connection: apsw.Connection, one: Alteration) -> None:
    if one.name.startswith("sqlite_autoindex"):
        return  # goes with its table
    name = one.name.replace('"', '""')
    connection.execute(f'DROP {one.kind.upper()} IF EXISTS main."{name}"')


def _absent(
    connection: apsw.Connection, shipped: dict[tuple[str, str], SchemaObject]
) -> list[SchemaObject]:
    missing = {(one.kind, one.name) for one in alterations(connection) if one.state == "missing"}
    made = [shipped[key] for key in missing if shipped[key].sql is not None]
    parts = {
        f"{one.name}_"
        for one in shipped.values()
        if one.is_virtual and (one.kind, one.name) in missing
    }
    own = [one for one in made if not one.name.startswith(tuple(parts))] if parts else made
    return sorted(own, key=lambda one: (_TABLES_FIRST.index(one.kind), one.name))


@dataclass(frozen=True, slots=True)
class _Held:
    """The rows of an altered table, while it is made anew."""

    name: str
    columns: tuple[str, ...]

    def put_back(self, connection: apsw.Connection) -> None:
        names = ", ".join(self.columns)
        connection.execute(
            f'INSERT INTO main."{self.name}" ({names}) '
            f'SELECT {names} FROM temp."{_HOLD}_{self.name}"'
        )
        connection.execute(f'DROP TABLE temp."{_HOLD}_{self.name}"')


def _hold(connection: apsw.Connection, table: SchemaObject) -> _Held:
    expected = {row[1] for row in Shipped.of(schema_version(connection)).columns(table.name)}
    found = [row[1] for row in columns_of(connection, table.name)]
    names = [f'"{name}"' for name in found if name in expected]
    if _WITHOUT_ROWID not in str(table.sql).upper():
        names.insert(0, "rowid")
    connection.execute(
        f'CREATE TEMP TABLE "{_HOLD}_{table.name}" AS SELECT {", ".join(names)} '
        f'FROM main."{table.name}"'
    )
    return _Held(table.name, tuple(names))

"""Marks: every change of a sealed row by Hansard itself leaves one, in the same transaction.

They are made by temporary triggers, which exist on Hansard's own connections alone: a change by
anything else leaves none, and the row no longer fits its leaf. A mark holds the row's new leaf and
is signed, with the last seal before it, so that nobody without the store's key can write one and
none of earlier fits a row that was sealed since. Cost: 3 ms to open a connection, 6 µs a row.

A row that something else had altered stays altered when Hansard changes it: what it was before is
held against its last mark or leaf, and where it does not fit, the new mark holds a leaf that no row
has. What decides and what signs in asks `is_altered` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.audit.seal_tables import (
    ALTERED,
    APPEND_ONLY,
    GONE,
    LEAF_BYTES,
    NUMBERED,
    Leaves,
    Marked,
    marked_tables,
)

LAST_SEAL: Final = "last_seal"  # the setting that holds the number of the last seal's event
_FUNCTION: Final = "hansard_mark"
_CHANGED: Final = "hansard_changed"
_FITS: Final = "hansard_fits"
_TOUCHED: Final = "hansard_touched"
# Of these it is asked whether a row is as Hansard wrote it, before anything follows from it.
_ASKED: Final = (
    "approval", "approval_claim", "principal_token", "browser_session", "sign_in_link",
)  # fmt: skip
_LAST: Final = f"coalesce((SELECT value FROM setting WHERE name = '{LAST_SEAL}'), 0)"
_HAS_SEALS: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'seal_due'"
_DUE: Final = "SELECT id, table_name, row_key, after, mark FROM seal_due ORDER BY id LIMIT ?"


@dataclass(frozen=True, slots=True)
class Mark:
    """A change that is not sealed yet."""

    id: int
    table: str
    key: str
    after: int  # the seal before it
    leaf: bytes  # of the row as it is since; GONE
    is_signed: bool


def mark_changes(connection: apsw.Connection, key: bytes) -> None:
    """Have every change of a sealed row through this connection leave a mark."""
    if connection.execute(_HAS_SEALS).get is None:
        return
    leaves, tables = Leaves(key), marked_tables(connection)

    def mark(*given: Any) -> bytes:
        name, of, after, *values = given
        leaf = leaves.of_row(tables[name], of, values) if values else GONE
        return leaf + _signature(leaves, name, of, after, leaf)

    def known(name: str, of: str, given: tuple[Any, ...]) -> Any:
        """Return the leaf of a row by its last mark, or as it was sealed; None without either."""
        made, after, sealed_after, leaf = given
        if made is None or after < (sealed_after or 0):
            return leaf
        signature = _signature(leaves, name, of, after, made[:LEAF_BYTES])
        return made[:LEAF_BYTES] if made[LEAF_BYTES:] == signature else None

    def changed(*given: Any) -> bytes:
        name, of, before, after = given[:4]
        values = given[8:]
        table, half = tables[name], len(values) // 2
        was = leaves.of_row(table, before, values[half:])
        leaf = leaves.of_row(table, of, values[:half])
        if known(name, before, given[4:8]) != was:
            leaf = ALTERED
        return leaf + _signature(leaves, name, of, after, leaf)

    def fits(*given: Any) -> bool:
        name, of = given[:2]
        return bool(known(name, of, given[2:6]) == leaves.of_row(tables[name], of, given[6:]))

    def touched(*given: Any) -> bytes:
        name, of, after = given
        return GONE + _signature(leaves, name, of, after, GONE)

    connection.pragma("temp_store", "MEMORY")
    leaves.hash_keys(connection)
    connection.create_scalar_function(_FUNCTION, mark)
    connection.create_scalar_function(_CHANGED, changed)
    connection.create_scalar_function(_FITS, fits)
    connection.create_scalar_function(_TOUCHED, touched)
    sql = [one for table in tables.values() for one in _marking(table)]
    sql += [one for name in NUMBERED for one in _touching(name)]
    sql += [_asking(tables[name]) for name in _ASKED if name in tables]
    connection.execute("".join(sql))


def is_altered(connection: apsw.Connection, table: str, column: str, value: Any) -> bool:
    """Return whether a row with that value is not as Hansard wrote it.

    Its connection is one that marks changes, and the table one of `_ASKED`.
    """
    sql = f'SELECT 1 FROM temp."altered_{table}" WHERE "{column}" = ? LIMIT 1'
    return connection.execute(sql, (value,)).get is not None


def read_marks(connection: apsw.Connection, leaves: Leaves, *, most: int) -> list[Mark]:
    """Return marks in their order."""
    return [
        Mark(
            number, table, key, after, mark[:LEAF_BYTES],
            mark[LEAF_BYTES:] == _signature(leaves, table, key, after, mark[:LEAF_BYTES]),
        )
        for number, table, key, after, mark in connection.execute(_DUE, (most,))
    ]  # fmt: skip


def _signature(leaves: Leaves, table: str, key: str, after: int, leaf: bytes) -> bytes:
    return leaves.signature(b"mark", f"{table}\0{key}\0{after}\0".encode() + leaf)


def _marking(table: Marked) -> list[str]:
    def trigger(event: str, row: str, values: str) -> str:
        of = table.key(row)
        made = f"{_FUNCTION}('{table.name}', {of}, {_LAST}{values})"
        return _trigger(event, table.name, of, made)

    added = trigger("INSERT", "NEW", f", {table.values('NEW')}")
    if table.name in APPEND_ONLY:
        return [added]
    before, of = table.key("OLD"), table.key("NEW")
    values = f"{table.values('NEW')}, {table.values('OLD')}"
    given = f"'{table.name}', {of}, {before}, {_LAST}, {_known(table, before)}, {values}"
    changed = _trigger("UPDATE", table.name, of, f"{_CHANGED}({given})")
    return [added, changed, trigger("DELETE", "OLD", "")]


def _known(table: Marked, key: str) -> str:
    """Return the SQL of what is known of a row: its last mark, and its leaf as it was sealed."""
    where = f"WHERE table_name = '{table.name}' AND row_key = {key}"
    last = f"FROM seal_due {where} ORDER BY id DESC LIMIT 1"
    leaf = f"FROM seal_row {where}"
    return (
        f"(SELECT mark {last}), (SELECT after {last}), (SELECT after {leaf}), (SELECT leaf {leaf})"
    )


def _asking(table: Marked) -> str:
    of = table.key("t")
    given = f"'{table.name}', {of}, {_known(table, of)}, {table.values('t')}"
    return (
        f'CREATE TEMP VIEW "altered_{table.name}" AS '
        f'SELECT t.* FROM main."{table.name}" AS t WHERE NOT {_FITS}({given});'
    )


def _touching(name: str) -> list[str]:
    table = NUMBERED[name]
    events = (f"UPDATE OF {table.columns}", "NEW"), ("DELETE", "OLD")
    of = "CAST({}.{} AS TEXT)"
    return [
        _trigger(
            event,
            name,
            of.format(row, table.id),
            f"{_TOUCHED}('{name}', {of.format(row, table.id)}, {_LAST})",
        )
        for event, row in events
    ]


def _trigger(event: str, table: str, key: str, mark: str) -> str:
    name = f"seal_{event.partition(' ')[0]}_{table}".lower()
    return (
        f'CREATE TEMP TRIGGER "{name}" AFTER {event} ON main."{table}" BEGIN '
        "INSERT INTO seal_due (table_name, row_key, after, mark) "
        f"VALUES ('{table}', {key}, {_LAST}, {mark}); END;"
    )

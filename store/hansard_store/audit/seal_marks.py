"""Marks: every change of a sealed row by Hansard itself leaves one, in the same transaction.

They are made by temporary triggers, which exist on Hansard's own connections alone: a change by
anything else leaves none, and the row no longer fits its leaf. A mark holds the row's new leaf and
is signed, with the last seal before it, so that nobody without the store's key can write one. An
earlier one that was copied and put back fits no row of a marked table that has a newer leaf;
docs/gaps.md names what it does fit. Cost: some 15 ms to open a connection, 6 µs a row.

A row that something else had altered stays altered when Hansard changes it: what it was before is
held against its last mark or leaf, and where it does not fit, the new mark holds a leaf that no row
has (`ALTERED`). So does that of a row that is written in the place of one that something else
removed. Where Hansard removes an altered row, its mark has the next seal name it (`LOST`). What
decides and what signs in asks `is_altered` first.

Of numbered tables, adding a row leaves no mark, and so the mark of a removal says nothing of the
row that may have its number by then: it is read when it is sealed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.audit.seal_tables import (
    ALTERED,
    APPEND_ONLY,
    BLOCK,
    COUNTERS,
    GONE,
    LEAF_BYTES,
    LOST,
    NUMBERED,
    Leaves,
    Marked,
    marked_tables,
)

LAST_SEAL: Final = "last_seal"  # the setting that holds the number of the last seal's event
_ADDED: Final = "hansard_added"
_CHANGED: Final = "hansard_changed"
_REMOVED: Final = "hansard_removed"
_FITS: Final = "hansard_fits"
_TOUCHED: Final = "hansard_touched"
# Of these it is asked whether a row is as Hansard wrote it, before anything follows from it.
_ASKED: Final = (
    "approval", "approval_claim", "principal_token", "browser_session", "sign_in_link",
    "policy_version", "policy_rule_set",
)  # fmt: skip
_LAST: Final = f"coalesce((SELECT value FROM setting WHERE name = '{LAST_SEAL}'), 0)"
_HAS_SEALS: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'seal_due'"
_DUE: Final = "SELECT id, table_name, row_key, after, mark FROM seal_due ORDER BY id LIMIT ?"


@dataclass(frozen=True, slots=True)
class SealMark:
    """A change that is not sealed yet."""

    id: int
    table: str
    key: str
    after: int  # the seal before it
    leaf: bytes  # of the row as it is since; GONE, LOST, ALTERED
    is_signed: bool


def mark_changes(connection: apsw.Connection, key: bytes) -> None:
    """Have every change of a sealed row through this connection leave a mark."""
    if connection.execute(_HAS_SEALS).get is None:
        return
    tables = marked_tables(connection)
    marker = _prepared(connection, Leaves(key), tables)
    connection.create_scalar_function(_ADDED, marker.added)
    connection.create_scalar_function(_CHANGED, marker.changed)
    connection.create_scalar_function(_REMOVED, marker.removed)
    connection.create_scalar_function(_TOUCHED, marker.touched)
    sql = [one for table in tables.values() for one in _marking(table)]
    sql += [one for name in NUMBERED for one in _touching(name)]
    sql += [_asking(tables[name]) for name in _ASKED if name in tables]
    connection.execute("".join(sql))


def question_rows(connection: apsw.Connection, key: bytes, names: Collection[str]) -> None:
    """Have `is_altered` and `is_removed` answer for some tables, on a connection that only reads.

    A sixth of what `mark_changes` takes.
    """
    tables = marked_tables(connection, names)
    _prepared(connection, Leaves(key), tables)
    connection.execute("".join(_asking(table) for table in tables.values()))


def _prepared(connection: apsw.Connection, leaves: Leaves, tables: dict[str, Marked]) -> _Marker:
    marker = _Marker(leaves, tables)
    connection.pragma("temp_store", "MEMORY")
    leaves.hash_keys(connection)
    connection.create_scalar_function(_FITS, marker.fits)
    return marker


class _Marker:
    """Makes marks; its functions are called by the triggers of one connection."""

    def __init__(self, leaves: Leaves, tables: dict[str, Marked]) -> None:
        self._leaves = leaves
        self._tables = tables
        self._numbered = {name: leaves.of_blob(name) for name in NUMBERED}

    def added(self, *arguments: Any) -> bytes:
        """Mark a row that was added: its name, key, last seal; what is known of it; its values."""
        name, of, after = arguments[:3]
        leaf = self._leaves.of_row(self._tables[name], of, arguments[7:])
        if self._known(name, of, arguments[3:7]) not in (None, GONE, LOST):
            leaf = ALTERED  # something else removed the row that had its key
        return self._mark(name, of, after, leaf)

    def changed(self, *arguments: Any) -> bytes:
        """Mark a row that was changed: as above, with its key before, and its values before."""
        name, of, before, after = arguments[:4]
        values = arguments[8:]
        table, half = self._tables[name], len(values) // 2
        was = self._leaves.of_row(table, before, values[half:])
        leaf = self._leaves.of_row(table, of, values[:half])
        if self._known(name, before, arguments[4:8]) != was:
            leaf = ALTERED
        return self._mark(name, of, after, leaf)

    def removed(self, *arguments: Any) -> bytes:
        """Mark a row that was removed."""
        name, of, after = arguments[:3]
        was = self._leaves.of_row(self._tables[name], of, arguments[7:])
        is_own = self._known(name, of, arguments[3:7]) == was
        return self._mark(name, of, after, GONE if is_own else LOST)

    def touched(self, *arguments: Any) -> bytes:
        """Mark a row of a numbered table that was changed, or, without what it is now, removed."""
        name, number, after = arguments[:3]
        of, blobs = str(number), arguments[7:]
        known = self._known(name, of, arguments[3:7])
        was, *now = (self._numbered[name](number, blob or b"") for blob in blobs)
        # Not sealed, and changed for the first time; or removed, and its number reused.
        is_new = known is None if arguments[3] is None else known in (GONE, LOST)
        if is_new or known == was:
            return self._mark(name, of, after, now[0] if now else GONE)
        return self._mark(name, of, after, ALTERED if now else LOST)

    def fits(self, *arguments: Any) -> bool:
        """Say whether a row is as it is known."""
        name, of = arguments[:2]
        found = self._leaves.of_row(self._tables[name], of, arguments[6:])
        return bool(self._known(name, of, arguments[2:6]) == found)

    def _known(self, name: str, of: str, values: tuple[Any, ...]) -> Any:
        """Return the leaf of a row by its last mark, or as it was sealed; None without either.

        Of a mark that Hansard did not sign, one that fits nothing.
        """
        made, after, sealed_after, leaf = values
        if made is None or after < (sealed_after or 0):
            return leaf
        signature = _signature(self._leaves, name, of, after, made[:LEAF_BYTES])
        return made[:LEAF_BYTES] if made[LEAF_BYTES:] == signature else ALTERED

    def _mark(self, name: str, of: str, after: int, leaf: bytes) -> bytes:
        return leaf + _signature(self._leaves, name, of, after, leaf)


def is_altered(connection: apsw.Connection, table: str, column: str, value: Any) -> bool:
    """Return whether a row with that value is not as Hansard wrote it.

    Its connection is one that marks changes, and the table one of `_ASKED`.
    """
    sql = f'SELECT 1 FROM temp."altered_{table}" WHERE "{column}" = ? LIMIT 1'
    try:
        return connection.execute(sql, (value,)).get is not None
    except UnicodeDecodeError:  # Hansard writes no text that is not UTF-8
        return True


def is_removed(connection: apsw.Connection, table: str, *, since: int) -> bool:
    """Return whether a row whose key begins with that number, or a later one, was removed.

    For tables of `_ASKED` whose rows Hansard itself never removes.
    """
    sql = f'SELECT 1 FROM temp."removed_{table}" WHERE CAST(row_key AS INTEGER) >= ? LIMIT 1'
    return connection.execute(sql, (since,)).get is not None


def read_marks(connection: apsw.Connection, leaves: Leaves, *, most: int) -> list[SealMark]:
    """Return marks in their order."""
    return [
        SealMark(
            number, table, key, after, mark[:LEAF_BYTES],
            mark[LEAF_BYTES:] == _signature(leaves, table, key, after, mark[:LEAF_BYTES]),
        )
        for number, table, key, after, mark in connection.execute(_DUE, (most,))
    ]  # fmt: skip


def _signature(leaves: Leaves, table: str, key: str, after: int, leaf: bytes) -> bytes:
    return leaves.signature(b"mark", f"{table}\0{key}\0{after}\0".encode() + leaf)


def _marking(table: Marked) -> list[str]:
    before, of = table.key("OLD"), table.key("NEW")
    now, was = table.values("NEW"), table.values("OLD")

    def trigger(event: str, key: str, made: str) -> str:
        return _trigger(event, table.name, key, made)

    name, known = f"'{table.name}'", _known(table, of)
    added = trigger("INSERT", of, f"{_ADDED}({name}, {of}, {_LAST}, {known}, {now})")
    if table.name in APPEND_ONLY:
        return [added]
    known = _known(table, before)
    arguments = f"{name}, {of}, {before}, {_LAST}, {known}, {now}, {was}"
    gone = f"{name}, {before}, {_LAST}, {known}, {was}"
    return [
        added,
        trigger(_update_of(table), of, f"{_CHANGED}({arguments})"),
        trigger("DELETE", before, f"{_REMOVED}({gone})"),
    ]


def _update_of(table: Marked) -> str:
    """Return the event of an update that changes more than counters."""
    return f"UPDATE OF {table.values()}" if table.name in COUNTERS else "UPDATE"


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
    arguments = f"'{table.name}', {of}, {_known(table, of)}, {table.values('t')}"
    return (
        f'CREATE TEMP VIEW "altered_{table.name}" AS '
        f'SELECT t.* FROM main."{table.name}" AS t WHERE NOT {_FITS}({arguments});'
        f'CREATE TEMP VIEW "removed_{table.name}" AS SELECT row_key FROM '
        f"(SELECT row_key FROM seal_row WHERE table_name = '{table.name}'"
        f" UNION SELECT row_key FROM seal_due WHERE table_name = '{table.name}')"
        f' WHERE row_key NOT IN (SELECT {of} FROM main."{table.name}" AS t);'
    )


def _touching(name: str) -> list[str]:
    table = NUMBERED[name]

    def trigger(event: str, row: str, when: str, blobs: str) -> str:
        number = f"OLD.{table.id}"
        of = f"CAST({number} AS TEXT)"
        last = f"FROM seal_due WHERE table_name = '{name}' AND row_key = {of}"
        arguments = ", ".join(
            f"(SELECT {one} {last} ORDER BY id DESC LIMIT 1)" for one in ("mark", "after")
        )
        made = (
            f"'{name}', {number}, {_LAST}, {arguments}, 0, {_leaf_in_block(name, number)}, {blobs}"
        )
        return _trigger(event, name, f"CAST({row}.{table.id} AS TEXT)", f"{_TOUCHED}({made})", when)

    was, now = table.blob("OLD"), table.blob("NEW")
    return [
        trigger(f"UPDATE OF {table.columns}", "NEW", f"WHEN {table.differs()} ", f"{was}, {now}"),
        trigger("DELETE", "OLD", "", was),
    ]


def _leaf_in_block(name: str, number: str) -> str:
    """Return the SQL of the leaf of a row of a numbered table; NULL above the last leaf."""
    of = f"FROM seal_block WHERE table_name = '{name}' AND block"
    at = f"{number} % {BLOCK} * {LEAF_BYTES} + 1"
    # Of a block that is not there, or ends before, a row that is there was added.
    return (
        f"coalesce((SELECT nullif(substr(leaves, {at}, {LEAF_BYTES}), x'') {of} = "
        f"{number} / {BLOCK}), "
        f"(SELECT zeroblob({LEAF_BYTES}) {of} > {number} / {BLOCK} LIMIT 1))"
    )


def _trigger(event: str, table: str, key: str, mark: str, when: str = "") -> str:
    name = f"seal_{event.partition(' ')[0]}_{table}".lower()
    return (
        f'CREATE TEMP TRIGGER "{name}" AFTER {event} ON main."{table}" {when}BEGIN '
        "INSERT INTO seal_due (table_name, row_key, after, mark) "
        f"VALUES ('{table}', {key}, {_LAST}, {mark}); END;"
    )

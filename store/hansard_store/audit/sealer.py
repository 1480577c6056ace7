"""Seals: leaves of what was written since the last one, bound into the audit log by one event.

An event `record.sealed` holds a hash of every block and bucket of leaves that changed; the last one
that names a block says what it must be. So the chain, and every stored head of it, holds all
primary rows as they were when last sealed, and nothing has to be stored of earlier states.
What was written since is unsealed, and counted as that. A crash loses no mark: those are written
with the change itself, and a row of a numbered table above the last leaf is simply not sealed yet.
Rows that something else had altered when Hansard removed them have no leaf; the event names them.
It also holds what each block and bucket was before: not what an earlier event says where something
else altered leaves, and so that stays named after they were sealed again.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit import events
from hansard_store.audit.event_types import Actor, Event, EventType, Head
from hansard_store.audit.schema_events import alterations_since
from hansard_store.audit.seal_marks import LAST_SEAL, SealMark, read_marks
from hansard_store.audit.seal_tables import (
    BLOCK,
    BUCKET,
    GONE,
    LEAF_BYTES,
    LOST,
    NUMBERED,
    Leaves,
    Marked,
    marked_tables,
)
from hansard_store.database.transactions import snapshot, transaction

MOST_ROWS: Final = 100_000  # of numbered tables, in one seal
MOST_MARKS: Final = 5_000
BUCKETS: Final = "seal_row"  # the table whose rows are hashed in buckets
_MOST_NAMED: Final = 100  # rows that were lost, in one seal
_FORM: Final = 1
_RANGE = rf"(?:(?:{'|'.join(NUMBERED)}) )?\d+ to \d+"
_PART = rf"(?:-?\d+|{_RANGE}|X'[0-9A-F]*'|[0-9a-f]{{16,}})"
_NUMBERS: Final = re.compile(rf"{_PART}(?:,{_PART})*", re.ASCII)
_HASH_DIGITS: Final = 32
_LAST_BLOCK = """
SELECT block, length(leaves) FROM seal_block WHERE table_name = ? ORDER BY block DESC LIMIT 1
"""
_LEAVES = "SELECT leaves FROM seal_block WHERE table_name = ? AND block = ?"
_PUT_BLOCK = """
INSERT INTO seal_block (table_name, block, leaves) VALUES (?, ?, ?)
ON CONFLICT (table_name, block) DO UPDATE SET leaves = excluded.leaves
"""
_DROP_BLOCK = "DELETE FROM seal_block WHERE table_name = ? AND block = ?"
_BLOCKS_OF = "SELECT block FROM seal_block WHERE table_name = ?"
_DROP_BLOCKS_OF = "DELETE FROM seal_block WHERE table_name = ?"
_FIND_ROW = "SELECT id, after FROM seal_row WHERE table_name = ? AND row_key = ?"
_ADD_ROW = "INSERT INTO seal_row (table_name, row_key, after, leaf) VALUES (?, ?, ?, ?)"
_SET_ROW = "UPDATE seal_row SET after = ?, leaf = ? WHERE id = ?"
_DROP_ROW = "DELETE FROM seal_row WHERE id = ?"
_ROWS_OF = "SELECT id FROM seal_row WHERE table_name = ?"
_BUCKET = """
SELECT id, table_name, row_key, after, leaf FROM seal_row WHERE id >= ? AND id < ? ORDER BY id
"""
_READ_LAST = f"SELECT value FROM setting WHERE name = '{LAST_SEAL}'"
_WRITE_LAST = f"""
INSERT INTO setting (name, value) VALUES ('{LAST_SEAL}', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_DROP_MARKS_OF = "DELETE FROM seal_due WHERE table_name = ?"
_DROP_MARKS = "DELETE FROM seal_due WHERE id <= ?"


@dataclass(slots=True)
class _Plan:
    """What one seal is to write; made from one state of the store, without its write lock."""

    last: int  # the seal before it
    marks: list[SealMark]
    blocks: dict[tuple[str, int], bytes] = field(default_factory=dict)
    was: dict[tuple[str, int], str] = field(default_factory=dict)  # hashes of leaves before it
    lost: list[tuple[str, str]] = field(default_factory=list)  # altered before they were removed
    rows: int = 0
    gone: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.marks and not self.blocks


@dataclass(frozen=True, slots=True)
class Sealed:
    """What one seal took in."""

    event: int
    rows: int
    is_all: bool  # nothing waited for the next one


def seal(connection: apsw.Connection, key: bytes) -> Sealed | None:
    """Seal what was written since the last seal, at most some; None where nothing was.

    The leaves are made before the write lock is taken. Of two processes that seal at once the
    second one leaves it to the next time.
    """
    leaves = Leaves(key)
    with snapshot(connection):
        plan = _plan(connection, leaves)
    if plan.is_empty:
        return None
    is_all = plan.rows < MOST_ROWS and len(plan.marks) < MOST_MARKS
    with transaction(connection):
        if last_seal(connection) != plan.last:
            return None
        return Sealed(_write(connection, leaves, plan), plan.rows, is_all)


def adopt(
    connection: apsw.Connection,
    key: bytes,
    tables: Iterable[str] | None = None,
    *,
    lost: Iterable[tuple[str, str]] = (),
) -> None:
    """Seal rows as they are, inside the caller's transaction: after a migration, and only then.

    `tables` None: all of them, which is for a store of before there were seals. `lost`: rows that
    were altered before the migration rewrote them; the seal names them. Of a table that is not
    there any more, the leaves are removed.
    """
    leaves = Leaves(key)
    leaves.hash_keys(connection)
    known = marked_tables(connection)
    names = [*known, *NUMBERED] if tables is None else list(tables)
    plan = _Plan(last_seal(connection), [], lost=list(lost))
    touched: set[int] = set()
    for name in names:
        connection.execute(_DROP_MARKS_OF, (name,))  # of the rows as they were
        if name in NUMBERED:
            _adopt_blocks(connection, leaves, plan, name)
            continue
        touched |= _drop_leaves(connection, name)
        if name in known:
            touched |= _adopt_rows(connection, leaves, plan, known[name])
    plan.was.clear()  # it was held against the chain before the migration
    _write(connection, leaves, plan, touched=touched)


def _drop_leaves(connection: apsw.Connection, name: str) -> set[int]:
    """Remove the leaves of a marked table; return the buckets they were in."""
    earlier: list[Any] = connection.execute(_ROWS_OF, (name,)).fetchall()
    for (number,) in earlier:
        connection.execute(_DROP_ROW, (number,))
    return {number // BUCKET for (number,) in earlier}


def _adopt_rows(
    connection: apsw.Connection, leaves: Leaves, plan: _Plan, table: Marked
) -> set[int]:
    """Make the leaves of a marked table; return the buckets they are in."""
    touched: set[int] = set()
    sql = f'SELECT {table.key()}, {table.values()} FROM "{table.name}"'
    for of, *values in connection.execute(sql):
        row = (table.name, of, plan.last, leaves.of_row(table, of, values))
        connection.execute(_ADD_ROW, row)
        touched.add(connection.last_insert_rowid() // BUCKET)
        plan.rows += 1
    return touched


def _adopt_blocks(connection: apsw.Connection, leaves: Leaves, plan: _Plan, name: str) -> None:
    earlier: list[Any] = connection.execute(_BLOCKS_OF, (name,)).fetchall()
    connection.execute(_DROP_BLOCKS_OF, (name,))
    plan.blocks |= {(name, block): b"" for (block,) in earlier}
    _Blocks(connection, leaves, plan, name).fill({}, most=None)


def last_seal(connection: apsw.Connection) -> int:
    """Return the number of the last seal's event, 0 before the first."""
    return int(connection.execute(_READ_LAST).get or 0)


def hash_of_block(leaves: bytes) -> str:
    """Return what the chain holds of a block, `` of none."""
    if not leaves:
        return ""
    return hashlib.sha256(leaves).hexdigest()[:_HASH_DIGITS]


def hash_of_bucket(rows: Sequence[Any]) -> str:
    """Return what the chain holds of some rows of seal_row, `` of none."""
    if not rows:
        return ""
    text = b"".join(
        f"{number}/{table}/{key}/{after}/".encode("utf-8", "surrogatepass") + leaf
        for number, table, key, after, leaf in rows
    )
    return hashlib.sha256(text).hexdigest()[:_HASH_DIGITS]


def read_bucket(connection: apsw.Connection, bucket: int) -> list[Any]:
    """Return the rows of seal_row that are hashed together."""
    bounds = (bucket * BUCKET, (bucket + 1) * BUCKET)
    rows: list[Any] = connection.execute(_BUCKET, bounds).fetchall()
    return rows


def is_signed(leaves: Leaves, body: Json, prev_hash: bytes) -> bool:
    """Say whether the body of a seal's event was written by Hansard, at this place of the chain."""
    return body.get("mac") == _mac(leaves, body, prev_hash)


# ---- reading what is to be sealed


def _plan(connection: apsw.Connection, leaves: Leaves) -> _Plan:
    marks = read_marks(connection, leaves, most=MOST_MARKS)
    plan = _Plan(last_seal(connection), marks)
    plan.lost += [(one.table, one.key) for one in marks if one.is_signed and one.leaf == LOST]
    _plan_blocks(connection, leaves, plan, most=MOST_ROWS)
    plan.rows += len({(one.table, one.key) for one in marks if one.table not in NUMBERED})
    return plan


def _plan_blocks(
    connection: apsw.Connection, leaves: Leaves, plan: _Plan, *, most: int | None
) -> None:
    touched: dict[str, dict[int, bytes]] = {}
    for mark in plan.marks:
        if mark.table in NUMBERED and mark.is_signed and mark.key.isdecimal():
            touched.setdefault(mark.table, {})[int(mark.key)] = mark.leaf
    for name in NUMBERED:
        left = None if most is None else max(0, most - plan.rows)
        _Blocks(connection, leaves, plan, name).fill(touched.get(name, {}), most=left)


class _Blocks:
    """The blocks of leaves of one numbered table, as they are to be."""

    def __init__(self, connection: apsw.Connection, leaves: Leaves, plan: _Plan, name: str) -> None:
        self._connection = connection
        self._plan = plan
        self._name = name
        self._of = NUMBERED[name]
        self._leaf = leaves.of_blob(name)
        self._changed: dict[int, bytearray] = {}

    def fill(self, touched: Mapping[int, bytes], *, most: int | None) -> None:
        """Take in rows above the last leaf, at most some, and those that were touched below it."""
        last = last_leaf(self._connection, self._name)
        for number, leaf in touched.items():
            if number <= last and leaf in (GONE, LOST):
                self._read_again(number)
            elif number <= last:
                self._set(number, leaf)
                self._plan.rows += 1
        for number, blob in self._above(last, most):
            self._set(number, self._leaf(number, blob))
            self._plan.rows += 1
        for block, leaves in self._changed.items():
            self._plan.blocks[self._name, block] = _trimmed(leaves)

    def _above(self, last: int, most: int | None) -> Iterator[tuple[int, bytes]]:
        sql = (
            f"SELECT {self._of.id}, {self._of.blob()} FROM {self._name} "
            f"WHERE {self._of.id} > ? ORDER BY {self._of.id} LIMIT ?"
        )
        rows: Any = self._connection.execute(sql, (last, -1 if most is None else most))
        return iter(rows)

    def _read_again(self, number: int) -> None:
        sql = f"SELECT {self._of.blob()} FROM {self._name} WHERE {self._of.id} = ?"
        blob = self._connection.execute(sql, (number,)).get
        self._set(number, GONE if blob is None else self._leaf(number, blob))
        if blob is None:
            self._plan.gone += 1
        else:
            self._plan.rows += 1

    def _set(self, number: int, leaf: bytes) -> None:
        block, at = divmod(number, BLOCK)
        leaves = self._changed.get(block)
        if leaves is None:
            found = self._connection.execute(_LEAVES, (self._name, block)).get
            leaves = self._changed[block] = bytearray(found or b"")
            self._plan.was[self._name, block] = hash_of_block(found or b"")
        end = (at + 1) * LEAF_BYTES
        if len(leaves) < end:
            leaves.extend(bytes(end - len(leaves)))
        leaves[end - LEAF_BYTES : end] = leaf


def last_leaf(connection: apsw.Connection, name: str) -> int:
    """Return the id of the last row of a numbered table that has a leaf, 0 where none has."""
    row: Any = connection.execute(_LAST_BLOCK, (name,)).fetchone()
    return 0 if row is None else int(row[0]) * BLOCK + int(row[1]) // LEAF_BYTES - 1


def _trimmed(leaves: bytearray) -> bytes:
    """Return leaves up to the last row that is there: ids of those behind it are reused."""
    end = len(leaves)
    while end and leaves[end - LEAF_BYTES : end] == GONE:
        end -= LEAF_BYTES
    return bytes(leaves[:end])


# ---- writing it


def _write(
    connection: apsw.Connection, leaves: Leaves, plan: _Plan, *, touched: set[int] | None = None
) -> int:
    after = events.head(connection)
    buckets = _write_rows(connection, plan) | (touched or set())
    for (name, block), made in plan.blocks.items():
        if made:
            connection.execute(_PUT_BLOCK, (name, block, made))
        else:
            connection.execute(_DROP_BLOCK, (name, block))
    body: Json = {
        "form": _FORM,
        "key": leaves.key_id,
        "rows": plan.rows,
        "gone": plan.gone,
        "blocks": _by_table({one: hash_of_block(made) for one, made in plan.blocks.items()}),
        "buckets": {
            str(one): hash_of_bucket(read_bucket(connection, one)) for one in sorted(buckets)
        },
    }
    if altered := alterations_since(connection, plan.last):
        body["altered"] = altered  # of these rows some were written through an altered schema
    if plan.was:
        body["was"] = _by_table(plan.was)
    if plan.lost:
        named = sorted(set(plan.lost))
        body["lost"] = [[name, _named(leaves, key)] for name, key in named[:_MOST_NAMED]]
        body["lost_count"] = len(named)
    if plan.marks:
        connection.execute(_DROP_MARKS, (plan.marks[-1].id,))
    number = _append(connection, leaves, body, after)
    connection.execute(_WRITE_LAST, (number,))
    return number


def _by_table(hashes: Mapping[tuple[str, int], str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for (name, number), text in hashes.items():
        found.setdefault(name, {})[str(number)] = text
    return found


def _named(leaves: Leaves, key: str) -> str:
    """Return a row's key for the log, which holds no words: they are hashed."""
    is_plain = _NUMBERS.fullmatch(key) is not None
    return key if is_plain else leaves.signature(b"key", key.encode()).hex()


def _write_rows(connection: apsw.Connection, plan: _Plan) -> set[int]:
    """Write the leaves of marked rows as their last marks say; return the buckets they are in."""
    last = {
        (one.table, one.key): one
        for one in plan.marks
        if one.is_signed and one.table not in NUMBERED
    }
    buckets: set[int] = set()
    for mark in last.values():
        found: Any = connection.execute(_FIND_ROW, (mark.table, mark.key)).fetchone()
        if found is not None and mark.after < found[1]:
            continue  # a mark of earlier, written again by somebody else
        if mark.leaf in (GONE, LOST):
            plan.gone += 1
        if found is not None:
            _keep_hash(connection, plan, found[0] // BUCKET)
            buckets.add(found[0] // BUCKET)
            if mark.leaf in (GONE, LOST):
                connection.execute(_DROP_ROW, (found[0],))
            else:
                connection.execute(_SET_ROW, (mark.after, mark.leaf, found[0]))
        elif mark.leaf not in (GONE, LOST):
            connection.execute(_ADD_ROW, (mark.table, mark.key, mark.after, mark.leaf))
            number = connection.last_insert_rowid()
            _keep_hash(connection, plan, number // BUCKET, without=number)
            buckets.add(number // BUCKET)
    return buckets


def _keep_hash(
    connection: apsw.Connection, plan: _Plan, bucket: int, *, without: int | None = None
) -> None:
    """Keep what a bucket was before this seal: `without` the row that was just added to it."""
    if (BUCKETS, bucket) not in plan.was:
        rows = [row for row in read_bucket(connection, bucket) if row[0] != without]
        plan.was[BUCKETS, bucket] = hash_of_bucket(rows)


def _append(connection: apsw.Connection, leaves: Leaves, body: Json, after: Head) -> int:
    signed = {**body, "mac": _mac(leaves, body, after.hash)}
    return events.append(
        connection,
        Event(
            type=EventType.RECORD_SEALED,
            actor=Actor.SYSTEM,
            who="hansard",
            action="seal",
            source="store",
            subject="store",
            time_ns=time.time_ns(),
            body=signed,
        ),
    )


def _mac(leaves: Leaves, body: Json, prev_hash: bytes) -> str:
    unsigned = {name: value for name, value in body.items() if name != "mac"}
    return leaves.signature(b"seal", prev_hash + canonical_bytes(unsigned)).hex()

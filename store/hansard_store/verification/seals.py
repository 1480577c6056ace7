"""Rows against their leaves, and the leaves against the audit log's chain (audit/sealer.py).

A row is as Hansard wrote it when it fits the leaf that was sealed, or the mark of a change that is
not sealed yet. What has neither was written, and what has a leaf and is not there was removed, by
something else. Memory is bounded by the blocks of the store: 16 bytes for 512 rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import apsw

from hansard_compiler.renamed import current_table
from hansard_store.audit.seal_marks import SealMark, read_marks
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
from hansard_store.audit.sealer import (
    BUCKETS,
    hash_of_block,
    hash_of_bucket,
    is_signed,
    last_leaf,
    read_bucket,
)
from hansard_store.database.transactions import snapshot

Found = Iterator[tuple[str, str, str]]  # table, row, message

_TOMBSTONE: Final = "tombstone"
_MOST_OF_TABLE: Final = 50  # rows that are named
_BLOCKS_AT_ONCE: Final = 8  # in one state of the store
_ALL: Final = -1
_ALTERED: Final = "is not as Hansard wrote it"
_REMOVED: Final = "was removed by something other than Hansard"
_ADDED: Final = "was written by something other than Hansard"
_LOST: Final = "was altered by something other than Hansard, before Hansard removed or replaced it"
_REPLACED: Final = "were not the leaves that were sealed, when Hansard sealed them again"
_NO_ROW: Final = (GONE, LOST)
_SEALS: Final = """
SELECT seq, time_ns, body, prev_hash FROM event INDEXED BY event_type
WHERE type = 'record.sealed' AND type NOT IN ('tool.called', 'tool.returned') AND seq > ?
ORDER BY seq
"""
_LEAVES: Final = "SELECT leaves FROM seal_block WHERE table_name = ? AND block = ?"
_LAST_ROW: Final = "SELECT max(id) FROM seal_row"
_COUNT_ROWS: Final = "SELECT count(*) FROM seal_row WHERE table_name = ?"
_KEYS: Final = "SELECT row_key FROM seal_row WHERE table_name = ?"
_BLOB: Final = re.compile(r"X'([0-9A-F]*)'")


@dataclass(slots=True)
class SealReport:
    """What the check of the seals found beside broken rows."""

    rows: int = 0
    tombstones: int = 0  # of deleted runs
    held_tombstones: int = 0  # of these, as the chain holds them
    unsealed: int = 0  # rows and changes that are not sealed yet
    since_ns: int | None = None  # when the first seal was made
    last_ns: int | None = None
    altered_rows: int = 0  # of seals that took in what was written through an altered schema
    altered_events: list[int] = field(default_factory=list)  # those that say so


@dataclass(slots=True)
class SealCheck:
    """Holds every sealed row; iterate `run` once, then read `report`."""

    connection: apsw.Connection
    key: bytes
    report: SealReport = field(default_factory=SealReport)
    tables: frozenset[str] | None = None  # None: all
    _seq: int = 0
    _blocks: dict[tuple[str, int], str] = field(default_factory=dict)
    _buckets: dict[int, str] = field(default_factory=dict)
    _pending: dict[tuple[str, str], SealMark] = field(default_factory=dict)
    _is_of_another_key: bool = False

    def run(self) -> Found:
        """Yield what differs."""
        leaves = Leaves(self.key)
        leaves.hash_keys(self.connection)
        with snapshot(self.connection):
            yield from self._read_chain(leaves)
            if self._is_of_another_key:
                return
            yield from self._read_marks(leaves)
            yield from self._check_buckets()
            for table in marked_tables(self.connection).values():
                if not self._covers(table.name):
                    continue
                found = _Rows(self, leaves, table).run()
                yield from islice(found, _MOST_OF_TABLE)
        for name in filter(self._covers, NUMBERED):
            yield from islice(_Numbered(self, leaves, name).run(), _MOST_OF_TABLE)
        self.report.unsealed += len(self._pending)

    def _covers(self, table: str) -> bool:
        return self.tables is None or table in self.tables

    def refresh(self, leaves: Leaves) -> None:
        """Take in what was sealed and written since, at the beginning of another state."""
        for _ in self._read_chain(leaves):
            pass
        for _ in self._read_marks(leaves):
            pass

    def expected(self, table: str, block: int) -> str:
        """Return what the chain holds of a block; `` of none."""
        return self._blocks.get((table, block), "")

    def pending(self, table: str, key: str) -> SealMark | None:
        """Return the last mark of a row that is not sealed yet."""
        return self._pending.get((table, key))

    def _read_chain(self, leaves: Leaves) -> Found:
        for seq, time_ns, body, prev_hash in self.connection.execute(_SEALS, (self._seq,)):
            self._seq = seq
            seal = _object(body)
            if seal.get("key") not in (None, leaves.key_id):
                self._is_of_another_key = True
                yield "seal_row", "", "cannot be checked: the seals are of another key than `key`"
                return
            if not is_signed(leaves, seal, prev_hash):
                yield "event", str(seq), "is no seal of Hansard's: its signature does not fit"
                continue
            yield from self._replaced(seal.get("was", {}))
            for name, blocks in seal["blocks"].items():
                self._blocks |= {(name, int(one)): text for one, text in blocks.items()}
            self._buckets |= {int(one): text for one, text in seal["buckets"].items()}
            self.report.since_ns = self.report.since_ns or time_ns
            self.report.last_ns = time_ns
            for name, key in seal.get("lost", ()):
                yield current_table(name), shown(key), _LOST
            if seal.get("lost_count", 0) > len(seal.get("lost", ())):
                yield "event", str(seq), f"names {seal['lost_count']} rows: each {_LOST}"
            if altered := seal.get("altered"):
                self.report.altered_rows += int(seal["rows"])
                self.report.altered_events += altered

    def _replaced(self, was: dict[str, dict[str, str]]) -> Found:
        """Yield the leaves that a seal found, and that were not those of the seal before it."""
        for name, hashes in was.items():
            for one, text in hashes.items():
                number = int(one)
                if name == BUCKETS and text != self._buckets.get(number, ""):
                    yield BUCKETS, _rows_of(number, BUCKET), _REPLACED
                elif name != BUCKETS and text != self.expected(name, number):
                    yield "seal_block", f"{name} {_rows_of(number, BLOCK)}", _REPLACED

    def _read_marks(self, leaves: Leaves) -> Found:
        self._pending.clear()
        for mark in read_marks(self.connection, leaves, most=_ALL):
            if mark.is_signed:
                self._pending[mark.table, mark.key] = mark
                if mark.leaf == LOST:
                    yield mark.table, shown(mark.key), _LOST
            else:
                yield "seal_due", str(mark.id), f"a mark {_ADDED}"

    def _check_buckets(self) -> Found:
        last = self.connection.execute(_LAST_ROW).get or 0
        there = range(int(last) // BUCKET + 1)
        for bucket in sorted({*there, *self._buckets}):
            rows = read_bucket(self.connection, bucket)
            if hash_of_bucket(rows) != self._buckets.get(bucket, ""):
                yield (
                    BUCKETS,
                    _rows_of(bucket, BUCKET),
                    "are not the leaves that were sealed: one of them was altered",
                )


@dataclass(slots=True)
class _Rows:
    """Rows of one marked table."""

    check: SealCheck
    leaves: Leaves
    table: Marked
    _with_leaf: int = 0

    def run(self) -> Found:
        connection, name = self.check.connection, self.table.name
        sql = (
            f"SELECT {self.table.key('t')}, s.leaf, s.after, {self.table.values('t')} "
            f'FROM "{name}" AS t LEFT JOIN seal_row AS s '
            f"ON s.table_name = ? AND s.row_key = {self.table.key('t')}"
        )
        for key, leaf, after, *values in connection.execute(sql, (name,)):
            self.check.report.rows += 1
            self._with_leaf += leaf is not None
            problem = self._problem(key, leaf, after, values)
            if name == _TOMBSTONE:
                self.check.report.tombstones += 1
                self.check.report.held_tombstones += leaf is not None and problem is None
            if problem is not None:
                yield name, shown(key), problem
        gone = [one for one in self.check._pending.values() if one.table == name]
        marked_gone = {one.key for one in gone if one.leaf in _NO_ROW}
        leafs = int(connection.execute(_COUNT_ROWS, (name,)).get)
        if leafs - self._with_leaf != 0 or gone:
            yield from self._missing(marked_gone, {one.key for one in gone} - marked_gone)

    def _problem(self, key: str, leaf: bytes | None, after: int | None, values: Any) -> str | None:
        mark = self.check.pending(self.table.name, key)
        found = self.leaves.of_row(self.table, key, values)
        if mark is not None and mark.after >= (after or 0):
            return None if mark.leaf == found else _ADDED if mark.leaf in _NO_ROW else _ALTERED
        if leaf is not None:
            return None if leaf == found else _ALTERED
        if self.check.report.since_ns is not None:
            return _ADDED
        self.check.report.unsealed += 1
        return None

    def _missing(self, gone: set[str], written: set[str]) -> Found:
        """Yield rows that have a leaf or a mark, and are not there."""
        connection, name = self.check.connection, self.table.name
        keys: Any = connection.execute(f'SELECT {self.table.key()} FROM "{name}"')
        there = {key for (key,) in keys}
        sealed: Any = connection.execute(_KEYS, (name,))
        for key in sorted(({key for (key,) in sealed} | written) - there - gone):
            yield name, shown(key), _REMOVED


@dataclass(slots=True)
class _Numbered:
    """Rows of one numbered table."""

    check: SealCheck
    leaves: Leaves
    name: str

    def run(self) -> Found:
        connection = self.check.connection
        block = 0
        while True:
            with snapshot(connection):
                self.check.refresh(self.leaves)
                last = last_leaf(connection, self.name)
                positions = [
                    one
                    for (name, one), text in self.check._blocks.items()
                    if name == self.name and text
                ]
                end = max([last // BLOCK, *positions], default=0)
                for number in range(block, min(block + _BLOCKS_AT_ONCE, end + 1)):
                    yield from self._block(number, last)
                block += _BLOCKS_AT_ONCE
                if block > end:
                    self.check.report.unsealed += self._above(last)
                    return

    def _block(self, block: int, last: int) -> Found:
        connection, of = self.check.connection, NUMBERED[self.name]
        found = connection.execute(_LEAVES, (self.name, block)).get or b""
        first = block * BLOCK
        if hash_of_block(found) != self.check.expected(self.name, block):
            rows = f"{self.name} {_rows_of(block, BLOCK)}"
            yield "seal_block", rows, "are not the leaves that were sealed"
        sql = f"SELECT {of.id}, {of.blob()} FROM {self.name} WHERE {of.id} >= ? AND {of.id} < ?"
        leaf_of = self.leaves.of_blob(self.name)
        there: set[int] = set()
        for number, blob in connection.execute(sql, (first, min(first + BLOCK, last + 1))):
            there.add(number)
            self.check.report.rows += 1
            leaf = _leaf_at(found, number - first)
            mark = self.check.pending(self.name, str(number))
            if mark is not None and mark.leaf in _NO_ROW:
                continue  # its number was reused
            if leaf_of(number, blob) != (leaf if mark is None else mark.leaf):
                yield self.name, str(number), _ADDED if leaf == GONE else _ALTERED
        for at in range(len(found) // LEAF_BYTES):
            if first + at in there or _leaf_at(found, at) == GONE:
                continue
            mark = self.check.pending(self.name, str(first + at))
            if mark is None or mark.leaf not in _NO_ROW:
                yield self.name, str(first + at), _REMOVED

    def _above(self, last: int) -> int:
        of = NUMBERED[self.name]
        sql = f"SELECT count(*) FROM {self.name} WHERE {of.id} > ?"
        return int(self.check.connection.execute(sql, (last,)).get)


def shown(key: str) -> str:
    """Return a key as a person looks a row up: ids as hex digits, texts as they are."""
    text = _BLOB.sub(lambda match: match[1].lower(), key)
    return text[1:-1].replace("''", "'") if re.fullmatch(r"'[^,]*'", text) else text


def _rows_of(number: int, size: int) -> str:
    return f"{number * size} to {(number + 1) * size - 1}"


def _leaf_at(leaves: bytes, at: int) -> bytes:
    found = leaves[at * LEAF_BYTES : (at + 1) * LEAF_BYTES]
    return found or GONE


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

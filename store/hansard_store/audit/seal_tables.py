"""Which tables are sealed and how, and the leaf of a row: a keyed hash of what must not change.

- *numbered* tables are what ingest fills: an id rises with every row. Rows are sealed in the order
  of their ids, so adding one costs nothing at the time.
- *marked* tables are every other table, unless `NOT_SEALED` says why not: each change leaves a mark
  (seal_marks.py). A table of a later version is a marked one without being named here.

A leaf is keyed, so that nobody without the store's key can write one, and nothing follows from it.
Columns that are as their default, NULL without one, are left out: a migration that adds such a
column leaves every leaf as it was.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import apsw

LEAF_BYTES: Final = 16
BLOCK: Final = 512  # rows of a numbered table whose leaves lie together
BUCKET: Final = 256  # rows of seal_row that are hashed together
GONE: Final = bytes(LEAF_BYTES)  # in a block: there is no such row
ALTERED: Final = b"\xff" * LEAF_BYTES  # fits no row: Hansard changed one that did not fit
LOST: Final = b"\xfe" * LEAF_BYTES  # in a mark: Hansard removed a row that did not fit

# SQLite joins blobs to a text, byte by byte. `{}` is the row.
_OF_ITEM: Final = (
    "CAST(printf('%d/%d/%d/%d/%d/', {0}ordinal, {0}time_ns, {0}received_ns, {0}resource, {0}scope)"
    " || {0}mac || {0}record AS BLOB)"
)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A table that ingest fills: its id, what its leaf is over, and the columns of that."""

    id: str
    leaf_of: str  # SQL, with the row as `{0}`
    columns: str  # an update of these is marked

    def blob(self, row: str = "") -> str:
        """Return the SQL of what the leaf is over."""
        return self.leaf_of.format(f"{row}." if row else "")

    def differs(self) -> str:
        """Return the SQL of whether an update changes what must not change."""
        names = self.columns.split(", ")
        return " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in names)


# A span is held by its record, and by who sent it; a content by its digest, which verify holds its
# bytes against. What else is in these tables is derived.
NUMBERED: Final[Mapping[str, Numbered]] = {
    "span_record": Numbered(
        "span",
        "CAST(printf('%d/%d/%d/', {0}received_ns, {0}attribute_count, length({0}record))"
        " || {0}mac || {0}record || coalesce({0}notes, '') AS BLOB)",
        "span, mac, received_ns, attribute_count, notes, record",
    ),
    "span": Numbered(
        "id",
        "CAST(printf('%d/%d/%d/%d/', {0}side, {0}run, {0}resource, {0}scope)"
        " || {0}trace_id || {0}span_id AS BLOB)",
        "id, side, run, resource, scope, trace_id, span_id",
    ),
    "log_record": Numbered(
        "id", _OF_ITEM, "id, mac, ordinal, time_ns, received_ns, resource, scope, record"
    ),
    "metric_point": Numbered(
        "id", _OF_ITEM, "id, mac, ordinal, time_ns, received_ns, resource, scope, record"
    ),
    "content": Numbered(
        "id", "CAST(printf('%d/', {0}size) || {0}digest AS BLOB)", "id, digest, size"
    ),
    "content_list": Numbered(
        "id", "CAST(printf('%d/%d', {0}parent, {0}content) AS BLOB)", "id, parent, content"
    ),
}
_DERIVED: Final = "derived: `hansard verify --deep` derives it again"
NOT_SEALED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "run", "run_facet", "call", "usage_sum", "usage_below", "text", "text_use",
            "message_prefix", "tool_event", "compilation", "receipt", "span_link", "session_log",
            "traced_turn", "figure", "error_step",
        ),
        _DERIVED,
    ),
    "event": "the chain holds it",
    "event_content": "the chain holds it",
    "seal_row": "the chain holds it",
    "seal_block": "the chain holds it",
    "seal_due": "each mark is signed",
    "content_use": "held against the records that name a content",
    "content_list_use": "held against the records that name a list",
    "figure_due": "how far this program is with its own work; no record",
    "setting": "how far this program is with its own work; no record",
    "evaluated_run": "how far this program is with its own work; no record",
    "process_keepalive": "until when a process is assumed to be alive; no record",
    "memory_pair": "without a row the classifier is asked again",
    "memory_compared": "how far maintenance is with its own work; no record",
    "memory_embedding": "without a row the embedder is asked again",
}  # fmt: skip
# What is only ever added, by trigger of its own: a change of it needs no mark, as there is none.
APPEND_ONLY: Final = frozenset(
    {
        "conversation", "branch", "branch_end", "branch_message", "branch_checkpoint",
        "branch_mark", "transcript_message", "checkpoint", "transcript_mark", "transcript_archive",
    }
)  # fmt: skip

# How often and when something was seen again: every cycle writes it, and nothing follows from it.
COUNTERS: Final[Mapping[str, frozenset[str]]] = {
    "claim_verdict": frozenset({"count", "last_seen_ns"}),
}

# Columns of primary keys that hold words, which a purge has to take: hashed in the keys of leaves.
_WORDS: Final = frozenset({("memory_tag", "tag")})
_HASH_KEY: Final = "hansard_key"

_TABLES = r"""
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE '%\_fts%' ESCAPE '\'
ORDER BY name
"""
_COLUMNS = "SELECT name, pk, dflt_value FROM pragma_table_info(?)"


@dataclass(frozen=True, slots=True)
class Marked:
    """A table each of whose changes is marked, but those of its counters."""

    name: str
    columns: tuple[str, ...]  # without counters
    keys: tuple[str, ...]
    defaults: tuple[Any, ...]

    def key(self, row: str = "") -> str:
        """Return the SQL of a row's key: its primary key as SQL literals, joined by commas.

        Its connection has to know how to hash (`hash_keys`).
        """
        prefix = f"{row}." if row else ""
        parts = [
            f'{_HASH_KEY}({prefix}"{one}")'
            if (self.name, one) in _WORDS
            else f'quote({prefix}"{one}")'
            for one in self.keys
        ]
        return " || ',' || ".join(parts)

    def values(self, row: str = "") -> str:
        """Return the SQL of the columns that are sealed."""
        prefix = f"{row}." if row else ""
        return ", ".join(f'{prefix}"{one}"' for one in self.columns)


def marked_tables(
    connection: apsw.Connection, names: Collection[str] | None = None
) -> dict[str, Marked]:
    """Return the marked tables of a database by name: every one, or those that are named."""
    found: list[Any] = connection.execute(_TABLES).fetchall()
    left = NUMBERED.keys() | NOT_SEALED.keys()
    return {
        name: _marked(connection, name)
        for (name,) in found
        if name not in left and (names is None or name in names)
    }


def _marked(connection: apsw.Connection, name: str) -> Marked:
    found: list[Any] = connection.execute(_COLUMNS, (name,)).fetchall()
    rows = [row for row in found if row[0] not in COUNTERS.get(name, ())]
    defaults = tuple(
        None if default is None else connection.execute(f"SELECT {default}").get
        for _, _, default in rows
    )
    keys = [column for column, key, _ in sorted(rows, key=lambda row: int(row[1])) if key]
    return Marked(name, tuple(row[0] for row in rows), tuple(keys or ("rowid",)), defaults)


def last_id(table: str) -> str:
    """Return the SQL of the last id of a numbered table, 0 of none; new rows are numbered after it.

    Where the last rows were removed it is that of the last leaf: until the next seal takes in the
    removal, a row with the id of one of them would be held against that leaf.
    """
    return (
        f"SELECT max(coalesce((SELECT max(id) FROM {table}), 0), coalesce(("
        f"SELECT block * {BLOCK} + length(leaves) / {LEAF_BYTES} - 1 FROM seal_block "
        f"WHERE table_name = '{table}' ORDER BY block DESC LIMIT 1), 0))"
    )


class Leaves:
    """Makes leaves and marks with one store's key."""

    def __init__(self, key: bytes) -> None:
        derived = hashlib.blake2b(key, digest_size=32, person=b"hansard seal").digest()
        self._keyed = hashlib.blake2b(key=derived, digest_size=LEAF_BYTES)
        self.key_id = hashlib.blake2b(derived, digest_size=8).hexdigest()

    def of_blob(self, table: str) -> Callable[[int, bytes], bytes]:
        """Return what makes the leaf of a row of a numbered table."""
        begun = self._begun(b"numbered", table)
        return lambda number, blob: self._ended(begun, b"%d/" % number + blob)

    def of_row(self, table: Marked, key: str, values: Sequence[Any]) -> bytes:
        """Return the leaf of a row of a marked table."""
        parts = [_part(key)]
        for name, value, default in zip(table.columns, values, table.defaults, strict=True):
            if value != default:
                parts += (_name_part(name), _part(value))
        return self._ended(self._begun(b"marked", table.name), b"".join(parts))

    def signature(self, word: bytes, text: bytes) -> bytes:
        """Return a keyed hash of what Hansard itself wrote."""
        return self._ended(self._begun(b"signed", word.decode()), text)

    def hash_keys(self, connection: apsw.Connection) -> None:
        """Let a connection make the keys of rows."""

        def hashed(*arguments: Any) -> str:
            return f"X'{self.signature(b'key', str(arguments[0]).encode()).hex().upper()}'"

        connection.create_scalar_function(_HASH_KEY, hashed, 1, deterministic=True)

    def _begun(self, kind: bytes, name: str) -> Any:
        begun = self._keyed.copy()
        begun.update(kind + b"\0" + name.encode() + b"\0")
        return begun

    def _ended(self, begun: Any, text: bytes) -> bytes:
        made = begun.copy()
        made.update(text)
        found: bytes = made.digest()
        return found


@cache
def _name_part(name: str) -> bytes:
    """Return the part of a column's name."""
    return _part(name)


def _part(value: Any) -> bytes:
    """Return a value so that no two lists of values make the same bytes."""
    if isinstance(value, bytes):
        return b"b%d:" % len(value) + value
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return b"s%d:" % len(text) + text
    if value is None:
        return b"n"
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    return b"i%d;" % value

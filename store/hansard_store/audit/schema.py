"""The schema of a store, held against what the shipped migrations make.

A trigger that is added to a table has Hansard itself write, and seal, what the trigger says; a view
that is replaced answers with what is nowhere. So the objects of `sqlite_schema` are compared with
those that the migrations make in a database in memory: by kind, name, table and text, the text
without comments and white space. Of the tables that FTS5 makes names and constraints count,
of SQLite's own statistics nothing. Cost: 35 ms a process for the first comparison, then 1 ms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple

import apsw

_OBJECTS: Final = "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema"
_COLUMNS: Final = 'PRAGMA table_xinfo("{}")'
_FTS_PARTS: Final = ("data", "idx", "content", "docsize", "config")
_TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|\w+|\s+|.""",
    re.DOTALL,
)
_QUOTED_WORD: Final = re.compile(r'"(\w+)"')
_VIRTUAL: Final = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_UNIQUE: Final = re.compile(r"\s*CREATE\s+UNIQUE\s", re.IGNORECASE)
_STATISTICS: Final = re.compile(r"sqlite_stat[1-4]")
_RULES: Final = {"CONFLICT", "CHECK", "DEFAULT", "AS", "COLLATE", "REFERENCES", "NOT", "UNIQUE"}
_MOST_NAME: Final = 100  # characters of a name that somebody else gave
_FAR: Final = 1 << 30

State = Literal["added", "missing", "altered"]


class SchemaObject(NamedTuple):
    """A row of sqlite_schema."""

    kind: str  # table, index, trigger or view
    name: str
    table: str
    sql: str | None  # None: an index that a constraint of its table makes

    @property
    def is_unique(self) -> bool:
        """Whether it is an index that refuses rows."""
        return self.sql is None or _UNIQUE.match(self.sql) is not None

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual table."""
        return self.kind == "table" and _VIRTUAL.match(self.sql or "") is not None


@dataclass(frozen=True, slots=True)
class Alteration:
    """An object that differs from the shipped one, is missing, or was added."""

    kind: str
    name: str
    table: str  # whose trigger or index it is; its own name else
    state: State
    is_harmless: bool = False  # rows are read and written as without it
    detail: str = ""

    def __str__(self) -> str:
        on = f" on {self.table[:_MOST_NAME]}" if self.kind in ("trigger", "index") else ""
        what = {
            "added": "is not of Hansard",
            "missing": "is missing",
            "altered": "is not as Hansard makes it",
        }[self.state]
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind} {self.name[:_MOST_NAME]!r}{on} {what}{detail}"


def migrations() -> list[tuple[int, str, str]]:
    """Return the shipped migrations in their order: (schema version, name, SQL)."""
    found = []
    for entry in files("hansard_store").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, entry.read_text(encoding="utf-8")))
    return sorted(found)


def alterations(connection: apsw.Connection, version: int | None = None) -> list[Alteration]:
    """Return how the schema differs from that of a version, harmless differences last.

    `version` None: the one that the database says it has.
    """
    shipped = Shipped.of(int(connection.pragma("user_version")) if version is None else version)
    rows: Any = connection.execute(_OBJECTS).fetchall()
    found = [SchemaObject(*row[:4]) for row in rows]
    made = [
        *_twice(found),
        *_sharing_pages(rows),
        *_added_or_altered(connection, shipped, found),
        *_missing(shipped, found),
    ]
    return sorted(dict.fromkeys(made), key=lambda one: (one.is_harmless, one.kind, one.name))


@dataclass(frozen=True, slots=True)
class Shipped:
    """The schema that the migrations up to a version make."""

    connection: apsw.Connection  # of the database in memory
    objects: dict[tuple[str, str], SchemaObject]

    @staticmethod
    @cache
    def of(version: int) -> Shipped:
        """Make it, once a process and version."""
        connection = apsw.Connection(":memory:")
        for number, _, sql in migrations():
            if number <= version:
                connection.execute(sql)
        rows: Any = connection.execute(_OBJECTS).fetchall()
        objects = [SchemaObject(*row[:4]) for row in rows]
        return Shipped(connection, {(one.kind, one.name): one for one in objects})

    def columns(self, table: str) -> list[Any]:
        """Return the columns of a table, as SQLite describes them."""
        return columns_of(self.connection, table)


def columns_of(connection: apsw.Connection, table: str) -> list[Any]:
    """Return (position, name, type, not null, default, primary key, hidden) of each column."""
    name = table.replace('"', '""')
    rows: list[Any] = connection.execute(_COLUMNS.format(name)).fetchall()
    return rows


def _twice(found: Sequence[SchemaObject]) -> list[Alteration]:
    counted = Counter((one.kind, one.name, one.table) for one in found)
    return [
        Alteration(*key, "altered", detail="it is there more than once")
        for key, count in counted.items()
        if count > 1
    ]


def _sharing_pages(rows: Iterable[Any]) -> list[Alteration]:
    """Return the tables and indexes that were made to lead to the pages of another one."""
    taken: set[int] = set()
    sharing = []
    for kind, name, table, _, page in rows:
        if page and page in taken:
            sharing.append(Alteration(kind, name, table, "altered", detail="its pages are others"))
        taken.add(page)
    return sharing


def _added_or_altered(
    connection: apsw.Connection, shipped: Shipped, found: Sequence[SchemaObject]
) -> list[Alteration]:
    parts = _parts_of_indexes(shipped.objects.values())
    made = []
    for one in found:
        expected = shipped.objects.get((one.kind, one.name))
        if expected is None:
            if one.kind != "table" or not _STATISTICS.fullmatch(one.name):
                harmless = one.kind == "index" and not one.is_unique
                made.append(Alteration(one.kind, one.name, one.table, "added", harmless))
        elif one != expected:
            if one.table == expected.table and plain_sql(one.sql) == plain_sql(expected.sql):
                continue
            if one.name in parts and _rules(one) == _rules(expected):
                continue
            detail = _other_columns(connection, shipped, one) if one.kind == "table" else ""
            made.append(Alteration(one.kind, one.name, one.table, "altered", detail=detail))
    return made


def _rules(one: SchemaObject) -> list[str]:
    """Return the words of a table that refuse, ignore or make values."""
    return [word for word in map(str.upper, plain_sql(one.sql)) if word in _RULES]


def _missing(shipped: Shipped, found: Sequence[SchemaObject]) -> list[Alteration]:
    there = {(one.kind, one.name) for one in found}
    return [
        Alteration(
            one.kind, one.name, one.table, "missing", one.kind == "index" and not one.is_unique
        )
        for key, one in shipped.objects.items()
        if key not in there
    ]


def _parts_of_indexes(objects: Iterable[SchemaObject]) -> set[str]:
    """Return the names of the tables that FTS5 makes for its own."""
    return {f"{one.name}_{part}" for one in objects if one.is_virtual for part in _FTS_PARTS}


def _other_columns(connection: apsw.Connection, shipped: Shipped, one: SchemaObject) -> str:
    """Name the columns of an altered table that differ; "" where only a constraint does."""
    expected = {row[1]: row for row in shipped.columns(one.name)}
    found = {row[1]: row for row in columns_of(connection, one.name)}
    other = [f"column {name[:_MOST_NAME]!r} was added" for name in found.keys() - expected.keys()]
    other += [f"column {name!r} is missing" for name in expected.keys() - found.keys()]
    other += [
        f"column {name!r} is another one"
        for name in expected.keys() & found.keys()
        if expected[name] != found[name]
    ]
    return ", ".join(sorted(other)) or "a constraint or an option differs"


def plain_sql(sql: str | None) -> tuple[str, ...]:
    """Return the words of a statement, without comments, white space and needless quotes."""
    words = []
    for word in _TOKEN.findall((sql or "")[:_FAR]):
        if word.isspace() or word.startswith(("--", "/*")):
            continue
        words.append(_QUOTED_WORD.sub(r"\1", word) if word.startswith('"') else word)
    return tuple(words)

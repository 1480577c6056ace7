"""The reference of the store's columns, `docs/columns.md`, out of the schema as SQLite has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import apsw

from tests.docs.api_shapes import cell
from tests.docs.unprovable_columns import ALL, UNPROVABLE

NOTE: Final = """\
<!-- Written by `make reference` from the schema. Do not edit. -->

# Columns

Every column of every table and view of `hansard.db`. What the tables are for, and which of them
are primary, says [the data model](data-model.md).

A name that ends in `_ns` is a time in nanoseconds since 1970, `_usd_nano` money in billionths of a
US dollar, `_id` an id as others gave it, `digest` a sha256. `id` counts the rows of its own table.
A column that leads to another table holds that table's `id`; `NULL` means unknown, never zero.
Words after a column are those of the migration that made it. Where they say *not proven*, `hansard
verify` cannot tell another value from Hansard's ([accountability](accountability.md)).
"""
_TABLE_ROW: Final = re.compile(r"^\| `(\w+)` \| (primary|derived) \| (.+) \|$", re.MULTILINE)
# Each, because a name cannot be a parameter of a pragma; names come from the schema itself.
_OBJECTS: Final = """
SELECT list.name, list.type, coalesce(schema.sql, '')
FROM pragma_table_list AS list LEFT JOIN sqlite_schema AS schema ON schema.name = list.name
WHERE list.schema = 'main' AND list.type <> 'shadow' AND list.name NOT LIKE 'sqlite%'
ORDER BY list.type = 'view', list.name
"""
_COLUMNS: Final = 'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1'
_KEYS: Final = 'SELECT "from", "table" FROM pragma_foreign_key_list(?)'


def columns_page(connection: apsw.Connection, data_model: str) -> str:
    """Return the page; the data model's own sentence stands below each table."""
    held = {name: f"{kind}: {words}" for name, kind, words in _TABLE_ROW.findall(data_model)}
    parts = [NOTE]
    for name, kind, sql in connection.execute(_OBJECTS):
        parts.append(f"## {name}\n")
        parts.append(f"{'a view' if kind == 'view' else held.get(name, kind)}\n")
        parts.append("| column | type | |\n|---|---|---|")
        parts += _rows(connection, name, said=_said(sql))
        parts.append("")
    return "\n".join(parts)


def _rows(connection: apsw.Connection, table: str, *, said: dict[str, str]) -> Iterator[str]:
    leads_to: dict[Any, Any] = dict(connection.execute(_KEYS, (table,)))
    for name, kind, is_needed, key in connection.execute(_COLUMNS, (table,)):
        words = [
            "key" if key else "",
            f"leads to `{leads_to[name]}`" if name in leads_to else "",
            said.get(name, ""),
            *(f"*not proven*: {why}" for why in _unproven(table, name)),
        ]
        null = "" if is_needed or key or not kind else ", may be NULL"
        typed = f"{kind.lower()}{null}" if kind else ""
        yield f"| `{name}` | {typed} | {cell('; '.join(word for word in words if word))} |"


def _unproven(table: str, column: str) -> list[str]:
    free = UNPROVABLE.get(table, {})
    return [why for name, why in free.items() if name == ALL or name.split()[0] == column]


def _said(sql: str) -> dict[str, str]:
    """Return what the migration's comments say of columns, by name."""
    said: dict[str, str] = {}
    column = ""
    for line in sql.splitlines():
        code, _, words = line.partition("--")
        if found := re.match(r"\s*(\w+)\s+(?:TEXT|INTEGER|REAL|BLOB|ANY)\b", code):
            column = found[1]
        elif code.strip():
            column = ""
        if column and words.strip():
            said[column] = f"{said[column]} {words.strip()}" if column in said else words.strip()
    return said

"""Questions in SQL from users and programs: one SELECT over the documented views, within limits.

What may be read is decided by SQLite's own authorizer while it compiles the statement, not by
looking at the text: the columns that the views of `docs/data-model.md` show, and no others. The
authorizer's word for the view something is read through cannot be trusted: a common table or an
alias in the statement may have the name of a view.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import apsw

from hansard_store.audit.schema import alterations
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import limited
from hansard_store.errors import InvalidQueryError, SchemaAlteredError

VIEWS: Final = frozenset({
    "runs", "steps", "context_items", "compilation_requests", "compilation_results",
    "memory_records", "tool_events", "policy_events", "replay_runs", "pending_actions",
    "annotations",
})  # fmt: skip
MOST_ROWS: Final = 500
MOST_SQL: Final = 10_000  # characters
TIMEOUT_MS: Final = 2_000
_MOST_CELL: Final = 2_000  # characters of one value
# A value that grows in one step of the virtual machine is not stopped by the clock.
_LIMITS: Final = {
    apsw.SQLITE_LIMIT_LENGTH: 1_000_000,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 4 * MOST_SQL,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
}
_HARMLESS: Final = frozenset({
    apsw.SQLITE_SELECT, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE,
})  # fmt: skip

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """What a question found; `is_more`: there are further rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    is_more: bool
    cut_cells: int  # values that were too long, and are cut


def read_sql(
    folder: DataFolder, sql: str, *, limit: int = 100, timeout_ms: int = TIMEOUT_MS
) -> Rows:
    """Answer one SELECT over VIEWS.

    Raises InvalidQueryError for anything else and for what SQLite refuses, QueryLimitError for what
    takes longer than timeout_ms, and SchemaAlteredError where a view or a table is not Hansard's:
    its rows may be of nowhere.
    """
    if not 1 <= limit <= MOST_ROWS:
        raise InvalidQueryError("limit", f"limit is {limit}; it is 1 to {MOST_ROWS}")
    if not sql.strip() or len(sql) > MOST_SQL:
        raise InvalidQueryError("q", f"the SQL is one SELECT of at most {MOST_SQL:,} characters")
    with _guarded(folder) as connection, limited(connection, timeout_ms=timeout_ms):
        try:
            return _read(connection, sql, limit=limit)
        except apsw.InterruptError:
            raise
        except apsw.Error as error:
            raise InvalidQueryError("q", _why(error)) from None
        except UnicodeEncodeError:
            raise InvalidQueryError("q", "the SQL holds half of a surrogate pair") from None
        except ValueError:
            raise InvalidQueryError("q", "the SQL holds a NUL character") from None


@contextmanager
def _guarded(folder: DataFolder) -> Iterator[apsw.Connection]:
    # A connection of its own: the authorizer would hinder its next user.
    with closing(open_reader(folder)) as connection:
        altered = [one for one in alterations(connection) if not one.is_harmless]
        if shown := [str(one) for one in altered if one.kind in ("table", "view")]:
            raise SchemaAlteredError(shown)
        for name, most in _LIMITS.items():
            connection.limit(name, most)
        connection.authorizer = Authorizer(_shown_by_views(connection)).judge
        yield connection


def _shown_by_views(connection: apsw.Connection) -> frozenset[tuple[str, str]]:
    """Return table and column of all that the views show, as SQLite itself reports it."""
    shown: set[tuple[str, str]] = set()

    def note(operation: int, table: str | None, column: str | None, *_: object) -> int:
        if operation == apsw.SQLITE_READ and table:
            shown.add((table, column or ""))
        return apsw.SQLITE_OK

    connection.authorizer = note
    for view in sorted(VIEWS):
        connection.execute(f"SELECT * FROM {view} LIMIT 0")
    return frozenset(shown)


class Authorizer:
    """Lets a statement read what is shown, and do nothing else."""

    def __init__(self, shown: frozenset[tuple[str, str]]) -> None:
        self._shown = shown
        self._tables = frozenset(table for table, _ in shown)

    def judge(
        self, operation: int, table: str | None, column: str | None, schema: str | None, _: object
    ) -> int:
        """Answer SQLite, once for each thing that a statement does."""
        if operation in _HARMLESS:
            return apsw.SQLITE_OK
        if operation != apsw.SQLITE_READ:
            return apsw.SQLITE_DENY
        is_counted = not column and table in self._tables  # count(*) reads no column
        # A subquery or a common table has no schema: what it reads is asked by itself.
        may = schema is None or is_counted or (table, column) in self._shown
        return apsw.SQLITE_OK if may else apsw.SQLITE_DENY


def _read(connection: apsw.Connection, sql: str, *, limit: int) -> Rows:
    cursor = connection.cursor()
    columns: list[tuple[str, ...]] = []

    def look(_: object, _sql: str, _bindings: object) -> bool:
        if columns or cursor.is_explain:
            return False
        columns.append(tuple(str(one[0]) for one in cursor.get_description()))
        return True

    cursor.exec_trace = look
    cursor.execute(sql)
    found = [row for row, _ in zip(cursor, range(limit + 1), strict=False)]
    if not columns or not columns[0]:
        raise InvalidQueryError("q", "the SQL asks for nothing: write one SELECT")
    rows = [tuple(_cell(value) for value in row) for row in found[:limit]]
    cut = sum(_is_long(value) for row in found[:limit] for value in row)
    return Rows(columns[0], rows, is_more=len(found) > limit, cut_cells=cut)


def _is_long(value: object) -> bool:
    if isinstance(value, bytes):
        return 2 * len(value) > _MOST_CELL
    return isinstance(value, str) and len(value) > _MOST_CELL


def _cell(value: object) -> Cell:
    match value:
        case bytes():
            return value[: _MOST_CELL // 2].hex()
        case str():
            return value[:_MOST_CELL]
        case int() | float() | None:
            return value
    return str(value)


def _why(error: apsw.Error) -> str:
    match error:
        case apsw.AuthError():
            return f"only a SELECT over these views is answered: {', '.join(sorted(VIEWS))}"
        case apsw.ExecTraceAbort():
            return "the SQL is more than one statement, or an EXPLAIN"
    return f"SQLite says: {error}"[:500]

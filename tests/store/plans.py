"""How SQLite would run the queries of a block: a hot query must search, never scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

# Lists of ids handed in as JSON, tables made inside the query, and full-text searches.
_HARMLESS = ("wanted", "driver", "node", "down", "up", "json_each", "CONSTANT ROW", "(subquery")


class QueryPlans:
    """Collects the plan of each statement that runs while watched."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []  # (line of the plan, its statement)

    @contextmanager
    def watch(self, connection: apsw.Connection) -> Iterator[None]:
        statements: list[tuple[str, Any]] = []

        def note(_: apsw.Cursor, sql: str, bindings: Any) -> bool:
            statements.append((sql, bindings))
            return True

        connection.exec_trace = note
        try:
            yield
        finally:
            connection.exec_trace = None
        for sql, bindings in statements:
            if sql.lstrip().upper().startswith(("SELECT", "WITH")):
                plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
                self.lines += [(row[3], sql) for row in plan]

    def scans(self) -> list[tuple[str, str]]:
        """Return the lines that read a whole table or index of the store."""
        return [
            (line, sql)
            for line, sql in self.lines
            if line.startswith("SCAN ")
            and not line.removeprefix("SCAN ").startswith(_HARMLESS)
            and not ("VIRTUAL TABLE INDEX" in line and "M" in line.rpartition(":")[2])
        ]

    def sorts(self) -> list[tuple[str, str]]:
        """Return the lines that sort rows instead of reading them in order."""
        return [found for found in self.lines if "TEMP B-TREE FOR" in found[0]]

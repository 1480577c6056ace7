"""A store altered with SQL by somebody who has its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import apsw

_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"


@contextmanager
def triggers_dropped(connection: Any) -> Iterator[None]:
    """Drop every trigger for the block and make it again after it, so that only rows differ.

    The connection is of apsw or of sqlite3.
    """
    triggers = list(connection.execute(_TRIGGERS))
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    yield
    for _, sql in triggers:
        connection.execute(sql)


@contextmanager
def failing(when: str) -> Iterator[None]:
    """Let statements fail in this process: `when` is "BEFORE INSERT ON event", "… WHEN …".

    By a temporary trigger on each connection that is open or is opened in the block; the store
    itself stays as it is.
    """
    before, table = when.split(" ON ")
    has_table = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?"

    def add(connection: apsw.Connection) -> None:
        # Connections of older stores may be open: they lack the table.
        if connection.execute(has_table, (table.split()[0],)).get:
            connection.pragma("temp_store", "MEMORY")  # set later, it would drop the trigger
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS fault {before} ON main.{table} "
                "BEGIN SELECT raise(ABORT, 'fault'); END"
            )

    apsw.connection_hooks.append(add)
    try:
        for connection in apsw.connections():
            with suppress(apsw.Error):  # others' that are open still may be of a broken file
                if not connection.readonly("main"):
                    add(connection)
        yield
    finally:
        apsw.connection_hooks.remove(add)
        for connection in apsw.connections():
            with suppress(apsw.Error):
                connection.execute("DROP TRIGGER IF EXISTS temp.fault")

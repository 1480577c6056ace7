"""Readers: read-only connections, and what tells them of commits."""

from __future__ import annotations

import apsw

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import give_up_reserve
from hansard_store.database.transactions import (
    schema_version,
)

BUSY_TIMEOUT_MS = 3000
# apsw's cache is a ring: a busy statement that is put back pushes out a rare one, so it needs room
# for many times the statements there are. With 100 places, 10,000 of 440,000 were prepared again.
STATEMENT_CACHE = 1000


def open_reader(folder: DataFolder) -> apsw.Connection:
    """Return a read-only connection; use `limited` around reads that a person waits for."""
    connection = apsw.Connection(
        str(folder.database),
        flags=apsw.SQLITE_OPEN_READONLY,
        statementcachesize=STATEMENT_CACHE,
    )
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    begin_log(folder, connection)
    connection.pragma("query_only", value=True)
    connection.pragma("cache_size", -8000)
    return connection


def begin_log(folder: DataFolder, connection: apsw.Connection) -> None:
    """Read once: the first connection makes the index of the log, which takes 32 KiB on the disk.

    On a full disk the reserve is released for it. Without a reserve, what reads next raises.
    """
    try:
        schema_version(connection)
    except (apsw.IOError, apsw.FullError, apsw.CantOpenError):
        give_up_reserve(folder)


def data_version(connection: apsw.Connection) -> int:
    """Return a number that is another one after every commit of another connection; cheap."""
    return int(connection.pragma("data_version"))

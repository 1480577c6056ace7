"""Connections that write: the *ingest* connection, one a process, owned by the pipeline thread;
*accountability* connections, synchronous=FULL; and those of maintenance and repair.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import apsw

from hansard_store.audit.seal_marks import mark_changes
from hansard_store.database.data_folder import DataFolder, shut_out_others
from hansard_store.database.migrations import migrate
from hansard_store.database.readers import BUSY_TIMEOUT_MS, STATEMENT_CACHE, begin_log
from hansard_store.database.transactions import (
    LOOK_S,
    PASSING_ERRORS,
    StoreConnection,
    need_own_schema,
)
from hansard_store.errors import (
    SchemaAlteredError,
    StoreError,
)

_LONG_TIMEOUT_MS = 10_000  # of those who write for a person
_WAL_AUTOCHECKPOINT_PAGES = 4000  # ingest-measurements §7: fewer, larger checkpoints
# 64 MiB: so long a log is finished by whoever commits next, though `checkpointing` sees to it.
LONG_LOG_PAGES = 16_000


def open_for_ingest(folder: DataFolder, *, durability: str = "normal") -> apsw.Connection:
    """Return the connection that the pipeline thread owns, migrated to the newest schema.

    durability "normal" survives any crash of the process; "full" a power cut as well.
    Raises SchemaAlteredError where the schema is not the one that the migrations make.
    """
    try:
        folder.create()
    except OSError as error:
        raise StoreError(f"cannot use {str(folder.path)!r}: {error.strerror}") from error
    connection = _open(folder)
    connection.pragma("synchronous", "FULL" if durability == "full" else "NORMAL")
    with ExitStack() as undone:
        undone.callback(connection.close)
        migrate(folder, connection)
        need_own_schema(connection)
        undone.pop_all()
    mark_changes(connection, folder.key())
    return connection


def open_for_accountability(folder: DataFolder) -> apsw.Connection:
    """Return a connection whose commits survive a power cut, whatever ingest uses.

    They leave the log to ingest, under which it is often long: a person's decision took twice the
    time when it had to take in what ingest wrote. A store whose schema was altered can be read
    through it; every transaction is refused (`begin`).
    """
    connection = _open(folder)
    connection.pragma("synchronous", "FULL")
    connection.pragma("wal_autocheckpoint", LONG_LOG_PAGES)
    connection.set_busy_timeout(_LONG_TIMEOUT_MS)
    mark_changes(connection, folder.key())
    return connection


def open_for_maintenance(folder: DataFolder, *, secure: bool = False) -> apsw.Connection:
    """Return a connection for deletion and gc; `secure` overwrites what it deletes with zeros."""
    connection = _open(folder)
    connection.pragma("synchronous", "NORMAL")
    connection.pragma("secure_delete", value=secure)
    mark_changes(connection, folder.key())
    return connection


def open_for_repair(folder: DataFolder) -> apsw.Connection:
    """Return a connection for restoring the schema; its changes of rows leave no mark."""
    connection = _open(folder)
    connection.pragma("synchronous", "FULL")
    connection.set_busy_timeout(_LONG_TIMEOUT_MS)
    return connection


def open_for_web(folder: DataFolder) -> None:
    """Have a store that is read by pages made, or migrated.

    An altered schema does not keep them from being read; nothing is decided through them.
    """
    with suppress(SchemaAlteredError):
        open_for_ingest(folder).close()


@contextmanager
def without_foreign_keys(connection: apsw.Connection) -> Iterator[None]:
    """Leave foreign keys unchecked in this block, which must begin outside a transaction.

    For deleting rows that others refer to by columns without an index: the check would read whole
    tables under the write lock. Whoever uses it has made sure by other means.
    """
    connection.pragma("foreign_keys", value=False)
    try:
        yield
    finally:
        connection.pragma("foreign_keys", value=True)


def _open(folder: DataFolder) -> StoreConnection:
    path = folder.database
    try:
        if not path.exists():
            if path.is_symlink():
                raise StoreError(f"{str(path)!r} is a symbolic link that leads nowhere")
            path.touch(mode=0o600)
        shut_out_others(path)
        connection = StoreConnection(str(path), statementcachesize=STATEMENT_CACHE)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if not path.stat().st_size:
            # Of effect on a new file only; lets gc give pages back to the disk, slice by slice.
            connection.pragma("auto_vacuum", "INCREMENTAL")
        begin_log(folder, connection)
        _use_log(connection)
        opened = path.stat()
        connection.file = path, opened.st_dev, opened.st_ino
    except OSError as error:
        raise StoreError(f"cannot open {str(path)!r}: {error.strerror}") from error
    except (*PASSING_ERRORS, apsw.NotADBError) as error:
        raise StoreError(f"cannot open {str(path)!r}: {error}") from error
    connection.pragma("wal_autocheckpoint", _WAL_AUTOCHECKPOINT_PAGES)
    connection.pragma("foreign_keys", value=True)
    # What somebody else put into the schema cannot call Hansard's own functions, such as that of
    # the marks (seal_marks.py); temporary triggers can.
    connection.pragma("trusted_schema", value=False)
    connection.pragma("cache_size", -16000)
    return connection


def _use_log(connection: apsw.Connection) -> None:
    """Write through a log (WAL) from now on.

    While several processes open a new file, SQLite refuses all but one of them at once: waiting for
    each other's locks they would never end, so it does not call the busy handler. Each asks again.
    """
    deadline_s = time.monotonic() + _LONG_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
        except apsw.BusyError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(LOOK_S)
        else:
            return

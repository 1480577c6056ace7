"""Connections that write: the *ingest* connection, one a process, owned by the pipeline thread;
*accountability* connections, synchronous=FULL; and those of maintenance and repair.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import apsw

from hansard_store.audit.seal_marks import mark_changes, question_rows
from hansard_store.database.data_folder import DataFolder, shut_out_others
from hansard_store.database.disk import need_room_for_ingest
from hansard_store.database.migrations import migrate
from hansard_store.database.readers import BUSY_TIMEOUT_MS, STATEMENT_CACHE, begin_log
from hansard_store.database.transactions import (
    LOOK_S,
    PASSING_ERRORS,
    StoreConnection,
    is_open,
    latest_version,
    need_own_schema,
    schema_version,
    transaction,
)
from hansard_store.errors import (
    SchemaAlteredError,
    StoreError,
)

_LONG_TIMEOUT_MS = 10_000  # of those who write for a person
_WAL_AUTOCHECKPOINT_PAGES = 4000  # ingest-measurements §7: fewer, larger checkpoints
# 64 MiB: so long a log is finished by the next commit, though `checkpointing` sees to it.
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


@contextmanager
def accountability_transaction(folder: DataFolder) -> Iterator[apsw.Connection]:
    """Run a block in one transaction of an accountability connection that is opened for it."""
    with closing(open_for_accountability(folder)) as connection, transaction(connection):
        yield connection


def open_for_maintenance(folder: DataFolder, *, secure: bool = False) -> apsw.Connection:
    """Return a connection for deletion and gc; `secure` overwrites what it deletes with zeros."""
    connection = _open(folder)
    connection.pragma("synchronous", "NORMAL")
    connection.pragma("secure_delete", value=secure)
    mark_changes(connection, folder.key())
    return connection


def open_to_question(folder: DataFolder, tables: Collection[str]) -> apsw.Connection:
    """Return a connection that reads, and is asked whether rows of those tables are altered."""
    connection = _open(folder)
    question_rows(connection, folder.key(), tables)
    connection.pragma("query_only", value=True)
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
    tables under the write lock. The caller has made sure by other means.
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


# Connections that commit on their caller's thread: one a thread, and none outlives a fork.


class OwnConnections:
    """Lends each thread its own connection to one store.

    The lock guards the list of what is to be closed; threads add to it, `close` empties it.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._mine = threading.local()
        self._lock = threading.Lock()
        # Weak: the connection of a thread that has ended is closed with it.
        self._opened: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._process = os.getpid()
        self._of_parent: list[apsw.Connection] = []  # kept: closing them would drop its locks
        self._is_closed = False

    def get(self, *, in_full: bool = True) -> apsw.Connection:
        """Return this thread's connection, outside of any transaction of it.

        Its commits wait for the disk, unless `in_full` is False: those are safe from any crash but
        a power cut, which takes the end of what was committed, never something from the middle.
        Raises StoreError when the store cannot be opened.
        """
        if os.getpid() != self._process:
            self._after_fork()
        connection: apsw.Connection | None = getattr(self._mine, "connection", None)
        if connection is None or not is_open(connection):
            connection = _thread_connections_open(self._folder)
            with self._lock:
                if self._is_closed:
                    connection.close()
                    raise StoreError("the store is closed")
                self._opened.add(connection)
            self._mine.connection, self._mine.in_full = connection, True
        if self._mine.in_full is not in_full:
            # Set once, not set back after each use: two statements fewer for each event
            # of a tool that reads.
            connection.execute(f"PRAGMA synchronous = {'FULL' if in_full else 'NORMAL'}")
            self._mine.in_full = in_full
        return connection

    @contextmanager
    def writing(self, *, in_full: bool = True) -> Iterator[apsw.Connection]:
        """Lend this thread's connection in a transaction; raises as `get` and `transaction`."""
        connection = self.get(in_full=in_full)
        with transaction(connection):
            yield connection

    def close(self) -> None:
        """Close every connection; no thread may be using one."""
        with self._lock:
            self._is_closed = True
            opened, self._opened = list(self._opened), weakref.WeakSet()
        for connection in opened:
            connection.close()
        self._mine = threading.local()

    def _after_fork(self) -> None:
        self._of_parent += self._opened
        self._opened, self._mine = weakref.WeakSet(), threading.local()
        self._lock, self._process = threading.Lock(), os.getpid()


def _thread_connections_open(folder: DataFolder) -> apsw.Connection:
    if not folder.database.exists():
        open_for_ingest(folder).close()
    connection = open_for_accountability(folder)
    if schema_version(connection) != latest_version():
        connection.close()
        open_for_ingest(folder).close()  # migrated, and the older one is kept; newer is refused
        connection = open_for_accountability(folder)
    return connection


# Whether the store can be written now, found out by writing.

_PROBE_TIMEOUT_MS = 1000
# The value must change: a row that is set to what it holds already is not written.
_TOUCH = """
INSERT INTO setting (name, value) VALUES ('touched', 1)
ON CONFLICT (name) DO UPDATE SET value = 1 - value
"""


def why_not_writable(folder: DataFolder) -> str | None:
    """Return the reason why nothing can be written, None when a row just was.

    A full disk, a read-only file, a missing folder and a writer that hangs all show here; the
    last one after a second, since the caller waits for the answer.
    """
    try:
        need_room_for_ingest(folder)
        with closing(_open(folder)) as connection:  # `setting` is not sealed: nothing to mark
            connection.pragma("synchronous", "FULL")
            connection.set_busy_timeout(_PROBE_TIMEOUT_MS)
            with transaction(connection):
                connection.execute(_TOUCH)
    except (StoreError, OSError, apsw.Error) as error:
        return str(error)
    return None

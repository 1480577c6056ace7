"""Connections that commit on their caller's thread: one a thread, and none outlives a fork."""

from __future__ import annotations

import os
import threading
import weakref

import apsw

from hansard_store.database.connections import open_for_accountability, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import is_open, latest_version, schema_version
from hansard_store.errors import StoreError


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
            connection = _open(self._folder)
            with self._lock:
                if self._is_closed:
                    connection.close()
                    raise StoreError("the store is closed")
                self._opened.add(connection)
            self._mine.connection, self._mine.in_full = connection, True
        if self._mine.in_full is not in_full:
            # Set for whoever comes, not set back after each: two statements fewer for each event
            # of a tool that reads.
            connection.execute(f"PRAGMA synchronous = {'FULL' if in_full else 'NORMAL'}")
            self._mine.in_full = in_full
        return connection

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


def _open(folder: DataFolder) -> apsw.Connection:
    if not folder.database.exists():
        open_for_ingest(folder).close()
    connection = open_for_accountability(folder)
    if schema_version(connection) != latest_version():
        connection.close()
        open_for_ingest(folder).close()  # migrated, and the older one is kept; newer is refused
        connection = open_for_accountability(folder)
    return connection

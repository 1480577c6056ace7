"""Read-only connections for pages and the API: lent for one request, then used again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import is_open, limited, snapshot

DEFAULT_TIMEOUT_MS = 5_000
_IDLE_KEPT = 8


class Readers:
    """Connections that stand ready; worker threads come and go, the connections stay.

    A connection belongs to one thread at a time. deque.append and pop are atomic, so no lock.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._idle: deque[apsw.Connection] = deque()

    @contextmanager
    def read(self, *, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> Iterator[apsw.Connection]:
        """Lend a connection; reads in the block see one state of the store.

        Raises QueryLimitError when they take longer than timeout_ms together.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self._folder)
        try:
            with limited(connection, timeout_ms=timeout_ms), snapshot(connection):
                yield connection
        finally:
            if len(self._idle) >= _IDLE_KEPT or not is_open(connection):
                connection.close()
            else:
                self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle; a connection still lent closes with its last user."""
        while self._idle:
            self._idle.pop().close()

"""The pipeline's end of the store: its connection, its transactions, and checkpoints beside them.

What queued while the last transaction was written shares the next one (`ingest_queue.py`). A
connection whose transaction could not be undone is closed (`database.roll_back`): the next
transaction gets a new one, and nothing that the old one had in memory is used again.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future

import apsw

from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_store.database.checkpoints import Checkpointer, finish_log
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import is_open
from hansard_store.ingest.writer import IngestWriter


class IngestStore:
    """Owns the ingest connection; used by the pipeline thread, and by the one that commits."""

    def __init__(self, folder: DataFolder, *, durability: str, helpers: Executor | None) -> None:
        """Open the store. `helpers` make checkpoints; without them SQLite does, in a commit."""
        self._folder = folder
        self._durability = durability
        self._helpers = helpers
        self._wait_ms: int | None = None
        self._checkpoint: Future[None] | None = None
        self._connection, self._writer, self._checkpointer = self._opened()

    def _opened(self) -> tuple[apsw.Connection, IngestWriter, Checkpointer | None]:
        connection = open_for_ingest(self._folder, durability=self._durability)
        if self._wait_ms is not None:
            connection.set_busy_timeout(self._wait_ms)
        writer = IngestWriter(connection, derived_version=DERIVED_VERSION)
        checkpointer = Checkpointer(self._folder, connection) if self._helpers else None
        return connection, writer, checkpointer

    def writer(self) -> IngestWriter:
        """Return the writer for a transaction that is about to begin.

        Raises StoreError where the store has to be opened again, and cannot be.
        """
        if not is_open(self._connection):
            self._close_checkpointer()
            self._connection, self._writer, self._checkpointer = self._opened()
        return self._writer

    def commit(self) -> None:
        """End the transaction that the writer has begun; see `IngestWriter.commit`."""
        self._writer.commit()

    def set_patience(self, wait_ms: int) -> None:
        """Wait this long for other writers, and at the end for readers; 3 s where it is not set."""
        self._wait_ms = wait_ms
        if is_open(self._connection):
            self._connection.set_busy_timeout(wait_ms)

    def take_in_log(self) -> None:
        """Have a checkpoint made beside what follows, where one is due and none is being made."""
        made = self._checkpoint is None or self._checkpoint.done()
        if self._helpers and made and self._checkpointer and self._checkpointer.is_due():
            self._checkpoint = self._helpers.submit(self._checkpointer.run)

    def close(self) -> None:
        """Checkpoint and close; the helpers have ended."""
        self._close_checkpointer()
        finish_log(self._connection)
        self._connection.close()

    def _close_checkpointer(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.exception()
            self._checkpoint = None
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None

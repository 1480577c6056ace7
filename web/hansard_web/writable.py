"""Whether the store can be written now: what /healthz and the health page both ask."""

from __future__ import annotations

from contextlib import closing

from hansard_store.database import DataFolder, open_for_accountability, transaction
from hansard_store.errors import StoreError


def find_write_problem(folder: DataFolder) -> StoreError | None:
    """Return why nothing can be written, None when something can; waits 3 s at most.

    It takes the write lock, writes, and takes it back: a full disk, a read-only file and a writer
    that hangs all show here.
    """
    try:
        with closing(open_for_accountability(folder)) as connection, transaction(connection):
            connection.execute("UPDATE setting SET value = value WHERE name = 'epoch'")
    except StoreError as error:
        return error
    return None

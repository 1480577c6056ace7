"""Whether the store can be written now, found out by writing."""

from __future__ import annotations

import apsw

from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import need_room_for_ingest
from hansard_store.database.transactions import transaction
from hansard_store.errors import StoreError

_BUSY_TIMEOUT_MS = 1000
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
        connection = open_for_accountability(folder)
        try:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            with transaction(connection):
                connection.execute(_TOUCH)
        finally:
            connection.close()
    except (StoreError, OSError, apsw.Error) as error:
        return str(error)
    return None

"""Taking the write-ahead log into the database file beside the thread that writes it.

SQLite does it in the commit that fills the log, and that commit then waits for the disk: under
ingest every second one took ten times as long as the others, and all senders waited with it. Here
another connection does it, which neither holds the write lock nor waits for it. A log is begun anew
only when all of it is in the file, and while spans keep coming a part is always new: so a log that
has become long is finished by a commit after all, which finds little left to do.
"""

from __future__ import annotations

import logging
from typing import Final

import apsw

from hansard_store.content.payloads import folder_of
from hansard_store.database.connections import LONG_LOG_PAGES, open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import free_bytes, give_up_reserve, is_scarce, kept_free_bytes

_SOME_PAGES: Final = 4_000  # new ones in the log that are worth two waits for the disk (16 MiB)
_SHORT_LOG_PAGES: Final = 1_000  # 4 MiB, where the disk is nearly full

_log = logging.getLogger("hansard.store")


class Checkpointer:
    """Follows the log of one writing connection, in place of SQLite's own automatic checkpoints."""

    def __init__(self, folder: DataFolder, writer: apsw.Connection) -> None:
        self._folder = folder
        self._beside = open_for_maintenance(folder)
        self._pages = 0  # in the log, as of the last commit
        self._taken = 0  # of them, when `run` began last
        writer.set_wal_hook(self._committed)

    def is_due(self) -> bool:
        """Return whether `run` is worth its while."""
        some = min(_SOME_PAGES, self._longest())
        return self._pages - self._taken >= some

    def run(self) -> None:
        """Take in what was committed so far; in any thread, one at a time, while others write."""
        self._taken = self._pages
        _take_in(self._beside)

    def close(self) -> None:
        """Close the connection; the writer still finishes a long log by itself."""
        self._beside.close()

    def _committed(self, writer: apsw.Connection, _: str, pages: int) -> int:
        self._pages = pages
        self._taken = min(self._taken, pages)  # the log was begun anew
        if pages >= self._longest():
            _take_in(writer)
        return apsw.SQLITE_OK

    def _longest(self) -> int:
        return _SHORT_LOG_PAGES if is_scarce(self._folder) else LONG_LOG_PAGES


def finish_log(connection: apsw.Connection) -> None:
    """Take in the whole log and empty it; what cannot be now is taken in by the next opening."""
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:  # somebody reads
        pass
    except apsw.Error as error:
        _log.warning("the write-ahead log could not be taken into the database: %s", error)


def make_room(connection: apsw.Connection) -> None:
    """Give up the reserve where the disk is nearly full, for what is written to delete."""
    folder = folder_of(connection)
    if free_bytes(folder) >= kept_free_bytes(folder):
        return
    give_up_reserve(folder)
    finish_log(connection)
    connection.pragma("wal_autocheckpoint", _SHORT_LOG_PAGES // 2)


def _take_in(connection: apsw.Connection) -> None:
    """Take in what no reader still needs in the log; what cannot be now is tried again later."""
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:  # another one is at it
        pass
    except apsw.Error as error:  # what was committed is safe in the log
        _log.warning("the write-ahead log could not be taken into the database: %s", error)

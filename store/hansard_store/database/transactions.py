"""Transactions: the write lock, snapshots of readers, limits of time, and what failures become."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import apsw

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from hansard_store.audit.schema import Alteration, alterations, migrations
from hansard_store.errors import (
    ConnectionLostError,
    QueryLimitError,
    SchemaAlteredError,
    StoreBusyError,
    StoreNewerError,
    StoreReplacedError,
)

_log = logging.getLogger("hansard.store")
_SCHEMA_NUMBER = "PRAGMA schema_version"
_FIRST_S = 0.25  # that ingest lets others write first, and how often it looks
LOOK_S = 0.001
_PROGRESS_STEPS = 20_000  # virtual machine steps between two looks at the clock


def latest_version() -> int:
    """Return the newest schema version this code knows."""
    return max(version for version, _, _ in migrations())


class StoreConnection(apsw.Connection):
    """A connection that may write; it remembers for which schema it was checked."""

    checked: int | None = None  # the schema's number, which every change of the schema moves
    altered: tuple[Alteration, ...] = ()  # what was found then, without what is harmless
    file: tuple[Path, int, int] | None = None  # that was opened: its device and inode


def schema_version(connection: apsw.Connection) -> int:
    """Return the schema version of the open database; 0 for an empty one."""
    return int(connection.pragma("user_version"))


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run a block in BEGIN IMMEDIATE … COMMIT; any error rolls all of it back.

    Raises StoreBusyError when the lock, the disk or the file refuses.
    """
    begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        _raise_undone(connection, error)


@contextmanager
def observing_transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run a block as `transaction` does, after others and whatever the schema is.

    For what decides nothing, as ingest: see `begin_after_others`.
    """
    begin_after_others(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        _raise_undone(connection, error)


def begin(connection: apsw.Connection) -> None:
    """Take the write lock.

    Raises StoreBusyError when it cannot be had, SchemaAlteredError when the schema of the store is
    not Hansard's: what decides, claims or seals does not go through tables that somebody altered.
    """
    begin_first(connection)
    with rolled_back_on_error(connection):
        need_own_schema(connection)


def begin_after_others(connection: apsw.Connection) -> None:
    """Take the write lock like `begin`, once those who wait for it in `begin` have had it.

    For ingest, which takes the lock again as soon as it has given it back: SQLite lets writers look
    for it now and then, and a person's decision found it free by chance, after up to 3 s. Waits for
    a quarter of a second at most. An altered schema does not stop it: the transaction then holds an
    event that says so, and what follows is not sealed until the schema is repaired.
    """
    until = time.monotonic() + _FIRST_S
    while _is_requested(connection) and time.monotonic() < until:
        time.sleep(LOOK_S)
    _take_lock(connection)
    altered = altered_objects(connection)
    if altered:
        _log_alteration(connection, altered)


def altered_objects(connection: apsw.Connection) -> tuple[Alteration, ...]:
    """Return what makes the schema another one than Hansard's; () where nothing does.

    All of it is compared when the connection is new, and when the schema's number has moved since
    (3 µs else). Inside a transaction it holds until its end.
    """
    if not isinstance(connection, StoreConnection):
        return ()
    number = connection.execute(_SCHEMA_NUMBER).get
    if number != connection.checked:
        found, known = schema_version(connection), latest_version()
        if found > known:
            raise StoreNewerError(found, known)
        all_found = alterations(connection)
        connection.altered = tuple(one for one in all_found if not one.is_harmless)
        connection.checked = number
    return connection.altered


def need_own_schema(connection: apsw.Connection) -> None:
    """Raise SchemaAlteredError where the schema is another one than Hansard's."""
    altered = altered_objects(connection)
    if altered:
        raise SchemaAlteredError([str(one) for one in altered])


def _log_alteration(connection: apsw.Connection, altered: Sequence[Alteration]) -> None:
    from hansard_store.audit.schema_events import note_alteration  # it needs this module

    try:
        with connection:  # a savepoint: what is wrong with the log does not stop ingest
            note_alteration(connection, altered)
    except apsw.Error as error:
        _log.error("that the schema was altered cannot be logged: %s", error)


def begin_first(connection: apsw.Connection) -> None:
    """Take the write lock before ingest does, whatever the schema is."""
    with _asking(connection):
        _take_lock(connection)


def _need_same_file(connection: apsw.Connection) -> None:
    """Raise StoreReplacedError where another file is in the place of the one that was opened.

    What is written into a file that was removed or moved away is gone with its last connection.
    """
    if not isinstance(connection, StoreConnection) or connection.file is None:
        return
    path, device, inode = connection.file
    try:
        found = path.stat()
    except OSError:
        raise StoreReplacedError(path) from None
    if (found.st_dev, found.st_ino) != (device, inode):
        raise StoreReplacedError(path)


def _take_lock(connection: apsw.Connection) -> None:
    _need_same_file(connection)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except apsw.Error as error:
        raise _as_store_error(error) from error


@contextmanager
def _asking(connection: apsw.Connection) -> Iterator[None]:
    """Let ingest of any process see that the write lock is waited for: a shared flock says so.

    It is on the data folder, so it is released with the descriptor whatever ends this process.
    """
    descriptor = _folder_of(connection)
    try:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_requested(connection: apsw.Connection) -> bool:
    descriptor = _folder_of(connection)
    if descriptor is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _folder_of(connection: apsw.Connection) -> int | None:
    """Open the folder of a database; None where that cannot be: then nobody waits."""
    if fcntl is None or not connection.filename:
        return None
    try:
        return os.open(os.path.dirname(connection.filename), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no descriptor is left, or the folder is gone: the lock itself will tell
        return None


@contextmanager
def rolled_back_on_error(connection: apsw.Connection) -> Iterator[None]:
    """Roll the transaction back when the block fails, by whatever; raises StoreBusyError."""
    try:
        yield
    except BaseException as error:
        _raise_undone(connection, error)


def _raise_undone(connection: apsw.Connection, error: BaseException) -> NoReturn:
    """Roll back, and raise what a block failed with as the store's error, if it is one."""
    try:
        roll_back(connection)
    except ConnectionLostError as lost:
        raise lost from error
    if isinstance(error, apsw.Error):
        raise _as_store_error(error) from error
    raise error


def roll_back(connection: apsw.Connection) -> None:
    """Undo the transaction, if there is one.

    Raises ConnectionLostError when that fails, as on a disk that cannot be read any more. What the
    connection then has of the file in memory may not be what is in the file: it is closed, and the
    next one takes the store as it was committed.
    """
    # SQLite itself rolls back on some errors (disk full); then there is nothing left to do.
    if not is_open(connection) or not connection.in_transaction:
        return
    try:
        connection.execute("ROLLBACK")
    except apsw.Error as error:
        _log.error("a transaction could not be rolled back; its connection is closed: %s", error)
        with suppress(apsw.Error):  # of the same disk: it is closed all the same
            connection.close(True)
        raise ConnectionLostError(
            f"the store cannot write now, and its connection was closed: {error}"
        ) from error


def is_open(connection: apsw.Connection) -> bool:
    """Return whether a connection can be used: one that was lost is closed."""
    try:
        connection.in_transaction  # noqa: B018 - a closed one raises
    except apsw.ConnectionClosedError:
        return False
    return True


# What may pass, by itself or when somebody repairs it; a damaged file is among it because the
# sender still has its spans: it must not read that they were refused as invalid.
PASSING_ERRORS = (
    apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError,
    apsw.CantOpenError, apsw.NoMemError, apsw.ProtocolError, apsw.CorruptError, apsw.NotADBError,
)  # fmt: skip


def _as_store_error(error: apsw.Error) -> Exception:
    if isinstance(error, PASSING_ERRORS):
        return StoreBusyError(f"the store cannot write now: {error}")
    return error


@contextmanager
def store_errors() -> Iterator[None]:
    """Let what the lock, the disk or the file refuses in a block be a StoreBusyError."""
    try:
        yield
    except apsw.Error as error:
        raise _as_store_error(error) from error


@contextmanager
def limited(connection: apsw.Connection, *, timeout_ms: int) -> Iterator[None]:
    """Stop reads in this block that take longer than timeout_ms; raises QueryLimitError."""
    deadline = time.monotonic() + timeout_ms / 1000

    def out_of_time() -> bool:
        return time.monotonic() > deadline

    connection.set_progress_handler(out_of_time, _PROGRESS_STEPS)
    try:
        yield
    except apsw.InterruptError as error:
        raise QueryLimitError(
            f"the query took longer than {timeout_ms / 1000:g} s; narrow it and try again"
        ) from error
    finally:
        if is_open(connection):
            connection.set_progress_handler(None)


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """Let all reads of this block see one state of the store, whatever is committed meanwhile.

    Blocks may nest; the outermost decides.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        roll_back(connection)

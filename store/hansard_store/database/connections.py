"""Opening the database: folder, pragmas, migrations, and the three kinds of connection.

- the *ingest* connection: one a process, owned by the pipeline thread;
- *accountability* connections: synchronous=FULL, opened where they are used;
- *readers*: read-only, with a time limit.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import apsw

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from hansard_store.audit.schema import Alteration, alterations, migrations
from hansard_store.audit.seal_marks import mark_changes
from hansard_store.database.disk import give_up_reserve, need_space
from hansard_store.database.private_folders import make_private
from hansard_store.errors import (
    ConnectionLostError,
    QueryLimitError,
    SchemaAlteredError,
    StoreBusyError,
    StoreError,
    StoreNewerError,
    StoreReplacedError,
)
from hansard_store.search import indexes

_log = logging.getLogger("hansard.store")

_SCHEMA_NUMBER = "PRAGMA schema_version"
_FIRST_WITH_SEALS = 23  # schema version
_SEALS_AGAIN = re.compile(r"^-- seals again: (.+)$", re.MULTILINE)
APPLICATION_ID = 0x48534E44  # "HSND", shown by file(1)
_BUSY_TIMEOUT_MS = 3000
_LONG_TIMEOUT_MS = 10_000  # of those who write for a person
_FIRST_S = 0.25  # that ingest lets others write first, and how often it looks
_LOOK_S = 0.001
_MIGRATION_WAIT_S = 600  # how long a process waits for another one that migrates the store
_WAL_AUTOCHECKPOINT_PAGES = 4000  # ingest-measurements §7: fewer, larger checkpoints
# 64 MiB: so long a log is finished by whoever commits next, though `checkpointing` sees to it.
LONG_LOG_PAGES = 16_000
# apsw's cache is a ring: a busy statement that is put back pushes out a rare one, so it needs room
# for many times the statements there are. With 100 places, 10,000 of 440,000 were prepared again.
_STATEMENT_CACHE = 1000
_PROGRESS_STEPS = 20_000  # virtual machine steps between two looks at the clock


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Where everything of one store lives. The folder is the owner's alone (0700)."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "hansard.db"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def heads(self) -> Path:
        """Heads of the audit log, a file a day (kept_heads.py)."""
        return self.path / "heads"

    @property
    def replaying(self) -> Path:
        """Locks of whoever makes replays, a folder each (hansard_web.replay.lock)."""
        return self.path / "replaying"

    @property
    def scanning(self) -> Path:
        """The lock of whoever scans for stories (hansard_collector.scanning)."""
        return self.path / "scanning"

    @property
    def heartbeat(self) -> Path:
        """The lock of the process that runs a cycle (hansard_collector.heartbeat)."""
        return self.path / "heartbeat"

    @property
    def reports(self) -> Path:
        """Status reports with their acknowledgements (reports/files.py)."""
        return self.path / "reports"

    @property
    def key_file(self) -> Path:
        return self.path / "key"

    @property
    def has_store(self) -> bool:
        """Whether there is a database; raises StoreError where this user may not even look."""
        try:
            return self.database.exists()
        except PermissionError as error:
            raise StoreError(f"cannot look into {self.path}: {error.strerror}") from None

    def create(self) -> None:
        """Make the folder and its parts; of existing ones others lose every permission."""
        make_private(self.path)
        _shut_out_others(self.path)
        make_private(self.blobs)
        _shut_out_others(self.blobs)

    def key(self) -> bytes:
        """Return the local secret that keys HMACs and redaction fingerprints; made on first use.

        Two processes may start at once: whoever links its file first wins, both read that one.
        """
        if not self.key_file.exists():
            mine = self.path / f".key-{os.getpid()}-{secrets.token_hex(4)}"
            mine.touch(mode=0o600)
            mine.write_bytes(secrets.token_bytes(32))
            try:
                os.link(mine, self.key_file)
            except FileExistsError:
                # The other process was first; its key is the store's.
                return self.key_file.read_bytes()
            finally:
                mine.unlink()
        return self.key_file.read_bytes()


def latest_version() -> int:
    """Return the newest schema version this code knows."""
    return max(version for version, _, _ in migrations())


class StoreConnection(apsw.Connection):
    """A connection that may write; it remembers for which schema it was checked."""

    checked: int | None = None  # the schema's number, which every change of the schema moves
    altered: tuple[Alteration, ...] = ()  # what was found then, without what is harmless
    file: tuple[Path, int, int] | None = None  # that was opened: its device and inode


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


def open_reader(folder: DataFolder) -> apsw.Connection:
    """Return a read-only connection; use `limited` around reads that a person waits for."""
    connection = apsw.Connection(
        str(folder.database),
        flags=apsw.SQLITE_OPEN_READONLY,
        statementcachesize=_STATEMENT_CACHE,
    )
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    _begin_log(folder, connection)
    connection.pragma("query_only", value=True)
    connection.pragma("cache_size", -8000)
    return connection


def _begin_log(folder: DataFolder, connection: apsw.Connection) -> None:
    """Read once: the first connection makes the index of the log, which takes 32 KiB on the disk.

    On a full disk the reserve is given up for it. Without a reserve, what reads next raises.
    """
    try:
        schema_version(connection)
    except (apsw.IOError, apsw.FullError, apsw.CantOpenError):
        give_up_reserve(folder)


def data_version(connection: apsw.Connection) -> int:
    """Return a number that is another one after every commit of another connection; cheap."""
    return int(connection.pragma("data_version"))


def _shut_out_others(path: Path) -> None:
    """Take every permission from others, and give none: what its owner made read-only stays so.

    What a symbolic link leads to is not ours to change.
    """
    found = path.lstat().st_mode
    mode = stat.S_IMODE(found)
    if mode & 0o077 and not stat.S_ISLNK(found):
        path.chmod(mode & 0o700)


def _open(folder: DataFolder) -> StoreConnection:
    path = folder.database
    try:
        if not path.exists():
            if path.is_symlink():
                raise StoreError(f"{str(path)!r} is a symbolic link that leads nowhere")
            path.touch(mode=0o600)
        _shut_out_others(path)
        connection = StoreConnection(str(path), statementcachesize=_STATEMENT_CACHE)
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        if not path.stat().st_size:
            # Of effect on a new file only; lets gc give pages back to the disk, slice by slice.
            connection.pragma("auto_vacuum", "INCREMENTAL")
        _begin_log(folder, connection)
        _use_log(connection)
        opened = path.stat()
        connection.file = path, opened.st_dev, opened.st_ino
    except OSError as error:
        raise StoreError(f"cannot open {str(path)!r}: {error.strerror}") from error
    except (*_PASSING, apsw.NotADBError) as error:
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
            time.sleep(_LOOK_S)
        else:
            return


def schema_version(connection: apsw.Connection) -> int:
    """Return the schema version of the open database; 0 for an empty one."""
    return int(connection.pragma("user_version"))


def migrate(folder: DataFolder, connection: apsw.Connection) -> int:
    """Bring the schema to the newest version and return it, in one transaction.

    An older store is kept beside it first. Several processes may call it at once: one migrates, the
    others wait, and none sees a version in between. Raises StoreNewerError when the file is newer
    than this code, NoSpaceError without room for the copy, StoreBusyError when the write lock
    cannot be had, and SchemaAlteredError for an older store whose schema was altered: what was
    added would alter rows while they are migrated, and sealed.
    """
    known = latest_version()
    while schema_version(connection) < known:
        with _migrating(connection) as is_mine:
            if is_mine:
                _apply_migrations(folder, connection)
    found = schema_version(connection)
    if found > known:
        raise StoreNewerError(found, known)
    return found


@contextmanager
def _migrating(connection: apsw.Connection) -> Iterator[bool]:
    """Hold the write lock; False where another process migrated the store meanwhile."""
    deadline_s = time.monotonic() + _MIGRATION_WAIT_S
    while True:
        try:
            _begin_first(connection)
            break
        except StoreBusyError:
            if schema_version(connection) == latest_version():
                yield False
                return
            if time.monotonic() > deadline_s:
                raise
    with rolled_back_on_error(connection):
        yield True
        connection.execute("COMMIT")


def _apply_migrations(folder: DataFolder, connection: apsw.Connection) -> None:
    found = schema_version(connection)
    if found >= latest_version():
        return
    need_own_schema(connection)
    if found:
        _keep_copy(folder, version=found)
    made = [sql for number, _, sql in migrations() if number > found]
    rewritten = _rewritten(made) if found >= _FIRST_WITH_SEALS else None
    lost = _altered_rows(folder, connection, rewritten) if rewritten else []
    for sql in made:
        connection.execute(sql)
        indexes.configure(connection)
    if found and (rewritten is None or rewritten):
        from hansard_store.audit.sealer import adopt  # it needs this module

        adopt(connection, folder.key(), rewritten, lost=lost)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", latest_version())


def _rewritten(made: Sequence[str]) -> list[str]:
    """Return the tables whose rows are sealed again after migrations.

    A migration that changes rows of a sealed table, or drops or renames a column of one, names the
    table in a line `-- seals again: TABLE, …`. Columns that are added need none. A store of before
    there were seals is sealed whole.
    """
    lines = [line for sql in made for line in _SEALS_AGAIN.findall(sql)]
    return sorted({name for line in lines for name in re.findall(r"\w+", line)})


def _altered_rows(
    folder: DataFolder, connection: apsw.Connection, tables: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the rows that something else altered, which a migration is about to rewrite."""
    from hansard_store.verification.seals import SealCheck  # it needs this module

    check = SealCheck(connection, folder.key(), tables=frozenset(tables))
    return [(table, row) for table, row, _ in check.run()]


def _keep_copy(folder: DataFolder, *, version: int) -> None:
    """Keep an older database as it is, beside it, before it is migrated.

    Raises NoSpaceError when the disk has no room for that. A copy that is there already is of an
    attempt that failed, and stays.
    """
    name = f"hansard-schema-{version}.db"
    if not (folder.path / name).exists():
        _log.warning("migrating %s; it is kept as %s", folder.database, name)
    keep_copy(folder, name)


def keep_copy(folder: DataFolder, name: str) -> str:
    """Copy the database as it is into its folder, and return the name of the copy.

    Raises NoSpaceError when the disk has no room for that.
    """
    kept = folder.path / name
    for leftover in folder.path.glob(f".{kept.name}-*"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    if kept.exists():
        return name
    need_space("a copy of the older store", folder.path, size_bytes=folder.database.stat().st_size)
    copying = kept.with_name(f".{kept.name}-{os.getpid()}")
    copying.touch(mode=0o600)
    source, copy = open_reader(folder), apsw.Connection(str(copying))
    try:
        with copy.backup("main", source, "main") as backup:
            backup.step()
    finally:
        copy.close()
        source.close()
    copying.replace(kept)
    return name


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


def begin(connection: apsw.Connection) -> None:
    """Take the write lock.

    Raises StoreBusyError when it cannot be had, SchemaAlteredError when the schema of the store is
    not Hansard's: what decides, claims or seals does not go through tables that somebody altered.
    """
    _begin_first(connection)
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
    while _is_asked_for(connection) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    _take_lock(connection)
    altered = altered_objects(connection)
    if altered:
        _log_alteration(connection, altered)


def begin_repair(connection: apsw.Connection) -> None:
    """Take the write lock whatever the schema is."""
    _begin_first(connection)


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


def _begin_first(connection: apsw.Connection) -> None:
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

    It is on the data folder, so it is given back with the descriptor whatever ends this process.
    """
    descriptor = _folder_of(connection)
    try:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_asked_for(connection: apsw.Connection) -> bool:
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
    """Open the folder of a database; None where that cannot be, and nobody is told to wait."""
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
# sender still has its spans: it must not be told that they were refused for what they are.
_PASSING = (
    apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError,
    apsw.CantOpenError, apsw.NoMemError, apsw.ProtocolError, apsw.CorruptError, apsw.NotADBError,
)  # fmt: skip


def _as_store_error(error: apsw.Error) -> Exception:
    if isinstance(error, _PASSING):
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

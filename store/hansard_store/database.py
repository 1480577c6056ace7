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
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

import apsw

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from hansard_store import indexing
from hansard_store.audit.seal_marks import mark_changes
from hansard_store.disk import give_up_reserve, need_space
from hansard_store.errors import QueryLimitError, StoreBusyError, StoreError, StoreNewerError

_log = logging.getLogger("hansard.store")

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
        """Locks of whoever makes replays, a folder each (hansard_web.replaying.holding)."""
        return self.path / "replaying"

    @property
    def scanning(self) -> Path:
        """The lock of whoever scans for stories (hansard_collector.scanning)."""
        return self.path / "scanning"

    @property
    def key_file(self) -> Path:
        return self.path / "key"

    def create(self) -> None:
        """Make the folder and its parts; of existing ones others lose every permission."""
        self.path.mkdir(parents=True, exist_ok=True)
        _shut_out_others(self.path)
        self.blobs.mkdir(exist_ok=True)
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
    return max(version for version, _, _ in _migrations())


def _migrations() -> list[tuple[int, str, str]]:
    found = []
    for entry in files("hansard_store").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, entry.read_text(encoding="utf-8")))
    return sorted(found)


def open_for_ingest(folder: DataFolder, *, durability: str = "normal") -> apsw.Connection:
    """Return the connection that the pipeline thread owns, migrated to the newest schema.

    durability "normal" survives any crash of the process; "full" a power cut as well.
    """
    try:
        folder.create()
    except OSError as error:
        raise StoreError(f"cannot use {str(folder.path)!r}: {error.strerror}") from error
    connection = _open(folder)
    connection.pragma("synchronous", "FULL" if durability == "full" else "NORMAL")
    migrate(folder, connection)
    mark_changes(connection, folder.key())
    return connection


def open_for_accountability(folder: DataFolder) -> apsw.Connection:
    """Return a connection whose commits survive a power cut, whatever ingest uses.

    They leave the log to ingest, under which it is often long: a person's decision took twice the
    time when it had to take in what ingest wrote.
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


def _open(folder: DataFolder) -> apsw.Connection:
    path = folder.database
    try:
        if not path.exists():
            if path.is_symlink():
                raise StoreError(f"{str(path)!r} is a symbolic link that leads nowhere")
            path.touch(mode=0o600)
        _shut_out_others(path)
        connection = apsw.Connection(str(path), statementcachesize=_STATEMENT_CACHE)
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        if not path.stat().st_size:
            # Of effect on a new file only; lets gc give pages back to the disk, slice by slice.
            connection.pragma("auto_vacuum", "INCREMENTAL")
        _begin_log(folder, connection)
        connection.pragma("journal_mode", "WAL")
    except OSError as error:
        raise StoreError(f"cannot open {str(path)!r}: {error.strerror}") from error
    except (*_PASSING, apsw.NotADBError) as error:
        raise StoreError(f"cannot open {str(path)!r}: {error}") from error
    connection.pragma("wal_autocheckpoint", _WAL_AUTOCHECKPOINT_PAGES)
    connection.pragma("foreign_keys", value=True)
    connection.pragma("cache_size", -16000)
    return connection


def schema_version(connection: apsw.Connection) -> int:
    """Return the schema version of the open database; 0 for an empty one."""
    return int(connection.pragma("user_version"))


def migrate(folder: DataFolder, connection: apsw.Connection) -> int:
    """Bring the schema to the newest version and return it, in one transaction.

    An older store is kept beside it first. Several processes may call it at once: one migrates, the
    others wait, and none sees a version in between. Raises StoreNewerError when the file is newer
    than this code, NoSpaceError without room for the copy, and StoreBusyError when the write lock
    cannot be had.
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
            begin(connection)
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
    if found:
        _keep_copy(folder, version=found)
    made = [(number, sql) for number, _, sql in _migrations() if number > found]
    for _, sql in made:
        connection.execute(sql)
        indexing.configure(connection)
    if found:
        _seal_again(folder, connection, found, [sql for _, sql in made])
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", latest_version())


def _seal_again(
    folder: DataFolder, connection: apsw.Connection, found: int, made: Sequence[str]
) -> None:
    """Seal what a migration altered, all of a store of before there were seals.

    A migration that changes rows of a sealed table, or drops or renames a column of one, names the
    table in a line `-- seals again: TABLE, …`. Columns that are added need none.
    """
    from hansard_store.audit.sealer import adopt  # it needs this module

    if found < _FIRST_WITH_SEALS:
        adopt(connection, folder.key())
        return
    names = sorted(
        {
            name
            for sql in made
            for line in _SEALS_AGAIN.findall(sql)
            for name in re.findall(r"\w+", line)
        }
    )
    if names:
        adopt(connection, folder.key(), names)


def _keep_copy(folder: DataFolder, *, version: int) -> None:
    """Keep an older database as it is, beside it, before it is migrated.

    Raises NoSpaceError when the disk has no room for that. A copy that is there already is of an
    attempt that failed, and stays.
    """
    kept = folder.path / f"hansard-schema-{version}.db"
    for leftover in folder.path.glob(f".{kept.name}-*"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    if kept.exists():
        return
    need_space("a copy of the older store", folder.path, size_bytes=folder.database.stat().st_size)
    _log.warning("migrating %s; it is kept as %s", folder.database, kept.name)
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
    """Take the write lock; raises StoreBusyError when it cannot be had."""
    with _asking(connection):
        _take_lock(connection)


def begin_after_others(connection: apsw.Connection) -> None:
    """Take the write lock like `begin`, once those who wait for it in `begin` have had it.

    For ingest, which takes the lock again as soon as it has given it back: SQLite lets writers look
    for it now and then, and a person's decision found it free by chance, after up to 3 s. Waits for
    a quarter of a second at most.
    """
    until = time.monotonic() + _FIRST_S
    while _is_asked_for(connection) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    _take_lock(connection)


def _take_lock(connection: apsw.Connection) -> None:
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
    roll_back(connection)
    if isinstance(error, apsw.Error):
        raise _as_store_error(error) from error
    raise error


def roll_back(connection: apsw.Connection) -> None:
    """Undo the transaction, if there is one."""
    # SQLite itself rolls back on some errors (disk full); then there is nothing left to do.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


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

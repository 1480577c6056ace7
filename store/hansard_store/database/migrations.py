"""Migrations: an older store brought to the newest schema in one transaction, with a copy kept."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from hansard_compiler.renamed import current_table
from hansard_store.audit.schema import migrations
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import need_space
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import (
    begin_first,
    latest_version,
    need_own_schema,
    rolled_back_on_error,
    schema_version,
)
from hansard_store.errors import (
    StoreBusyError,
    StoreNewerError,
)
from hansard_store.search import indexes

_log = logging.getLogger("hansard.store")
_FIRST_WITH_SEALS = 23  # schema version
_SEALS_AGAIN = re.compile(r"^-- seals again: (.+)$", re.MULTILINE)
APPLICATION_ID = 0x48534E44  # "HSND", shown by file(1)
_MIGRATION_WAIT_S = 600  # how long a process waits for another one that migrates the store


def migrate(folder: DataFolder, connection: apsw.Connection) -> int:
    """Bring the schema to the newest version and return it, in one transaction.

    An older store is copied beside it first. Several processes may call it at once: one migrates,
    the others wait, and none sees a version in between. Raises StoreNewerError when the file is
    newer than this code, NoSpaceError without room for the copy, StoreBusyError when the write lock
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
            begin_first(connection)
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
    table in a line `-- seals again: TABLE, …`; one that renames a table names both names. Columns
    that are added need none. A store of before there were seals is sealed whole.
    """
    lines = [line for sql in made for line in _SEALS_AGAIN.findall(sql)]
    return sorted({name for line in lines for name in re.findall(r"\w+", line)})


def _altered_rows(
    folder: DataFolder, connection: apsw.Connection, tables: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the rows that something else altered, which a migration is about to rewrite."""
    from hansard_store.verification.seals import SealCheck  # it needs this module

    check = SealCheck(connection, folder.key(), tables=frozenset(tables))
    return [(current_table(table), row) for table, row, _ in check.run()]


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
    target = folder.path / name
    for leftover in folder.path.glob(f".{target.name}-*"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    if target.exists():
        return name
    need_space("a copy of the older store", folder.path, size_bytes=folder.database.stat().st_size)
    copying = target.with_name(f".{target.name}-{os.getpid()}")
    copying.touch(mode=0o600)
    source, copy = open_reader(folder), apsw.Connection(str(copying))
    try:
        with copy.backup("main", source, "main") as backup:
            backup.step()
    finally:
        copy.close()
        source.close()
    copying.replace(target)
    return name

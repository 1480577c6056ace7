"""Garbage: contents, lists, texts, prefixes, payloads and envelopes that nothing uses any more.

What is dead is found by reading, without the write lock; each row is checked again as it is
deleted, in slices. Every slice bumps the epoch, at which all processes throw away what they know
of ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.content.large_values import text_user
from hansard_store.content.payload_uses import drop_if_unused, remove_stray_files, unused_payloads
from hansard_store.database.checkpoints import make_room
from hansard_store.database.connections import without_foreign_keys
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import snapshot, transaction
from hansard_store.database.upkeep_slices import Pace, in_slices
from hansard_store.errors import StoreBusyError

_AT_ONCE = 40
_PAGES_AT_ONCE = 200

Progress = Callable[[str, int], None]  # what is collected, and how much of it since the last time


@dataclass(frozen=True, slots=True)
class Collected:
    """How many rows and files of each kind went."""

    lists: int
    prefixes: int
    texts: int
    contents: int
    resources: int
    scopes: int
    payloads: int
    files: int


_BUMP = "UPDATE setting SET value = value + 1 WHERE name = 'epoch'"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Rows that go when nothing uses them: the table, and each column that may name one."""

    table: str
    users: tuple[str, ...]  # `table.column`; of the table itself: a row that continues another
    index: str = ""  # that holds the ids: the bodies are not read

    def dead(self) -> str:
        """Return the SQL of the ids that nothing uses."""
        source = f"{self.table} AS one" + (f" INDEXED BY {self.index}" if self.index else "")
        return f"SELECT id FROM {source} WHERE {self._unused('one.id')}"

    def drop(self) -> str:
        """Return the SQL that removes a row that nothing uses."""
        return f"DELETE FROM {self.table} WHERE id = :id AND {self._unused(':id')}"

    def _unused(self, number: str) -> str:
        named = (user.split(".") for user in self.users)
        return " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} AS user WHERE user.{column} = {number})"
            for table, column in named
        )


# A node goes when no record names it and no longer list continues it; then its parent may go.
_LISTS = _Kind("content_list", ("content_list_use.list", "content_list.parent"))
_PREFIXES = _Kind(
    "message_prefix", ("call.input_prefix", "call.output_prefix", "message_prefix.parent")
)
_TEXTS = _Kind("text", ("text_use.text", "message_prefix.text"), "sqlite_autoindex_text_1")
_CONTENTS = _Kind(
    "content", ("content_use.content", "content_list.content"), "sqlite_autoindex_content_1"
)
_UNINDEX = "DELETE FROM text_fts WHERE rowid = ?"
_RELEASE = "DELETE FROM content_use WHERE run = ?"
_USERS = ("span", "log_record", "metric_point")


def collect_garbage(
    folder: DataFolder,
    connection: apsw.Connection,
    *,
    pace: Pace | None = None,
    progress: Progress = lambda _what, _count: None,
) -> Collected:
    """Remove what nothing uses; costs a read over the ids of all contents and texts."""
    make_room(connection)
    collector = _Collector(connection, pace or Pace(), progress)
    return Collected(
        lists=collector.chains("lists", _LISTS),
        prefixes=collector.chains("prefixes", _PREFIXES),
        texts=collector.texts(),
        contents=collector.contents(),
        resources=collector.envelopes("resource"),
        scopes=collector.envelopes("scope"),
        payloads=collector.payloads(),
        files=remove_stray_files(folder, connection),
    )


class _Collector:
    """One pass over the store; what is dead when it begins is gone when it ends."""

    def __init__(self, connection: apsw.Connection, pace: Pace, progress: Progress) -> None:
        self._connection = connection
        self._pace = pace
        self._progress = progress

    def chains(self, what: str, kind: _Kind) -> int:
        """Remove dead ends of lists, and what was stored only by them."""
        drop = f"{kind.drop()} RETURNING parent"

        def one(node: int) -> int:
            removed = 0
            while node:
                row: Any = self._connection.execute(drop, {"id": node}).fetchone()
                if row is None:
                    break
                removed, node = removed + 1, row[0]
            return removed

        return self._each(what, self._ids(kind.dead()), one)

    def contents(self) -> int:
        drop = _CONTENTS.drop()
        return self._each(
            "contents", self._ids(_CONTENTS.dead()), lambda number: self._drop(drop, id=number)
        )

    def texts(self) -> int:
        gone: list[int] = []
        drop = _TEXTS.drop()

        def one(text: int) -> int:
            went = self._drop(drop, id=text)
            gone.extend([text] * went)
            return went

        def flush() -> None:
            # The index apart from the rows: it writes out at every other statement.
            self._connection.executemany(_RELEASE, [(text_user(text),) for text in gone])
            self._connection.executemany(_UNINDEX, [(text,) for text in gone])
            gone.clear()

        return self._each("texts", self._ids(_TEXTS.dead()), one, flush=flush)

    def envelopes(self, table: str) -> int:
        """Remove resources or scopes of nothing. No index leads from them to who uses them."""
        used = " UNION ".join(f"SELECT {table} FROM {user}" for user in _USERS)
        with snapshot(self._connection):
            seen = {user: self._last(user) for user in _USERS}
            dead = self._ids(f"SELECT id FROM {table} WHERE id NOT IN ({used})")
        newer = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {user} WHERE id > :{user} AND {table} = :id)"
            for user in _USERS
        )
        drop = f"DELETE FROM {table} WHERE id = :id AND {newer}"
        with without_foreign_keys(self._connection):
            return self._each(f"{table}s", dead, lambda number: self._drop(drop, id=number, **seen))

    def payloads(self) -> int:
        dead = unused_payloads(self._connection, now_ns=time.time_ns())
        return self._each("payloads", dead, lambda one: drop_if_unused(self._connection, one))

    def _drop(self, sql: str, **bindings: int) -> int:
        self._connection.execute(sql, bindings)
        return self._connection.changes()

    def _last(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").get)

    def _ids(self, sql: str) -> list[int]:
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return [row[0] for row in rows]

    def _each(
        self,
        what: str,
        dead: Sequence[Any],
        drop: Callable[[Any], int],
        *,
        flush: Callable[[], None] = lambda: None,
    ) -> int:
        removed = 0
        parts: Iterator[Sequence[Any]] = (
            dead[at : at + _AT_ONCE] for at in range(0, len(dead), _AT_ONCE)
        )

        def step() -> int:
            nonlocal removed
            part = next(parts, ())
            went = sum(drop(one) for one in part)
            if went:
                flush()
                self._connection.execute(_BUMP)
                self._progress(what, went)
            removed += went
            return len(part)

        in_slices(self._connection, step, self._pace)
        return removed


# ---- giving room back, and leaving no bytes


_FREE = "SELECT freelist_count FROM pragma_freelist_count"
_INDEXES = ("text_fts", "attribute_fts", "memory_fts", "memory_stem_fts")


def give_back_pages(connection: apsw.Connection, *, pace: Pace | None = None) -> int:
    """Shorten the file by its free pages, slice by slice; return how many pages."""
    before = int(connection.execute(_FREE).get)

    def step() -> int:
        free = int(connection.execute(_FREE).get)
        connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
        return free - int(connection.execute(_FREE).get)

    in_slices(connection, step, pace or Pace())
    return before - int(connection.execute(_FREE).get)


def purge(connection: apsw.Connection) -> None:
    """Leave no byte of what was deleted in the database or its log. Run gc before.

    The indexes are merged without the words of what is gone, and the file is written anew: that
    takes as long as copying it, and as much room, and ingest answers "retry" meanwhile.
    Needs a connection opened with `secure=True`. Raises StoreBusyError while a reader holds an
    old state of the store.
    """
    for index in _INDEXES:
        with transaction(connection):
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
    truncate_log(connection)
    try:
        connection.execute("VACUUM")
    except (apsw.BusyError, apsw.LockedError, apsw.FullError) as error:
        raise StoreBusyError(f"the store cannot be written anew now: {error}") from error
    truncate_log(connection)


def truncate_log(connection: apsw.Connection) -> None:
    """Move everything from the log into the database and empty it; raises StoreBusyError."""
    row: Any = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if row[0]:
        raise StoreBusyError("a reader holds an old state of the store; try again when it is done")

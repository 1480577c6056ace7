"""Ids of rows that are found by a key, given before the rows are written.

What a transaction adds waits for its end, to be written by a few long statements. Until then only
the numbering knows of it, so nothing is forgotten before the next transaction begins.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

import apsw

from hansard_store.audit.seal_tables import last_id

# Digests come as one value, one behind the other.
_FIND_ALL = """
WITH RECURSIVE place (at) AS (
  VALUES (1) UNION ALL SELECT at + 32 FROM place WHERE at + 32 < length(:digests)
)
SELECT {column}, id FROM place CROSS JOIN {table} ON {column} = substr(:digests, at, 32)
"""

Key = TypeVar("Key", bound=tuple[bytes | int, ...])


class Numbering(Generic[Key]):
    """Finds the ids of one table's rows and gives new ones, inside the ingest transaction.

    `find` selects the id of a row by its key, `last` the largest id. The transaction holds the
    write lock: what is not stored when it is requested is not stored before its end.
    """

    def __init__(self, connection: apsw.Connection, *, find: str, last: str, most: int) -> None:
        self._execute = connection.execute
        self._find, self._last = find, last
        self._most = most  # ids remembered from one transaction to the next
        self._ids: OrderedDict[Key, int] = OrderedDict()
        self._before = self._given = -1  # the largest ids when it began, and now; -1: not asked yet

    def begin(self) -> None:
        """A transaction begins: other processes may have added rows since the last one."""
        self._before = self._given = -1
        while len(self._ids) > self._most:
            self._ids.popitem(last=False)

    def find(self, key: Key) -> int | None:
        """Return the id of a row that is known or stored; None for a row that is to be added."""
        known = self._ids.get(key)
        if known is None:
            known = self._execute(self._find, key).get
            if known is not None:
                self._ids[key] = known
        return known

    def known(self, key: Key) -> int | None:
        """Return the id of a row that this process knows; None says nothing of the table."""
        return self._ids.get(key)

    def add(self, key: Key) -> int:
        """Give the next id to a row that is not stored."""
        if self._given < 0:
            self._before = self._given = self._execute(self._last).get
        self._given += 1
        self._ids[key] = self._given
        return self._given

    def is_new(self, number: int) -> bool:
        """Return whether this transaction gave an id: no stored row can refer to it."""
        return number > self._before >= 0

    def forget(self) -> None:
        """Drop what is known: after a rollback, or when gc has removed rows."""
        self._ids.clear()
        self._before = self._given = -1


class DigestNumbering(Numbering[tuple[bytes]]):
    """Of the rows of a table that are found by a digest of 32 bytes, also many at a time."""

    def __init__(self, connection: apsw.Connection, *, table: str, column: str, most: int) -> None:
        super().__init__(
            connection,
            find=f"SELECT id FROM {table} WHERE {column} = ?",
            last=last_id(table),
            most=most,
        )
        self._find_all = _FIND_ALL.format(table=table, column=column)
        self._absent: set[tuple[bytes]] = set()  # looked up in this transaction, and not stored

    def begin(self) -> None:
        super().begin()
        self._absent.clear()

    def expect(self, digests: Iterable[bytes]) -> None:
        """Look up what will be requested: most of it is new, and one statement spares one each."""
        unknown = [digest for digest in dict.fromkeys(digests) if (digest,) not in self._ids]
        if not unknown:
            return
        self._absent.update((digest,) for digest in unknown)
        for digest, number in self._execute(self._find_all, {"digests": b"".join(unknown)}):
            self._ids[(digest,)] = number
            self._absent.discard((digest,))

    def find(self, key: tuple[bytes]) -> int | None:
        return self._ids.get(key) if key in self._absent else super().find(key)

    def forget(self) -> None:
        super().forget()
        self._absent.clear()

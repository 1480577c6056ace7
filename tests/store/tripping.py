"""Stops a write before its nth statement, on whatever connection it opens for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw


class Tripwire:
    """Counts statements from the first BEGIN on, COMMIT among them; acts before one of them."""

    def __init__(self, statement: int, trip: Callable[[], None]) -> None:
        self._left = statement
        self._trip = trip
        self._has_begun = False
        self.has_tripped = False

    def __call__(self, _: apsw.Cursor, sql: str, bindings: object) -> bool:
        self._has_begun = self._has_begun or sql.startswith("BEGIN")
        if self._has_begun and not self.has_tripped:
            if self._left == 0:
                self.has_tripped = True
                self._trip()
            self._left -= 1
        return True


@contextmanager
def tripping(statement: int, trip: Callable[[], None]) -> Iterator[Tripwire]:
    """Have connections that are opened in the block stop before a statement, counted from 0."""
    wire = Tripwire(statement, trip)

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = wire

    apsw.connection_hooks.append(watch)
    try:
        yield wire
    finally:
        apsw.connection_hooks.remove(watch)

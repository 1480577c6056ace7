"""What was removed before anything was stored: a row a rule and field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import apsw


@dataclass(frozen=True, slots=True)
class RemovedSecret:
    """One rule's findings in one field of one item."""

    rule: str
    field: str
    count: int


_ADD = "INSERT INTO redaction (signal, item, rule, field, count) VALUES (?, ?, ?, ?, ?)"
_DROP = "DELETE FROM redaction WHERE signal = ? AND item = ?"


class RedactionWriter:
    """Writes redaction rows, inside one transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    def add(
        self, signal: str, item: int, removed: Iterable[RemovedSecret], *, replaces: bool = False
    ) -> None:
        """Note what was removed from an item, by its id in the signal's table.

        `replaces`: another report of the item was stored before, with removals of its own.
        """
        if replaces:
            self._execute(_DROP, (signal, item))
        for one in removed:
            self._execute(_ADD, (signal, item, one.rule, one.field, one.count))


_OF_ITEM = "SELECT rule, field, count FROM redaction WHERE signal = ? AND item = ? ORDER BY id"


def redactions_of(connection: apsw.Connection, signal: str, item: int) -> list[RemovedSecret]:
    """Return what was removed from an item: a span, log record, metric point or payload."""
    return [RemovedSecret(*row) for row in connection.execute(_OF_ITEM, (signal, item))]

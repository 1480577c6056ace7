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


# What was removed from stored items before anything was stored.

_ALL = -1
_OF_ITEM = """
SELECT rule, field, count FROM redaction
WHERE signal = :signal AND item = :item ORDER BY id LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What one rule removed from one field before anything was stored."""

    rule: str
    field: str
    count: int


def redactions_of(
    connection: apsw.Connection, signal: str, item: int, *, limit: int = _ALL
) -> list[Redaction]:
    """Return what was removed from an item: a span, log record, metric point or payload."""
    parameters = {"signal": signal, "item": item, "limit": limit}
    return [
        Redaction(str(rule), str(field), int(str(count)))
        for rule, field, count in connection.execute(_OF_ITEM, parameters)
    ]

"""What was removed from stored items before anything was stored."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

_OF_ITEM = """
SELECT rule, field, count FROM redaction
WHERE signal = :signal AND item = :item ORDER BY id LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Redaction:
    """One rule's findings in one field of one item."""

    rule: str
    field: str
    count: int


def redactions_of(
    connection: apsw.Connection, signal: str, item: int, *, limit: int = 1000
) -> list[Redaction]:
    """Return what was removed from an item: a span, log record, metric point or payload."""
    wanted = {"signal": signal, "item": item, "limit": limit}
    return [
        Redaction(str(rule), str(field), int(str(count)))
        for rule, field, count in connection.execute(_OF_ITEM, wanted)
    ]

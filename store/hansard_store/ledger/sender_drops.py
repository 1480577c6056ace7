"""What senders dropped before it was received, as they report it."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

_ADD = """
INSERT INTO sender_drop (service, instance, signal, reason, items, first_ns, last_ns)
VALUES (:service, :instance, :signal, :reason, :items, :now, :now)
ON CONFLICT (service, instance, signal, reason) DO UPDATE SET
  last_ns = CASE WHEN excluded.items > items THEN excluded.last_ns ELSE last_ns END,
  items = max(items, excluded.items)
"""
_LIST = """
SELECT service, signal, reason, sum(items), count(*), min(first_ns), max(last_ns)
FROM sender_drop GROUP BY service, signal, reason
ORDER BY max(last_ns) DESC, service, signal, reason LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class DropCount:
    """What one process reports: how much it dropped since it started."""

    service: str
    instance: str
    signal: str  # "spans" or "logs"
    reason: str
    items: int


@dataclass(frozen=True, slots=True)
class DropSum:
    """What all processes of a service dropped for one reason."""

    service: str  # '' where it did not name itself
    signal: str
    reason: str
    items: int
    processes: int
    first_ns: int
    last_ns: int


def add_drops(connection: apsw.Connection, count: DropCount, *, now_ns: int) -> None:
    """Store a count, inside a transaction; of two reports of one the larger holds."""
    values = {
        "service": count.service,
        "instance": count.instance,
        "signal": count.signal,
        "reason": count.reason,
        "items": count.items,
        "now": now_ns,
    }
    connection.execute(_ADD, values)


def list_drops(connection: apsw.Connection, *, limit: int = 100) -> list[DropSum]:
    """Return what was dropped by service, signal and reason, the one that grew last first."""
    return [DropSum(*row) for row in connection.execute(_LIST, {"limit": limit})]

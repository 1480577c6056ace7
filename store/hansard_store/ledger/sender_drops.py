"""What senders say that they lost before it got here."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

_KEEP = """
INSERT INTO loss (service, instance, signal, reason, items, first_ns, last_ns)
VALUES (:service, :instance, :signal, :reason, :items, :now, :now)
ON CONFLICT (service, instance, signal, reason) DO UPDATE SET
  last_ns = CASE WHEN excluded.items > items THEN excluded.last_ns ELSE last_ns END,
  items = max(items, excluded.items)
"""
_LIST = """
SELECT service, signal, reason, sum(items), count(*), min(first_ns), max(last_ns)
FROM loss GROUP BY service, signal, reason ORDER BY max(last_ns) DESC, service, signal, reason
LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class ToldLoss:
    """A count that one process tells: how much it lost since it started."""

    service: str
    instance: str
    signal: str  # "spans" or "logs"
    reason: str
    items: int


@dataclass(frozen=True, slots=True)
class LossSum:
    """What all processes of a service lost for one reason."""

    service: str  # '' where it did not name itself
    signal: str
    reason: str
    items: int
    processes: int
    first_ns: int
    last_ns: int


def keep_loss(connection: apsw.Connection, loss: ToldLoss, *, now_ns: int) -> None:
    """Keep a count, inside a transaction. Told twice it counts once: the larger one holds."""
    values = {
        "service": loss.service,
        "instance": loss.instance,
        "signal": loss.signal,
        "reason": loss.reason,
        "items": loss.items,
        "now": now_ns,
    }
    connection.execute(_KEEP, values)


def list_losses(connection: apsw.Connection, *, limit: int = 100) -> list[LossSum]:
    """Return what was lost by service, signal and reason, the one that grew last first."""
    return [LossSum(*row) for row in connection.execute(_LIST, {"limit": limit})]

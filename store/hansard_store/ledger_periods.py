"""The collector's count over a stretch of time, by sender and signal, in quarters of an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.ledger import QUARTER_NS
from hansard_store.ledger_queries import LedgerCount


@dataclass(frozen=True, slots=True)
class PeriodLine:
    """What one sender sent of one signal since the beginning of a period."""

    sender: int  # sender.id
    service: str  # '' where it never named one
    transport: str
    user_agent: str
    dialect: str
    signal: str
    last_ns: int
    count: LedgerCount
    received: tuple[int, ...]  # per quarter hour, the first one of the period first
    troubled: tuple[int, ...]  # numbers of quarters in which something was rejected or refused


_ROWS = """
SELECT ledger.quarter_ns, sender.id, sender.service, sender.transport, sender.user_agent,
  sender.dialect, ledger.signal, sender.last_ns, ledger.received, ledger.stored,
  ledger.duplicate, ledger.rejected, ledger.opened, ledger.deleted, ledger.requests,
  ledger.refused, ledger.bytes
FROM ledger CROSS JOIN sender ON sender.id = ledger.sender
WHERE ledger.quarter_ns >= :since
ORDER BY sender.last_ns DESC, sender.id, ledger.signal DESC, ledger.quarter_ns
"""


def ledger_lines(connection: apsw.Connection, *, since_ns: int, until_ns: int) -> list[PeriodLine]:
    """Return a line for every sender and signal, the one heard from last first.

    The period begins with the quarter hour that holds since_ns.
    """
    first_ns = since_ns - since_ns % QUARTER_NS
    quarters = (until_ns - first_ns) // QUARTER_NS + 1
    groups: dict[tuple[int, str], list[Any]] = {}
    for row in connection.execute(_ROWS, {"since": first_ns}):
        groups.setdefault((row[1], row[6]), []).append(row)
    return [_line(rows, first_ns=first_ns, quarters=quarters) for rows in groups.values()]


def _line(rows: Sequence[Any], *, first_ns: int, quarters: int) -> PeriodLine:
    received = [0] * quarters
    troubled = []
    for row in rows:
        # A clock that was set back can leave quarters after the end: they count in the last one.
        number = min((row[0] - first_ns) // QUARTER_NS, quarters - 1)
        received[number] += row[8]
        if row[11] or row[15]:
            troubled.append(number)
    _, sender, service, transport, user_agent, dialect, signal, last_ns, *_ = rows[0]
    sums = [sum(row[column] for row in rows) for column in range(8, 17)]
    return PeriodLine(
        sender,
        service,
        transport,
        user_agent,
        dialect,
        signal,
        last_ns,
        LedgerCount(*sums),
        tuple(received),
        tuple(troubled),
    )

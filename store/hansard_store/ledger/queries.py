"""The collector's count as /health and the API show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.ledger.counts import QUARTER_NS

SIGNALS = ("traces", "logs", "metrics")


@dataclass(frozen=True, slots=True)
class LedgerCount:
    """Items of one signal: received = stored + duplicate + rejected + opened + deleted."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    opened: int = 0  # start records that their span replaced
    deleted: int = 0  # late items of deleted runs
    requests: int = 0
    refused: int = 0  # whole requests
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LedgerSender:
    """One sender, with its counts over all signals."""

    id: int
    service: str  # '' where it never named one
    transport: str
    user_agent: str
    dialect: str
    address: str
    first_ns: int
    last_ns: int
    count: LedgerCount


@dataclass(frozen=True, slots=True)
class LedgerRefusal:
    """Something that was not stored, with the sentence its sender was told."""

    id: int
    time_ns: int
    service: str
    transport: str
    user_agent: str
    address: str
    signal: str
    code: str
    message: str
    items: int | None  # None: the whole request
    bytes: int


@dataclass(frozen=True, slots=True)
class LedgerQuarter:
    """A quarter of an hour, over all senders and signals."""

    quarter_ns: int  # its start
    count: LedgerCount


_SUMS = """
  sum(received), sum(stored), sum(duplicate), sum(rejected), sum(opened), sum(deleted),
  sum(requests), sum(refused), sum(bytes)
"""
_BY_SIGNAL = f"SELECT signal, {_SUMS} FROM ledger GROUP BY signal"
_BY_SENDER = f"""
SELECT sender.id, sender.service, sender.transport, sender.user_agent, sender.dialect,
  sender.address, sender.first_ns, sender.last_ns, total.*
FROM (SELECT sender AS number, {_SUMS} FROM ledger GROUP BY sender) AS total
  CROSS JOIN sender ON sender.id = total.number
ORDER BY sender.last_ns DESC, sender.id LIMIT :limit
"""
_BY_QUARTER = f"""
SELECT quarter_ns, {_SUMS} FROM ledger WHERE quarter_ns >= :since
GROUP BY quarter_ns ORDER BY quarter_ns
"""
_REFUSALS = """
SELECT refusal.id, refusal.time_ns, sender.service, sender.transport, sender.user_agent,
  sender.address, refusal.signal, refusal.code, refusal.message, refusal.items, refusal.bytes
FROM refusal CROSS JOIN sender ON sender.id = refusal.sender
WHERE refusal.id < :before ORDER BY refusal.id DESC LIMIT :limit
"""
_NEWEST = (1 << 63) - 1


def ledger_totals(connection: apsw.Connection) -> dict[str, LedgerCount]:
    """Return the counts of every signal since the store was made; all three are there."""
    found = {row[0]: _count(row[1:]) for row in connection.execute(_BY_SIGNAL)}
    return {signal: found.get(signal, LedgerCount()) for signal in SIGNALS}


def list_senders(connection: apsw.Connection, *, limit: int = 200) -> list[LedgerSender]:
    """Return senders, the one heard from last first."""
    rows: list[Any] = connection.execute(_BY_SENDER, {"limit": limit}).fetchall()
    return [LedgerSender(*[*row[:8], _count(row[9:])]) for row in rows]


def list_quarters(connection: apsw.Connection, *, since_ns: int) -> list[LedgerQuarter]:
    """Return the quarter hours from a time on in which anything came, oldest first."""
    rows: list[Any] = connection.execute(_BY_QUARTER, {"since": since_ns}).fetchall()
    return [LedgerQuarter(row[0], _count(row[1:])) for row in rows]


def list_refusals(
    connection: apsw.Connection, *, limit: int = 50, before: int = _NEWEST
) -> list[LedgerRefusal]:
    """Return the last refusals, newest first; `before` is the id of the last one seen."""
    wanted = {"limit": limit, "before": before}
    rows: list[Any] = connection.execute(_REFUSALS, wanted).fetchall()
    return [LedgerRefusal(*row) for row in rows]


def _count(sums: Any) -> LedgerCount:
    return LedgerCount(*sums)


# The collector's count over a stretch of time, by sender and signal, in quarters of an hour.


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

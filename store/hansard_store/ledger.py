"""Ledger: counts of received, stored, duplicate and rejected items, by sender and signal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from typing import Any

import apsw

# The collector's own count: what was received, and what became of it, by sender and signal.
#
# received = stored + duplicate + rejected + opened + deleted, always: a test adds it up.

QUARTER_NS = 15 * 60 * 1_000_000_000
_KEPT_REFUSALS = 500
_AGENT_CHARS = 200  # of a user agent are kept


@dataclass(frozen=True, slots=True)
class SenderKey:
    """Who sends: the service as it names itself, over one transport, with one exporter."""

    service: str
    transport: str
    user_agent: str


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
class RefusedItem:
    """Something that was not stored, with the message that its sender received."""

    sender: SenderKey
    address: str
    signal: str
    code: str
    message: str
    items: int | None  # None: the whole request
    size_bytes: int
    time_ns: int


_SENDER = """
INSERT INTO sender (service, transport, user_agent, dialect, address, first_ns, last_ns)
VALUES (:service, :transport, :user_agent, :dialect, :address, :now, :now)
ON CONFLICT (service, transport, user_agent) DO UPDATE SET
  last_ns = excluded.last_ns, address = excluded.address,
  dialect = CASE excluded.dialect WHEN '' THEN dialect ELSE excluded.dialect END
RETURNING id
"""
_COLUMNS = [column.name for column in fields(LedgerCount)]
_COUNT = f"""
INSERT INTO ledger (quarter_ns, sender, signal, {", ".join(_COLUMNS)})
VALUES (?, ?, ?, {", ".join("?" * len(_COLUMNS))})
ON CONFLICT (quarter_ns, sender, signal) DO UPDATE SET
  {", ".join(f"{column} = {column} + excluded.{column}" for column in _COLUMNS)}
"""
_REFUSE = """
INSERT INTO refusal (time_ns, sender, signal, code, message, items, bytes)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_FORGET = "DELETE FROM refusal WHERE id <= (SELECT max(id) FROM refusal) - ?"


_MESSAGE_CHARS = 4_096  # of a sentence that was sent as the reason of a refusal


@dataclass(slots=True)
class LedgerBatch:
    """What one transaction adds to the ledger: summed in memory, written once.

    A user agent, and a sentence that repeats a header, are texts of a sender: `redact` cuts secrets
    out of them, before anything of them is cut off.
    """

    redact: Callable[[str], str]
    counts: dict[tuple[SenderKey, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    addresses: dict[SenderKey, str] = field(default_factory=dict)
    dialects: dict[SenderKey, str] = field(default_factory=dict)
    refusals: list[RefusedItem] = field(default_factory=list)

    def of(self, sender: SenderKey, signal: str, *, address: str) -> Counter[str]:
        """Return the count to add to, of a sender and a signal: by field of LedgerCount."""
        sender = self._clean(sender)
        self.addresses[sender] = address
        return self.counts[sender, signal]

    def flush(self, connection: apsw.Connection, *, now_ns: int) -> None:
        """Write the sums; part of the transaction that stores what they count."""
        ids = {sender: self._sender(connection, sender, now_ns=now_ns) for sender in self.addresses}
        quarter_ns = now_ns - now_ns % QUARTER_NS
        for (sender, signal), count in self.counts.items():
            sums = astuple(LedgerCount(**count))  # TypeError for a name that is no column
            connection.execute(_COUNT, (quarter_ns, ids[sender], signal, *sums))
        for refusal in self.refusals:
            row = (refusal.signal, refusal.code, refusal.message, refusal.items, refusal.size_bytes)
            connection.execute(_REFUSE, (refusal.time_ns, ids[refusal.sender], *row))
        if self.refusals:
            connection.execute(_FORGET, (_KEPT_REFUSALS,))

    def refuse(self, refusal: RefusedItem) -> None:
        """Note a refusal, so that /health can tell it."""
        sender = self._clean(refusal.sender)
        message = self.redact(refusal.message)[:_MESSAGE_CHARS]
        self.addresses.setdefault(sender, refusal.address)
        self.refusals.append(replace(refusal, sender=sender, message=message))

    def _clean(self, sender: SenderKey) -> SenderKey:
        return replace(sender, user_agent=self.redact(sender.user_agent)[:_AGENT_CHARS])

    def _sender(self, connection: apsw.Connection, sender: SenderKey, *, now_ns: int) -> int:
        row = asdict(sender) | {
            "dialect": self.dialects.get(sender, ""),
            "address": self.addresses[sender],
            "now": now_ns,
        }
        found: int = connection.execute(_SENDER, row).get
        return found


# The collector's count as /health and the API show it.

SIGNALS = ("traces", "logs", "metrics")


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
    """Something that was not stored, with the message that its sender received."""

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


_SUMS = ", ".join(f"sum({column})" for column in _COLUMNS)
_BY_SIGNAL = f"SELECT signal, {_SUMS} FROM ledger GROUP BY signal"
_BY_SENDER = f"""
SELECT sender.id, sender.service, sender.transport, sender.user_agent, sender.dialect,
  sender.address, sender.first_ns, sender.last_ns, total.*
FROM (SELECT sender AS number, {_SUMS} FROM ledger GROUP BY sender) AS total
  CROSS JOIN sender ON sender.id = total.number
ORDER BY sender.last_ns DESC, sender.id LIMIT :limit
"""
_REFUSALS = """
SELECT refusal.id, refusal.time_ns, sender.service, sender.transport, sender.user_agent,
  sender.address, refusal.signal, refusal.code, refusal.message, refusal.items, refusal.bytes
FROM refusal CROSS JOIN sender ON sender.id = refusal.sender
WHERE refusal.id > 0 ORDER BY refusal.id DESC LIMIT :limit
"""


def ledger_totals(connection: apsw.Connection) -> dict[str, LedgerCount]:
    """Return the counts of every signal since the store was made; all three are there."""
    found = {row[0]: LedgerCount(*row[1:]) for row in connection.execute(_BY_SIGNAL)}
    return {signal: found.get(signal, LedgerCount()) for signal in SIGNALS}


def list_senders(connection: apsw.Connection, *, limit: int = 200) -> list[LedgerSender]:
    """Return senders, the one heard from last first."""
    rows = connection.execute(_BY_SENDER, {"limit": limit})
    return [LedgerSender(*[*row[:8], LedgerCount(*row[9:])]) for row in rows]


def list_refusals(connection: apsw.Connection, *, limit: int = 50) -> list[LedgerRefusal]:
    """Return the last refusals, newest first."""
    return [LedgerRefusal(*row) for row in connection.execute(_REFUSALS, {"limit": limit})]


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


_ROWS = f"""
SELECT ledger.quarter_ns, sender.id, sender.service, sender.transport, sender.user_agent,
  sender.dialect, ledger.signal, sender.last_ns,
  {", ".join(f"ledger.{column}" for column in _COLUMNS)}
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
    total: Counter[str] = Counter()
    for row in rows:
        # A clock that was set back can leave quarters after the end: they count in the last one.
        number = min((row[0] - first_ns) // QUARTER_NS, quarters - 1)
        counts = dict(zip(_COLUMNS, row[8:], strict=True))
        received[number] += counts["received"]
        if counts["rejected"] or counts["refused"]:
            troubled.append(number)
        total.update(counts)
    return PeriodLine(*[*rows[0][1:8], LedgerCount(**total), tuple(received), tuple(troubled)])


# What senders dropped before it was received, as they report it.

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
    connection.execute(_ADD, asdict(count) | {"now": now_ns})


def list_drops(connection: apsw.Connection, *, limit: int = 100) -> list[DropSum]:
    """Return what was dropped by service, signal and reason, the one that grew last first."""
    return [DropSum(*row) for row in connection.execute(_LIST, {"limit": limit})]

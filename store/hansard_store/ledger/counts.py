"""The collector's own count: what was received, and what became of it, by sender and signal.

received = stored + duplicate + rejected + opened + deleted, always: a test adds it up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import apsw

QUARTER_NS = 15 * 60 * 1_000_000_000
_KEPT_REFUSALS = 500
_AGENT_CHARS = 200  # of a user agent are kept


@dataclass(frozen=True, slots=True)
class SenderKey:
    """Who sends: the service as it names itself, over one transport, with one exporter."""

    service: str
    transport: str
    user_agent: str


@dataclass(slots=True)
class Count:
    """Counts of one sender and signal; items unless said."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    opened: int = 0
    deleted: int = 0
    requests: int = 0
    refused: int = 0  # whole requests
    bytes: int = 0

    def add(self, outcomes: Mapping[str, int]) -> None:
        """Add what became of some items: column -> how many."""
        for column, items in outcomes.items():
            setattr(self, column, getattr(self, column) + items)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was not stored, with the sentence its sender was told."""

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
_COUNT = """
INSERT INTO ledger (
  quarter_ns, sender, signal, received, stored, duplicate, rejected, opened, deleted, requests,
  refused, bytes
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (quarter_ns, sender, signal) DO UPDATE SET
  received = received + excluded.received, stored = stored + excluded.stored,
  duplicate = duplicate + excluded.duplicate, rejected = rejected + excluded.rejected,
  opened = opened + excluded.opened, deleted = deleted + excluded.deleted,
  requests = requests + excluded.requests, refused = refused + excluded.refused,
  bytes = bytes + excluded.bytes
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
    counts: dict[tuple[SenderKey, str], Count] = field(default_factory=lambda: defaultdict(Count))
    addresses: dict[SenderKey, str] = field(default_factory=dict)
    dialects: dict[SenderKey, str] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def of(self, sender: SenderKey, signal: str, *, address: str) -> Count:
        """Return the count to add to, of a sender and a signal."""
        sender = self._clean(sender)
        self.addresses[sender] = address
        return self.counts[sender, signal]

    def flush(self, connection: apsw.Connection, *, now_ns: int) -> None:
        """Write the sums; part of the transaction that stores what they count."""
        ids = {sender: self._sender(connection, sender, now_ns=now_ns) for sender in self.addresses}
        quarter_ns = now_ns - now_ns % QUARTER_NS
        for (sender, signal), count in self.counts.items():
            values = (
                count.received, count.stored, count.duplicate, count.rejected, count.opened,
                count.deleted, count.requests, count.refused, count.bytes,
            )  # fmt: skip
            connection.execute(_COUNT, (quarter_ns, ids[sender], signal, *values))
        for refusal in self.refusals:
            row = (refusal.signal, refusal.code, refusal.message, refusal.items, refusal.size_bytes)
            connection.execute(_REFUSE, (refusal.time_ns, ids[refusal.sender], *row))
        if self.refusals:
            connection.execute(_FORGET, (_KEPT_REFUSALS,))

    def refuse(self, refusal: Refusal) -> None:
        """Note a refusal, so that /health can tell it."""
        sender = self._clean(refusal.sender)
        message = self.redact(refusal.message)[:_MESSAGE_CHARS]
        self.addresses.setdefault(sender, refusal.address)
        self.refusals.append(replace(refusal, sender=sender, message=message))

    def _clean(self, sender: SenderKey) -> SenderKey:
        return replace(sender, user_agent=self.redact(sender.user_agent)[:_AGENT_CHARS])

    def _sender(self, connection: apsw.Connection, sender: SenderKey, *, now_ns: int) -> int:
        row = {
            "service": sender.service,
            "transport": sender.transport,
            "user_agent": sender.user_agent,
            "dialect": self.dialects.get(sender, ""),
            "address": self.addresses[sender],
            "now": now_ns,
        }
        found: int = connection.execute(_SENDER, row).get
        return found

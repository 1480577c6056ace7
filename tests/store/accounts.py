"""Makers for the tests of accountability: a store, a clock that is told the time, proposals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from hansard_store.approvals.records import PolicyNote, Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import (
    EMPTY_HEAD,
    ChainReport,
    Event,
    EventFilter,
    EventLog,
    Head,
    StoredEvent,
)
from hansard_store.audit.hash_chain import chained_row, check_chain, stored_event
from hansard_store.policy.stored_policy import PolicyQuestion
from tests.store.empty import empty_store

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOW = 1_800_000_000 * SECOND
RUN = "0af7651916cd43dd8448eb211c80319c"
STEP = f"{RUN}-b7ad6b7169203331"
EMAIL = {"to": "alice@company.com", "subject": "Q3 report", "body": "Hi Alice, see attached."}


class Clock:
    """Tells the time it was set to."""

    def __init__(self) -> None:
        self.now_ns = NOW

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, ns: int) -> None:
        self.now_ns += ns


def proposal(**changes: Any) -> Proposal:
    """Return a proposal to send an e-mail."""
    told: dict[str, Any] = {"tool": "send_email", "arguments": EMAIL, "agent": "clerk"}
    return Proposal(**{**told, **changes})


class Rules:
    """A policy that answers what it was told, and remembers what it was asked."""

    def __init__(self, decide: Callable[[PolicyQuestion], PolicyNote] | None = None) -> None:
        self._decide = decide
        self.asked: list[PolicyQuestion] = []

    def __call__(self, asked: PolicyQuestion) -> PolicyNote:
        self.asked.append(asked)
        if self._decide is None:
            return PolicyNote(effect="allow", facts=asked.facts)
        return self._decide(asked)


def account(path: Path, clock: Callable[[], int] | None = None, **told: Any) -> ApprovalService:
    """Open the accountability of a folder, new or not; second copies of heads only where asked."""
    told.setdefault("heads_copy", "off")
    return ApprovalService(empty_store(path / "data"), clock=clock or Clock(), **told)


class MemoryEventLog:
    """An audit log in memory that takes part in the store's transactions (EventLog)."""

    def __init__(self) -> None:
        self._events: list[StoredEvent] = []
        self._pending: list[StoredEvent] = []

    def of(self, connection: apsw.Connection) -> EventLog:
        """Return itself, bound to the transactions of a connection."""
        connection.set_commit_hook(self._commit)
        connection.set_rollback_hook(self._pending.clear)
        return self

    def _commit(self) -> bool:
        self._events += self._pending
        self._pending.clear()
        return False

    def append(self, event: Event) -> int:
        made = chained(event, _end([*self._events, *self._pending]))
        self._pending.append(made)
        return made.seq

    def head(self) -> Head:
        return _end(self._events)

    def hash_at(self, seq: int) -> bytes | None:
        if seq == EMPTY_HEAD.seq:
            return EMPTY_HEAD.hash
        events = [*self._events, *self._pending]
        return events[seq - 1].hash if 0 < seq <= len(events) else None

    def read(
        self,
        wanted: EventFilter = EventFilter(),  # noqa: B008 - frozen
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> Sequence[StoredEvent]:
        found = [one for one in reversed(self._events) if _fits(one, wanted)]
        return [one for one in found if before is None or one.seq < before][:limit]

    def verify(self, *, anchor: Head | None = None, heads: Sequence[Head] = ()) -> ChainReport:
        return check_chain(self._events, anchor=anchor, heads=heads)

    def alter(self, seq: int, **changes: Any) -> None:
        """Change an event as nobody may."""
        self._events[seq - 1] = replace(self._events[seq - 1], **changes)


def chained(event: Event, after: Head) -> StoredEvent:
    """Return an event as it stands after the last one."""
    return stored_event(
        chained_row(event, after),
        contents={one.name: one.value for one in event.contents},
        salts={one.name: one.salt for one in event.contents},
    )


def _end(events: Sequence[StoredEvent]) -> Head:
    return Head(events[-1].seq, events[-1].hash) if events else EMPTY_HEAD


def _fits(event: StoredEvent, wanted: EventFilter) -> bool:
    columns = ("type", "actor", "who", "action", "source", "subject", "approval_id", "trace_id")
    facts = all(getattr(wanted, one) in (None, getattr(event, one)) for one in columns)
    since, until = wanted.since_ns, wanted.until_ns
    is_in = (since is None or event.time_ns >= since) and (until is None or event.time_ns < until)
    return facts and is_in

"""The audit log's words: its closed list of types, its actors, an event, and what a log can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class EventType(StrEnum):
    """Everything that has an event; what is not here has none (docs/accountability.md)."""

    MESSAGE_INBOUND = "message.inbound"
    MESSAGE_OUTBOUND = "message.outbound"
    POLICY_BLOCKED = "policy.blocked"
    POLICY_GATED = "policy.gated"
    ACTION_CREATED = "action.created"
    ACTION_REVISED = "action.revised"
    ACTION_REPROPOSED = "action.reproposed"
    ACTION_REQUESTED = "action.requested"  # by one more principal, with the key of the proposal
    ACTION_APPROVAL_ADDED = "action.approval_added"  # one of several that are needed
    ACTION_APPROVED = "action.approved"
    ACTION_REJECTED = "action.rejected"
    ACTION_EXPIRED = "action.expired"
    ACTION_ESCALATED = "action.escalated"  # the next approver is asked
    ACTION_RECEIPTED = "action.receipted"  # the receipt that policy demands before an action
    ACTION_CLAIMED = "action.claimed"
    ACTION_EXECUTED = "action.executed"
    ACTION_UNKNOWN = "action.unknown"  # claimed, and nobody knows how it ended
    ACTION_SETTLED = "action.settled"  # a person looked whether it had happened
    TOOL_CALLED = "tool.called"
    TOOL_RETURNED = "tool.returned"
    FAILURE = "failure"
    MEMORY_WRITTEN = "memory.written"
    MEMORY_INVALIDATED = "memory.invalidated"
    TRANSCRIPT_FOLDED = "transcript.folded"
    RECORD_SEALED = "record.sealed"  # hashes of rows that were written since the last one
    HEAD_ACCEPTED = "head.accepted"  # a person took an older state of the store for valid
    SCHEMA_ALTERED = "schema.altered"  # ingest found tables, views or triggers of somebody else
    SCHEMA_REPAIRED = "schema.repaired"  # a person had the shipped schema restored
    TASK_DECIDED = "task.decided"
    ERROR_GROUP_CHANGED = "error_group.changed"  # watched, noted, closed; or it opened again
    REPORT_WRITTEN = "report.written"  # or written again, without what was deleted
    REPORT_REMOVED = "report.removed"  # to make room
    REPORT_ACKNOWLEDGED = "report.acknowledged"
    TOKEN_ADDED = "token.added"
    TOKEN_REVOKED = "token.revoked"


class Actor(StrEnum):
    """Who did it."""

    AGENT = "agent"
    ME = "me"  # a person
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Content:
    """What an event refers to: a draft or a note, without secrets.

    The reference is a hash over salt and value: it binds the content, and says nothing of it to
    a reader of the event alone.
    """

    name: str
    value: Any  # JSON
    salt: bytes
    ref: str  # salted-sha256:…


@dataclass(frozen=True, slots=True)
class Event:
    """An entry to be appended. Its body holds ids, references and keyed hashes, never content."""

    type: EventType
    actor: Actor
    action: str
    source: str
    subject: str
    time_ns: int  # when it happened
    who: str = ""
    late: bool = False  # it is written later than it happened
    approval_id: bytes | None = None
    trace_id: bytes | None = None
    span_id: bytes | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    contents: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An entry of the log."""

    seq: int
    time_ns: int
    late: bool
    type: str  # an EventType, unless a newer version wrote it
    actor: str
    who: str
    action: str
    source: str
    subject: str
    approval_id: bytes | None
    trace_id: bytes | None
    span_id: bytes | None
    body: str  # canonical JSON
    prev_hash: bytes
    hash: bytes
    contents: Mapping[str, Any] = field(default_factory=dict)
    salts: Mapping[str, bytes] = field(default_factory=dict)  # of the contents


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: a copy stored elsewhere proves that nothing before it changed."""

    seq: int
    hash: bytes

    @property
    def text(self) -> str:
        return f"{self.seq}:{self.hash.hex()}"


EMPTY_HEAD = Head(0, bytes(32))


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """The first row that is not as it was written."""

    seq: int
    problem: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What checking the chain found. Without an anchor a cut end is not seen."""

    head: Head
    checked: int
    broken: ChainBreak | None = None
    anchor: Head | None = None
    heads_checked: int = 0  # stored heads that it was compared with

    @property
    def is_sound(self) -> bool:
        return self.broken is None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions on events, all of which must hold; None leaves one out."""

    type: str | None = None
    actor: str | None = None
    who: str | None = None
    action: str | None = None
    source: str | None = None
    subject: str | None = None
    approval_id: bytes | None = None
    trace_id: bytes | None = None
    since_ns: int | None = None  # at or after
    until_ns: int | None = None  # before
    with_seals: bool = False  # seals as well, which come every few seconds; asked by type they do


class EventLog(Protocol):
    """An audit log, as the facade needs it. It knows nothing of approvals."""

    def append(self, event: Event) -> int:
        """Add an event inside the caller's transaction, and return its number."""
        ...

    def head(self) -> Head:
        """Return the last event's number and hash."""
        ...

    def hash_at(self, seq: int) -> bytes | None:
        """Return the hash of an event; None where there is none. That of 0 is zero bytes."""
        ...

    def read(
        self, filters: EventFilter = ..., *, before: int | None = None, limit: int = 50
    ) -> Sequence[StoredEvent]:
        """Return events, the newest first, those below a number."""
        ...

    def count(self, filters: EventFilter, *, at_most: int) -> int:
        """Return how many events meet a filter; counting ends at `at_most`."""
        ...

    def verify(self, *, anchor: Head | None = None, heads: Sequence[Head] = ()) -> ChainReport:
        """Check the whole chain, and that it came by heads of earlier."""
        ...

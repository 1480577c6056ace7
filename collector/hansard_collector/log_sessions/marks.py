"""What a log record of a coding agent is: its place in a turn, and the ids made from that."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value

LLM, TOOL, AGENT, TASK = "llm", "tool", "agent", "task"
_MS = 1_000_000
_LONGEST_MS = 1e11  # three years


class EntryType(StrEnum):
    """The position of a record in its turn."""

    PROMPT = "prompt"  # begins a turn
    STEP = "step"  # makes a step; all records with one kind and key make the same one
    ABOUT = "about"  # adds to a step that another record of the same kind and key makes
    START = "start"  # names no call: it is about the one that begins then
    END = "end"  # names no call: it is about the one that ends then
    NOTE = "note"  # belongs to the turn as a whole
    SESSION = "session"  # belongs to a turn like a note, and makes a run where there is none


@dataclass(frozen=True, slots=True)
class LogMark:
    """What an agent's module reads from one record."""

    entry_type: EntryType
    kind: str = ""  # of a step: llm, tool, agent or task
    key: str = ""  # the sender's id of a step; empty: this record alone is the step
    sequence: str = ""  # of START, END and calls: which of several that run at once
    duration_ns: int = 0
    prompt: str = ""  # the sender's id of the turn; empty: the last prompt before the record


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One record of a step, with its time, which the record itself may not have."""

    time_ns: int
    log: LogView


@dataclass(frozen=True, slots=True)
class LogStep:
    """A step as an agent's module makes it of its records."""

    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None  # None: it did not fail


@dataclass(frozen=True, slots=True)
class LogAgent:
    """A coding agent: how its records are read and its steps built.

    `build` answers None for records that do not make a step. `root` makes the turn's own step of
    its prompts, or of its first record; its times are set by the writer.
    """

    dialect: str
    read: Callable[[LogView], LogMark | None]
    build: Callable[[str, Sequence[LogEntry]], LogStep | None]
    root: Callable[[Sequence[LogEntry]], LogStep]
    # Attributes under which spans that the agent sends tell the key of a step of this kind.
    sent_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Whether records of model calls share nothing with their spans but session and time.
    is_sent_near: bool = False


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """A recognised log record."""

    dialect: str
    session: str
    mark: LogMark
    digest: str  # of the record: what the key of a step that has none is made from

    @property
    def full_session(self) -> str:
        """The session's id among those of all agents."""
        return f"{self.dialect} {self.session}"

    def turn_id(self, prompt: str) -> bytes:
        """Return the trace id that a run of a turn has (DESIGN §2)."""
        return turn_id(self.dialect, self.session, prompt)

    def key(self, time_ns: int) -> str:
        """Return what separates a step from others of its kind."""
        if not self.mark.kind:
            return ""
        return self.mark.key or f"@{time_ns}:{self.digest}"


def turn_id(dialect: str, session: str, prompt: str) -> bytes:
    """Return sha256(dialect, session, prompt)[:16]; the three are joined by zero bytes."""
    return hashlib.sha256("\0".join((dialect, session, prompt)).encode()).digest()[:16]


def step_id(trace_id: bytes, kind: str, key: str) -> bytes:
    """Return sha256(trace id, kind, key)[:8]."""
    return hashlib.sha256(trace_id + f"{kind}\0{key}".encode()).digest()[:8]


def root_id(trace_id: bytes) -> bytes:
    """Return the span id of a turn's own step."""
    return step_id(trace_id, "turn", "")


def milliseconds(value: float | None) -> int:
    """Return a duration in ms as ns; 0 for an absent one and for one that cannot be."""
    return 0 if value is None or not 0 <= value <= _LONGEST_MS else round(value * _MS)


# What all agents' modules need to read a log record.


# What a record says of itself as an event, and not of the step that it is about.
_ENVELOPE = frozenset({"event.name", "event_name", "event.timestamp", "event.sequence"})
# What is the same on every record of a session: a turn's own step shows it.
_OF_SESSION = (
    "session.id", "conversation.id", "gen_ai.conversation.id", "prompt.id", "prompt_id", "turn.id",
    "user.id", "user.email", "user.account_uuid", "user.account_id", "organization.id",
    "installation.id", "app.version", "app.entrypoint", "terminal.type", "auth_mode", "auth_type",
    "originator", "agent.type", "parent.conversation.id", "root.turn.id",
)  # fmt: skip


def text_of(log: LogView, *keys: str) -> str:
    """Return the first attribute that holds a usable text; empty for none."""
    for key in keys:
        found = values.text(log.attributes.get(key))
        if found:
            return found
    return ""


def duration_of(log: LogView, key: str = "duration_ms") -> int:
    """Return the duration that a record states, in ns; 0 for none."""
    return milliseconds(values.real(log.attributes.get(key)))


def content_of(log: LogView, key: str) -> Value:
    """Return an attribute that holds content; None for a redaction marker."""
    value = log.attributes.get(key)
    return value if values.is_content(value) else None


def prompt_text(prompts: Sequence[LogView]) -> str | None:
    """Return what the prompts of a turn say, one after the other; None where that is not known."""
    texts = [value for log in prompts if (value := content_of(log, "prompt")) is not None]
    return "\n\n".join(map(str, texts)) or None


def newest_text(logs: Sequence[LogView], *keys: str) -> str:
    """Return the text that the last record to have one has; empty for none."""
    return next((found for log in reversed(logs) if (found := text_of(log, *keys))), "")


def newest_content(logs: Sequence[LogView], *keys: str) -> Value:
    """Return the content that the last record to have some has under one of the keys."""
    found = (content_of(log, key) for log in reversed(logs) for key in keys)
    return next((value for value in found if value is not None), None)


def failure_of(log: LogView, *keys: str) -> str | None:
    """Return why a record says that it did not succeed; None where it does not say so."""
    if values.flag(log.attributes.get("success")) is not False:
        return None
    return text_of(log, *keys) or "failed"


def copied(logs: Sequence[LogView], *, but: Collection[str] = ()) -> dict[str, Value]:
    """Return the attributes of some records as they were sent; the last value wins."""
    return {
        key: value
        for log in logs
        for key, value in log.attributes.items()
        if key not in _ENVELOPE and key not in but
    }


def of_session(log: LogView) -> dict[str, Value]:
    """Return the attributes that identify the turn."""
    sent = log.attributes
    return {key: sent[key] for key in _OF_SESSION if key in sent}


def present(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return what is known of some attributes."""
    return {key: value for key, value in attributes.items() if value is not None}


def named(entries: Sequence[LogEntry], *names: str) -> list[LogEntry]:
    """Return the records with one of the event names, in their order."""
    return [entry for entry in entries if entry.log.event_name in names]

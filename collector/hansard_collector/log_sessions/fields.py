"""What all agents' modules need to read a log record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions.marks import Entry, milliseconds

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
    """Return the duration that a record tells, in ns; 0 for none."""
    return milliseconds(values.real(log.attributes.get(key)))


def content_of(log: LogView, key: str) -> Value:
    """Return an attribute that holds content; None for a redaction marker."""
    value = log.attributes.get(key)
    return value if values.is_content(value) else None


def copied(logs: Sequence[LogView], *, but: Collection[str] = ()) -> dict[str, Value]:
    """Return the attributes of some records as they were sent; the last to tell one wins."""
    return {
        key: value
        for log in logs
        for key, value in log.attributes.items()
        if key not in _ENVELOPE and key not in but
    }


def of_session(log: LogView) -> dict[str, Value]:
    """Return the attributes that say whose turn it is."""
    sent = log.attributes
    return {key: sent[key] for key in _OF_SESSION if key in sent}


def present(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return what is known of some attributes."""
    return {key: value for key, value in attributes.items() if value is not None}


def named(entries: Sequence[Entry], *names: str) -> list[Entry]:
    """Return the records with one of the event names, in their order."""
    return [entry for entry in entries if entry.log.event_name in names]

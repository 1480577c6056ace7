"""Entries of the audit log as rows: who did what, to what, and where it is chained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_store.approvals.json import is_claimed
from hansard_store.audit.event_types import Actor, EventType, StoredEvent
from hansard_store.database.stored_json import json_of
from hansard_store.principals.model import name_text
from hansard_store.steps.queries import StepSkeleton
from hansard_web.approvals.labels import hash_ends, one_line

_ICONS: Final = {Actor.AGENT: "agent", Actor.ME: "user", Actor.TOOL: "tool"}
_BAD: Final = frozenset({EventType.POLICY_BLOCKED, EventType.FAILURE, EventType.ACTION_UNKNOWN})
_SENTENCE_CHARS: Final = 160
_NO_STEPS: Final[Mapping[str, StepSkeleton]] = {}
_QUOTED: Final = ("note", "reason", "error")


@dataclass(frozen=True, slots=True)
class EventRow:
    """One entry; ids are hex digits, "" where there is none."""

    event: StoredEvent
    icon: str
    who: str
    is_claimed: bool  # a program gave the name
    is_bad: bool
    say: str
    approval_id: str
    run_id: str
    step_id: str
    step_name: str  # "" where its span is not stored
    hash_ends: str
    prev_ends: str


def event_row(event: StoredEvent, steps: Mapping[str, StepSkeleton] = _NO_STEPS) -> EventRow:
    """Return an entry as a row; `steps` are those that are stored, by their ids."""
    run_id = event.trace_id.hex() if event.trace_id else ""
    body = body_of(event)
    step_id = step_of(event)
    step = steps.get(step_id)
    return EventRow(
        event=event,
        icon=_ICONS.get(event.actor, "system"),  # type: ignore[call-overload]  # an Actor is a str
        who=one_line(name_text(event.who), 120),
        is_claimed=is_claimed(event),
        is_bad=event.type in _BAD or body.get("ok") is False,
        say=_say(event, body),
        approval_id=event.approval_id.hex() if event.approval_id else "",
        run_id=run_id,
        step_id=step_id,
        step_name="" if step is None else one_line(step.tool_name or step.name, 60),
        hash_ends=hash_ends(event.hash.hex()),
        prev_ends=hash_ends(event.prev_hash.hex()),
    )


def step_of(event: StoredEvent) -> str:
    """Return the id of the step that an entry is about; "" where there is none."""
    if not event.trace_id or not event.span_id:
        return ""
    return f"{event.trace_id.hex()}-{event.span_id.hex()}"


def body_of(event: StoredEvent) -> dict[str, Any]:
    """Return an entry's body; nothing of one that was altered so that it cannot be read."""
    try:
        found = json_of(event.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _say(event: StoredEvent, body: dict[str, Any]) -> str:
    """Return what happened in one line; texts of people stand in quotation marks."""
    action = one_line(event.action, 60)
    draft = event.contents.get("draft")
    if isinstance(draft, dict):
        text = one_line(str(draft.get("description", "")), _SENTENCE_CHARS)
        return f"{action}, draft {draft.get('revision')}: {text}"
    for name in _QUOTED:
        if name in event.contents:
            return f"{action}: “{one_line(str(event.contents[name]), _SENTENCE_CHARS)}”"
    if body.get("ok") is False:
        return f"{action}: failed"
    kind, _, rest = event.subject.partition(":")
    concerns = "" if kind in ("approval", "tool") or rest == event.action else event.subject
    return " · ".join(part for part in (action, one_line(concerns, 80)) if part)

"""How an approval came to be as it is, told by the audit log alone: drafts and notes in order."""

from __future__ import annotations

from dataclasses import replace

from hansard_store.approvals.json import is_claimed
from hansard_store.approvals.records import Approval, Draft
from hansard_store.audit.event_types import EventFilter, EventLog, EventType, StoredEvent

_AT_ONCE = 500


def history_of(log: EventLog, approval_id: str) -> list[StoredEvent]:
    """Return every event of an approval, in order."""
    wanted = EventFilter(approval_id=bytes.fromhex(approval_id))
    found: list[StoredEvent] = []
    before: int | None = None
    while True:
        page = log.read(wanted, before=before, limit=_AT_ONCE)
        found += page
        if len(page) < _AT_ONCE:
            return found[::-1]
        before = page[-1].seq


def drafts_of(log: EventLog, approval: Approval) -> tuple[Draft, ...]:
    """Return every draft with the note that sent it back; empty where the log tells nothing."""
    drafts: list[Draft] = []
    for event in history_of(log, approval.approval_id):
        who = f"{event.actor}:{event.who}" if event.who else event.actor
        if "draft" in event.contents:
            told = event.contents["draft"]
            drafts.append(
                Draft(told["revision"], told["arguments"], told["description"], who, event.time_ns)
            )
        elif event.type == EventType.ACTION_REVISED and drafts:
            drafts[-1] = replace(
                drafts[-1],
                note=event.contents.get("note"),
                note_by=who,
                note_is_claimed=is_claimed(event),
            )
    return tuple(drafts)

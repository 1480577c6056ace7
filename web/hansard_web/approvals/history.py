"""How an action came to be as it is, told by the audit log alone: draft by draft, note by note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hansard_store.approvals.argument_display import show
from hansard_store.approvals.json import is_claimed
from hansard_store.approvals.records import Field
from hansard_store.audit.event_types import Actor, EventType, StoredEvent
from hansard_store.principals.model import person_text
from hansard_web.approvals.labels import clean, person_of
from hansard_web.audit.rows import body_of
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.ui.format import WAITS

_COMPARED_CHARS: Final = 2_000  # of a value; of longer ones both are shown, not compared by word
_DRAFTS: Final = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)
# What is told of an event beside drafts: after who did it, and whose text stands with it.
_SAID: Final[Mapping[str, tuple[str, str]]] = {
    EventType.ACTION_REQUESTED: ("requested it, too", ""),
    EventType.ACTION_REVISED: ("sent it back", "note"),
    EventType.ACTION_APPROVAL_ADDED: ("approved it", "note"),
    EventType.ACTION_APPROVED: ("approved it", "note"),
    EventType.ACTION_REJECTED: ("rejected it", "reason"),
    EventType.ACTION_EXPIRED: ("ended it: nobody decided in time", ""),
    EventType.ACTION_CLAIMED: ("began to run it", ""),
    EventType.ACTION_EXECUTED: ("returned", "error"),
    EventType.ACTION_SETTLED: ("looked, and settled that it ran", "note"),
    EventType.MEMORY_WRITTEN: ("wrote to memory under it", ""),
    EventType.ACTION_UNKNOWN: ("lost sight of it: nobody knows how it ended", ""),
}


@dataclass(frozen=True, slots=True)
class Change:
    """An argument of a draft: new, changed or gone since the one before."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A point of the story. `kind`: what made it; `now` is where it stands and waits."""

    kind: Literal["agent", "me", "now"]
    title: str
    said: str  # after the title
    time_ns: int
    seq: int
    changes: tuple[Change, ...] = ()
    note: str = ""
    is_unchanged: bool = False  # a draft that says the same as the one before


def story(history: Sequence[StoredEvent], *, is_open: bool) -> tuple[Entry, ...]:
    """Return the points of an approval's history; the last one is where it stands."""
    entries: list[Entry] = []
    before: Sequence[Field] | None = None
    for event in history:
        draft = event.contents.get("draft")
        if event.type in _DRAFTS and draft is not None:
            fields = show(draft["arguments"])
            entries.append(_draft(event, draft, before, fields))
            before = fields
        elif event.type == EventType.ACTION_ESCALATED:
            entries.append(_escalation(event))
        elif event.type in _SAID:
            entries.append(_point(event))
    if entries and is_open:
        last = entries[-1]
        entries[-1] = replace(last, kind="now", said=f"{last.said}, {WAITS}")
    return tuple(entries)


def changes_between(before: Sequence[Field] | None, after: Sequence[Field]) -> tuple[Change, ...]:
    """Return what a draft changes of the arguments of the one before; all of a first one."""
    if before is None:
        return tuple(Change(one.name, (Piece("same", _short(one.value)),)) for one in after)
    old = {one.name: one.value for one in before}
    new = {one.name: one.value for one in after}
    changed = [
        Change(name, _compared(old.get(name), value))
        for name, value in new.items()
        if old.get(name) != value
    ]
    gone = [
        Change(name, (Piece("del", _short(value)),))
        for name, value in old.items()
        if name not in new
    ]
    return tuple(changed + gone)


def _draft(
    event: StoredEvent,
    draft: Mapping[str, Any],
    before: Sequence[Field] | None,
    fields: Sequence[Field],
) -> Entry:
    changes = changes_between(before, fields)
    return Entry(
        kind="me" if event.actor == "me" else "agent",
        title=f"Draft {draft['revision']}",
        said=f"by {_who(event)}",
        time_ns=event.time_ns,
        seq=event.seq,
        changes=changes,
        is_unchanged=before is not None and not changes,
    )


def _point(event: StoredEvent) -> Entry:
    said, quoted = _SAID[event.type]
    if event.type == EventType.ACTION_EXECUTED and body_of(event).get("ok") is False:
        said = "failed"
    if cause := body_of(event).get("caused_by"):
        said = f"ended it for a newer action of {person_of(str(cause))} in its channel"
    if "approvals" in body_of(event):
        said = f"{said}, {body_of(event)['approvals']} of {body_of(event)['approvals_required']}"
    if event.type == EventType.ACTION_SETTLED and body_of(event).get("outcome") != "ran":
        said = "looked, and settled that it did not run"
    return Entry(
        kind="me" if event.actor == "me" else "agent",
        title=_who(event),
        said=said,
        time_ns=event.time_ns,
        seq=event.seq,
        note=clean(str(event.contents.get(quoted, ""))),
    )


def _escalation(event: StoredEvent) -> Entry:
    body = body_of(event)
    return Entry(
        kind="agent",
        title=clean(str(body.get("from", ""))),
        said=f"did not answer in time; {clean(str(body.get('to', '')))} is asked",
        time_ns=event.time_ns,
        seq=event.seq,
    )


def _who(event: StoredEvent) -> str:
    if event.actor != Actor.ME or not is_claimed(event):
        return person_of(f"{event.actor}:{event.who}")
    return clean(person_text(event.who, body_of(event).get("auth_method")))


def _compared(old: str | None, new: str) -> tuple[Piece, ...]:
    if old is None:
        return (Piece("ins", _short(new)),)
    if max(len(old), len(new)) > _COMPARED_CHARS:
        return (Piece("del", _short(old)), Piece("ins", _short(new)))
    return word_diff(old, new)


def _short(text: str) -> str:
    if len(text) <= _COMPARED_CHARS:
        return text
    return f"{text[:_COMPARED_CHARS]}… ({len(text):,} characters)"

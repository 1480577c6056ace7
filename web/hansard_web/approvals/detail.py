"""One approval as a person sees it: what would run, why it needs a decision, its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hansard_store.approvals.argument_display import show
from hansard_store.approvals.json import is_claimed, listed, progress_text
from hansard_store.approvals.records import (
    EXECUTION_STATES,
    Approval,
    ApprovalFilter,
    Field,
    Status,
)
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, EventType, StoredEvent
from hansard_store.memory.records import Memory
from hansard_store.principals.model import is_same, name_text, person_text
from hansard_web.approvals.labels import (
    SOON_NS,
    Standing,
    clean,
    hash_ends,
    one_line,
    person_of,
    standing,
    time_left,
)
from hansard_web.audit.rows import EventRow, body_of, event_row
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.memory.labels import standing_of, text_of, title_of, type_words
from hansard_web.ui.format import WAITS

# How an action came to be as it is, by the audit log alone: draft by draft, note by note.

_COMPARED_CHARS: Final = 2_000  # of a value; of longer ones both are shown, not compared by word
_DRAFTS: Final = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)
# The text of an event beside drafts: after who did it, and whose text stands with it.
_SAID: Final[Mapping[str, tuple[str, str]]] = {
    EventType.ACTION_REQUESTED: ("requested it, too", ""),
    EventType.ACTION_REVISED: ("sent it back", "note"),
    EventType.ACTION_APPROVAL_ADDED: ("approved it", "note"),
    EventType.ACTION_APPROVED: ("approved it", "note"),
    EventType.ACTION_REJECTED: ("rejected it", "reason"),
    EventType.ACTION_EXPIRED: ("ended it: nobody decided in time", ""),
    EventType.ACTION_CLAIMED: ("began to run it", ""),
    EventType.ACTION_EXECUTED: ("returned", "error"),
    EventType.ACTION_SETTLED: ("set the outcome: it ran", "note"),
    EventType.MEMORY_WRITTEN: ("wrote to memory under it", ""),
    EventType.ACTION_UNKNOWN: ("ended without a result: outcome unknown", ""),
}


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """An argument of a draft: new, changed or gone since the one before."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A point of the story. `kind`: what made it; `now` is where it stands and waits."""

    kind: Literal["agent", "me", "now"]
    title: str
    text: str  # after the title
    time_ns: int
    seq: int
    changes: tuple[ArgumentChange, ...] = ()
    note: str = ""
    is_unchanged: bool = False  # a draft that says the same as the one before


def story(history: Sequence[StoredEvent], *, is_open: bool) -> tuple[_Entry, ...]:
    """Return the points of an approval's history; the last one is where it stands."""
    entries: list[_Entry] = []
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
        entries[-1] = replace(last, kind="now", text=f"{last.text}, {WAITS}")
    return tuple(entries)


def changes_between(
    before: Sequence[Field] | None, after: Sequence[Field]
) -> tuple[ArgumentChange, ...]:
    """Return what a draft changes of the arguments of the one before; all of a first one."""
    if before is None:
        return tuple(ArgumentChange(one.name, (Piece("same", _short(one.value)),)) for one in after)
    old = {one.name: one.value for one in before}
    new = {one.name: one.value for one in after}
    changed = [
        ArgumentChange(name, _compared(old.get(name), value))
        for name, value in new.items()
        if old.get(name) != value
    ]
    gone = [
        ArgumentChange(name, (Piece("del", _short(value)),))
        for name, value in old.items()
        if name not in new
    ]
    return tuple(changed + gone)


def _draft(
    event: StoredEvent,
    draft: Mapping[str, Any],
    before: Sequence[Field] | None,
    fields: Sequence[Field],
) -> _Entry:
    changes = changes_between(before, fields)
    return _Entry(
        kind="me" if event.actor == "me" else "agent",
        title=f"Draft {draft['revision']}",
        text=f"by {_who(event)}",
        time_ns=event.time_ns,
        seq=event.seq,
        changes=changes,
        is_unchanged=before is not None and not changes,
    )


def _point(event: StoredEvent) -> _Entry:
    text, quoted = _SAID[event.type]
    if event.type == EventType.ACTION_EXECUTED and body_of(event).get("ok") is False:
        text = "failed"
    if cause := body_of(event).get("caused_by"):
        text = f"ended it for a newer action of {person_of(str(cause))} in its channel"
    if "approvals" in body_of(event):
        text = f"{text}, {body_of(event)['approvals']} of {body_of(event)['approvals_required']}"
    if event.type == EventType.ACTION_SETTLED and body_of(event).get("outcome") != "ran":
        text = "set the outcome: it did not run"
    return _Entry(
        kind="me" if event.actor == "me" else "agent",
        title=_who(event),
        text=text,
        time_ns=event.time_ns,
        seq=event.seq,
        note=clean(str(event.contents.get(quoted, ""))),
    )


def _escalation(event: StoredEvent) -> _Entry:
    body = body_of(event)
    return _Entry(
        kind="agent",
        title=clean(str(body.get("from", ""))),
        text=f"did not answer in time; {clean(str(body.get('to', '')))} is asked",
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


_MOST_EVENTS: Final = 200
_MOST_MEMBERS: Final = 100
_MEMORY_CHARS: Final = 160
_FLAGS: Final = {
    "not_in_context": "in no recorded input",
    "changed": "changed",
    "hidden": "look closely",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as a person is shown it."""

    field: Field
    flag: str  # "" or the word beside the mark
    why: str


@dataclass(frozen=True, slots=True)
class Left:
    """The time a decision has."""

    text: str
    share_pct: float  # of the lifetime
    is_soon: bool


@dataclass(frozen=True, slots=True)
class _Member:
    """Another action of the same batch."""

    approval_id: str
    revision: int
    standing: Standing
    say: str
    arguments: tuple[Argument, ...]
    flagged: int
    is_this: bool
    may_remove: bool


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A record that was written to memory under an approval."""

    href: str
    say: str
    text: str  # what it says, where its subject stands above
    kind: str
    standing: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The pane of one approval."""

    approval: Approval
    standing: Standing
    say: str
    agent: str
    left: Left | None
    hash_ends: str
    arguments: tuple[Argument, ...]
    story: tuple[_Entry, ...]
    events: tuple[EventRow, ...]
    events_left: int
    memories: tuple[_Remembered, ...]  # written under it
    members: tuple[_Member, ...]
    waiting_members: int
    approvers: tuple[tuple[str, str], ...]  # name, and where they stand
    asked: tuple[str, ...]  # who may decide; empty: anybody
    stands_for: str  # of them, who decides where nobody is signed in; "" where nobody is named
    progress: str  # how many approved it, where it takes several
    rules: tuple[str, ...]
    rule_reason: str
    decided_by: str
    error: str
    settled_by: str
    settled_note: str
    may_undo: bool
    no_edit: str  # why they cannot be edited, "" where they can

    @property
    def mark(self) -> int:
        """Return a number that is another one when anything about the action is."""
        return 10 * self.approval.version + EXECUTION_STATES.index(self.approval.execution.state)

    @property
    def is_open(self) -> bool:
        return self.approval.status is Status.AWAITING


def read_request_form(store: ApprovalService, approval_id: str) -> Ask:
    """Read an approval with everything around it; raises NotFoundError, AmbiguousIdError."""
    approval = store.approval(approval_id)
    now_ns = store.now_ns()
    history = store.history(approval.approval_id)
    members = _members(store, approval, now_ns=now_ns)
    requested = tuple(one.name for one in approval.approvers[: approval.asked])
    return Ask(
        approval=approval,
        standing=standing(approval, now_ns=now_ns),
        say=clean(approval.description),
        agent=clean(name_text(approval.agent or "An agent")),
        left=_left(approval, now_ns),
        hash_ends=hash_ends(approval.arguments_hash),
        arguments=tuple(map(_argument, approval.fields)),
        story=story(history, is_open=approval.status is Status.AWAITING),
        events=tuple(event_row(one) for one in history[-_MOST_EVENTS:]),
        events_left=max(len(history) - _MOST_EVENTS, 0),
        memories=tuple(map(_remembered, store.memories(approval.approval_id))),
        members=members,
        waiting_members=sum(one.may_remove for one in members),
        approvers=_approvers(approval),
        asked=requested,
        stands_for=_stands_for(approval, requested),
        progress=clean(progress_text(approval)),
        rules=tuple(clean(one) for one in approval.policy.rule_ids),
        rule_reason=clean(approval.policy.reason or ""),
        decided_by=clean(deciders_text(approval)),
        error=clean(approval.execution.error or ""),
        settled_by=clean(settler_text(approval)),
        settled_note=clean(approval.execution.settled_note or ""),
        may_undo=approval.execution.state == "done" and approval.undo is not None,
        no_edit=_no_edit(approval),
    )


def _argument(field: Field) -> Argument:
    return Argument(field, _FLAGS[field.flag] if field.flag else "", clean(field.why or ""))


def _stands_for(approval: Approval, requested: Sequence[str]) -> str:
    """Return the last of the requested approvers who has not approved this draft."""
    approved = [one.name for one in approval.approved_by]
    left = [one for one in requested if not any(is_same(one, other) for other in approved)]
    return left[-1] if left else ""


def _remembered(one: Memory) -> _Remembered:
    return _Remembered(
        href=f"/memory/{one.memory_id}",
        say=one_line(title_of(one), _MEMORY_CHARS),
        text=one_line(text_of(one.content), _MEMORY_CHARS) if one.subject else "",
        kind=type_words(one.memory_type),
        standing=standing_of(one)[0],
    )


def _left(approval: Approval, now_ns: int) -> Left | None:
    if not approval.is_pending:
        return None
    left_ns = approval.expires_ns - now_ns
    share = 100 * max(left_ns, 0) / max(approval.lifetime_ns, 1)
    return Left(
        text=time_left(left_ns),
        share_pct=round(min(share, 100), 1),
        is_soon=left_ns < SOON_NS,
    )


def _members(store: ApprovalService, approval: Approval, *, now_ns: int) -> tuple[_Member, ...]:
    if approval.batch_id is None:
        return ()
    filters = ApprovalFilter(batch_id=approval.batch_id)
    found: Sequence[Approval] = store.approvals(filters, limit=_MOST_MEMBERS)
    if len(found) < 2:
        return ()
    return tuple(
        _Member(
            approval_id=one.approval_id,
            revision=one.revision,
            standing=standing(one, now_ns=now_ns),
            say=clean(one.description),
            arguments=tuple(map(_argument, one.fields)),
            flagged=sum(field.flag is not None for field in one.fields),
            is_this=one.approval_id == approval.approval_id,
            may_remove=one.status is Status.AWAITING,
        )
        for one in reversed(found)
    )


def _approvers(approval: Approval) -> tuple[tuple[str, str], ...]:
    texts = []
    for number, one in enumerate(approval.approvers):
        is_asked = number < approval.asked
        word = "is asked" if is_asked else "is asked next" if number == approval.asked else "later"
        texts.append((clean(name_text(one.name)), word))
    return tuple(texts)


def deciders_text(approval: Approval) -> str:
    """Return who decided, all of them where several approved it."""
    if len(approval.grants) < 2 or approval.status is not Status.APPROVED:
        return person_text(approval.decided_by, approval.decider_method)
    return listed([person_text(one.name, one.method or "claimed") for one in approval.grants])


def settler_text(approval: Approval) -> str:
    """Return who settled how it ended; "" where nobody had to."""
    ran = approval.execution
    if ran.settled_by is None:
        return ""
    return person_text(ran.settled_by, ran.settled_method or "claimed")


def _no_edit(approval: Approval) -> str:
    if not approval.is_exact:
        return (
            "These arguments hold something that is not kept. Send the action back with a note: "
            "only its program can draft it again."
        )
    return ""

"""What a tool step of the gate went through: requested, allowed or pending, decided, ran, returned.

The store's record counts; what a span says of itself only leads to it, or stands in where no
approval was requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard import semconv
from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.dialects.engine.values import opened
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.json import progress_text
from hansard_store.approvals.records import Approval, Status
from hansard_store.approvals.service import APPROVALS, history_of
from hansard_store.audit.event_types import Actor, EventFilter, EventType, StoredEvent
from hansard_store.audit.events import SqliteEventLog, read_events
from hansard_store.ids import short_id
from hansard_store.ingest.redactions import redactions_of
from hansard_store.steps.queries import StepSkeleton
from hansard_web.approvals.detail import deciders_text, settler_text
from hansard_web.approvals.labels import clean
from hansard_web.audit.rows import body_of, step_of
from hansard_web.ui.format import WAITS

# The outcome of each draft of an action, read from the audit log.
#
# An approval has one state, its current one. A step proposed one draft of it: what is shown on the
# step is the outcome of that draft, whatever became of later ones.

_AT_ONCE: Final = 500
_MOST_EVENTS: Final = 5_000  # of one run; a longer one shows its first calls so
_PROPOSES: Final = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)
_RUNS: Final = (EventType.ACTION_CLAIMED, EventType.ACTION_EXECUTED, EventType.TOOL_CALLED)


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """A draft: the step that proposed it, and what happened to it before the next one."""

    revision: int
    step_id: str  # "" where none is known
    arguments_hash: str
    notes: tuple[tuple[str, str], ...] = ()  # of its approvals: the person, the text
    edited_by: str = ""  # the person who wrote it over the one before, when approving
    sent_back_by: str = ""  # "": it was not sent back


def draft_outcomes(history: Iterable[StoredEvent]) -> list[DraftOutcome]:
    """Return the drafts of an approval in order; `history` are its events, the first first."""
    found: list[DraftOutcome] = []
    for event in history:
        if event.type in _PROPOSES:
            body = body_of(event)
            by = _name(event) if event.actor == Actor.ME else ""
            if by and found:  # an edit sends the draft back and answers it, in one
                found[-1] = replace(found[-1], sent_back_by="")
            revision = body.get("revision")
            found.append(
                DraftOutcome(
                    revision if isinstance(revision, int) else len(found) + 1,
                    step_of(event),
                    str(body.get("arguments") or ""),
                    edited_by=by,
                )
            )
        elif event.type == EventType.ACTION_REVISED and found:
            found[-1] = replace(found[-1], sent_back_by=_name(event))
        elif event.type in APPROVALS and found and event.contents.get("note"):
            note = (_name(event), clean(str(event.contents["note"])))
            found[-1] = replace(found[-1], notes=(*found[-1].notes, note))
    return found


def draft_of_step(
    drafts: Sequence[DraftOutcome], step_id: str, arguments_hash: str | None
) -> int | None:
    """Return which draft (its index) a step is of: by its arguments, then by who proposed it.

    The step that runs an approved draft names that draft's arguments; None where nothing fits.
    """
    same = [at for at, one in enumerate(drafts) if one.arguments_hash == arguments_hash]
    own = [at for at, one in enumerate(drafts) if one.step_id == step_id]
    both = [at for at in same if at in own]
    for found in (both, same, own):
        if found:
            return found[-1]
    return None


def calls_not_run(connection: apsw.Connection, run_id: str) -> dict[str, tuple[str, str]]:
    """Return the steps of a run whose call the gate did not let run: label and state, by step id.

    A step counts by the events of the draft that it proposed.
    """
    drafts: dict[str, int] = {}  # the revision that a step proposed
    found: dict[str, tuple[str, str]] = {}
    for event in _events_of(connection, run_id):
        step_id = step_of(event)
        revision = body_of(event).get("revision")
        if event.type in _PROPOSES and isinstance(revision, int):
            is_edit = event.actor == Actor.ME
            if step_id not in drafts or is_edit:
                drafts[step_id] = revision
                found[step_id] = (WAITS, "wait")
        elif event.type == EventType.POLICY_BLOCKED:
            found[step_id] = ("blocked by policy", "fail")
        elif isinstance(revision, int) and drafts.get(step_id) != revision:
            continue  # an older store names the first step in events of later drafts
        elif event.type == EventType.ACTION_REVISED:
            found[step_id] = (f"sent back by {_name(event)}", "fail")
        elif event.type == EventType.ACTION_REJECTED:
            found[step_id] = (f"rejected by {_name(event)}", "fail")
        elif event.type == EventType.ACTION_EXPIRED:
            found[step_id] = ("nobody decided in time", "fail")
        elif event.type == EventType.ACTION_APPROVED:
            found[step_id] = (f"approved by {_name(event)}", "open")
        elif event.type in _RUNS:
            found.pop(step_id, None)
    found.pop("", None)
    return found


def _events_of(connection: apsw.Connection, run_id: str) -> list[StoredEvent]:
    filters = EventFilter(trace_id=bytes.fromhex(run_id))
    events: list[StoredEvent] = []
    before: int | None = None
    while len(events) < _MOST_EVENTS:
        page = read_events(connection, filters, before=before, limit=_AT_ONCE)
        events += page
        if len(page) < _AT_ONCE:
            break
        before = page[-1].seq
    return events[::-1]


def _name(event: StoredEvent) -> str:
    return clean(event.who or "somebody")


_TOOLS: Final = ("tool", "mcp")
State = tuple[str, str]  # label, and "" (done) wait fail open todo


@dataclass(frozen=True, slots=True)
class Gated:
    """A tool step that went through a gate."""

    states: tuple[State, ...]
    href: str | None  # of its approval
    approval_id: str = ""
    revision: int = 0  # the draft that this step is of
    next_revision: int = 0  # the draft that took its place; 0 for none
    next_step_id: str = ""  # that proposed it, where it is known
    notes: tuple[tuple[str, str], ...] = ()  # of its approvals: the person, the text

    @property
    def short_id(self) -> str:
        return short_id(self.approval_id)

    @property
    def next_href(self) -> str | None:
        return f"/steps/{self.next_step_id}" if self.next_step_id else self.href


def gated(connection: apsw.Connection, step: StepSkeleton, reading: StepReading) -> Gated | None:
    """Return what a step went through; None for one that no gate held."""
    approval = _approval_of(connection, step, reading)
    if approval is not None:
        return _of_draft(connection, step, reading, approval)
    if semconv.TOOL_EFFECT not in reading.view.attributes:
        return None
    return Gated(states=_reported_states(step, reading), href=None)


def _of_draft(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, approval: Approval
) -> Gated:
    """Return what the draft went through that a step is of: not what later ones did."""
    href, approval_id = f"/approvals/{approval.approval_id}", approval.approval_id
    drafts = draft_outcomes(history_of(SqliteEventLog(connection), approval_id))
    named = reading.view.attributes.get(semconv.APPROVAL_ARGUMENTS_HASH)
    at = draft_of_step(drafts, step.step_id, named if isinstance(named, str) else None)
    one = None if at is None else drafts[at]
    if at is not None and one is not None and one.sent_back_by:
        later = drafts[at + 1] if at + 1 < len(drafts) else None
        back = f"sent back by {one.sent_back_by} (draft {one.revision})"
        return Gated(
            states=(("requested", ""), (back, "fail"), ("not run", "todo")),
            href=href,
            approval_id=approval_id,
            revision=one.revision,
            next_revision=0 if later is None else later.revision,
            next_step_id="" if later is None or later.step_id == step.step_id else later.step_id,
        )
    edited: tuple[State, ...] = ()
    last = drafts[-1] if drafts else None
    if last is not None and last.edited_by:
        edited = ((f"edited by {last.edited_by} (draft {last.revision})", ""),)
    return Gated(
        states=(
            ("requested", ""), *_policy(approval), *edited, *_decision(approval), *_ran(approval),
        ),
        href=href,
        approval_id=approval_id,
        revision=approval.revision,
        notes=last.notes if last is not None else (),
    )  # fmt: skip


def _approval_of(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading
) -> Approval | None:
    named = reading.view.attributes.get(semconv.APPROVAL_ID)
    if isinstance(named, str):
        return _named_by_span(connection, step, reading, named)
    if step.role not in _TOOLS:
        return None
    return _naming_step(connection, step, reading)


def _named_by_span(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, named: str
) -> Approval | None:
    """Return the approval that a span names; a span may name any: one of its own call counts."""
    try:
        found = approvals.get(connection, named)
    except (NotFoundError, AmbiguousIdError):
        return None
    if step.tool_name not in (None, found.tool):
        return None
    drafts = draft_outcomes(history_of(SqliteEventLog(connection), found.approval_id))
    proof = reading.view.attributes.get(semconv.APPROVAL_ARGUMENTS_HASH)
    if draft_of_step(drafts, step.step_id, proof if isinstance(proof, str) else None) is not None:
        return found
    is_other = isinstance(proof, str) or _has_other_arguments(connection, step, reading, found)
    return None if is_other else found


def _naming_step(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading
) -> Approval | None:
    """Return the approval of a step's tool that names the step: of several, that of its arguments,
    else the newest.
    """
    newest: Approval | None = None
    for one in approvals.list_of_step(connection, step.step_id):
        if step.tool_name not in (None, one.tool):
            continue
        if not _has_other_arguments(connection, step, reading, one):
            return one
        newest = newest or one
    return newest


def _has_other_arguments(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, approval: Approval
) -> bool:
    """Say whether a step is known to be a call with other arguments than an approval's draft."""
    arguments = opened(reading.normal.tool.arguments) if reading.normal.tool else None
    if not isinstance(arguments, dict) or not arguments or not approval.arguments:
        return False
    return arguments != approval.arguments and not redactions_of(connection, "traces", step.id)


def _policy(approval: Approval) -> tuple[State, ...]:
    word = {"allow": "allowed by policy", "require_approval": "policy asks a person"}.get(
        approval.policy.effect or ""
    )
    return ((word, ""),) if word else ()


def _decision(approval: Approval) -> tuple[State, ...]:
    by = clean(deciders_text(approval))
    match approval.status:
        case Status.AWAITING:
            progress = clean(progress_text(approval))
            return ((f"{WAITS}: {progress}" if progress else WAITS, "wait"),)
        case Status.REVISED:
            return ((f"sent back by {by}", "wait"),)
        case Status.APPROVED:
            return ((f"approved by {by}", ""),)
        case Status.REJECTED:
            return ((f"rejected by {by}", "fail"),)
    return (("nobody decided in time", "fail"),)


def _ran(approval: Approval) -> tuple[State, ...]:
    if approval.status in (Status.REJECTED, Status.EXPIRED):
        return ()
    if by := settler_text(approval):  # its program never reported how it ended; a person looked
        has_run = approval.execution.state == "done"
        found = f"{'ran' if has_run else 'did not run'}, as {clean(by)} found"
        return (("began", ""), (found, "" if has_run else "fail"))
    match approval.execution.state:
        case "claimed":
            return (("running", "open"), ("returned", "todo"))
        case "done":
            return (("ran", ""), ("returned", ""))
        case "failed":
            return (("ran", ""), ("failed", "fail"))
        case "unknown":
            return (("began", ""), ("outcome unknown", "fail"))
    return (("ran", "todo"), ("returned", "todo"))


def _reported_states(step: StepSkeleton, reading: StepReading) -> tuple[State, ...]:
    names = {one.name for one in reading.view.events}
    if semconv.EVENT_GATE_REFUSED in names:
        return (("requested", ""), ("blocked", "fail"))
    allowed = ("allowed", "") if semconv.EVENT_GATE_ALLOWED in names else ("allowed", "todo")
    if step.status == "open":
        return (("requested", ""), allowed, ("running", "open"), ("returned", "todo"))
    ended = ("failed", "fail") if step.status == "error" else ("returned", "")
    return (("requested", ""), allowed, ("ran", ""), ended)

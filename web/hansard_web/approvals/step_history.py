"""What a tool step of the gate went through: requested, allowed or asked, decided, ran, returned.

The store's record counts; what a span says of itself only leads to it, or stands in where no
approval was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from hansard import semconv
from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.dialects.engine.values import opened
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.history import history_of
from hansard_store.approvals.json import progress_text
from hansard_store.approvals.records import Approval
from hansard_store.approvals.states import Status
from hansard_store.audit.events import SqliteEventLog
from hansard_store.ids import short_id
from hansard_store.steps.queries import StepSkeleton, list_redactions
from hansard_web.approvals.detail import deciders_text, settler_text
from hansard_web.approvals.draft_outcomes import draft_of_step, draft_outcomes, next_draft
from hansard_web.approvals.labels import clean
from hansard_web.ui.format import WAITS

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
    return Gated(states=_told(step, reading), href=None)


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
        later = next_draft(drafts, at)
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
    given = opened(reading.normal.tool.arguments) if reading.normal.tool else None
    if not isinstance(given, dict) or not given or not approval.arguments:
        return False
    return given != approval.arguments and not list_redactions(connection, step.id)


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
    if by := settler_text(approval):  # its program never told how it ended; a person looked
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


def _told(step: StepSkeleton, reading: StepReading) -> tuple[State, ...]:
    names = {one.name for one in reading.view.events}
    if semconv.EVENT_GATE_REFUSED in names:
        return (("requested", ""), ("blocked", "fail"))
    allowed = ("allowed", "") if semconv.EVENT_GATE_ALLOWED in names else ("allowed", "todo")
    if step.status == "open":
        return (("requested", ""), allowed, ("running", "open"), ("returned", "todo"))
    ended = ("failed", "fail") if step.status == "error" else ("returned", "")
    return (("requested", ""), allowed, ("ran", ""), ended)

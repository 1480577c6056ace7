"""What the rows of a run's tree say beside their names: decisions, waits for people, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard_store.approvals.records import ApprovalFilter
from hansard_store.approvals.rows import list_approvals
from hansard_store.approvals.service import history_of
from hansard_store.audit.event_types import Actor, EventType
from hansard_store.audit.events import SqliteEventLog
from hansard_store.steps.decisions import (
    CheckOutcome,
    CompileOutcome,
    MemoryUse,
    check_outcomes,
    compile_outcomes,
    memory_uses,
)
from hansard_store.steps.queries import StepSkeleton
from hansard_web.approvals.labels import clean
from hansard_web.audit.rows import body_of, step_of
from hansard_web.ui.format import count, duration, plural, tokens

_LONGEST_RULE: Final = 60
_MOST_APPROVALS: Final = 50
_DECIDES: Final = {
    EventType.ACTION_APPROVED: "approved by",
    EventType.ACTION_REJECTED: "rejected by",
    EventType.ACTION_REVISED: "sent back by",
}
_PROPOSES: Final = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)
_EFFECTS: Final = {
    "allow": "allowed",
    "deny": "denied",
    "redact": "redacted",
    "require_approval": "approval required",
    "require_receipt": "receipt required",
}


@dataclass(frozen=True, slots=True)
class RowMark:
    """Something about a step: an icon with its word, and where it leads."""

    icon: str
    text: str
    is_error: bool = False
    tone: str = ""  # of the icon: wait, or nothing
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """One draft of a call while people decided about it; `end_ns` None: it waits still."""

    start_ns: int
    end_ns: int | None
    outcome: str  # approved by rosa
    is_approved: bool

    @property
    def text(self) -> str:
        if self.end_ns is None:
            return "waits for approval"
        return f"{self.outcome}, {duration(self.end_ns - self.start_ns)}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the steps of a window beside their own rows, by span.id or span id."""

    compiles: Mapping[int, CompileOutcome]
    checks: Mapping[int, Sequence[CheckOutcome]]
    memory: Mapping[str, Sequence[MemoryUse]]
    waits: Mapping[str, Sequence[Wait]]  # by step id


def facts_of(
    connection: apsw.Connection,
    run_id: str,
    steps: Sequence[StepSkeleton],
    waits: Mapping[str, Sequence[Wait]],
) -> Facts:
    """Return what the rows of one window say; each kind is read for the steps that can have it."""
    return Facts(
        compile_outcomes(connection, [one.id for one in steps if one.role == "compile"]),
        check_outcomes(connection, [one.id for one in steps if one.role == "policy"]),
        memory_uses(connection, run_id),
        waits,
    )


def decided(step: StepSkeleton, facts: Facts) -> str:
    """Return what a compile or a policy check decided; "" for other steps."""
    if (made := facts.compiles.get(step.id)) is not None:
        return compile_text(made)
    return checks_text(facts.checks.get(step.id, ()))


def compile_text(made: CompileOutcome) -> str:
    """Return `27 of 33 items · 9,688 of 10,000 tokens`."""
    if not made.total:
        return ""
    items = (
        plural(made.total, "item")
        if made.included is None
        else f"{count(made.included)} of {plural(made.total, 'item')}"
    )
    if made.budget is None or made.used is None:
        return items
    return f"{items} · {count(made.used)} of {count(made.budget)} tokens"


def checks_text(checks: Sequence[CheckOutcome]) -> str:
    """Return `denied by rule no-test-edits`, or of several checks how many came out how."""
    alone = len(checks) == 1
    # What was held up first: it is why people look.
    ordered = sorted(checks, key=lambda one: (one.effect == "allow", one.effect))
    return ", ".join(_check_text(one, alone=alone) for one in ordered)


def _check_text(check: CheckOutcome, *, alone: bool) -> str:
    word = _EFFECTS.get(check.effect, check.effect)
    many = f"{count(check.count)} " if check.count > 1 or not alone else ""
    rule = (
        f" by rule {clean(check.rule_id)[:_LONGEST_RULE]}"
        if check.rule_id and check.effect != "allow"
        else ""
    )
    return f"{many}{word}{rule}"


def subject_of(step: StepSkeleton, facts: Facts) -> str:
    """Return the tool that a policy check is about; "" where it is about several things."""
    checks = facts.checks.get(step.id, ())
    subjects = {one.subject for one in checks}
    return clean(subjects.pop() or "")[:_LONGEST_RULE] if len(subjects) == 1 else ""


def memory_marks(step: StepSkeleton, facts: Facts) -> list[RowMark]:
    """Return a mark for each way in which a step used memory."""
    words = {"read": "memory read", "write": "memory written", "candidate": "proposed for memory"}
    return [
        RowMark(
            "memory",
            f"{words[use.kind]}: {plural(use.records, 'record')}"
            if use.records
            else f"{words[use.kind]}: nothing found",
        )
        for use in facts.memory.get(step.span_id, ())
    ]


def break_mark(lost_tokens: int, href: str) -> RowMark:
    """Return the mark of a call whose prompt broke the provider's cache."""
    return RowMark(
        "cachebreak",
        f"prompt cache broke: about {tokens(lost_tokens)} tokens paid again",
        tone="wait",
        href=href,
    )


def waits_of_run(connection: apsw.Connection, run_id: str) -> dict[str, list[Wait]]:
    """Return when steps of a run waited for people, by step id, each draft by itself.

    Read from the audit log, so that a draft that was sent back never shows the decision about the
    one after it. Of a run with many approvals the newest are read.
    """
    found: dict[str, list[Wait]] = {}
    steps: dict[tuple[bytes, int], str] = {}  # which step proposed a draft of an approval
    log = SqliteEventLog(connection)
    filters = ApprovalFilter(run_id=run_id)
    approvals = list_approvals(connection, filters, limit=_MOST_APPROVALS)
    for event in (event for one in approvals for event in history_of(log, one.approval_id)):
        revision = body_of(event).get("revision")
        if event.approval_id is None or not isinstance(revision, int):
            continue
        draft = (event.approval_id, revision)
        if event.type in _PROPOSES:
            is_edit = event.actor == Actor.ME  # answered in the moment it is written
            if step := "" if is_edit else step_of(event):
                steps[draft] = step
                found.setdefault(step, []).append(Wait(event.time_ns, None, "", False))
            elif is_edit and (before := steps.get((event.approval_id, revision - 1))):
                steps[draft] = before
                if waits := found.get(before):  # the edit and its answer are one decision
                    waits[-1] = Wait(waits[-1].start_ns, None, "", False)
        elif event.type in _DECIDES or event.type == EventType.ACTION_EXPIRED:
            step = steps.get(draft, "")
            if (waits := found.get(step)) and waits[-1].end_ns is None:
                waits[-1] = _ended(waits[-1], event.type, event.who, event.time_ns)
    return found


def _ended(wait: Wait, kind: str, who: str, at_ns: int) -> Wait:
    words = _DECIDES.get(EventType(kind))
    outcome = "expired" if words is None else f"{words} {clean(who or 'somebody')}"
    return replace(
        wait,
        end_ns=max(at_ns, wait.start_ns),
        outcome=outcome,
        is_approved=kind == EventType.ACTION_APPROVED,
    )

"""Tasks as programs read them: one JSON for the API and the commands.

A task holds no recorded words. What the newest of its evidence says is read where it is stored, and
gone with it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import apsw

from hansard_compiler.calls import Json
from hansard_store.bodies import Body, Description, body_of
from hansard_store.detection.rules import DetectionFinding, DetectionRule
from hansard_store.detection.scan import Scan
from hansard_store.memory.maintenance.reviewed_supersessions import (
    SupersessionBody,
    of_task,
    supersession_json,
)
from hansard_store.principals.model import CLAIMED, Method
from hansard_store.tasks.rows import Task, TaskRunEvidence
from hansard_store.tasks.service import RecordedDecision, decision_of
from hansard_store.times import time_text

# What stands for each kind of evidence: an error, what was to be done, what a memory is about.
_SAMPLES: Final = {
    "step": """
SELECT summary FROM span INDEXED BY span_identity
WHERE trace_id = :trace AND span_id = :id ORDER BY side = :side DESC LIMIT 1
""",
    "approval": "SELECT description FROM approval WHERE approval_id = :id",
    "memory": """
SELECT iif(attribute = '', subject, subject || ' / ' || attribute)
FROM memory JOIN memory_body ON memory_body.memory = memory.id WHERE memory_id = :id
""",
}


def sample_of(connection: apsw.Connection, evidence: TaskRunEvidence) -> str | None:
    """Return the words of one occurrence; None where nothing is stored of it any more."""
    if evidence.kind == "figure":
        return evidence.id
    if evidence.kind == "report":
        return None
    trace, _, digits = evidence.id.rpartition("-")
    digits, _, server = digits.partition(".")
    parameters = {
        "trace": bytes.fromhex(trace), "id": bytes.fromhex(digits), "side": int(bool(server)),
    }  # fmt: skip
    words = connection.execute(_SAMPLES[evidence.kind], parameters).get
    return words or None


class TaskSubject(Body):
    """What it is about; `name` null: all of that kind."""

    kind: Literal["tool", "model", "step", "memory", "component"]
    name: Annotated[str | None, Description("of a memory, its type")]


class TaskEvidence(Body):
    """One time that it happened, by the id of a step, an approval, a memory or a report."""

    kind: Literal["step", "approval", "memory", "report", "figure"]
    id: Annotated[str, Description("of a figure, what was measured, in words")]
    at: str
    ns: str


class TaskDecision(Body):
    """What a person decided, and when."""

    decision: Literal["approve", "dismiss"]
    by: str | None
    method: Method
    at: str
    ns: str
    origin: Annotated[str | None, Description("page, api, cli")]
    note: str | None


class TaskDone(Body):
    """Who said that it is done."""

    by: str | None
    method: Method
    at: str
    ns: str


class TaskBody(Body):
    """Something that goes wrong again and again; nothing acts on it while it is blocked."""

    task_id: str
    state: Literal["blocked", "approved", "dismissed", "done"]
    review: Annotated[bool, Description("a person has to decide")]
    level: Literal["action", "component", "architecture"]
    rule: str
    pattern: Annotated[str, Description("what repeats; one task of a pattern is open at most")]
    subject: TaskSubject
    title: str
    description: str
    sample: Annotated[
        str | None,
        Description("what the newest one says; null: nothing is kept of it any more"),
    ]
    count: Annotated[int, Description("how often, none of them twice")]
    first_at: str
    first_ns: str
    last_at: str
    last_ns: str
    threshold: Annotated[int, Description("that was in force when it was last seen,")]
    window_ns: Annotated[str, Description("within this time")]
    activity: Annotated[
        list[int], Description("how many in each 24th of the window, the oldest first")
    ]
    evidence: Annotated[list[TaskEvidence], Description("the first one and the newest")]
    created_at: str
    created_ns: str
    updated_at: str
    updated_ns: str
    proposes: Annotated[
        list[SupersessionBody], Description("what approving the task applies at once")
    ]
    decision: TaskDecision | None
    done: TaskDone | None


def task_json(connection: apsw.Connection, task: Task) -> TaskBody:
    """Return everything that is known of a task."""
    decision = decision_of(task)
    return body_of(
        TaskBody,
        task,
        pattern=task.pattern.hex(),
        subject={"kind": task.subject_kind, "name": task.subject or None},
        sample=sample_of(connection, task.evidence[-1]),
        evidence=[
            body_of(TaskEvidence, one, at=time_text(one.at_ns), ns=str(one.at_ns))
            for one in task.evidence
        ],
        proposes=[supersession_json(one) for one in of_task(connection, task.task_id)],
        decision=decision and {**decision, "at": time_text(task.decided_ns)},
        done=task.done_ns and _done_body(task, task.done_ns),
    )


def _done_body(task: Task, done_ns: int) -> TaskDone:
    by, method = task.done_by or None, task.done_method or CLAIMED.method
    at, ns = time_text(done_ns), str(done_ns)
    return body_of(TaskDone, by=by, method=method, at=at, ns=ns)


def scan_json(connection: apsw.Connection, found: Scan, recorded: list[RecordedDecision]) -> Json:
    """Return what a look found, level by level, and what became of each finding."""
    levels: dict[str, list[Json]] = {"action": [], "component": [], "architecture": []}
    for one in recorded:
        levels[one.finding.rule.level].append(_finding_json(connection, one))
    return {
        **levels,
        "rules": [_rule_json(rule) for rule in found.rules],
        "opened": sum(one.outcome == "opened" for one in recorded),
        "left_off": found.left_off,
    }


def _finding_json(connection: apsw.Connection, one: RecordedDecision) -> Json:
    finding: DetectionFinding = one.finding
    newest = finding.occurrences[-1]
    return {
        "rule": finding.rule.name,
        "threshold": finding.rule.threshold,
        "window_ns": str(finding.rule.window_ns),
        "least": finding.rule.least or None,
        "applied": finding.rule.applied,
        "subject": {"kind": finding.subject_kind, "name": finding.subject or None},
        "title": finding.title,
        "description": finding.description,
        "sample": sample_of(connection, TaskRunEvidence(newest.kind, newest.id, newest.at_ns)),
        "count": len(finding.occurrences),
        **_times("first", finding.first_ns),
        **_times("last", finding.last_ns),
        "outcome": one.outcome,
        "task_id": None if one.task is None else one.task.task_id,
    }


def _rule_json(rule: DetectionRule) -> Json:
    return {
        "rule": rule.name,
        "level": rule.level,
        "threshold": rule.threshold,
        "window_ns": str(rule.window_ns),
        "least": rule.least or None,
        "looks_for": rule.looks_for,
    }


def _times(name: str, at_ns: int) -> dict[str, Any]:
    return {f"{name}_at": time_text(at_ns), f"{name}_ns": str(at_ns)}

"""Tasks as programs read them: one JSON for the API and the commands.

A task holds no recorded words. What the newest of its evidence says is read where it is stored, and
gone with it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import apsw

from hansard_store.bodies import Body, Description, body_of
from hansard_store.detection.rules import LEVELS, EvidenceKind, Level, SubjectKind
from hansard_store.detection.scan import Scan
from hansard_store.memory.maintenance.reviewed_supersessions import (
    SupersessionBody,
    of_task,
    supersession_json,
)
from hansard_store.principals.model import CLAIMED, Method
from hansard_store.tasks.rows import Task, TaskRunEvidence
from hansard_store.tasks.service import Outcome, RecordedDecision, decision_of
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

    kind: SubjectKind
    name: Annotated[str | None, Description("of a memory, its type")]


class TaskEvidence(Body):
    """One time that it happened, by the id of a step, an approval, a memory or a report."""

    kind: EvidenceKind
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
    level: Level
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


class DetectionFindingBody(Body):
    """A pattern that a look found, and what became of it."""

    rule: str
    threshold: int
    window_ns: str
    least: int | None
    applied: str
    subject: TaskSubject
    title: str
    description: str
    sample: str | None
    count: int
    first_at: str
    first_ns: str
    last_at: str
    last_ns: str
    outcome: Outcome
    task_id: str | None


class DetectionRuleBody(Body):
    rule: str
    level: Level
    threshold: int
    window_ns: str
    least: int | None
    looks_for: str


class ScanBody(Body):
    """What a look found, level by level."""

    action: list[DetectionFindingBody]
    component: list[DetectionFindingBody]
    architecture: list[DetectionFindingBody]
    rules: list[DetectionRuleBody]
    opened: int
    left_off: int


def scan_json(
    connection: apsw.Connection, found: Scan, recorded: list[RecordedDecision]
) -> ScanBody:
    """Return what a look found, level by level, and what became of each finding."""
    levels: dict[Level, list[DetectionFindingBody]] = {level: [] for level in LEVELS}
    for one in recorded:
        levels[one.finding.rule.level].append(_finding_json(connection, one))
    return body_of(
        ScanBody,
        found,
        **levels,
        rules=[
            body_of(DetectionRuleBody, rule, rule=rule.name, least=rule.least or None)
            for rule in found.rules
        ],
        opened=sum(one.outcome == "opened" for one in recorded),
    )


def _finding_json(connection: apsw.Connection, one: RecordedDecision) -> DetectionFindingBody:
    finding, rule, newest = one.finding, one.finding.rule, one.finding.occurrences[-1]
    return body_of(
        DetectionFindingBody,
        finding,
        rule=rule.name,
        threshold=rule.threshold,
        window_ns=str(rule.window_ns),
        least=rule.least or None,
        applied=rule.applied,
        subject={"kind": finding.subject_kind, "name": finding.subject or None},
        sample=sample_of(connection, TaskRunEvidence(newest.kind, newest.id, newest.at_ns)),
        count=len(finding.occurrences),
        outcome=one.outcome,
        task_id=one.task and one.task.task_id,
    )

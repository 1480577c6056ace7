"""Tasks as programs read them: one JSON for the API and the commands.

A task holds no recorded words. What the newest of its evidence says is read where it is stored, and
gone with it.
"""

from __future__ import annotations

from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_store.detection.rules import DetectionFinding, DetectionRule
from hansard_store.detection.scan import Scan
from hansard_store.memory.maintenance.reviewed_supersessions import of_task, supersession_json
from hansard_store.principals.model import CLAIMED
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


def task_json(connection: apsw.Connection, task: Task) -> Json:
    """Return everything that is known of a task."""
    decision = decision_of(task)
    if decision is not None:
        decision["at"] = time_text(task.decided_ns)
    return {
        "task_id": task.task_id,
        "state": task.state,
        "review": task.review,
        "level": task.level,
        "rule": task.rule,
        "pattern": task.pattern.hex(),
        "subject": {"kind": task.subject_kind, "name": task.subject or None},
        "title": task.title,
        "description": task.description,
        "sample": sample_of(connection, task.evidence[-1]),
        "count": task.count,
        **_times("first", task.first_ns),
        **_times("last", task.last_ns),
        "threshold": task.threshold,
        "window_ns": str(task.window_ns),
        "activity": list(task.activity),
        "evidence": [
            {"kind": one.kind, "id": one.id, "at": time_text(one.at_ns), "ns": str(one.at_ns)}
            for one in task.evidence
        ],
        **_times("created", task.created_ns),
        **_times("updated", task.updated_ns),
        "proposes": [supersession_json(one) for one in of_task(connection, task.task_id)],
        "decision": decision,
        "done": None
        if task.done_ns is None
        else {
            "by": task.done_by or None,
            "method": task.done_method or CLAIMED.method,
            "at": time_text(task.done_ns),
            "ns": str(task.done_ns),
        },
    }


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

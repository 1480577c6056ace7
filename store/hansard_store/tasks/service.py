"""The queue of tasks for review: the only public way to write it.

What the detector finds is opened blocked, and a person decides; nothing else moves a task on. Every
write is one transaction on the caller's thread and survives a power cut.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, Literal

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.models.tasks import Decide
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Event, EventType
from hansard_store.audit.events import append
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import snapshot
from hansard_store.detection.rules import REVIEW_RULES, DetectionFinding, Occurrence
from hansard_store.ids import new_id, short_id
from hansard_store.memory.maintenance import reviewed_supersessions
from hansard_store.memory.maintenance.reviewed_supersessions import (
    Applying,
    apply_proposal,
    of_task,
)
from hansard_store.principals.authority import Authority, DecideMode
from hansard_store.principals.model import CLAIMED, Principal, person_text
from hansard_store.tasks import rows as tasks
from hansard_store.tasks.errors import (
    InvalidDecision,
    NoteNotRetained,
    TaskDecided,
    TaskNotApproved,
)
from hansard_store.tasks.rows import Decided, Origin, State, Task, TaskRunEvidence, get_task

MOST_EVIDENCE: Final = 20  # ids that a task keeps: the first one and the newest
_PATTERN_BYTES: Final = 16
Outcome = Literal["opened", "counted", "known", "decided", "would_open", "would_count"]


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """What became of a finding, or would.

    `opened` a task; an open one `counted` more; nothing new is `known`; or a person has `decided`
    about it, and since then it did not repeat as often as the rule says.
    """

    finding: DetectionFinding
    outcome: Outcome
    task: Task | None  # None where none is open


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A finding beside its task, and those of its occurrences that no task counts."""

    finding: DetectionFinding
    outcome: Outcome
    task: Task | None
    pattern: bytes
    fresh: Sequence[Occurrence]


_VERBS: Final = {"approved": "approve", "dismissed": "dismiss", "done": "done"}
_WOULD: Final[Mapping[Outcome, Outcome]] = {"opened": "would_open", "counted": "would_count"}


class TaskService:
    """The tasks of one store. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "api",
        clock: Callable[[], int] = time.time_ns,
        decide: DecideMode = "claimed",
    ) -> None:
        self._authority = Authority.of(decide)
        self._retention = Retention.of(folder, mode)
        self._origin: Origin = origin
        self._clock = clock
        self._connections = OwnConnections(folder)

    def through(self, origin: Origin) -> TaskService:
        """Return the same service for another origin."""
        other = copy(self)
        other._origin = origin
        return other

    def acting(self, principal: Principal | None) -> TaskService:
        """Return the same service for a principal; None: a request without a credential."""
        other = copy(self)
        other._authority = self._authority.acting(principal)
        return other

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def record(
        self,
        findings: Sequence[DetectionFinding],
        *,
        along: Callable[[apsw.Connection, RecordedDecision], None] = lambda *_: None,
    ) -> list[RecordedDecision]:
        """Open a blocked task for each pattern, or count more of the one that is open.

        Nothing counts twice, and nothing that a person has decided about counts again. `along`
        writes what must stand or fall with each of them, in the same transaction.
        """
        now_ns = self._clock()
        with self._connections.writing() as connection:
            recorded = [self._record(connection, one, now_ns=now_ns) for one in findings]
            for one in recorded:
                along(connection, one)
            return recorded

    def look_up(self, findings: Sequence[DetectionFinding]) -> list[RecordedDecision]:
        """Return what `record` would do, and change nothing."""
        connection = self._connections.get()
        with snapshot(connection):
            weighed = [self._weigh(connection, one) for one in findings]
        return [
            RecordedDecision(one.finding, _WOULD.get(one.outcome, one.outcome), one.task)
            for one in weighed
        ]

    def decide(self, task_id: str, request: Decide, *, by: str = "") -> Task:
        """Approve or dismiss a blocked task, or close an approved one as done.

        The same decision by the same person changes nothing. Raises NotFoundError, TaskRefused,
        CredentialsRequired.
        """
        author = self._authority.decider(self._retention.clean_text(request.by or by))
        note = self._note(request.note)
        with self._connections.writing() as connection:
            task = get_task(connection, task_id)
            if request.decision == "done":
                self._finish(connection, task, by=author)
            else:
                becomes: Decided = "approved" if request.decision == "approve" else "dismissed"
                self._decide(connection, task, becomes, by=author, note=note)
            return get_task(connection, task.task_id)

    def decide_json(self, task_id: str, fields: Json, *, by: str = "") -> Task:
        """Decide as a form or a program tells; raises as `decide`, and InvalidDecision."""
        try:
            request = parse(Decide, {name: one for name, one in fields.items() if one is not None})
        except InvalidInput as error:
            raise InvalidDecision([(one.where, one.what) for one in error.problems]) from None
        return self.decide(task_id, request, by=by)

    # ---- inside

    def _record(
        self, connection: apsw.Connection, finding: DetectionFinding, *, now_ns: int
    ) -> RecordedDecision:
        weighed = self._weigh(connection, finding)
        if weighed.outcome == "counted" and weighed.task is not None:
            task = _counted(weighed.task, finding, weighed.fresh, now_ns=now_ns)
            tasks.count_more(connection, task)
            return RecordedDecision(finding, "counted", task)
        if weighed.outcome == "opened":
            task = _opened(weighed.pattern, finding, weighed.fresh, now_ns=now_ns)
            tasks.add_task(connection, task)
            return RecordedDecision(finding, "opened", tasks.find_open(connection, weighed.pattern))
        return RecordedDecision(finding, weighed.outcome, weighed.task)

    def _weigh(self, connection: apsw.Connection, finding: DetectionFinding) -> _Weighed:
        """Say what a finding comes to, beside what is counted already."""
        pattern = self._pattern(finding)
        number, last_ns = tasks.counted_until(connection, pattern)
        # By number, as some come late; by time too, as numbers of deleted runs are reused.
        fresh = [one for one in finding.occurrences if one.number > number or one.at_ns > last_ns]
        task = tasks.find_open(connection, pattern)
        outcome: Outcome
        if task is not None:
            outcome = "counted" if fresh else "known"
        else:
            needed = finding.rule.threshold if finding.opens_at is None else finding.opens_at
            outcome = "opened" if len(fresh) >= needed else "decided"
        return _Weighed(finding, outcome, task, pattern, fresh)

    def _pattern(self, finding: DetectionFinding) -> bytes:
        """Return the name of a pattern: keyed, as recorded words may be in its signature."""
        parts = [finding.rule.name, finding.subject_kind, finding.subject, finding.signature]
        digest = hmac.digest(self._retention.key, canonical_bytes(parts), hashlib.sha256)
        return digest[:_PATTERN_BYTES]

    def _decide(
        self, connection: apsw.Connection, task: Task, state: Decided, *, by: Who, note: str | None
    ) -> None:
        now_ns = self._clock()
        if tasks.set_decided(
            connection, task, state, by=by, origin=self._origin, note=note, now_ns=now_ns
        ):
            self._tell(connection, task, state, by)
            self._apply(connection, task, state, by=by, now_ns=now_ns)
        elif (task.state, task.decided_by) != (state, by.name) and not _was_applied(
            task, state, by
        ):
            raise _decided_already(task)

    def _apply(
        self, connection: apsw.Connection, task: Task, state: Decided, *, by: Who, now_ns: int
    ) -> None:
        """Do what a task proposes, in the name of who approved it; then it is done."""
        proposed = [one for one in of_task(connection, task.task_id) if one.state == "proposed"]
        applying = Applying(self._origin, now_ns, by)
        for one in proposed:
            if state == "approved":
                apply_proposal(connection, one, applying)
            else:
                reviewed_supersessions.decide(connection, one, "refused", by=by, now_ns=now_ns)
        if proposed and state == "approved":
            self._finish(connection, get_task(connection, task.task_id), by=by)

    def _finish(self, connection: apsw.Connection, task: Task, *, by: Who) -> None:
        if tasks.set_done(connection, task, by=by, now_ns=self._clock()):
            self._tell(connection, task, "done", by)
            return
        if task.state == "done":
            return
        if task.state == "blocked":
            raise TaskNotApproved(
                f"task {short_id(task.task_id)} is blocked until a person approves it",
                state=task.state,
            )
        raise _decided_already(task)

    def _tell(self, connection: apsw.Connection, task: Task, state: State, by: Who) -> None:
        """Append the event of a decision, in its transaction."""
        event = Event(
            type=EventType.TASK_DECIDED,
            actor=by.actor,
            who=by.name,
            action=f"task.{_VERBS[state]}",
            source=self._origin,
            subject=f"task:{task.task_id}",
            time_ns=self._clock(),
            body={"state": state, "rule": task.rule, **by.proof},
        )
        append(connection, event)

    def _note(self, note: str | None) -> str | None:
        if note is not None and self._retention.is_metadata_only:
            raise NoteNotRetained
        return None if note is None else self._retention.clean_text(note)


def decision_of(task: Task) -> Json | None:
    """Return who decided, how and when; None while nobody has."""
    if task.decided_ns is None:
        return None
    return {
        "decision": "dismiss" if task.state == "dismissed" else "approve",
        "by": task.decided_by or None,
        "method": task.decided_method or CLAIMED.method,
        "ns": str(task.decided_ns),
        "origin": task.decided_origin,
        "note": task.note,
    }


def _was_applied(task: Task, state: Decided, by: Who) -> bool:
    """Say whether an approval is repeated that did, and finished, what the task proposes."""
    is_same = (task.decided_by, task.done_by) == (by.name, by.name)
    return is_same and state == "approved" and task.rule in {rule.name for rule in REVIEW_RULES}


def _decided_already(task: Task) -> TaskDecided:
    method = task.decided_method or CLAIMED.method
    who = f" by {person_text(task.decided_by, method)}" if task.decided_by else ""
    return TaskDecided(
        f"task {short_id(task.task_id)} was {task.state} already{who}",
        state=task.state,
        decision=decision_of(task),
    )


def _opened(
    pattern: bytes, finding: DetectionFinding, fresh: Sequence[Occurrence], *, now_ns: int
) -> Task:
    return Task(
        id=0,
        task_id=new_id().hex(),
        state="blocked",
        review=True,
        level=finding.rule.level,
        rule=finding.rule.name,
        pattern=pattern,
        subject_kind=finding.subject_kind,
        subject=finding.subject,
        title=finding.title,
        description=finding.description,
        count=len(fresh),
        first_ns=fresh[0].at_ns,
        last_ns=fresh[-1].at_ns,
        counted_to=max(one.number for one in fresh),
        evidence=_evidence([*map(_evidence_of, fresh)]),
        activity=finding.activity(now_ns),
        threshold=finding.rule.threshold,
        window_ns=finding.rule.window_ns,
        created_ns=now_ns,
        updated_ns=now_ns,
    )


def _counted(
    task: Task, finding: DetectionFinding, fresh: Sequence[Occurrence], *, now_ns: int
) -> Task:
    return replace(
        task,
        count=task.count + len(fresh),
        first_ns=min(task.first_ns, fresh[0].at_ns),
        last_ns=max(task.last_ns, fresh[-1].at_ns),
        counted_to=max(task.counted_to, *(one.number for one in fresh)),
        evidence=_evidence([*task.evidence, *map(_evidence_of, fresh)]),
        activity=finding.activity(now_ns),
        threshold=finding.rule.threshold,
        window_ns=finding.rule.window_ns,
        updated_ns=now_ns,
    )


def _evidence(found: Sequence[TaskRunEvidence]) -> tuple[TaskRunEvidence, ...]:
    """Return the first one and the newest."""
    evidence = sorted(found, key=lambda one: one.at_ns)
    if len(evidence) > MOST_EVIDENCE:
        evidence = [evidence[0], *evidence[1 - MOST_EVIDENCE :]]
    return tuple(evidence)


def _evidence_of(one: Occurrence) -> TaskRunEvidence:
    return TaskRunEvidence(one.kind, one.id, one.at_ns)

"""What a status report is made of: the state of a store at a moment, within a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import apsw

from hansard_store.approvals.rows import count_by_status
from hansard_store.audit.event_types import EventType
from hansard_store.database.row_order import first_memory_since
from hansard_store.database.transactions import snapshot
from hansard_store.detection.failed_steps import errors_by_kind
from hansard_store.detection.rules import HOUR_NS, Occurrence, SubjectKind
from hansard_store.heartbeat import HEARTBEAT_AGENT, CycleRecord, PhaseRecord, list_cycles
from hansard_store.memory.queries import MemoryFilter, facets, list_memories
from hansard_store.memory.records import Memory, words_of
from hansard_store.tasks.rows import Task, count_tasks, list_tasks

WEEK_NS: Final = 7 * 24 * HOUR_NS
_MOST: Final = 100  # rows of each kind that are read: a report shows fewer
_MOST_CYCLES: Final = 50  # that are searched for the last result of each phase
_DECIDED: Final = {
    EventType.ACTION_APPROVED: "approved",
    EventType.ACTION_REJECTED: "rejected",
    EventType.ACTION_EXPIRED: "expired",
    EventType.TASK_DECIDED: "tasks",
}
_EVENTS: Final = """
SELECT time_ns, late FROM event INDEXED BY event_type
WHERE type = ? AND type NOT IN ('tool.called', 'tool.returned') ORDER BY seq DESC
"""
_VERDICTS: Final = """
SELECT label, created_ns FROM annotation INDEXED BY annotation_kind
WHERE kind = 'score' AND ended_ns IS NULL ORDER BY id DESC LIMIT :limit
"""
_MOST_SCORES: Final = 20_000  # the newest that are looked at for verdicts
_VERDICT_LABELS: Final = frozenset({"confirmed", "contradicted", "claimed", "unknown"})
_WRITTEN: Final = """
SELECT count(*) FROM memory WHERE id >= :first AND created_ns > :since AND created_ns <= :until
  AND memory_type <> 'working' AND agent <> :heartbeat
"""

_OWN_NOTES: Final = """
SELECT count(*) FROM memory INDEXED BY memory_agent
WHERE agent = ? AND agent <> '' AND state = 'current'
"""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Errors of one subject that are the same but for their variable parts."""

    subject_kind: SubjectKind
    subject: str
    message: str  # of the newest one, its beginning; "" none
    count: int
    first_ns: int
    last_ns: int
    step_id: str  # the newest one


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction in memory, with what it corrects and what proves it."""

    memory_id: str
    subject: str
    says: str
    claim_id: str | None
    evidence: tuple[str, ...]  # ids of steps
    created_ns: int


@dataclass(frozen=True, slots=True)
class _MemoryState:
    """Counts of memory; notes of the heartbeat about itself do not count."""

    current: int
    in_review: int
    written: int  # in the last seven days
    written_before: int  # in the seven days before


@dataclass(frozen=True, slots=True)
class SystemState:
    """The state of a store. Lists are the newest or the most frequent; counts are of all."""

    now_ns: int
    window_ns: int
    errors: tuple[ErrorKind, ...]  # the most frequent first
    error_count: int
    cycle: CycleRecord | None  # the last one
    phases: tuple[PhaseRecord, ...]  # the newest result of each, in the order of a cycle
    decisions: tuple[Memory, ...]
    decision_count: int
    decided: Mapping[str, int]  # approved, rejected, expired; tasks: decided by people
    corrections: tuple[Correction, ...]
    correction_count: int
    verdicts: Mapping[str, int]  # by label: confirmed, contradicted, claimed, unknown
    blocked: tuple[Task, ...]  # tasks that wait for a person
    blocked_count: int
    approvals_awaiting: int
    memory: _MemoryState


def read_state(connection: apsw.Connection, *, now_ns: int, window_ns: int) -> SystemState:
    """Read the state of a store, all of one moment."""
    since_ns = now_ns - window_ns
    with snapshot(connection):
        errors = _errors(connection, since_ns, now_ns)
        cycles = list_cycles(connection, limit=_MOST_CYCLES)
        corrections, correction_count = _recent(connection, "correction", since_ns, now_ns)
        decisions, decision_count = _recent(connection, "decision", since_ns, now_ns)
        blocked = list_tasks(connection, state="blocked", limit=_MOST).items
        return SystemState(
            now_ns=now_ns,
            window_ns=window_ns,
            errors=tuple(errors),
            error_count=sum(one.count for one in errors),
            cycle=cycles[0] if cycles else None,
            phases=tuple(newest_phases(cycles)),
            decisions=tuple(decisions),
            decision_count=decision_count,
            decided=_decided(connection, since_ns, now_ns),
            corrections=tuple(map(correction_of, corrections)),
            correction_count=correction_count,
            verdicts=_verdicts(connection, since_ns, now_ns),
            blocked=tuple(blocked),
            blocked_count=count_tasks(connection)["blocked"],
            approvals_awaiting=count_by_status(connection).get("awaiting", 0),
            memory=_memory(connection, now_ns),
        )


def newest_phases(cycles: Sequence[CycleRecord]) -> list[PhaseRecord]:
    """Return the newest result of each phase that was done or failed; of others, that it was not.

    `cycles` are the newest first.
    """
    found: dict[str, PhaseRecord] = {}
    for cycle in cycles:
        for phase in cycle.phases:
            known = found.get(phase.name)
            if known is None or (known.status == "skipped" and phase.status != "skipped"):
                found[phase.name] = phase
    order = [phase.name for phase in cycles[0].phases] if cycles else []
    known_order = {name: at for at, name in enumerate(order)}
    return sorted(found.values(), key=lambda one: known_order.get(one.name, len(order)))


def correction_of(one: Memory) -> Correction:
    """Return a correction by its record in memory."""
    corrects, evidence = one.metadata.get("corrects"), one.metadata.get("evidence")
    steps = evidence if isinstance(evidence, list) else one.source_steps
    return Correction(
        memory_id=one.memory_id,
        subject=one.subject,
        says=says(one),
        claim_id=str(corrects) if corrects else None,
        evidence=tuple(str(step) for step in steps),
        created_ns=one.created_ns,
    )


def recent_corrections(
    connection: apsw.Connection, *, now_ns: int, limit: int
) -> tuple[Correction, ...]:
    """Return the newest corrections that stand."""
    filters = MemoryFilter(memory_type="correction")
    page = list_memories(connection, filters, now_ns=now_ns, limit=limit)
    return tuple(map(correction_of, page.items))


_SUMMARY: Final = "SELECT summary FROM span WHERE id = ?"


def _errors(connection: apsw.Connection, since_ns: int, now_ns: int) -> list[ErrorKind]:
    found = errors_by_kind(connection, since_ns=since_ns, now_ns=now_ns)

    def summary_of(failed: Occurrence) -> str:
        return connection.execute(_SUMMARY, (failed.number,)).get or ""

    most = sorted(found.items(), key=lambda one: (-len(one[1]), -one[1][0].at_ns, one[0].subject))
    return [
        ErrorKind(
            kind.subject_kind,
            kind.subject,
            summary_of(times[0]) if position < _MOST else kind.signature,
            len(times),
            times[-1].at_ns,
            times[0].at_ns,
            times[0].id,
        )
        for position, (kind, times) in enumerate(most)
    ]


def _recent(
    connection: apsw.Connection, memory_type: str, since_ns: int, now_ns: int
) -> tuple[Sequence[Memory], int]:
    """Return records of a type that were written within the window, and how many there are."""
    filters = MemoryFilter(memory_type=memory_type)
    page = list_memories(connection, filters, now_ns=now_ns, limit=_MOST)
    items = [one for one in page.items if one.created_ns > since_ns]
    if len(items) < _MOST:
        return items, len(items)
    parameters = {"first": first_memory_since(connection, since_ns), "type": memory_type,
             "since": since_ns}  # fmt: skip
    return items, connection.execute(_COUNT_OF_TYPE, parameters).get


_COUNT_OF_TYPE: Final = """
SELECT count(*) FROM memory INDEXED BY memory_sort
WHERE memory_type = :type AND id >= :first AND created_ns > :since AND state = 'current'
"""


def says(one: Memory) -> str:
    """Return the words of a record's content."""
    return " ".join(words_of(one.content))


def _decided(connection: apsw.Connection, since_ns: int, now_ns: int) -> Mapping[str, int]:
    counts = {
        name: _count_since(connection.execute(_EVENTS, (str(kind),)), since_ns, now_ns)
        for kind, name in _DECIDED.items()
    }
    return MappingProxyType(counts)


def _count_since(rows: Iterable[Any], since_ns: int, now_ns: int) -> int:
    """Count events of the window; numbers of the log rise with time, but for late ones."""
    count = 0
    for time_ns, late in rows:
        if since_ns < time_ns <= now_ns:
            count += 1
        elif time_ns <= since_ns and not late:
            break
    return count


def _verdicts(connection: apsw.Connection, since_ns: int, now_ns: int) -> Mapping[str, int]:
    counts = dict.fromkeys(sorted(_VERDICT_LABELS), 0)
    rows: Any = connection.execute(_VERDICTS, {"limit": _MOST_SCORES})
    for label, created_ns in rows:
        if created_ns <= since_ns:
            break
        if label in counts and created_ns <= now_ns:
            counts[label] += 1
    return MappingProxyType(counts)


def _memory(connection: apsw.Connection, now_ns: int) -> _MemoryState:
    found = facets(connection, now_ns=now_ns)
    notes: int = connection.execute(_OWN_NOTES, (HEARTBEAT_AGENT,)).get
    return _MemoryState(
        current=max(found.states.get("current", 0) - notes, 0),
        in_review=found.states.get("review", 0),
        written=written_between(connection, now_ns - WEEK_NS, now_ns),
        written_before=written_between(connection, now_ns - 2 * WEEK_NS, now_ns - WEEK_NS),
    )


def written_between(connection: apsw.Connection, since_ns: int, until_ns: int) -> int:
    """Return how many durable records were written in a time, without notes of the heartbeat."""
    parameters = {
        "first": first_memory_since(connection, since_ns), "since": since_ns, "until": until_ns,
        "heartbeat": HEARTBEAT_AGENT,
    }  # fmt: skip
    return int(connection.execute(_WRITTEN, parameters).get)

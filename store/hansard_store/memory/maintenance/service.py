"""What maintenance reads of memory, and the one way it writes there.

Every write is one transaction with its event. Between reading a pair and writing, a classifier may
take its time: what changed meanwhile is left as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import apsw

from hansard_compiler.canonical import canonical_json
from hansard_compiler.classifier import ClassifierVerdict
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.stored_json import json_text
from hansard_store.database.transactions import snapshot
from hansard_store.detection.rules import DetectionFinding, Occurrence, rule_named
from hansard_store.memory.maintenance import reviewed_supersessions
from hansard_store.memory.maintenance.candidate_pairs import (
    COMPARED_TYPES,
    LEFT_ORIGINS,
    Pair,
    Prefiltered,
    new_entries,
    prefilter,
)
from hansard_store.memory.maintenance.reviewed_supersessions import (
    Applying,
    NewSupersession,
    supersede,
)
from hansard_store.memory.maintenance.vectors import packed, unpacked
from hansard_store.memory.records import Memory, Origin
from hansard_store.memory.rows import memories_by_number
from hansard_store.tasks.service import RecordedDecision, TaskService

# Records that no agent has retrieved for long: counted, and changed in nothing.

_MOST_NAMED: Final = 20
# Written or last read: a record that is new is not stale because nobody had time to read it.
_STALE: Final = """
FROM memory INDEXED BY memory_state
WHERE state = 'current' AND memory_type <> 'working'
  AND max(last_read_ns, created_ns) <= :before AND (expires_ns IS NULL OR expires_ns > :now)
"""
_COUNT: Final = f"SELECT count(*), coalesce(sum(last_read_ns = 0), 0) {_STALE}"
_NAMES: Final = f"""
SELECT lower(hex(memory_id)) {_STALE} ORDER BY max(last_read_ns, created_ns), id LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Stale:
    """Records that stand and were not retrieved for a time."""

    count: int
    never_read: int  # among them
    longest: tuple[str, ...]  # ids, those first that were not retrieved for longest; at most 20


# Pairs that a classifier has judged, and records that a judge is through with.

_KNOWN_PAIRS: Final = """
SELECT pair.first, pair.second FROM json_each(:pairs) AS wanted
CROSS JOIN memory_pair AS pair
  ON pair.first = wanted.value ->> 0 AND pair.second = wanted.value ->> 1
  AND pair.classifier = :classifier
"""
_ADD_PAIR: Final = """
INSERT OR REPLACE INTO memory_pair (
  first, second, classifier, label, score, reason, outcome, judged_ns
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_WAITING: Final = """
SELECT first, second, score, reason FROM memory_pair INDEXED BY memory_pair_waiting
WHERE classifier = ? AND outcome = 'waiting' ORDER BY judged_ns LIMIT ?
"""
_COMPARED: Final = """
INSERT OR REPLACE INTO memory_compared (memory, judge, compared_ns)
SELECT value, ?, ? FROM json_each(?)
"""

# What corrections are compared with, by the vectors of what it says.

_ADD_VECTOR: Final = (
    "INSERT OR REPLACE INTO memory_embedding (memory, embedder, embedding) VALUES (?, ?, ?)"
)
_VECTORS: Final = """
SELECT memory, embedding FROM memory_embedding
WHERE embedder = ? AND memory IN (SELECT value FROM json_each(?))
"""
# What a correction may correct: what stands in its namespace.
_CORRECTABLE: Final = """
SELECT memory.id, memory.freshness_ns FROM memory INDEXED BY memory_state
CROSS JOIN memory_body AS body ON body.memory = memory.id
WHERE memory.state = 'current' AND memory.memory_type IN (SELECT value FROM json_each(:types))
  AND memory.project = :project AND memory.user = :user AND memory.agent = :agent
  AND body.scope = :scope
  AND (memory.expires_ns IS NULL OR memory.expires_ns > :now)
  AND coalesce(json_extract(body.metadata, '$.origin'), '') NOT IN (
    SELECT value FROM json_each(:origins))
ORDER BY memory.id
"""
# Corrections that stand, name nothing that they correct, and were not looked at by an embedder.
_UNLINKED: Final = """
SELECT memory.id FROM memory INDEXED BY memory_state
JOIN memory_body AS body ON body.memory = memory.id
WHERE memory.state = 'current' AND memory.memory_type = 'correction'
  AND (memory.expires_ns IS NULL OR memory.expires_ns > :now)
  AND json_extract(body.metadata, '$.corrects') IS NULL
  AND coalesce(json_extract(body.metadata, '$.origin'), '') NOT IN ('diagnostic', 'external')
  AND NOT EXISTS (
    SELECT 1 FROM memory_supersession AS link INDEXED BY memory_supersession_newer
    WHERE link.newer = memory.id AND link.cause = 'correction')
  AND NOT EXISTS (
    SELECT 1 FROM memory_compared AS done WHERE done.memory = memory.id AND done.judge = :judge)
ORDER BY memory.id LIMIT :most
"""

PairOutcome = Literal["superseded", "review", "waiting", "none"]
_MOST_REASON: Final = 300  # characters of what a classifier gives as its reason


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair, and a classifier's verdict on it."""

    pair: Pair
    classifier: str
    verdict: ClassifierVerdict


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A doubtful pair for which no task was opened yet."""

    pair: Pair
    score: float
    reason: str


class MaintenanceService:
    """The memory of one store as maintenance uses it; used by one thread."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "cli",
        by: str = "maintain",
        step_id: str | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open it; `by` and `step_id` say in events what superseded a record."""
        self._connections = OwnConnections(folder)
        self._tasks = TaskService(folder, mode, origin="cli", clock=clock)
        self._redactor = Redactor(folder.key())
        self._is_clean = mode is not RetentionMode.FULL_PAYLOADS  # memory was cleaned when written
        self._origin: Origin = origin
        self._by = Who(Actor.SYSTEM, by)
        self._step_id = step_id
        self._clock = clock

    def close(self) -> None:
        """Close all connections."""
        self._tasks.close()
        self._connections.close()

    # ---- reading

    def candidates(self, judge: str) -> Prefiltered:
        """Return the pairs of the first stage for a classifier; in SQL alone."""
        return prefilter(self._connections.get(), judge=judge, now_ns=self._clock())

    def unjudged(self, judge: str, pairs: Sequence[Pair]) -> list[Pair]:
        """Return those of the pairs that nobody has judged: no classifier of this name, no person.

        In their order.
        """
        connection = self._connections.get()
        known = reviewed_supersessions.settled_pairs(connection, pairs)
        parameters = {"pairs": json_text([list(pair) for pair in pairs]), "classifier": judge}
        known.update(connection.execute(_KNOWN_PAIRS, parameters))
        return [pair for pair in pairs if pair not in known]

    def waiting(self, judge: str, *, most: int) -> list[_Waiting]:
        """Return doubtful pairs for which no task was opened yet, the longest waiting first.

        No classifier is called again.
        """
        rows: Any = self._connections.get().execute(_WAITING, (judge, most))
        return [_Waiting((first, second), score, why) for first, second, score, why in rows]

    def new_entries(self, judge: str) -> list[int]:
        """Return the numbers of the records that a classifier has not compared."""
        return new_entries(self._connections.get(), judge=judge, now_ns=self._clock())

    def records(self, numbers: Sequence[int]) -> dict[int, Memory]:
        """Return records by their numbers. Looking at them is not recorded as reading."""
        connection = self._connections.get()
        with snapshot(connection):
            return memories_by_number(
                connection, list(dict.fromkeys(numbers)), now_ns=self._clock()
            )

    def stale(self, length_ns: int) -> Stale:
        """Return the records that were neither written nor read in the last `length_ns`.

        A read is one by an agent, with its step or without; looking at pages and lists is none.
        """
        connection, now_ns = self._connections.get(), self._clock()
        parameters = {"before": now_ns - length_ns, "now": now_ns}
        row: Any = connection.execute(_COUNT, parameters).fetchone()
        names: Any = connection.execute(_NAMES, {**parameters, "limit": _MOST_NAMED})
        return Stale(row[0], row[1], tuple(memory_id for (memory_id,) in names))

    def clean(self, text: str) -> str:
        """Return a text as a classifier may have it, which may be remote: without secrets."""
        return text if self._is_clean else self._redactor.redact_text(text).text

    # ---- corrections

    def unlinked_corrections(self, judge: str, *, most: int) -> list[Memory]:
        """Return corrections that name nothing they correct and that a judge has not looked at."""
        parameters = {"judge": judge, "now": self._clock(), "most": most}
        rows: Any = self._connections.get().execute(_UNLINKED, parameters)
        return list(self.records([number for (number,) in rows]).values())

    def correctable(self, correction: Memory) -> dict[int, int]:
        """Return what stands in a correction's namespace: numbers, and as of when each is so.

        One look at all that stands: some 50 ms of 10,000 records.
        """
        parameters = {
            "project": correction.project,
            "user": correction.user,
            "agent": correction.agent,
            "scope": canonical_json(dict(correction.scope)),
            "now": self._clock(),
            "types": json_text(COMPARED_TYPES),
            "origins": json_text(LEFT_ORIGINS),
        }
        rows: Any = self._connections.get().execute(_CORRECTABLE, parameters)
        return dict(rows.fetchall())

    def vectors(self, numbers: Sequence[int], embedder: str) -> dict[int, Sequence[float]]:
        """Return the stored vectors of records."""
        bindings = (embedder, json_text(list(numbers)))
        rows: Any = self._connections.get().execute(_VECTORS, bindings)
        return {number: unpacked(vector) for number, vector in rows}

    def add_vectors(self, made: Mapping[int, Sequence[float]], embedder: str) -> None:
        """Store vectors by the numbers of their records."""
        rows = [(number, embedder, packed(vector)) for number, vector in made.items()]
        with self._connections.writing(in_full=False) as connection:
            connection.executemany(_ADD_VECTOR, rows)

    # ---- writing

    def note_verdicts(
        self, judged: Sequence[JudgedPair], outcome: PairOutcome = "none", *, reason: str = ""
    ) -> None:
        """Remember verdicts that change nothing now."""
        now_ns = self._clock()
        clean = self._redactor.redact_text(reason).text[:_MOST_REASON]
        with self._connections.writing(in_full=False) as connection:
            for one in judged:
                _remember(connection, one, outcome, now_ns=now_ns, reason=clean)

    def set_compared(self, numbers: Sequence[int], judge: str) -> None:
        """Remember that a judge is through with these records."""
        now_ns = self._clock()
        with self._connections.writing(in_full=False) as connection:
            connection.execute(_COMPARED, (judge, now_ns, json_text(list(numbers))))

    def supersede(self, link: NewSupersession, judged: JudgedPair | None = None) -> bool:
        """Let one record supersede another; False where one of both does not stand any more."""
        now_ns = self._clock()
        applying = Applying(self._origin, now_ns, self._by, self._step_id)
        with self._connections.writing() as connection:
            is_applied = supersede(connection, self._clean(link), applying)
            if judged is not None and is_applied:
                _remember(connection, judged, "superseded", now_ns=now_ns)
        return is_applied

    def propose(self, link: NewSupersession, judged: JudgedPair | None = None) -> RecordedDecision:
        """Open a task for review that supersedes nothing before a person approves it."""
        now_ns = self._clock()
        known = self.records([link.older, link.newer])
        clean = self._clean(link)

        def along(connection: apsw.Connection, made: RecordedDecision) -> None:
            if made.task is not None and made.outcome == "opened":
                reviewed_supersessions.add(
                    connection, clean, state="proposed", now_ns=now_ns, task=made.task.key
                )
            if judged is not None:
                _remember(connection, judged, "review", now_ns=now_ns)

        (made,) = self._tasks.record([_finding(link, known)], along=along)
        return made

    def _clean(self, link: NewSupersession) -> NewSupersession:
        """Return a link whose rationale is short and without secrets: a model may have made it."""
        rationale = self._redactor.redact_text(link.rationale).text[:_MOST_REASON]
        return replace(link, rationale=rationale, step_id=link.step_id or self._step_id)


def _remember(
    connection: apsw.Connection,
    judged: JudgedPair,
    outcome: PairOutcome,
    *,
    now_ns: int,
    reason: str = "",
) -> None:
    """Store a classifier's verdict on a pair with its outcome."""
    verdict = judged.verdict
    row = (judged.classifier, verdict.label, verdict.score, reason, outcome, now_ns)
    connection.execute(_ADD_PAIR, (*sorted(judged.pair), *row))


def _finding(link: NewSupersession, known: Mapping[int, Memory]) -> DetectionFinding:
    older, newer = known[link.older], known[link.newer]
    kind = "correction" if link.cause == "correction" else "supersession"
    found: list[Any] = [
        Occurrence(one.id, one.created_ns, "memory", one.memory_id) for one in (older, newer)
    ]
    signature = f"{older.memory_id}:{newer.memory_id}"
    return DetectionFinding(
        rule_named(f"doubtful_{kind}"), "memory", newer.memory_type, signature, found
    )

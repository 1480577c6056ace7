"""What superseded what, why, and who or what decided: proposed, applied, undone. Rows only.

Every function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

import apsw
import orjson

from hansard_compiler.calls import Json
from hansard_store.approvals.unit_of_work import Who
from hansard_store.bodies import Body, Description, body_of
from hansard_store.memory.access_log import record_change
from hansard_store.memory.errors import NotCurrent
from hansard_store.memory.records import AccessKind, Origin, Toucher
from hansard_store.principals.model import CLAIMED, Method
from hansard_store.times import time_text

Cause = Literal["version", "accepted", "contradiction", "correction"]
State = Literal["proposed", "refused", "lapsed", "applied", "undone"]

_COLUMNS: Final = """
link.id, link.older, link.newer, lower(hex(older.memory_id)), lower(hex(newer.memory_id)),
link.cause, link.state, link.rationale, link.score, link.judge,
iif(link.task IS NULL, NULL, lower(hex(link.task))), link.created_ns, link.span,
link.decided_by, link.decided_method, link.decided_ns, link.undone_by, link.undone_method,
link.undone_ns, link.undone_reason
"""
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM memory_supersession AS link INDEXED BY memory_supersession_{{column}}
LEFT JOIN memory AS older ON older.id = link.older
LEFT JOIN memory AS newer ON newer.id = link.newer
WHERE link.{{column}} {{meets}} ORDER BY link.id DESC
"""
_OF_OLDER, _OF_NEWER = (
    _LIST.format(column=column, meets="IN (SELECT value FROM json_each(?))")
    for column in ("older", "newer")
)
_OF_TASK: Final = _LIST.format(column="task", meets="= ?")
_ADD: Final = """
INSERT INTO memory_supersession (
  older, newer, cause, state, rationale, score, judge, task, created_ns, span, decided_by,
  decided_method, decided_ns
) VALUES (
  :older, :newer, :cause, :state, :rationale, :score, :judge, :task, :created_ns, :step_id,
  :decided_by, :decided_method, :decided_ns
) RETURNING id
"""
_DECIDE: Final = """
UPDATE memory_supersession SET state = :state, decided_by = :by, decided_method = :method,
  decided_ns = :now
WHERE id = :id AND state = 'proposed'
"""
_UNDO: Final = """
UPDATE memory_supersession INDEXED BY memory_supersession_older
SET state = 'undone', undone_by = :by, undone_method = :method, undone_ns = :now,
  undone_reason = :reason
WHERE older = :older AND newer = :newer AND state = 'applied'
"""
# A person undid, or refused, that one of both supersedes the other; a proposal is open.
_SETTLED: Final = """
SELECT min(link.older, link.newer), max(link.older, link.newer)
FROM json_each(:pairs) AS pair
JOIN memory_supersession AS link INDEXED BY memory_supersession_older
  ON (link.older = pair.value ->> 0 AND link.newer = pair.value ->> 1)
  OR (link.older = pair.value ->> 1 AND link.newer = pair.value ->> 0)
WHERE link.state IN ('proposed', 'refused', 'undone')
"""


_FORGET: Final = (
    "UPDATE memory_supersession SET rationale = '', undone_reason = NULL WHERE older = ?",
    "UPDATE memory_supersession SET rationale = '', undone_reason = NULL WHERE newer = ?",
    "DELETE FROM memory_pair WHERE first = ?",
    "DELETE FROM memory_pair WHERE second = ?",
)
# Every judge compares a record that stands again; judged pairs stay so.
_COMPARE_AGAIN: Final = "DELETE FROM memory_compared WHERE memory = ?"


@dataclass(frozen=True, slots=True)
class NewSupersession:
    """A supersession that is to be recorded; `older` and `newer` are numbers of records."""

    older: int
    newer: int
    cause: Cause
    rationale: str  # no recorded content
    judge: str  # name of the classifier, embedder or writer
    score: float | None = None  # 0 to 1; None: no classifier and no embedder was asked
    step_id: str | None = None  # the step that did it


@dataclass(frozen=True, slots=True)
class Supersession:
    """One supersession as it is stored. Times are Unix nanoseconds."""

    id: int
    older: int
    newer: int
    older_id: str | None
    newer_id: str | None
    cause: Cause
    state: State
    rationale: str
    score: float | None
    judge: str
    task_id: str | None
    created_ns: int
    step_id: str | None
    decided_by: str | None  # the person who approved the proposal
    decided_method: str | None
    decided_ns: int | None
    undone_by: str | None
    undone_method: str | None
    undone_ns: int | None
    undone_reason: str | None


def add(
    connection: apsw.Connection,
    new: NewSupersession,
    *,
    state: State,
    now_ns: int,
    by: Who | None = None,
    task: bytes | None = None,
) -> int:
    """Record a supersession and return its number; `by` is a person who decided it."""
    parameters = {
        **asdict(new),
        "state": state,
        "task": task,
        "created_ns": now_ns,
        "decided_by": None if by is None else by.name,
        "decided_method": None if by is None else by.method,
        "decided_ns": None if by is None else now_ns,
    }
    return int(connection.execute(_ADD, parameters).get)


def decide(
    connection: apsw.Connection, one: Supersession, state: State, *, by: Who, now_ns: int
) -> None:
    """Apply, refuse or let lapse a proposal, in a person's name."""
    parameters = {"id": one.id, "state": state, "by": by.name, "method": by.method, "now": now_ns}
    connection.execute(_DECIDE, parameters)


def undo(
    connection: apsw.Connection, older: int, newer: int, *, by: Who, reason: str, now_ns: int
) -> None:
    """Record that a person took back that one record supersedes another."""
    parameters = {"older": older, "newer": newer, "by": by.name, "method": by.method, "now": now_ns}
    connection.execute(_UNDO, {**parameters, "reason": reason})


def superseding(connection: apsw.Connection, numbers: Sequence[int]) -> list[Supersession]:
    """Return what superseded these records, or was to, the newest first."""
    return _read(connection, _OF_OLDER, orjson.dumps(list(numbers)).decode())


def links_of(connection: apsw.Connection, numbers: Sequence[int]) -> list[Supersession]:
    """Return what these records supersede and are superseded by, the newest first."""
    newer = _read(connection, _OF_NEWER, orjson.dumps(list(numbers)).decode())
    found = [*superseding(connection, numbers), *newer]
    return sorted({one.id: one for one in found}.values(), key=lambda one: -one.id)


def of_task(connection: apsw.Connection, task_id: str) -> list[Supersession]:
    """Return what a task for review proposes, the oldest first."""
    return _read(connection, _OF_TASK, bytes.fromhex(task_id))[::-1]


def settled_pairs(
    connection: apsw.Connection, pairs: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Return those of the pairs that wait for a person, or about which one decided."""
    pairs_json = orjson.dumps([list(pair) for pair in pairs]).decode()
    rows: Any = connection.execute(_SETTLED, {"pairs": pairs_json})
    return {(first, second) for first, second in rows}


def forget_words(connection: apsw.Connection, number: int) -> None:
    """Remove the words beside a purged record's supersessions, and the verdicts on it."""
    for sql in _FORGET:
        connection.execute(sql, (number,))


def _read(connection: apsw.Connection, sql: str, parameter: str | bytes) -> list[Supersession]:
    rows: list[Any] = connection.execute(sql, (parameter,)).fetchall()
    return [Supersession(*row) for row in rows]


class DecisionTaken(Body):
    """Who decided, and how that is known."""

    by: str
    method: Method
    at: str


class TakenBack(DecisionTaken):
    """Who took a supersession back, and why."""

    reason: str


class SupersessionBody(Body):
    """One record superseded by another, or proposed to be, and by whom or what."""

    older: str | None
    newer: str | None
    cause: Cause
    state: State
    rationale: str
    score: Annotated[float | None, Description("0 to 1, of the classifier or embedder")]
    judge: Annotated[str, Description("name of the classifier, embedder or writer")]
    at: str
    step_id: str | None
    task_id: Annotated[str | None, Description("the task for review that proposed it")]
    decision: DecisionTaken | None
    undone: TakenBack | None


def supersession_json(one: Supersession) -> SupersessionBody:
    """Return a supersession as programs see it."""
    decision: DecisionTaken | None = None
    undone: TakenBack | None = None
    if one.decided_ns is not None:
        decision = _decision(one.decided_by, one.decided_method, one.decided_ns)
    if one.undone_ns is not None:
        by = _decision(one.undone_by, one.undone_method, one.undone_ns)
        undone = {**by, "reason": one.undone_reason or ""}
    return body_of(
        SupersessionBody,
        one,
        older=one.older_id,
        newer=one.newer_id,
        at=time_text(one.created_ns),
        decision=decision,
        undone=undone,
    )


def _decision(by: str | None, method: str | None, at_ns: int) -> DecisionTaken:
    at = time_text(at_ns)
    return body_of(DecisionTaken, by=by or "", method=method or CLAIMED.method, at=at)


# Superseding a record and taking it back, each with its event, inside the caller's transaction.
#
# Compare and set: a record is superseded only while both stand, and stands again only while nothing
# else was written in its place.

_STANDING: Final = """
SELECT count(*) FROM memory WHERE id IN (:older, :newer) AND state = 'current'
  AND (expires_ns IS NULL OR expires_ns > :now)
"""
_SUPERSEDE: Final = """
UPDATE memory SET state = 'superseded', superseded_by = :newer
WHERE id = :older AND state = 'current'
"""
_FOUND: Final = "SELECT id, memory_id, key, state, superseded_by FROM memory WHERE memory_id = ?"
_IN_PLACE: Final = """
SELECT id, memory_id FROM memory INDEXED BY memory_current WHERE key = ? AND state = 'current'
"""
_STAND: Final = """
UPDATE memory SET state = 'current', superseded_by = NULL WHERE id = ? AND state = 'superseded'
"""
_ID: Final = "SELECT memory_id FROM memory WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Applying:
    """Where a change comes from: an origin, a time, who does it, and the step that does."""

    origin: Origin
    now_ns: int
    by: Who
    step_id: str | None = None

    def record(
        self, connection: apsw.Connection, kind: AccessKind, memory: tuple[int, bytes], body: Json
    ) -> None:
        """Record who changed a record, by number and id, and append the event."""
        who = Toucher(self.origin, step_id=self.step_id)
        record_change(connection, kind, memory, who, self.by, body, now_ns=self.now_ns)


def supersede(connection: apsw.Connection, link: NewSupersession, applying: Applying) -> bool:
    """Let one record be superseded by another; False where one of both does not stand now."""
    if not _change(connection, link, applying):
        return False
    add(connection, link, state="applied", now_ns=applying.now_ns)
    return True


def apply_proposal(connection: apsw.Connection, one: Supersession, applying: Applying) -> bool:
    """Do what a person approved; False, and lapsed, where one of both does not stand now."""
    link = NewSupersession(
        one.older, one.newer, one.cause, one.rationale, one.judge, one.score, applying.step_id
    )
    is_applied = _change(connection, link, applying, task_id=one.task_id)
    state: State = "applied" if is_applied else "lapsed"
    decide(connection, one, state, by=applying.by, now_ns=applying.now_ns)
    return is_applied


def unsupersede(
    connection: apsw.Connection,
    memory_id: bytes,
    applying: Applying,
    *,
    reason: str,
    based_on: bytes | None = None,
) -> None:
    """Let a superseded record stand again; a newer version in its place is superseded by it.

    Raises NotCurrent where it is not superseded, is superseded by another record than `based_on`,
    or where something was written in its place since.
    """
    row: Any = connection.execute(_FOUND, (memory_id,)).fetchone()
    number, _, key, state, newer = row
    if state != "superseded":
        raise NotCurrent(memory_id.hex(), state=state, expected="superseded")
    if based_on is not None and based_on.hex() != _id_of(connection, newer):
        raise NotCurrent(
            memory_id.hex(), state="superseded by another record", expected="by that one"
        )
    in_place: Any = connection.execute(_IN_PLACE, (key,)).fetchone()
    body: dict[str, Any] = {"superseded_by": _id_of(connection, newer)}
    if in_place is not None:
        if in_place[0] != newer:
            state = f"superseded, and {in_place[1].hex()} was written in its place since"
            raise NotCurrent(memory_id.hex(), state=state, expected="the version before it")
        body["superseded"] = [in_place[1].hex()]
        connection.execute(_SUPERSEDE, {"older": newer, "newer": number})
    connection.execute(_STAND, (number,))
    now_ns, by = applying.now_ns, applying.by
    if newer is not None:
        undo(connection, number, newer, by=by, reason=reason, now_ns=now_ns)
    if in_place is not None:
        taken_back = NewSupersession(
            newer, number, "version", "the version before it stands again", by.name or "me",
            step_id=applying.step_id,
        )  # fmt: skip
        add(connection, taken_back, state="applied", now_ns=now_ns, by=by)
    connection.execute(_COMPARE_AGAIN, (number,))
    applying.record(connection, "unsupersede", (number, memory_id), body)


def _change(
    connection: apsw.Connection,
    link: NewSupersession,
    applying: Applying,
    *,
    task_id: str | None = None,
) -> bool:
    parameters = {"older": link.older, "newer": link.newer, "now": applying.now_ns}
    if connection.execute(_STANDING, parameters).get != 2:
        return False
    connection.execute(_SUPERSEDE, {"older": link.older, "newer": link.newer})
    body = {
        "superseded_by": _id_of(connection, link.newer),
        "cause": link.cause,
        "judge": link.judge,
        "score": link.score,
        "task_id": task_id,
    }
    older_id = bytes(connection.execute(_ID, (link.older,)).get)
    applying.record(connection, "supersede", (link.older, older_id), body)
    return True


def _id_of(connection: apsw.Connection, number: int | None) -> str | None:
    if number is None:
        return None
    found: bytes | None = connection.execute(_ID, (number,)).get
    return None if found is None else found.hex()

"""Superseding a record and taking it back, each with its event, inside the caller's transaction.

Compare and set: a record is superseded only while both stand, and stands again only while nothing
else was written in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Event, EventType
from hansard_store.audit.events import append
from hansard_store.memory.access_log import record
from hansard_store.memory.errors import NotCurrent
from hansard_store.memory.maintenance import supersessions, verdicts
from hansard_store.memory.maintenance.supersessions import NewSupersession, Supersession
from hansard_store.memory.records import AccessKind, Origin, Toucher

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
_ID: Final = "SELECT lower(hex(memory_id)) FROM memory WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Applying:
    """Where a change comes from: an origin, a time, who does it, and the step that does."""

    origin: Origin
    now_ns: int
    by: Who
    step_id: str | None = None

    @property
    def toucher(self) -> Toucher:
        return Toucher(self.origin, step_id=self.step_id)


def supersede(connection: apsw.Connection, link: NewSupersession, applying: Applying) -> bool:
    """Let one record be superseded by another; False where one of both does not stand now."""
    if not _change(connection, link, applying):
        return False
    supersessions.add(connection, link, state="applied", now_ns=applying.now_ns)
    return True


def apply_proposal(connection: apsw.Connection, one: Supersession, applying: Applying) -> bool:
    """Do what a person approved; False, and lapsed, where one of both does not stand now."""
    link = NewSupersession(
        one.older, one.newer, one.cause, one.rationale, one.judge, one.score, applying.step_id
    )
    is_applied = _change(connection, link, applying, task_id=one.task_id)
    state: supersessions.State = "applied" if is_applied else "lapsed"
    supersessions.decide(connection, one, state, by=applying.by, now_ns=applying.now_ns)
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
        raise NotCurrent(memory_id.hex(), state=state, wanted="superseded")
    if based_on is not None and based_on.hex() != _id_of(connection, newer):
        raise NotCurrent(
            memory_id.hex(), state="superseded by another record", wanted="by that one"
        )
    in_place: Any = connection.execute(_IN_PLACE, (key,)).fetchone()
    body: dict[str, Any] = {"superseded_by": _id_of(connection, newer)}
    if in_place is not None:
        if in_place[0] != newer:
            state = f"superseded, and {in_place[1].hex()} was written in its place since"
            raise NotCurrent(memory_id.hex(), state=state, wanted="the version before it")
        body["superseded"] = [in_place[1].hex()]
        connection.execute(_SUPERSEDE, {"older": newer, "newer": number})
    connection.execute(_STAND, (number,))
    now_ns, by = applying.now_ns, applying.by
    if newer is not None:
        supersessions.undo(connection, number, newer, by=by, reason=reason, now_ns=now_ns)
    if in_place is not None:
        taken_back = NewSupersession(
            newer, number, "version", "the version before it stands again", by.name or "me",
            step_id=applying.step_id,
        )  # fmt: skip
        supersessions.add(connection, taken_back, state="applied", now_ns=now_ns, by=by)
    verdicts.compare_again(connection, number)
    _tell(connection, "unsupersede", number, memory_id.hex(), applying, body)


def _change(
    connection: apsw.Connection,
    link: NewSupersession,
    applying: Applying,
    *,
    task_id: str | None = None,
) -> bool:
    given = {"older": link.older, "newer": link.newer, "now": applying.now_ns}
    if connection.execute(_STANDING, given).get != 2:
        return False
    connection.execute(_SUPERSEDE, {"older": link.older, "newer": link.newer})
    body = {
        "superseded_by": _id_of(connection, link.newer),
        "cause": link.cause,
        "judge": link.judge,
        "score": link.score,
        "task_id": task_id,
    }
    older_id = _id_of(connection, link.older)
    assert older_id is not None
    _tell(connection, "supersede", link.older, older_id, applying, body)
    return True


def _tell(
    connection: apsw.Connection,
    kind: AccessKind,
    number: int,
    memory_id: str,
    applying: Applying,
    body: Mapping[str, Any],
) -> None:
    """Record who changed it, and append the event."""
    who = applying.toucher
    record(connection, kind, [number], who, now_ns=applying.now_ns)
    written = {**body, **applying.by.proof}
    event = Event(
        type=EventType.MEMORY_WRITTEN if kind == "unsupersede" else EventType.MEMORY_INVALIDATED,
        actor=applying.by.actor,
        who=applying.by.name,
        action=f"memory.{kind}",
        source=applying.origin,
        subject=f"memory:{memory_id}",
        time_ns=applying.now_ns,
        trace_id=who.trace_id,
        span_id=who.span_id,
        body={name: value for name, value in written.items() if value not in (None, [], "")},
    )
    append(connection, event)


def _id_of(connection: apsw.Connection, number: int | None) -> str | None:
    if number is None:
        return None
    found: str | None = connection.execute(_ID, (number,)).get
    return found

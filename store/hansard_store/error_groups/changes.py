"""What was decided about groups of errors: their state, and its history.

Functions that write run inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

import apsw

from hansard_store.approvals.unit_of_work import SYSTEM, Who
from hansard_store.audit.event_types import Event, EventType
from hansard_store.audit.events import append
from hansard_store.steps.shared_span_ids import shared_side, step_id_of

State = Literal["open", "closed", "reopened"]
ChangeKind = Literal["watch", "unwatch", "note", "close", "open", "reopened"]
Origin = Literal["page", "api", "cli", "otlp"]
STATES: Final[tuple[State, ...]] = get_args(State)
MOST_SHOWN: Final = 100  # changes of a group, the newest

_STATES: Final = """
SELECT fingerprint, state, watched, closed_ns, reopened_ns FROM error_group
"""
_STATE: Final = f"{_STATES} WHERE fingerprint = ?"
_WRITE: Final = """
INSERT INTO error_group (fingerprint, state, watched, closed_ns, reopened_ns, updated_ns)
VALUES (:fingerprint, :state, :watched, :closed_ns, :reopened_ns, :now)
ON CONFLICT (fingerprint) DO UPDATE SET state = excluded.state, watched = excluded.watched,
  closed_ns = excluded.closed_ns, reopened_ns = excluded.reopened_ns,
  updated_ns = excluded.updated_ns
"""
_IS_CLOSED: Final = """
SELECT 1 FROM error_group WHERE fingerprint = ? AND state = 'closed' AND closed_ns < ?
"""
_ADD: Final = """
INSERT INTO error_change (fingerprint, kind, note, by, method, origin, time_ns)
VALUES (:fingerprint, :kind, :note, :by, :method, :origin, :now)
"""
_HISTORY: Final = f"""
SELECT kind, note, by, method, origin, time_ns FROM error_change INDEXED BY error_change_group
WHERE fingerprint = ? ORDER BY id DESC LIMIT {MOST_SHOWN}
"""
_NOTES: Final = """
SELECT fingerprint, count(*) FROM error_change WHERE kind = 'note' GROUP BY fingerprint
"""
_PLACE: Final = f"""
SELECT trace_id, span_id, {shared_side("span")} FROM span WHERE id = ?
"""


class GroupState(NamedTuple):
    """What is decided about a group."""

    state: State = "open"
    watched: bool = False
    closed_ns: int | None = None  # when it was last closed
    reopened_ns: int | None = None  # when it last opened again by itself


UNTOUCHED: Final = GroupState()


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the history of a group."""

    kind: ChangeKind
    note: str | None
    by: str
    method: str | None
    origin: str
    at_ns: int


def read_states(connection: apsw.Connection) -> dict[bytes, GroupState]:
    """Return what is decided of every group that anything was decided of."""
    return {row[0]: _state(row) for row in connection.execute(_STATES)}


def read_state(connection: apsw.Connection, fingerprint: bytes) -> GroupState:
    """Return what is decided about a group."""
    row = connection.execute(_STATE, (fingerprint,)).fetchone()
    return UNTOUCHED if row is None else _state(row)


def read_history(connection: apsw.Connection, fingerprint: bytes) -> Sequence[Change]:
    """Return the newest changes of a group, the newest first."""
    return [Change(*row) for row in connection.execute(_HISTORY, (fingerprint,))]


def count_notes(connection: apsw.Connection) -> dict[bytes, int]:
    """Return how many notes there are on each group that has any."""
    found: Any = connection.execute(_NOTES)
    return dict(found)


def is_closed_before(connection: apsw.Connection, fingerprint: bytes, at_ns: int) -> bool:
    """Return whether a group is closed, and was before a moment."""
    return connection.execute(_IS_CLOSED, (fingerprint, at_ns)).get is not None


def write_change(
    connection: apsw.Connection,
    fingerprint: bytes,
    becomes: GroupState,
    *,
    kind: ChangeKind,
    by: Who,
    origin: Origin,
    now_ns: int,
    note: str | None = None,
    step_id: str = "",
) -> None:
    """Write the state of a group, an entry of its history and one of the audit log."""
    row = {**becomes._asdict(), "watched": int(becomes.watched), "fingerprint": fingerprint}
    connection.execute(_WRITE, {**row, "now": now_ns})
    entry = {"fingerprint": fingerprint, "kind": kind, "note": note, "origin": origin}
    connection.execute(_ADD, {**entry, "by": by.name, "method": by.method, "now": now_ns})
    event = Event(
        type=EventType.ERROR_GROUP_CHANGED,
        actor=by.actor,
        who=by.name,
        action=f"error.{kind}",
        source=origin,
        subject=f"error:{fingerprint.hex()}",
        time_ns=now_ns,
        body={
            "state": becomes.state,
            "watched": becomes.watched,
            **({"step_id": step_id} if step_id else {}),
            **by.proof,
        },
    )
    append(connection, event)


def reopen(connection: apsw.Connection, fingerprint: bytes, *, span: int, now_ns: int) -> None:
    """Open a closed group again: a step failed in the same way after it was closed.

    In the transaction that stores the step; once until somebody closes the group again. Its event
    in the audit log, `error.reopened`, is what the outbox of notifications makes
    `error_group.returned` of.
    """
    state = read_state(connection, fingerprint)
    trace_id, span_id, side = connection.execute(_PLACE, (span,)).fetchone()  # type: ignore[misc]
    write_change(
        connection,
        fingerprint,
        state._replace(state="reopened", reopened_ns=now_ns),
        kind="reopened",
        by=SYSTEM,
        origin="otlp",
        now_ns=now_ns,
        step_id=step_id_of(trace_id, span_id, side),
    )


def _state(row: Any) -> GroupState:
    _, state, watched, closed_ns, reopened_ns = row
    return GroupState(state, bool(watched), closed_ns, reopened_ns)

"""The outbox: which states become notifications, and for which endpoints.

It follows the audit log: events are committed with what they report, and their numbers have no
gap, so the position up to which they were read, moved in the same transaction, loses none and
repeats none, whichever process reads and whenever it is killed. Reviews are followed by the number
of their task. What has no event (a broken chain, a full disk) is a *condition*: somebody looks, and
its notification lasts until it is found to be over.

A notification holds ids, names of tools, agents and people, and times; never what was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw

from hansard_store.audit.event_types import EventType
from hansard_store.error_groups.queries import error_title
from hansard_store.ids import new_id
from hansard_store.notifications.records import NotificationType
from hansard_store.times import time_text

_EVENTS_AT_ONCE: Final = 500
_TASKS_AT_ONCE: Final = 100
_EVENT_POSITION: Final = "notified_event"
_TASK_POSITION: Final = "notified_task"
_POSITION: Final = "SELECT value FROM setting WHERE name = ?"
_MOVE: Final = """
INSERT INTO setting (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_FORGET: Final = f"DELETE FROM setting WHERE name IN ('{_EVENT_POSITION}', '{_TASK_POSITION}')"
_LAST_EVENT: Final = "SELECT coalesce(max(seq), 0) FROM event"
_LAST_TASK: Final = "SELECT coalesce(max(id), 0) FROM task"
_EVENTS: Final = """
SELECT event.seq, event.type, event.time_ns, event.who, event.action, event.subject,
  event.approval_id, event.trace_id, event.body,
  approval.agent, approval.expires_ns, approval.approvers, approval.asked
FROM event LEFT JOIN approval ON approval.approval_id = event.approval_id
WHERE event.seq > :after ORDER BY event.seq LIMIT :limit
"""
_TASKS: Final = """
SELECT id, task_id, rule, level, subject_kind, subject, count, created_ns FROM task
WHERE id > :after ORDER BY id LIMIT :limit
"""
_WAITING: Final = """
SELECT approval_id, tool, agent, trace_id, revision, created_ns, expires_ns, approvers, asked
FROM approval INDEXED BY approval_status WHERE status = 'awaiting' ORDER BY number
"""
_ADD: Final = """
INSERT INTO notification (event_id, type, state_key, created_ns, ended_ns, data)
VALUES (:event_id, :type, :state_key, :created_ns, :ended_ns, :data)
ON CONFLICT DO NOTHING RETURNING id
"""
_ADD_DELIVERY: Final = """
INSERT INTO notification_delivery (notification, endpoint, status, attempts, next_ns)
VALUES (:notification, :endpoint, 'pending', 0, :now_ns)
"""
_LASTING: Final = "SELECT 1 FROM notification WHERE state_key = ? AND ended_ns IS NULL"
_END: Final = """
UPDATE notification SET ended_ns = :now_ns WHERE state_key = :state_key AND ended_ns IS NULL
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where notifications go, as the store knows it."""

    name: str  # host, and a keyed hash of the address: the address itself is a secret
    subjects: frozenset[str] = frozenset()  # first parts of types; none: all

    def takes(self, type: str) -> bool:
        """Whether notifications of a type go there; a test goes everywhere."""
        subject = type.partition(".")[0]
        return not self.subjects or subject in self.subjects or type == NotificationType.TEST


class _Event(NamedTuple):
    seq: int
    type: str
    time_ns: int
    who: str
    action: str
    subject: str
    approval_id: bytes | None
    trace_id: bytes | None
    body: str
    agent: str | None
    expires_ns: int | None
    approvers: str | None
    asked: int | None


@dataclass(frozen=True, slots=True)
class State:
    """A state to be notified of; with `lasts` no second time until it ends."""

    type: NotificationType
    key: str
    began_ns: int
    data: Mapping[str, Any]
    lasts: bool = False


def stop_following(connection: apsw.Connection) -> None:
    """Forget the position, in the caller's transaction: nothing is sent, so nothing piles up."""
    connection.execute(_FORGET)


def is_followed(connection: apsw.Connection) -> bool:
    """Return whether the outbox has a position in the audit log."""
    return _position(connection, _EVENT_POSITION) is not None


def has_news(connection: apsw.Connection) -> bool:
    """Return whether `follow` has anything to do."""
    events, tasks = (_position(connection, one) for one in (_EVENT_POSITION, _TASK_POSITION))
    if events is None or tasks is None:
        return True
    newest_event: int = connection.execute(_LAST_EVENT).get
    newest_task: int = connection.execute(_LAST_TASK).get
    return events < newest_event or tasks < newest_task


def follow(connection: apsw.Connection, endpoints: Sequence[Endpoint], *, now_ns: int) -> int:
    """Write notifications of what happened since the last time, in the caller's transaction.

    Returns how many events and reviews were read: 0 when there is nothing new. The first time, what
    waits for a decision now is notified of, and nothing before.
    """
    events, tasks = (_position(connection, one) for one in (_EVENT_POSITION, _TASK_POSITION))
    if events is None or tasks is None:
        return _begin(connection, endpoints, now_ns=now_ns)
    found: list[Any] = connection.execute(
        _EVENTS, {"after": events, "limit": _EVENTS_AT_ONCE}
    ).fetchall()
    for row in found:
        event = _Event(*row)
        make = _OF_EVENTS.get(event.type)
        if make is not None:
            make(connection, event, endpoints, now_ns)
    if found:
        _move(connection, _EVENT_POSITION, found[-1][0])
    opened: list[Any] = connection.execute(
        _TASKS, {"after": tasks, "limit": _TASKS_AT_ONCE}
    ).fetchall()
    for number, task_id, *task in opened:
        _add(connection, _review(task_id, *task), endpoints, now_ns=now_ns)
        _move(connection, _TASK_POSITION, number)
    return len(found) + len(opened)


def begin_condition(
    connection: apsw.Connection, state: State, endpoints: Sequence[Endpoint], *, now_ns: int
) -> bool:
    """Notify of a condition, in the caller's transaction; False while it lasts already."""
    return _add(connection, state, endpoints, now_ns=now_ns) is not None


def lasts(connection: apsw.Connection, key: str) -> bool:
    """Return whether a state that was notified of has not ended."""
    return connection.execute(_LASTING, (key,)).get is not None


def end_condition(connection: apsw.Connection, key: str, *, now_ns: int) -> None:
    """Note that a condition is over, in the caller's transaction: the next one is notified of."""
    connection.execute(_END, {"state_key": key, "now_ns": now_ns})


def add_test(
    connection: apsw.Connection, endpoints: Sequence[Endpoint], *, by: str, now_ns: int
) -> bytes:
    """Write a notification that only shows that they arrive; return its id."""
    key = f"test/{now_ns}"
    state = State(NotificationType.TEST, key, now_ns, {"by": by})
    added = _add(connection, state, endpoints, now_ns=now_ns)
    assert added is not None  # no other has its key
    return added


# ---- what events become


def _begin(connection: apsw.Connection, endpoints: Sequence[Endpoint], *, now_ns: int) -> int:
    """Set the positions to what is newest, and notify of approvals that are awaited now."""
    waiting: list[Any] = connection.execute(_WAITING).fetchall()
    for approval_id, tool, agent, trace_id, revision, created_ns, *rest in waiting:
        data = _approval_data(approval_id, tool, agent, trace_id, revision, *rest)
        key = _waiting_key(approval_id)
        state = State(NotificationType.APPROVAL_WAITING, key, created_ns, data, lasts=True)
        _add(connection, state, endpoints, now_ns=now_ns)
    _move(connection, _EVENT_POSITION, connection.execute(_LAST_EVENT).get)
    _move(connection, _TASK_POSITION, connection.execute(_LAST_TASK).get)
    return len(waiting)


def _waits(
    connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
) -> None:
    if event.approval_id is None:
        return
    key = _waiting_key(event.approval_id)
    end_condition(connection, key, now_ns=event.time_ns)  # that of an earlier draft
    state = State(
        NotificationType.APPROVAL_WAITING, key, event.time_ns, _of_event(event), lasts=True
    )
    _add(connection, state, endpoints, now_ns=now_ns)


def _ends(type: NotificationType) -> _Make:
    def make(
        connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
    ) -> None:
        if event.approval_id is None:
            return
        end_condition(connection, _waiting_key(event.approval_id), now_ns=event.time_ns)
        data = {**_of_event(event), "decision": event.type.partition(".")[2], "by": event.who}
        _add(connection, _once(type, event, data), endpoints, now_ns=now_ns)

    return make


def _escalates(
    connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
) -> None:
    state = _once(NotificationType.APPROVAL_ESCALATED, event, _of_event(event))
    _add(connection, state, endpoints, now_ns=now_ns)


def _alters(
    connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
) -> None:
    state = _once(NotificationType.SCHEMA_ALTERED, event, {"event": event.seq})
    _add(connection, state, endpoints, now_ns=now_ns)


def _decides_review(
    connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
) -> None:
    task_id = event.subject.partition(":")[2]
    end_condition(connection, f"review:{task_id}", now_ns=event.time_ns)


def _changes_error(
    connection: apsw.Connection, event: _Event, endpoints: Sequence[Endpoint], now_ns: int
) -> None:
    """A group of errors that was closed has returned, until a person closes it again."""
    error_id = event.subject.partition(":")[2]
    if event.action == "error.close":
        end_condition(connection, f"error:{error_id}", now_ns=event.time_ns)
    if event.action != "error.reopened":
        return
    data = {
        "error_group_id": error_id,
        "title": error_title(connection, bytes.fromhex(error_id)),
        "step_id": json.loads(event.body).get("step_id"),
    }
    state = State(
        NotificationType.ERROR_RETURNED, f"error:{error_id}", event.time_ns, data, lasts=True
    )
    _add(connection, state, endpoints, now_ns=now_ns)


_Make = Callable[[apsw.Connection, _Event, Sequence[Endpoint], int], None]
_OF_EVENTS: Final[Mapping[str, _Make]] = {
    EventType.ACTION_CREATED: _waits,
    EventType.ACTION_REPROPOSED: _waits,
    EventType.ACTION_ESCALATED: _escalates,
    EventType.ACTION_APPROVED: _ends(NotificationType.APPROVAL_DECIDED),
    EventType.ACTION_REJECTED: _ends(NotificationType.APPROVAL_DECIDED),
    EventType.ACTION_REVISED: _ends(NotificationType.APPROVAL_DECIDED),
    EventType.ACTION_EXPIRED: _ends(NotificationType.APPROVAL_EXPIRED),
    EventType.SCHEMA_ALTERED: _alters,
    EventType.TASK_DECIDED: _decides_review,
    EventType.ERROR_GROUP_CHANGED: _changes_error,
}


def _once(type: NotificationType, event: _Event, data: Mapping[str, Any]) -> State:
    return State(type, f"event:{event.seq}", event.time_ns, data)


def _waiting_key(approval_id: bytes) -> str:
    return f"approval:{approval_id.hex()}"


def _of_event(event: _Event) -> dict[str, Any]:
    assert event.approval_id is not None
    revision = json.loads(event.body).get("revision", 1)
    return _approval_data(
        event.approval_id, event.action, event.agent, event.trace_id, revision,
        event.expires_ns, event.approvers, event.asked,
    )  # fmt: skip


def _approval_data(
    approval_id: bytes, tool: str, agent: str | None, trace_id: bytes | None, revision: int,
    expires_ns: int | None, approvers: str | None, requested: int | None,
) -> dict[str, Any]:  # fmt: skip
    names = [one["name"] for one in json.loads(approvers or "[]")]
    return {
        "approval_id": approval_id.hex(),
        "tool": tool,
        "agent": agent,
        "run_id": None if trace_id is None else trace_id.hex(),
        "draft": revision,
        "expires_at": time_text(expires_ns),
        "approvers": names[: requested or len(names)],
    }


def _review(
    task_id: bytes, rule: str, level: str, kind: str, subject: str, count: int, created_ns: int
) -> State:
    data = {
        "task_id": task_id.hex(),
        "rule": rule,
        "level": level,
        "subject": {"kind": kind, "name": subject},
        "count": count,
    }
    key = f"review:{task_id.hex()}"
    return State(NotificationType.REVIEW_OPENED, key, created_ns, data, lasts=True)


# ---- writing


def _add(
    connection: apsw.Connection, state: State, endpoints: Sequence[Endpoint], *, now_ns: int
) -> bytes | None:
    """Write a notification and a delivery for each endpoint that takes it; None: it is known."""
    event_id = new_id()
    number: int | None = connection.execute(
        _ADD,
        {
            "event_id": event_id,
            "type": state.type,
            "state_key": state.key,
            "created_ns": state.began_ns,
            "ended_ns": None if state.lasts else state.began_ns,
            "data": json.dumps(state.data, ensure_ascii=False),
        },
    ).get
    if number is None:
        return None
    for one in endpoints:
        if one.takes(state.type):
            connection.execute(
                _ADD_DELIVERY, {"notification": number, "endpoint": one.name, "now_ns": now_ns}
            )
    return event_id


def _position(connection: apsw.Connection, name: str) -> int | None:
    found: int | None = connection.execute(_POSITION, (name,)).get
    return found


def _move(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute(_MOVE, {"name": name, "value": value})

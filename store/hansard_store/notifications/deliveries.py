"""Deliveries: which attempt is due, how it ended, and the list of all of them.

An attempt is claimed before it is made: its time is moved on by a lease in a transaction of its
own. So two processes do not send one notification at once, and one that was killed in the middle is
sent again when the lease is over, under the id that its receiver may know already.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.id_prefixes import find_row
from hansard_store.database.stored_json import json_of
from hansard_store.notifications.records import Delivery, DeliveryStatus, Notification

LEASE_NS: Final = 30 * 10**9  # an attempt that has not ended by then is made again
GIVE_UP_NS: Final = 3 * 24 * 3_600 * 10**9  # since the notification was written
KEEP_NS: Final = 90 * 24 * 3_600 * 10**9
_FIRST_DELAY_NS: Final = 10**9
_MOST_DELAY_NS: Final = 3_600 * 10**9
_MOST_ERROR_CHARS: Final = 300
_ABOVE_ALL: Final = (1 << 63) - 1

_DUE: Final = """
SELECT delivery.notification, notification.event_id, notification.type, notification.created_ns,
  notification.data, delivery.attempts + 1
FROM notification_delivery AS delivery INDEXED BY notification_due
CROSS JOIN notification ON notification.id = delivery.notification
WHERE delivery.endpoint = :endpoint AND delivery.next_ns <= :now_ns AND delivery.status = 'pending'
ORDER BY delivery.next_ns, delivery.notification LIMIT :limit
"""
_CLAIM: Final = """
UPDATE notification_delivery SET attempts = attempts + 1, next_ns = :until_ns
WHERE notification = :notification AND endpoint = :endpoint
"""
_DELIVERED: Final = """
UPDATE notification_delivery
SET status = 'delivered', last_ns = :now_ns, http_status = :http_status, error = NULL
WHERE notification = :notification AND endpoint = :endpoint
"""
_FAILED: Final = """
UPDATE notification_delivery
SET status = :status, last_ns = :now_ns, http_status = :http_status, error = :error,
  next_ns = :next_ns
WHERE notification = :notification AND endpoint = :endpoint AND status = 'pending'
"""
_RETRY: Final = """
UPDATE notification_delivery SET status = 'pending', next_ns = :now_ns
WHERE notification = :notification AND status <> 'delivered'
"""
_NEXT: Final = """
SELECT min(next_ns) FROM notification_delivery INDEXED BY notification_due
WHERE endpoint = :endpoint AND status = 'pending'
"""
_COLUMNS: Final = "id, event_id, type, created_ns, ended_ns, data"
_LIST: Final = f"""
SELECT {_COLUMNS} FROM notification WHERE id < :before ORDER BY id DESC LIMIT :limit
"""
_LIST_OF_STATUS: Final = f"""
SELECT {_COLUMNS} FROM notification WHERE id IN (
  SELECT DISTINCT notification FROM notification_delivery INDEXED BY notification_status
  WHERE status = :status AND notification < :before ORDER BY notification DESC LIMIT :limit
) ORDER BY id DESC
"""
_BY_ID: Final = """
SELECT event_id FROM notification WHERE event_id BETWEEN :low AND :high ORDER BY event_id
LIMIT :limit
"""
_BY_END: Final = """
SELECT event_id FROM notification
WHERE substr(hex(event_id), -8) = :tail AND hex(event_id) LIKE :ending LIMIT :limit
"""
_ONE: Final = f"SELECT {_COLUMNS} FROM notification WHERE event_id = ?"
_DELIVERIES: Final = """
SELECT delivery.notification, delivery.endpoint, delivery.status, delivery.attempts,
  delivery.next_ns, delivery.last_ns, delivery.http_status, delivery.error
FROM json_each(:numbers) AS wanted
CROSS JOIN notification_delivery AS delivery ON delivery.notification = wanted.value
ORDER BY delivery.notification, delivery.endpoint
"""
_COUNTS: Final = """
SELECT status, count(*) FROM notification_delivery INDEXED BY notification_status GROUP BY status
"""
_OLD: Final = """
DELETE FROM notification WHERE id IN (
  SELECT id FROM notification INDEXED BY notification_created
  WHERE created_ns < :before_ns AND ended_ns IS NOT NULL LIMIT :limit
)
"""


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """An attempt that was claimed. Times are Unix nanoseconds."""

    notification: int
    event_id: str
    type: str
    created_ns: int
    data: dict[str, Any]
    attempt: int  # from 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt ended; `error` empty: it was delivered."""

    http_status: int | None = None
    error: str = ""
    retry_after_ns: int = 0  # what the endpoint asks for


def claim_due(
    connection: apsw.Connection, endpoint: str, *, now_ns: int, limit: int
) -> list[DueDelivery]:
    """Claim attempts that are due, in the caller's transaction; those that wait longest first."""
    wanted = {"endpoint": endpoint, "now_ns": now_ns, "limit": limit}
    rows: list[Any] = connection.execute(_DUE, wanted).fetchall()
    due = [
        DueDelivery(number, event_id.hex(), type, created_ns, json.loads(data), attempt)
        for number, event_id, type, created_ns, data, attempt in rows
    ]
    for one in due:
        place = {"notification": one.notification, "endpoint": endpoint}
        connection.execute(_CLAIM, {**place, "until_ns": now_ns + LEASE_NS})
    return due


def next_due_ns(connection: apsw.Connection, endpoint: str) -> int | None:
    """Return when the next attempt for an endpoint is due; None: none is pending."""
    found: int | None = connection.execute(_NEXT, {"endpoint": endpoint}).get
    return found


def record_attempt(
    connection: apsw.Connection, endpoint: str, due: DueDelivery, ended: Attempt, *, now_ns: int
) -> None:
    """Write how an attempt ended, in the caller's transaction, and when it is tried next.

    The delay doubles from a second to an hour, or is what the endpoint asks for where that is
    longer. After three days a delivery has failed, until somebody has it sent again.
    """
    place = {
        "notification": due.notification,
        "endpoint": endpoint,
        "now_ns": now_ns,
        "http_status": ended.http_status,
    }
    if not ended.error:
        connection.execute(_DELIVERED, place)
        return
    delay_ns = min(_FIRST_DELAY_NS << min(due.attempt - 1, 12), _MOST_DELAY_NS)
    delay_ns = int(delay_ns * random.uniform(0.75, 1.25))  # spreads the attempts
    next_ns = now_ns + max(delay_ns, min(ended.retry_after_ns, _MOST_DELAY_NS))
    gives_up = next_ns > due.created_ns + GIVE_UP_NS
    status = "failed" if gives_up else "pending"
    error = ended.error[:_MOST_ERROR_CHARS]
    connection.execute(_FAILED, {**place, "status": status, "error": error, "next_ns": next_ns})


def retry_now(connection: apsw.Connection, event_id: str, *, now_ns: int) -> Notification:
    """Have what is not delivered of a notification sent again now, in the caller's transaction.

    Raises NotFoundError or AmbiguousIdError.
    """
    found = get_notification(connection, event_id)
    connection.execute(_RETRY, {"notification": found.id, "now_ns": now_ns})
    return get_notification(connection, found.event_id)


def get_notification(connection: apsw.Connection, event_id: str) -> Notification:
    """Return one by its id, or a unique beginning or end of it of 8 digits or more.

    Raises NotFoundError or AmbiguousIdError.
    """
    key = find_row(connection, _BY_ID, "notification", event_id, ending=_BY_END)[0]
    return _notifications(connection, connection.execute(_ONE, (key,)).fetchall())[0]


def list_notifications(
    connection: apsw.Connection,
    *,
    status: DeliveryStatus | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Notification]:
    """Return notifications, the newest first; of a status: those with such a delivery.

    Raises InvalidCursorError.
    """
    before = _ABOVE_ALL
    if cursor is not None:
        (before,) = decode_cursor("notifications", cursor, count=1)
    wanted = {"before": before, "limit": limit + 1, "status": status}
    rows = connection.execute(_LIST if status is None else _LIST_OF_STATUS, wanted).fetchall()
    items = _notifications(connection, rows[:limit])
    more = encode_cursor("notifications", items[-1].id) if len(rows) > limit else None
    return Page(items, more)


def count_deliveries(connection: apsw.Connection) -> dict[str, int]:
    """Return how many deliveries there are of each status; those without any are left out."""
    found: list[Any] = connection.execute(_COUNTS).fetchall()
    return dict(found)


def remove_old(connection: apsw.Connection, *, now_ns: int, limit: int = 500) -> int:
    """Remove notifications that ended 90 days ago, in the caller's transaction; return how many."""
    connection.execute(_OLD, {"before_ns": now_ns - KEEP_NS, "limit": limit})
    return connection.changes()


def _notifications(connection: apsw.Connection, rows: Sequence[Any]) -> list[Notification]:
    numbers = json.dumps([row[0] for row in rows])
    deliveries: dict[int, list[Delivery]] = {}
    of: list[Any] = connection.execute(_DELIVERIES, {"numbers": numbers}).fetchall()
    for number, *delivery in of:
        deliveries.setdefault(number, []).append(Delivery(*delivery))
    return [
        Notification(
            number, event_id.hex(), type, created_ns, ended_ns, json_of(data),
            tuple(deliveries.get(number, ())),
        )
        for number, event_id, type, created_ns, ended_ns, data in rows
    ]  # fmt: skip

"""Notifications and their deliveries, as they are read and as programs get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, get_args

from hansard_store.bodies import Body, Description, body_of
from hansard_store.times import time_text

DeliveryStatus = Literal["pending", "delivered", "failed"]
DELIVERY_STATUSES: Final[tuple[DeliveryStatus, ...]] = get_args(DeliveryStatus)


class NotificationType(StrEnum):
    """What a notification is about; the part before the dot is its subject."""

    APPROVAL_WAITING = "approval.waiting"
    APPROVAL_ESCALATED = "approval.escalated"  # the next approver is asked
    APPROVAL_DECIDED = "approval.decided"
    APPROVAL_EXPIRED = "approval.expired"
    REVIEW_OPENED = "review.opened"
    ERROR_RETURNED = "error_group.returned"
    CHAIN_BROKEN = "chain.broken"
    SCHEMA_ALTERED = "schema.altered"
    DISK_NEARLY_FULL = "disk.nearly_full"
    TEST = "test"


SUBJECTS: Final = tuple(dict.fromkeys(one.partition(".")[0] for one in NotificationType))


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification on its way to one endpoint. Times are Unix nanoseconds."""

    endpoint: str
    status: DeliveryStatus
    attempts: int
    next_ns: int
    last_ns: int | None
    http_status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A state that people are notified of. Times are Unix nanoseconds."""

    id: int
    event_id: str  # 32 hex digits
    type: str  # a NotificationType, unless a newer version wrote it
    created_ns: int
    ended_ns: int | None
    data: Mapping[str, Any]
    deliveries: Sequence[Delivery]


class DeliveryBody(Body):
    endpoint: Annotated[str, Description("host of the endpoint, and a hash of its address")]
    status: DeliveryStatus
    attempts: int
    next_at: Annotated[str | None, Description("null unless it is pending")]
    last_at: str | None
    http_status: int | None
    error: str | None


class NotificationBody(Body):
    id: Annotated[str, Description("what a receiver knows it by: header webhook-id")]
    type: str
    created_at: str
    ended_at: Annotated[str | None, Description("when the state ended; null while it lasts")]
    data: Annotated[dict[str, Any], Description("ids, names and times; never recorded content")]
    deliveries: list[DeliveryBody]


def notification_body(one: Notification) -> NotificationBody:
    """Return a notification as the API and the commands show it."""
    return body_of(
        NotificationBody,
        one,
        id=one.event_id,
        ended_at=time_text(one.ended_ns),
        data=dict(one.data),
        deliveries=[_delivery_body(delivery) for delivery in one.deliveries],
    )


def _delivery_body(one: Delivery) -> DeliveryBody:
    is_pending = one.status == "pending"
    return body_of(
        DeliveryBody,
        one,
        next_at=time_text(one.next_ns) if is_pending else None,
        last_at=time_text(one.last_ns),
    )

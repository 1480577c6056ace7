"""The page of notifications: where they go, what was sent, what was not delivered yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final

import apsw
from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_collector.notifications.messages import path_of, text_of
from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidCursorError
from hansard_store.notifications.deliveries import count_deliveries, list_notifications
from hansard_store.notifications.outbox import Endpoint
from hansard_store.notifications.records import (
    DELIVERY_STATUSES,
    DeliveryStatus,
    Notification,
)
from hansard_web.app.addresses import address
from hansard_web.app.site import Site, SiteDep
from hansard_web.errors import NotificationsOff
from hansard_web.notifications.api import notifications_of
from hansard_web.principals.dependencies import principal_of
from hansard_web.ui.forms import OwnForm

router = APIRouter()

_ROWS: Final = 50
_LABELS: Final[Mapping[str, str]] = {
    "": "All", "pending": "Pending", "delivered": "Delivered", "failed": "Failed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Choice:
    """One part of the switch between statuses."""

    label: str
    count: int | None
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class _Row:
    notification: Notification
    text: str
    href: str
    can_retry: bool


@dataclass(frozen=True, slots=True)
class NotificationsPage:
    """The endpoints, and one page of what was sent to them."""

    endpoints: tuple[Endpoint, ...]
    why_off: str  # "" while notifications are sent
    status: str  # of the deliveries that are shown; "" for all
    choices: tuple[_Choice, ...]
    rows: tuple[_Row, ...]
    first_href: str | None
    more_href: str | None
    is_bare: bool  # none was ever written
    problem: str


@router.get("/notifications")
def notifications(request: Request, site: SiteDep) -> Response:
    return _page(request, site)


@router.post("/notifications/test", dependencies=[OwnForm])
def test(request: Request, site: SiteDep) -> Response:
    """Send a test, and come back to the list."""
    principal = principal_of(request)
    try:
        notifications_of(site).test(by=principal.name if principal is not None else "anybody")
    except NotificationsOff as error:
        return _page(request, site, problem=str(error), status=HTTPStatus.CONFLICT)
    return RedirectResponse("/notifications", HTTPStatus.SEE_OTHER)


@router.post("/notifications/{notification_id}/retry", dependencies=[OwnForm])
def retry(
    request: Request, site: SiteDep, notification_id: str, next: Annotated[str, Form()] = ""
) -> Response:
    """Send one again, and come back to the list."""
    try:
        notifications_of(site).retry(notification_id)
    except NotificationsOff as error:
        return _page(request, site, problem=str(error), status=HTTPStatus.CONFLICT)
    status = next if next in DELIVERY_STATUSES else ""
    return RedirectResponse(address("/notifications", {"status": status}), HTTPStatus.SEE_OTHER)


def _page(
    request: Request, site: Site, *, problem: str = "", status: HTTPStatus = HTTPStatus.OK
) -> Response:
    query = request.query_params
    wanted = next((one for one in DELIVERY_STATUSES if one == query.get("status")), None)
    cursor = query.get("cursor", "")[:200]
    with site.readers.read() as connection:
        try:
            found = list_notifications(
                connection, status=wanted, limit=_ROWS, cursor=cursor or None
            )
        except InvalidCursorError as error:
            found, problem = Page((), None), str(error)
        choices = _choices(connection, wanted)
    notifications = notifications_of(site)
    more = found.next_cursor
    page = NotificationsPage(
        endpoints=notifications.endpoints,
        why_off=notifications.why_off,
        status=wanted or "",
        choices=choices,
        rows=tuple(_row(one) for one in found.items),
        first_href=_href(wanted) if cursor else None,
        more_href=_href(wanted, cursor=more) if more else None,
        is_bare=not found.items and wanted is None and not cursor,
        problem=problem,
    )
    return site.renderer.page(
        request, "notifications.html", here="notifications", page=page, status=status
    )


def _choices(connection: apsw.Connection, wanted: DeliveryStatus | None) -> tuple[_Choice, ...]:
    counts = count_deliveries(connection)
    return tuple(
        _Choice(
            label,
            counts.get(name, 0) if name else None,
            address("/notifications", {"status": name}),
            is_on=name == (wanted or ""),
        )
        for name, label in _LABELS.items()
    )


def _row(one: Notification) -> _Row:
    return _Row(
        notification=one,
        text=text_of(one.type, one.data),
        href=path_of(one.type, one.data),
        can_retry=any(delivery.status != "delivered" for delivery in one.deliveries),
    )


def _href(wanted: DeliveryStatus | None, *, cursor: str = "") -> str:
    return address("/notifications", {"status": wanted or "", "cursor": cursor})

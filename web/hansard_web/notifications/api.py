"""Notifications over HTTP: listed, shown, sent again, tested."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from hansard_store.bodies import Answer, Page
from hansard_store.notifications.deliveries import get_notification, list_notifications
from hansard_store.notifications.records import (
    DELIVERY_STATUSES,
    NotificationBody,
    notification_body,
)
from hansard_web.api.parameters import Cursor, Limit, one_of
from hansard_web.api.queries import read_word
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import Site, SiteDep
from hansard_web.notifications.service import EndpointBody, Notifications
from hansard_web.principals.dependencies import principal_of

router = NounRouter("notifications")


class NotificationAnswer(Answer):
    """One notification as it is now."""

    notification: NotificationBody


class NotificationList(Page):
    """Notifications, the newest first, and where they are sent."""

    items: list[NotificationBody]
    endpoints: list[EndpointBody]


def notifications_of(site: Site) -> Notifications:
    """Return the notifications of a site's store."""
    return Notifications(site.folder, site.settings.webhooks, site.settings.outbound)


@router.get("/v1/notifications", "notifications.api.NotificationList")
def notifications(
    site: SiteDep,
    limit: Limit,
    status: Annotated[
        str | None,
        one_of(*DELIVERY_STATUSES),
        Query(description="with such a delivery: pending, delivered, failed"),
    ] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List notifications, the newest first; `endpoints` is empty while none is sent."""
    wanted = read_word("status", status, DELIVERY_STATUSES)
    with site.readers.read() as connection:
        page = list_notifications(connection, status=wanted, limit=limit, cursor=cursor)
    return page_answer(page, notification_body, endpoints=notifications_of(site).endpoint_bodies())


@router.get("/v1/notifications/{notification_id}", "notifications.api.NotificationAnswer")
def notification(site: SiteDep, notification_id: str) -> ApiResponse:
    """Show one by its id, or by its last eight digits or more, or its first."""
    with site.readers.read() as connection:
        found = get_notification(connection, notification_id)
    return ApiResponse({"notification": notification_body(found)})


@router.post("/v1/notifications/test", "notifications.api.NotificationAnswer", status=202)
def test(request: Request, site: SiteDep) -> ApiResponse:
    """Send a notification of type `test` to every endpoint; 409 while none is sent."""
    principal = principal_of(request)
    by = principal.name if principal is not None else "anybody"
    sent = notifications_of(site).test(by=by)
    return ApiResponse({"notification": notification_body(sent)}, status_code=202)


@router.post(
    "/v1/notifications/{notification_id}/retry",
    "notifications.api.NotificationAnswer",
    status=202,
)
def retry(site: SiteDep, notification_id: str) -> ApiResponse:
    """Send what is not delivered again now, also what has failed; 409 while none is sent."""
    sent = notifications_of(site).retry(notification_id)
    return ApiResponse({"notification": notification_body(sent)}, status_code=202)

"""The deliveries of notifications as a file: a row for each, and one for a notification without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hansard_store.database.cursors import Page
from hansard_store.notifications.deliveries import list_notifications
from hansard_store.notifications.records import (
    DELIVERY_STATUSES,
    Notification,
    notification_body,
)
from hansard_web.api.queries import read_word
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    status = read_word("status", filters.get("status"), DELIVERY_STATUSES)

    def page(cursor: str | None) -> Page[Notification]:
        with source.readers.read() as connection:
            return list_notifications(connection, status=status, limit=AT_ONCE, cursor=cursor)

    for one in all_pages(page):
        body: dict[str, Any] = dict(notification_body(one))
        deliveries: list[dict[str, Any]] = body.pop("deliveries")
        for delivery in deliveries or [{}]:
            if status is None or delivery.get("status") == status:
                yield {**body, "delivery": delivery}


TABLE: Final = Table(
    name="notifications",
    columns=(
        "id", "type", "created_at", "ended_at", "delivery.endpoint", "delivery.status",
        "delivery.attempts", "delivery.last_at", "delivery.next_at", "delivery.http_status",
        "delivery.error",
    ),
    filters=("status",),
    rows=_rows,
)  # fmt: skip

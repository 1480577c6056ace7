"""`hansard notifications`: what was sent to webhooks, sending it again, the signing secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hansard_collector.notifications.messages import signing_secret, text_of
from hansard_store.ids import short_id
from hansard_store.notifications.deliveries import get_notification, list_notifications
from hansard_store.notifications.records import (
    DELIVERY_STATUSES,
    Notification,
    NotificationBody,
    notification_body,
)
from hansard_web.api.queries import limit_of
from hansard_web.cli.base import (
    CommandGroup,
    json_option,
    page_options,
    print_answer,
    print_page,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import find_store, reading, use_store
from hansard_web.cli.tables import Column, print_facts, print_records
from hansard_web.notifications.service import Notifications
from hansard_web.ui import format as fmt

_sending = setting_options("data", "config", "outbound", "notify")


@click.group(cls=CommandGroup)
def notifications() -> None:
    """Notifications: list, show, retry, test, the signing secret."""


@notifications.command("list")
@setting_options("data")
@click.option(
    "--status", type=click.Choice(DELIVERY_STATUSES), help="Only those with such a delivery."
)
@page_options
def list_(*, data: str | None, status: Any, limit: str, cursor: str | None, as_json: bool) -> None:
    """List notifications, the newest first.

    Example: hansard notifications list --status failed
    """
    with reading(data) as connection:
        page = list_notifications(connection, status=status, limit=limit_of(limit), cursor=cursor)
    print_page(page, notification_body, _print_list, as_json=as_json)


def _print_list(items: Sequence[Notification]) -> None:
    print_records(
        items,
        {
            Column("NOTIFICATION"): lambda one: short_id(one.event_id),
            Column("CREATED (UTC)"): lambda one: fmt.day_time(one.created_ns),
            Column("TYPE"): lambda one: one.type,
            Column("TEXT", may_cut=True): lambda one: text_of(one.type, one.data),
            Column("DELIVERIES", may_cut=True): lambda one: ", ".join(
                f"{delivery.endpoint} {delivery.status}" for delivery in one.deliveries
            ),
        },
    )


@notifications.command()
@click.argument("notification_id")
@setting_options("data")
@json_option
def show(*, notification_id: str, data: str | None, as_json: bool) -> None:
    """Show a notification and its deliveries.

    Example: hansard notifications show 1f8b2c3d
    """
    with reading(data) as connection:
        found = get_notification(connection, notification_id)
    _print(found, as_json=as_json)


@notifications.command()
@click.argument("notification_id")
@_sending
@json_option
def retry(*, notification_id: str, data: str | None, as_json: bool, **settings: Any) -> None:
    """Send what is not delivered again now; the running server does it.

    Example: hansard notifications retry 1f8b2c3d
    """
    sent = _notifications(data, settings).retry(notification_id)
    _print(sent, as_json=as_json)


@notifications.command()
@_sending
@json_option
def test(*, data: str | None, as_json: bool, **settings: Any) -> None:
    """Send a notification of type `test` to every endpoint; the running server does it.

    Example: hansard notifications test --outbound on --notify https://chat.example.com/hooks/1
    """
    sent = _notifications(data, settings).test(by=user_name())
    _print(sent, as_json=as_json)


@notifications.command()
@setting_options("data")
@json_option
def secret(*, data: str | None, as_json: bool) -> None:
    """Print the secret that notifications are signed with, for their receivers.

    Example: hansard notifications secret
    """
    found = signing_secret(find_store(data).key())
    print_answer({"secret": found}, lambda body: click.echo(body["secret"]), as_json=as_json)


def _notifications(data: str | None, settings: Any) -> Notifications:
    config = read_config(data=data, **settings)
    return Notifications(use_store(data), config.notify, config.outbound == "on")


def _print(found: Notification, *, as_json: bool) -> None:
    body = {"notification": notification_body(found)}
    print_answer(body, lambda one: _print_one(one["notification"], found), as_json=as_json)


def _print_one(body: NotificationBody, found: Notification) -> None:
    print_facts(
        (
            ("notification", body["id"]),
            ("type", body["type"]),
            ("created", body["created_at"]),
            ("ended", body["ended_at"] or "–"),
            ("text", text_of(found.type, found.data)),
            *((f"to {one['endpoint']}", _delivery_text(one)) for one in body["deliveries"]),
        )
    )


def _delivery_text(one: Any) -> str:
    attempts = fmt.plural(one["attempts"], "attempt")
    error = f": {one['error']}" if one["error"] else ""
    following = f", next {one['next_at']}" if one["next_at"] else ""
    return f"{one['status']}, {attempts}{following}{error}"

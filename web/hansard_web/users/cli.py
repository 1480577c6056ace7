"""`hansard users`: list, show."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hansard_store.runs.users import (
    USER_SORTS,
    UserFilter,
    UserItem,
    get_user,
    list_users,
    user_conversations,
    user_days,
)
from hansard_web.api.queries import limit_of, window_of
from hansard_web.cli.base import CommandGroup, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_facts, print_table
from hansard_web.runs.cli import cost_text, tokens_text
from hansard_web.ui import format as fmt
from hansard_web.users.bodies import day_body, user_body


@click.group(cls=CommandGroup)
def users() -> None:
    """Users: list, show."""


@users.command("list")
@setting_options("data")
@click.option("--prefix", default="", help="Ids that begin with this.")
@click.option("--since", help="Runs started at or after: 2026-01-31, or with a time.")
@click.option("--until", help="Runs started before.")
@click.option("--sort", default="-last_seen", show_default=True,
              help=f"{', '.join(USER_SORTS)}; - for falling.")  # fmt: skip
@click.option("--limit", default="50", show_default=True, help="1 to 500.")
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(
    *,
    data: str | None,
    prefix: str,
    since: str | None,
    until: str | None,
    sort: str,
    limit: str,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List the users that runs name, with what they used and how their runs ended.

    Example: hansard users list --sort -cost_usd --since 2026-01-01
    """
    window = window_of(since, until)
    filters = UserFilter(window.since_ns, window.until_ns, prefix)
    with reading(data) as connection:
        page = list_users(connection, filters, sort=sort, limit=limit_of(limit), cursor=cursor)
    if as_json:
        items = [user_body(item) for item in page.items]
        print_json({"items": items, "next_cursor": page.next_cursor})
    else:
        _print_users(page.items)
    if page.next_cursor and not as_json:
        click.echo(f"more: --cursor {page.next_cursor}", err=True)


@users.command()
@click.argument("user_id")
@setting_options("data")
@click.option("--since", help="Runs started at or after: 2026-01-31, or with a time.")
@click.option("--until", help="Runs started before.")
@json_option
def show(
    *, user_id: str, data: str | None, since: str | None, until: str | None, as_json: bool
) -> None:
    """Show a user: sums, days and conversations.

    Example: hansard users show ada@example.com
    """
    window = window_of(since, until)
    filters = UserFilter(window.since_ns, window.until_ns)
    with reading(data) as connection:
        found = get_user(connection, user_id, filters)
        days = user_days(connection, user_id, filters)
        talks = user_conversations(connection, user_id, filters)
    if as_json:
        more = {"days": [day_body(day) for day in days], "conversation_ids": talks}
        print_json({**user_body(found), **more})
        return
    scores = ", ".join(f"{one.name} {one.value:g} ({one.count:,})" for one in found.scores)
    print_facts(
        (
            ("user", found.user_id),
            ("runs", fmt.count(found.runs)),
            ("failed", _failed(found)),
            ("model calls", fmt.count(found.model_calls)),
            ("tokens", tokens_text(found.tokens)),
            ("cost", cost_text(found.cost_usd_nano)),
            ("scores", scores),
            ("agents", ", ".join(found.agents)),
            ("conversations", fmt.count(found.conversations)),
            ("first seen", fmt.iso_time(found.first_seen_ns)),
            ("last seen", fmt.iso_time(found.last_seen_ns)),
        )
    )
    click.echo()
    print_table(
        (
            Column("DAY (UTC)"),
            *(Column(name, is_figure=True) for name in ("RUNS", "FAILED", "TOKENS", "COST")),
        ),
        (
            (day.day, fmt.count(day.runs), fmt.count(day.failed_runs), fmt.tokens(day.tokens),
             cost_text(day.cost_usd_nano))
            for day in days
        ),
    )  # fmt: skip


def _failed(user: UserItem) -> str:
    share = fmt.percent(user.failed_runs, user.runs)
    return f"{fmt.count(user.failed_runs)} ({share})" if user.failed_runs else "0"


def _print_users(items: Sequence[UserItem]) -> None:
    figures = ("RUNS", "FAILED", "TOKENS", "COST", "SCORE")
    print_table(
        (
            Column("USER", may_cut=True),
            *(Column(name, is_figure=True) for name in figures),
            Column("LAST SEEN (UTC)"),
        ),
        (
            (
                user.user_id,
                fmt.count(user.runs),
                _failed(user),
                tokens_text(user.tokens),
                cost_text(user.cost_usd_nano),
                "–" if user.score is None else f"{user.score:.3g}",
                fmt.day_time(user.last_seen_ns),
            )
            for user in items
        ),
    )

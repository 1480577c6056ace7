"""`hansard errors`: errors grouped by what they have in common; watch, note and close a group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click
from rich.text import Text

from hansard_compiler.calls import Json
from hansard_compiler.models.error_groups import ErrorDecision
from hansard_store.database.cursors import Page
from hansard_store.error_groups import due
from hansard_store.error_groups.json import ErrorGroupBody, error_detail_json, error_json
from hansard_store.error_groups.queries import (
    SHOWN,
    SORTS,
    Wanted,
    error_words,
    get_error,
    list_errors,
)
from hansard_store.error_groups.service import ErrorGroupService
from hansard_store.principals.model import person_text
from hansard_web.api.queries import run_filter_of
from hansard_web.cli.base import (
    CommandGroup,
    by_option,
    json_option,
    print_answer,
    print_json,
    print_page,
    setting_options,
)
from hansard_web.cli.store import opened_service, reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.error_groups.labels import CHANGES, NO_MESSAGE, STATES
from hansard_web.ui import format as fmt


@click.group(cls=CommandGroup)
def errors() -> None:
    """Errors by cause: list, show, watch, unwatch, note, close, open."""


@errors.command("list")
@setting_options("data")
@click.option(
    "--state", type=click.Choice(SHOWN), default="open", show_default=True,
    help="open: also those that opened again.",
)  # fmt: skip
@click.option("--sort", type=click.Choice(SORTS), default="-count", show_default=True)
@click.option("--q", help="Words of the message.")
@click.option("--agent", multiple=True, help="Of runs of an agent.")
@click.option("--model", multiple=True, help="Of runs that used a model.")
@click.option("--tool", multiple=True, help="Of runs that ran a tool.")
@click.option("--service", multiple=True, help="Of runs of a service.name.")
@click.option("--user", help="Of runs of a user id.")
@click.option("--tag", multiple=True, help="Of runs with a tag.")
@click.option("--since", help="Failed at or after: 2026-01-31, or with a time.")
@click.option("--until", help="Failed before.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(
    *, data: str | None, state: Any, sort: Any, limit: int, cursor: str | None,
    as_json: bool, **filters: Any,
) -> None:  # fmt: skip
    """List groups of errors, the most frequent first.

    Example: hansard errors list --agent mender --since 2026-01-31
    """
    wanted = Wanted.of(run_filter_of(filters), shown=state, sort=sort)
    with reading(data) as connection:
        page, _ = list_errors(
            connection,
            wanted,
            now_ns=time.time_ns(),
            limit=limit,
            cursor=cursor,
        )
        is_due = due.is_due(connection)
    if is_due:
        click.echo("not complete: a server still adds errors of before the upgrade", err=True)
    items = [error_json(one) for one in page.items]
    if not items and not as_json:
        click.echo("No errors match.", err=True)
        return
    print_page(Page(items, page.next_cursor), dict, _print_list, as_json=as_json)


def _print_list(items: Sequence[ErrorGroupBody]) -> None:
    print_records(
        items,
        {
            Column("ERROR"): lambda one: one["error_id"][:8],
            Column("STATE"): _state,
            Column("WHERE", may_cut=True): lambda one: _subject(one),
            Column("TIMES", is_figure=True): lambda one: f"{one['count']:,}",
            Column("RUNS", is_figure=True): lambda one: f"{one['run_count']:,}",
            Column("LAST (UTC)"): lambda one: fmt.day_time(int(one["last_ns"])),
            Column("MESSAGE", may_cut=True): _message,
        },
    )


def _subject(one: Any) -> str:
    return f"{one['subject']['kind']} {one['subject']['name']}"


def _message(one: Any) -> str:
    return error_words(one["error_type"], one["message"]) or NO_MESSAGE


def _state(one: ErrorGroupBody) -> Text:
    word = STATES[one["state"]][1] + (", watched" if one["watched"] else "")
    return Text(word, style="yellow" if one["state"] == "reopened" else "")


@errors.command()
@click.argument("error_id")
@setting_options("data")
@json_option
def show(*, error_id: str, data: str | None, as_json: bool) -> None:
    """Show a group: its message, how often, where, and what was decided.

    Example: hansard errors show 1f8b2c3d
    """
    with reading(data) as connection:
        found = get_error(connection, error_id, now_ns=time.time_ns())
        body = {"error": error_detail_json(connection, found)}
    print_answer(body, _print, as_json=as_json)


def _print(body: Json) -> None:
    one = body["error"]
    print_lines([_message(one), ""])
    print_facts(
        (
            ("error", one["error_id"]),
            ("state", STATES[one["state"]][1] + (", watched" if one["watched"] else "")),
            ("where", _subject(one)),
            ("times", f"{one['count']:,} in {fmt.plural(one['run_count'], 'run')}"),
            ("first", f"{fmt.day_time(int(one['first_ns']))} UTC" if one["count"] else "–"),
            ("last", f"{fmt.day_time(int(one['last_ns']))} UTC" if one["count"] else "–"),
            ("agents", ", ".join(one["agents"])),
            ("models", ", ".join(one["models"])),
            ("review", one["task_id"] or ""),
        )
    )
    if one["history"]:
        print_lines(["", "history, the newest first:"])
        print_records(
            one["history"],
            {
                Column("WHEN (UTC)"): lambda change: fmt.day_time(int(change["ns"])),
                Column("WHAT"): lambda change: CHANGES[change["kind"]][1],
                Column("WHO"): lambda change: person_text(change["by"], change["method"]),
                Column("NOTE", may_cut=True): lambda change: change["note"] or "",
            },
        )
    print_lines(["", "the newest:"])
    print_records(
        one["newest"],
        {
            Column("WHEN (UTC)"): lambda found: fmt.day_time(int(found["ns"])),
            Column("RUN"): lambda found: found["run_id"][:8],
            Column("AGENT", may_cut=True): lambda found: found["agent_name"] or "",
            Column("STEP"): lambda found: found["step_id"],
        },
    )


def _changing(function: Any) -> Any:
    """Add what every change takes."""
    for add in (
        json_option,
        setting_options("data", "retention"),
        by_option("Who does it. Default: the user of this machine."),
        click.argument("error_id"),
    ):
        function = add(function)
    return function


@errors.command()
@_changing
def watch(**options: Any) -> None:
    """List a group under "Watched".

    Example: hansard errors watch 1f8b2c3d
    """
    _change("watch", None, **options)


@errors.command()
@_changing
def unwatch(**options: Any) -> None:
    """List a group under "Watched" no longer.

    Example: hansard errors unwatch 1f8b2c3d
    """
    _change("unwatch", None, **options)


@errors.command()
@_changing
@click.argument("text")
def note(*, text: str, **options: Any) -> None:
    """Add a note to a group.

    Example: hansard errors note 1f8b2c3d "the provider throttles us after 5 pm"
    """
    _change("note", text, **options)


@errors.command()
@_changing
@click.option("--note", "text", help="Why; stored with the change.")
def close(*, text: str | None, **options: Any) -> None:
    """Close a group. It opens again by itself when it happens again.

    Example: hansard errors close 1f8b2c3d --note "fixed in 1.2"
    """
    _change("close", text, **options)


@errors.command("open")
@_changing
def open_(**options: Any) -> None:
    """Open a closed group.

    Example: hansard errors open 1f8b2c3d
    """
    _change("open", None, **options)


def _change(
    decision: ErrorDecision, note: str | None, *, error_id: str, by: str, data: str | None,
    retention: str | None, as_json: bool,
) -> None:  # fmt: skip
    fields = {"decision": decision, "note": note, "by": by}
    with opened_service(ErrorGroupService, data, retention) as service:
        made = service.change_json(error_id, fields)
    if not as_json:
        click.echo(f"{CHANGES[decision][1]} {made.error_id}")
        return
    with reading(data) as connection:
        print_json({"error": error_detail_json(connection, made)})

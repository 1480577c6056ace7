"""`hansard views`: saved views of the run list."""

from __future__ import annotations

import click

from hansard_store.runs.saved_views import SavedViews, list_views, view_body
from hansard_web.cli.base import CommandGroup, by_option, json_option, print_answer, setting_options
from hansard_web.cli.store import opened_service, reading
from hansard_web.cli.tables import Column, print_records
from hansard_web.ui import format as fmt
from hansard_web.views.state import parts_of


@click.group(cls=CommandGroup, name="views")
def views_() -> None:
    """Saved views of the run list: list, save, rename, delete."""


@views_.command("list")
@setting_options("data")
@json_option
def list_(*, data: str | None, as_json: bool) -> None:
    """List the saved views, by name.

    Example: hansard views list
    """
    with reading(data) as connection:
        found = list_views(connection)
    columns = {
        Column("NAME"): lambda one: one.name,
        Column("QUERY", may_cut=True): lambda one: one.query,
        Column("SORT"): lambda one: one.sort,
        Column("COLUMNS", may_cut=True): lambda one: one.columns,
        Column("BY"): lambda one: one.updated_by,
        Column("CHANGED (UTC)"): lambda one: fmt.day_time(one.updated_ns),
    }
    body = {"items": [view_body(view) for view in found]}
    print_answer(body, lambda _: print_records(found, columns), as_json=as_json)


@views_.command()
@click.argument("name")
@click.argument("query", default="")
@click.option("--sort", default="", help="As in `hansard runs list`.")
@click.option("--columns", default="", help="Joined by commas; the usual ones unless given.")
@setting_options("data")
@by_option()
@json_option
def save(
    *, name: str, query: str, sort: str, columns: str, data: str | None, by: str, as_json: bool
) -> None:
    """Save a view; QUERY as in the address of the list: status=error&agent=mender.

    Example: hansard views save failures "status=error&since=24h" --sort=-errors
    """
    parts = parts_of(query, sort=sort, columns=columns)
    with opened_service(SavedViews, data) as views:
        made = views.save(name, **parts._asdict(), by=by)
    body = {"view": view_body(made)}
    print_answer(body, lambda _: click.echo(f"saved {made.name}"), as_json=as_json)


@views_.command()
@click.argument("name")
@click.argument("to")
@setting_options("data")
@by_option()
@json_option
def rename(*, name: str, to: str, data: str | None, by: str, as_json: bool) -> None:
    """Give a view another name.

    Example: hansard views rename failures "failures today"
    """
    with opened_service(SavedViews, data) as views:
        made = views.rename(name, to, by=by)
    body = {"view": view_body(made)}
    print_answer(body, lambda _: click.echo(f"renamed to {made.name}"), as_json=as_json)


@views_.command()
@click.argument("name")
@setting_options("data")
@json_option
def delete(*, name: str, data: str | None, as_json: bool) -> None:
    """Delete a view.

    Example: hansard views delete failures
    """
    with opened_service(SavedViews, data) as views:
        found = views.delete(name)
    body = {"view": view_body(found)}
    print_answer(body, lambda _: click.echo(f"deleted {found.name}"), as_json=as_json)

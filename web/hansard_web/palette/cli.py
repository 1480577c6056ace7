"""`hansard find`: pages, runs, steps, users, conversations and settings by name."""

from __future__ import annotations

import os

import click

from hansard_store.runs.queries import find_trace_id
from hansard_web.app.config import load_config
from hansard_web.cli.base import Command, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_records
from hansard_web.palette.results import find_names


@click.command(cls=Command)
@click.argument("query")
@click.option("--run", default="", help="A run whose steps are looked through, or its beginning.")
@setting_options("data")
@json_option
def find(*, query: str, run: str, data: str | None, as_json: bool) -> None:
    """Find runs, steps, users, conversations, views, settings and pages by name.

    Example: hansard find refund
    """
    with reading(data) as connection:
        run_id = find_trace_id(connection, run).hex() if run else ""
        found = find_names(
            connection,
            query,
            run_id=run_id,
            values=load_config({"data": data}, os.environ).values(),
        )
    if as_json:
        print_json({"items": found})
        return
    print_records(
        found,
        {
            Column("KIND"): lambda one: one["kind"],
            Column("NAME", may_cut=True): lambda one: one["label"],
            Column("DETAIL", may_cut=True): lambda one: one["detail"],
            Column("PAGE"): lambda one: one["href"],
        },
    )

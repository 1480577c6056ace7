"""`hansard usage`: tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import click

from hansard_store.runs.status import TokenSums
from hansard_store.runs.usage import USAGE_GROUPS, UsageRow, list_usage
from hansard_web.api.bodies import usage_body
from hansard_web.api.queries import window_of
from hansard_web.cli.base import Command, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_table
from hansard_web.runs.cli import cost_text
from hansard_web.ui import format as fmt


@click.command(cls=Command)
@setting_options("data")
@click.option("--by", type=click.Choice(USAGE_GROUPS), default="day", show_default=True,
              help="What is summed.")  # fmt: skip
@click.option("--since", help="Runs started at or after: 2026-01-31, or with a time.")
@click.option("--until", help="Runs started before.")
@json_option
def usage(
    *, data: str | None, by: str, since: str | None, until: str | None, as_json: bool
) -> None:
    """Sum tokens and money.

    Days are of UTC. A call counts once, whatever spans repeat its tokens.

    Example: hansard usage --by model --since 2026-01-01
    """
    window = window_of(since, until)
    with reading(data) as connection:
        rows = list_usage(connection, by, since_ns=window.since_ns, until_ns=window.until_ns)
    if as_json:
        print_json({"by": by, "items": [usage_body(row) for row in rows]})
        return
    _print_usage(by, rows)


def _print_usage(by: str, rows: Sequence[UsageRow]) -> None:
    names = ("INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "REASONING")
    print_table(
        (
            Column(by.upper(), may_cut=True),
            Column("RUNS", is_figure=True),
            Column("CALLS", is_figure=True),
            *(Column(name, is_figure=True) for name in names),
            Column("COST", is_figure=True),
        ),
        (
            (
                row.key or "(none)",
                fmt.count(row.runs),
                fmt.count(row.model_calls),
                *(
                    "–" if one is None else fmt.count(one)
                    for one in astuple(row.tokens or TokenSums())
                ),
                cost_text(row.cost_usd_nano),
            )
            for row in rows
        ),
    )

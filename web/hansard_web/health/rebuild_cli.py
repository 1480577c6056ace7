"""`hansard rebuild`: derived rows made again."""

from __future__ import annotations

import dataclasses
from functools import partial

import click

from hansard_collector.derivation.rebuild import rebuild as rebuild_store
from hansard_web.cli.base import Command, json_option, print_json, setting_options
from hansard_web.cli.progress import progress_of
from hansard_web.cli.store import find_store, open_store
from hansard_web.ui import format as fmt


@click.command(cls=Command)
@setting_options("data")
@click.option("--only-old", is_flag=True, help="Only what an older version derived.")
@json_option
def rebuild(*, data: str | None, only_old: bool, as_json: bool) -> None:
    """Derive everything again from what was received.

    For stores of an older version, whose spans a newer one reads better. A server may go on
    receiving meanwhile; interrupted, the next rebuild goes on from there.

    Example: hansard rebuild --only-old
    """
    folder = find_store(data)
    open_store(folder).close()
    with progress_of() as tell:
        rebuilt = rebuild_store(folder, only_old=only_old, progress=partial(tell, "runs"))
    if as_json:
        print_json(dataclasses.asdict(rebuilt))
    else:
        click.echo(f"{fmt.plural(rebuilt.runs, 'run')}, {rebuilt.spans:,} spans derived again")

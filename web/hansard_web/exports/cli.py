"""`hansard table`: a list as a file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from hansard_web.app.readers import Readers
from hansard_web.approvals.cli import SETTINGS, accounting
from hansard_web.cli.base import Command, Misused, json_option, setting_options, write_bytes
from hansard_web.cli.store import use_store
from hansard_web.exports.formats import FORMATS, write_rows
from hansard_web.exports.registry import NAMES, find_table
from hansard_web.exports.table import Source


@click.command(cls=Command)
@click.argument("name", type=click.Choice(NAMES))
@click.argument("filters", nargs=-1, metavar="[FILTER=VALUE]...")
@click.option(
    "--format", type=click.Choice(FORMATS), default="csv", show_default=True, help="Form."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file, not stdout."
)
@setting_options(*SETTINGS)
@json_option
def table(
    *,
    name: str,
    filters: Sequence[str],
    format: str,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write a list as CSV, JSON, Markdown or HTML.

    Filters are those of the list's route in the API.

    Example: hansard table receipts reason=over_budget --format markdown
    """
    found = find_table(name)
    pairs: dict[str, str] = {}
    for key, value in map(_pair, filters):
        pairs[key] = f"{pairs[key]}\n{value}" if key in pairs else value
    folder = use_store(options.get("data"))
    with accounting(options) as approvals, closing(Readers(folder)) as readers:
        rows = found.read(Source(folder, readers, approvals), pairs)
        form = "json" if as_json else format
        write_bytes(write_rows(form, found.name, found.columns, rows), output)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misused(f"{text!r} is no filter; write NAME=VALUE")
    return name, value

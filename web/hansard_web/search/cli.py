"""`hansard search`: what was said, in any run."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click
from rich.text import Text

from hansard_store.runs.filters import parse_kind
from hansard_store.search.full_text import SearchHit, search_texts
from hansard_web.api.bodies import hit_body
from hansard_web.api.queries import limit_of
from hansard_web.cli.base import (
    Command,
    json_option,
    print_page,
    setting_options,
)
from hansard_web.cli.store import reading
from hansard_web.cli.tables import plain, print_lines


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@setting_options("data")
@click.option("--kind", help="Only in runs of this kind: agent, other or any.")
@click.option("--limit", default="20", show_default=True, help="1 to 500.")
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def search(
    *,
    query: tuple[str, ...],
    data: str | None,
    kind: str | None,
    limit: str,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Search messages, tool calls, errors and logs of all runs.

    All words must be there; also "a phrase", prefix* and -word (after --).

    Example: hansard search refund '"within 30 days"'
    """
    with reading(data) as connection:
        page = search_texts(
            connection,
            " ".join(query),
            kind=parse_kind(kind),
            now_ns=time.time_ns(),
            limit=limit_of(limit),
            cursor=cursor,
        )
    print_page(page, hit_body, _print, as_json=as_json)


def _print(hits: Sequence[SearchHit]) -> None:
    for hit in hits:
        print_lines(_hit_lines(hit))


def _hit_lines(hit: SearchHit) -> tuple[Text, Text]:
    """Return two lines: where it was said, and the words around what was found."""
    heading = f"{hit.step.step_id}  {hit.step.name}  {hit.role or hit.field}"
    if hit.uses > 1:
        heading += f"  sent {hit.uses} times"
    snippet = plain(hit.snippet.text.replace("\n", " "))
    for start, end in hit.snippet.highlights:
        snippet.stylize("bold yellow", start, end)
    return plain(heading), Text("  ") + snippet

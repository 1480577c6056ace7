"""`hansard conversations`: list, show, messages."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from hansard_store.runs.conversations import (
    CONVERSATION_SORTS,
    ConversationFilter,
    ConversationItem,
    get_conversation,
    list_conversations,
)
from hansard_store.runs.filters import RunFilter, RunSort
from hansard_store.runs.queries import list_runs
from hansard_store.transcripts.queries import find_transcript
from hansard_web.api.queries import limit_of, read_times
from hansard_web.cli.base import CommandGroup, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_facts, print_table
from hansard_web.conversations.bodies import (
    ConversationMessage,
    MessagesReader,
    conversation_body,
)
from hansard_web.conversations.messages import conversation_calls
from hansard_web.runs.cli import cost_text, print_runs, tokens_text
from hansard_web.ui import format as fmt

_MOST_RUNS = 500
_LONGEST_TEXT = 2_000


@click.group(cls=CommandGroup)
def conversations() -> None:
    """Conversations: list, show, messages."""


@conversations.command("list")
@setting_options("data")
@click.option("--user", help="User id of one of its runs.")
@click.option("--agent", help="Agent of one of its runs.")
@click.option("--since", help="A run started at or after: 2026-01-31, or with a time.")
@click.option("--until", help="A run started before.")
@click.option("--sort", default="-last_run", show_default=True,
              help=f"{', '.join(CONVERSATION_SORTS)}; - for falling.")  # fmt: skip
@click.option("--limit", default="50", show_default=True, help="1 to 500.")
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(
    *,
    data: str | None,
    user: str | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    sort: str,
    limit: str,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List conversations, the one with the newest run first.

    Example: hansard conversations list --user ada --sort -cost_usd
    """
    filters = ConversationFilter(user or None, agent or None, *read_times(since, until))
    with reading(data) as connection:
        page = list_conversations(
            connection, filters, sort=sort, limit=limit_of(limit), cursor=cursor
        )
    if as_json:
        items = [conversation_body(item) for item in page.items]
        print_json({"items": items, "next_cursor": page.next_cursor})
    else:
        _print_conversations(page.items)
    if page.next_cursor and not as_json:
        click.echo(f"more: --cursor {page.next_cursor}", err=True)


@conversations.command()
@click.argument("conversation_id")
@setting_options("data")
@json_option
def show(*, conversation_id: str, data: str | None, as_json: bool) -> None:
    """Show a conversation and its runs, the first run first.

    Example: hansard conversations show support-42
    """
    order = RunSort("started_at", descending=False)
    own = RunFilter(conversation=conversation_id)
    with reading(data) as connection:
        found = get_conversation(connection, conversation_id)
        stored = find_transcript(connection, conversation_id)
        runs = list_runs(connection, own, now_ns=time.time_ns(), sort=order, limit=_MOST_RUNS)
    transcript_id = str(stored.conversation.id) if stored else None
    if as_json:
        print_json({**conversation_body(found), "transcript_id": transcript_id})
        return
    print_facts(
        (
            ("conversation", found.conversation_id),
            ("user", found.user_id or ""),
            ("agents", ", ".join(found.agents)),
            ("runs", fmt.count(found.runs)),
            ("failed runs", fmt.count(found.failed_runs)),
            ("model calls", fmt.count(found.model_calls)),
            ("tool calls", fmt.count(found.tool_calls)),
            ("tokens", tokens_text(found.tokens)),
            ("cost", cost_text(found.cost_usd_nano)),
            ("started", fmt.iso_time(found.started_ns)),
            ("ended", fmt.iso_time(found.ended_ns)),
            ("transcript", transcript_id or ""),
            ("first input", fmt.shorten(found.first_input or "", 200)),
            ("last output", fmt.shorten(found.last_output or "", 200)),
        )
    )
    click.echo()
    print_runs(runs.items)
    if runs.next_cursor:
        click.echo(f"the first {_MOST_RUNS} of {found.runs:,} runs", err=True)


@conversations.command()
@click.argument("conversation_id")
@setting_options("data")
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def messages(*, conversation_id: str, data: str | None, cursor: str | None, as_json: bool) -> None:
    """Read the messages of a conversation, each once; up to 10 runs and 40 model calls at once.

    Example: hansard conversations messages support-42
    """
    with reading(data) as connection:
        get_conversation(connection, conversation_id)
        page = conversation_calls(connection, conversation_id, now_ns=time.time_ns(), cursor=cursor)
        runs = list(map(MessagesReader(connection).run_body, page.items))
    if as_json:
        print_json({"items": runs, "next_cursor": page.next_cursor})
        return
    for run in runs:
        click.echo(f"run {run['run_id']}")
        for one in run["messages"]:
            print_facts(((one["role"], fmt.shorten(_text(one), _LONGEST_TEXT)),))
        if run["more_calls"]:
            click.echo(f"{run['more_calls']:,} more model calls: hansard runs show {run['run_id']}")
    if page.next_cursor:
        click.echo(f"more: --cursor {page.next_cursor}", err=True)


def _text(message: ConversationMessage) -> str:
    """Return the text of a message; its other parts by their type."""
    if message["parts"] is None:
        return f"not shown; hansard steps show {message['step_id']}"
    return " ".join(str(part.get("text") or f"({part['type']})") for part in message["parts"])


def _print_conversations(items: Sequence[ConversationItem]) -> None:
    names = ("RUNS", "CALLS", "ERRORS", "TOKENS", "COST")
    print_table(
        (
            Column("CONVERSATION", may_cut=True),
            Column("FIRST INPUT", may_cut=True),
            Column("USER", may_cut=True),
            *(Column(name, is_figure=True) for name in names),
            Column("LAST RUN (UTC)"),
        ),
        (
            (
                item.conversation_id,
                fmt.shorten(item.first_input or "", 60),
                fmt.shorten(item.user_id or "", 40),
                fmt.count(item.runs),
                fmt.count(item.model_calls),
                fmt.count(item.error_count),
                tokens_text(item.tokens),
                cost_text(item.cost_usd_nano),
                fmt.day_time(item.ended_ns),
            )
            for item in items
        ),
    )

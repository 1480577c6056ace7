"""`hansard transcripts`: what was said in conversations, read and kept without a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.ids import LogId
from hansard_compiler.transcripts.reads import active, check_summary
from hansard_store.transcripts.queries import list_transcripts
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.cli.base import Group, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_lines, print_table
from hansard_web.cli.user import user_name
from hansard_web.transcripts.cli_store import find_log, of_log, opened, transcripts_of
from hansard_web.transcripts.json import (
    check_body,
    fold_body,
    handoff_body,
    head_body,
    item_body,
    message_bodies,
)
from hansard_web.transcripts.upkeep_cli import UPKEEP
from hansard_web.ui import format as fmt


@click.group(cls=Group)
def transcripts() -> None:
    """Transcripts: what was said, folds, sizes, archives, and whether every row decodes."""


@transcripts.command("list")
@setting_options("data")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500))
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(*, data: str | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """List transcripts, the conversation that began last first.

    Example: hansard transcripts list
    """
    with reading(data) as connection:
        page = list_transcripts(connection, limit=limit, cursor=cursor)
    items = [item_body(one) for one in page.items]
    if as_json:
        print_json({"items": items, "next_cursor": page.next_cursor})
        return
    columns = [
        Column("conversation"), Column("messages", is_figure=True), Column("folds", is_figure=True),
        Column("bytes", is_figure=True), Column("last"), Column("began with", may_cut=True),
    ]  # fmt: skip
    rows = [
        (one["conversation"], str(one["messages"]), str(one["folds"]), f"{one['size_bytes']:,}",
         one["last_at"] or "", one["first_input"] or "")
        for one in items
    ]  # fmt: skip
    print_table(columns, rows)


@transcripts.command()
@of_log
@click.option("--active", "is_active", is_flag=True, help="Only what the next call is given.")
@click.option("--raw", is_flag=True, help="Marked messages as they stand in the log.")
@click.option("--after", default=-1, type=int, help="From the next position on.")
@click.option("--limit", default=500, show_default=True, type=click.IntRange(1, 100_000))
def show(
    *, log: str, data: str | None, is_active: bool, raw: bool, after: int, limit: int, as_json: bool
) -> None:
    """Show the messages of a conversation, by its name or id, or of a sub-agent by its id.

    Example: hansard transcripts show support-42 --active
    """
    with opened(data, log) as (kept, wanted):
        items = _active(kept, wanted) if is_active else _all(kept, wanted, after, limit, raw)
        body = {**head_body(kept, wanted, kept.head(wanted)), "items": items}
    if as_json:
        print_json(body)
        return
    folded = {fold["position"] for fold in body["folds"]}
    for one in items:
        print_lines(_message_lines(one))
        if one["position"] in folded and not is_active:
            print_lines([f"── folded here: up to {one['position']} a summary stands for it ──"])


def _all(kept: SqliteTranscripts, log: LogId, after: int, limit: int, is_raw: bool) -> list[Json]:
    found = kept.messages(log, after=after, limit=limit)
    return message_bodies(found, kept.marks(log), is_raw=is_raw)


def _active(kept: SqliteTranscripts, log: LogId) -> list[Json]:
    now = active(kept, log)
    after = -1 if now.fold is None else now.fold.message_position
    front = [] if now.fold is None else [handoff_body(now.fold)]
    return [*front, *message_bodies(kept.messages(log, after=after), kept.marks(log))]


def _message_lines(one: Json) -> Iterator[str]:
    message = one["message"]
    place = "fold" if one["position"] is None else str(one["position"])
    yield f"{place:>5}  {message['role']}"
    for part in message["parts"]:
        yield f"       {_part_text(part)}"


def _part_text(part: Json) -> str:
    match part["type"]:
        case "text" | "reasoning":
            return str(part["text"])
        case "tool_call":
            return f"{part['name']}({json.dumps(part.get('arguments'), ensure_ascii=False)})"
        case "tool_result":
            content = part.get("content")
            return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return f"[{part['type']}]"


@transcripts.command()
@click.argument("conversation")
@click.option("--role", default="user", type=click.Choice(["user", "assistant"]))
@click.option("--text", help="What was said. Without it messages are read from stdin, JSON lines.")
@setting_options("data", "retention")
@json_option
def append(*, conversation: str, role: str, text: str | None, as_json: bool, **told: Any) -> None:
    """Append to a conversation, made where there is none; all of it or nothing.

    Example: hansard transcripts append support-42 --text "ship on Tuesday"
    """
    given = [{"role": role, "content": text}] if text is not None else list(_from_stdin())
    kept = transcripts_of(told["data"], told["retention"])
    log = find_log(kept, told["data"], conversation, may_make=True)
    stored = kept.append(log, [NewMessage(one) for one in given])
    if as_json:
        print_json({"items": message_bodies(stored, ())})
    else:
        print_lines([f"{log}: {fmt.plural(len(stored), 'message')}, the last at position "
                     f"{stored[-1].position if stored else kept.head(log)}"])  # fmt: skip


def _from_stdin() -> Iterator[Json]:
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ConfigError(f"line {number} is no JSON: {error}") from None


@transcripts.command()
@of_log
@click.option("--summary", help="Text; - reads stdin.", required=True)
@click.option("--expected-head", type=int, help="Only if this is still the last position.")
def fold(
    *, log: str, data: str | None, summary: str, expected_head: int | None, as_json: bool
) -> None:
    """Let a summary stand for all messages so far. Nothing is deleted.

    What constraints and requests the summary lost is told with it.

    Example: hansard transcripts fold support-42 --summary - < summary.txt
    """
    text = sys.stdin.read() if summary == "-" else summary
    with opened(data, log) as (kept, wanted):
        made = kept.fold(wanted, text, expected_head=expected_head, actor=user_name())
        found = check_summary(kept, wanted)
    if as_json:
        print_json({**fold_body(made), "check": check_body(found)})
        return
    print_lines([f"folded up to position {made.message_position}", *_lost_lines(check_body(found))])


@transcripts.command()
@of_log
@click.option("--summary", help="One that is thought of; - reads stdin. Without it: the fold's.")
def check(*, log: str, data: str | None, summary: str | None, as_json: bool) -> None:
    """Say which constraints and requests a summary lost; exits 1 where there are any.

    A check of words, without a model: docs/transcripts.md says what it cannot see.

    Example: hansard transcripts check support-42
    """
    text = sys.stdin.read() if summary == "-" else summary
    with opened(data, log) as (kept, wanted):
        body = check_body(check_summary(kept, wanted, text))
    if as_json:
        print_json(body)
    else:
        print_lines(_lost_lines(body))
    if not body["is_complete"]:
        raise click.exceptions.Exit(1)


def _lost_lines(body: Json) -> Iterator[str]:
    lost = body["lost"]
    yield f"{len(lost)} of {body['sentences']} constraints and requests are not in the summary"
    for one in lost:
        missing = ", ".join(one["missing"]) or "its negation"
        yield f"{one['kind']:>10}  {one['position']:>5}  {one['sentence']}  (missing: {missing})"


for one in UPKEEP:
    transcripts.add_command(one)

"""`hansard transcripts`: what was said in conversations, read and kept without a server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError, NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.cost import WINDOW_TOKENS
from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.errors import TranscriptError
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId, parse_log_id
from hansard_compiler.transcripts.reads import cache_effect, check_summary, cost_of
from hansard_compiler.transcripts.views import MarkKind
from hansard_store.transcripts.archives import check_archive, write_archive
from hansard_store.transcripts.queries import (
    decode_all,
    find_transcript,
    list_transcripts,
    transcript_size,
)
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.api.values import page_body
from hansard_web.cli.base import (
    CommandGroup,
    Failed,
    json_option,
    print_answer,
    print_json,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import find_store, reading, use_store
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.transcripts.json import (
    FoldCheckBody,
    TranscriptMessage,
    active_bodies,
    check_body,
    cost_body,
    fold_body,
    head_body,
    item_body,
    marked_body,
    message_bodies,
    size_body,
)
from hansard_web.ui import format as fmt

# Transcripts of a store, as commands open them: no server is needed, and none is disturbed.

_Function = Callable[..., Any]


def of_log(function: _Function) -> _Function:
    """Add the argument that names a conversation or a sub-agent, and where the store is."""
    return click.argument("log")(setting_options("data")(json_option(function)))


def transcripts_of(data: str | None, retention: str | None = None) -> SqliteTranscripts:
    folder = use_store(data)
    config = read_config(data=data, retention=retention)
    mode = RetentionMode(config.retention)
    return SqliteTranscripts(folder, mode, Redactor(folder.key()), source="cli")


@contextmanager
def opened(data: str | None, log: str) -> Iterator[tuple[SqliteTranscripts, LogId]]:
    service = transcripts_of(data)
    yield service, find_log(service, data, log)


def find_log(
    service: SqliteTranscripts, data: str | None, text: str, *, may_make: bool = False
) -> LogId:
    """Return what somebody names: an id of either kind, or a conversation by its name."""
    if text.startswith((ConversationId.prefix, BranchId.prefix)):
        try:
            return parse_log_id(text)
        except TranscriptError:
            pass  # a conversation may be called so
    if may_make:
        return service.ensure(text).id
    with reading(data) as connection:
        found = find_transcript(connection, text)
    if found is None:
        raise NotFoundError("transcript", text)
    return found.conversation.id


def line_of(log: LogId) -> ConversationId:
    if isinstance(log, BranchId):
        raise ConfigError(f"{log} is a sub-agent; name its conversation")
    return log


@click.group(cls=CommandGroup)
def transcripts() -> None:
    """Transcripts: messages, folds, sizes, archives, and whether every row decodes."""


# Looking after transcripts: redact, cost, stats, archive, doctor.


@transcripts.command()
@of_log
@click.option("--position", required=True, type=click.IntRange(0))
@click.option("--reason", required=True)
@click.option("--superseded-by", type=click.IntRange(0), help="Position of the correction.")
@click.option("--restore", is_flag=True, help="Show it again.")
def redact(
    *,
    log: str,
    data: str | None,
    position: int,
    reason: str,
    superseded_by: int | None,
    restore: bool,
    as_json: bool,
) -> None:
    """Take a message out of views and prompts; its row stays. Prints what the cache loses.

    Example: hansard transcripts redact support-42 --position 3 --reason "a name"
    """
    kind: MarkKind = "redacted" if superseded_by is None else "superseded"
    if restore:
        kind = "restored"
    with opened(data, log) as (service, log_id):
        made = service.mark(
            log_id,
            position,
            kind,
            reason=reason,
            actor=user_name(),
            superseded_by=superseded_by,
        )
        effect = cache_effect(service, log_id, position)
    if as_json:
        print_json(marked_body(made, effect))
        return
    lines = [f"message {position} is {kind}; the next call reads about "
             f"{effect.cold_tokens:,} tokens cold"]  # fmt: skip
    if effect.folds_over:
        lines.append("a summary may repeat it: fold again")
    print_lines(lines)


@transcripts.command()
@of_log
@click.option("--model", default="", help="Whose tokens are counted.")
@click.option("--window-tokens", default=WINDOW_TOKENS, show_default=True, type=click.IntRange(1))
def cost(*, log: str, data: str | None, model: str, window_tokens: int, as_json: bool) -> None:
    """Estimate what going on costs before it is paid, and say whether to fold.

    Example: hansard transcripts cost support-42 --model gpt-4o
    """
    with opened(data, log) as (service, log_id):
        body = cost_body(cost_of(service, log_id, model=model, window_tokens=window_tokens))
    if as_json:
        print_json(body)
        return
    print_facts(
        [
            ("the next call", f"{body['tokens']:,} tokens (±{body['margin_pct']} %)"),
            ("without folds", f"{body['all_tokens']:,} tokens"),
            ("counted by", body["estimator"]),
            ("fold", f"{body['advice']}: {body['reason']}"),
        ]
    )


@transcripts.command()
@of_log
def stats(*, log: str, data: str | None, as_json: bool) -> None:
    """Tell how large a conversation is, and how much of it is folded.

    Example: hansard transcripts stats support-42
    """
    with opened(data, log) as (_, log_id), reading(data) as connection:
        body = size_body(transcript_size(connection, line_of(log_id)))
    if as_json:
        print_json(body)
        return
    roles = ", ".join(f"{count} {role}" for role, count in body["roles"].items())
    print_facts(
        [
            ("conversation", f"{body['conversation']}  {body['conversation_id']}"),
            ("messages", f"{body['messages']:,} ({roles})" if roles else "0"),
            ("size", fmt.file_size(body["size_bytes"])),
            ("folded", f"{fmt.file_size(body['folded_bytes'])} in {body['folds']} folds"),
            ("payloads", fmt.file_size(body["payload_bytes"])),
            ("sub-agents", str(body["branches"])),
            ("marked", str(body["marked"])),
            ("archives", str(body["archives"])),
        ]
    )


@transcripts.command()
@of_log
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--check", "is_check", is_flag=True, help="Compare a file with what is stored.")
def archive(*, log: str, file: Path, data: str | None, is_check: bool, as_json: bool) -> None:
    """Write the folded part to FILE, read it back and note its sha256. The rows stay.

    Example: hansard transcripts archive support-42 support-42.jsonl
    """
    folder = find_store(data)
    with opened(data, log) as (_, log_id), reading(data) as connection:
        if is_check:
            made = check_archive(connection, file)
        else:
            made = write_archive(
                folder, connection, line_of(log_id), file, actor=user_name(), clock=time.time_ns
            )
    body = {
        "conversation_id": str(made.conversation),
        "last_position": made.last_position,
        "sha256": made.sha256,
        "size_bytes": made.size_bytes,
    }
    outcome = "is what was archived" if is_check else "is written and read back"
    line = f"{file} {outcome}: positions 0 to {made.last_position}, sha256 {made.sha256}"
    print_answer(body, lambda _: print_lines([line]), as_json=as_json)


@transcripts.command()
@setting_options("data")
@json_option
def doctor(*, data: str | None, as_json: bool) -> None:
    """Decode every message of every conversation; exits 1 where one fails.

    Example: hansard transcripts doctor
    """
    with reading(data) as connection:
        found = decode_all(connection)
    failures = [str(one) for one in found.failures]
    if as_json:
        versions = {str(version): count for version, count in found.versions.items()}
        print_json({"messages": found.messages, "versions": versions,
                    "failures": failures, "problems": found.problems})  # fmt: skip
    else:
        versions_text = ", ".join(f"{n:,} of version {v}" for v, n in found.versions.items())
        print_lines([f"{found.messages:,} messages decoded ({versions_text or 'none'})",
                     *failures, *found.problems])  # fmt: skip
    if not found.is_sound:
        raise Failed(f"{len(failures) + len(found.problems)} problems")


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
    if as_json:
        print_json(page_body(page, item_body))
        return
    print_records(
        map(item_body, page.items),
        {
            Column("conversation"): lambda one: one["conversation"],
            Column("messages", is_figure=True): lambda one: str(one["messages"]),
            Column("folds", is_figure=True): lambda one: str(one["folds"]),
            Column("bytes", is_figure=True): lambda one: f"{one['size_bytes']:,}",
            Column("last"): lambda one: one["last_at"] or "",
            Column("began with", may_cut=True): lambda one: one["first_input"] or "",
        },
    )


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
    with opened(data, log) as (service, log_id):
        if is_active:
            _, items = active_bodies(service, log_id)
        else:
            found = service.messages(log_id, after=after, limit=limit)
            items = message_bodies(found, service.marks(log_id), is_raw=raw)
        head = head_body(service, log_id, service.head(log_id))
    if as_json:
        print_json({**head, "items": items})
        return
    folded = {fold["position"] for fold in head["folds"]}
    for one in items:
        print_lines(_message_lines(one))
        if one["position"] in folded and not is_active:
            print_lines([f"── folded here: up to {one['position']} a summary stands for it ──"])


def _message_lines(one: TranscriptMessage) -> Iterator[str]:
    message = one["message"]
    position = "fold" if one["position"] is None else str(one["position"])
    yield f"{position:>5}  {message['role']}"
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
@click.option("--text", help="The text. Without it messages are read from stdin, JSON lines.")
@setting_options("data", "retention")
@json_option
def append(
    *, conversation: str, role: str, text: str | None, as_json: bool, **settings: Any
) -> None:
    """Append to a conversation, made where there is none; all of it or nothing.

    Example: hansard transcripts append support-42 --text "ship on Tuesday"
    """
    messages = [{"role": role, "content": text}] if text is not None else list(_from_stdin())
    service = transcripts_of(settings["data"], settings["retention"])
    log = find_log(service, settings["data"], conversation, may_make=True)
    stored = service.append(log, [NewMessage(one) for one in messages])
    if as_json:
        print_json({"items": message_bodies(stored, ())})
    else:
        print_lines([f"{log}: {fmt.plural(len(stored), 'message')}, the last at position "
                     f"{stored[-1].position if stored else service.head(log)}"])  # fmt: skip


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

    Prints which constraints and requests the summary lost.

    Example: hansard transcripts fold support-42 --summary - < summary.txt
    """
    text = sys.stdin.read() if summary == "-" else summary
    with opened(data, log) as (service, log_id):
        made = service.fold(log_id, text, expected_head=expected_head, actor=user_name())
        found = check_summary(service, log_id)
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
    with opened(data, log) as (service, log_id):
        body = check_body(check_summary(service, log_id, text))
    print_answer(body, lambda body: print_lines(_lost_lines(body)), as_json=as_json)
    if not body["is_complete"]:
        raise click.exceptions.Exit(1)


def _lost_lines(body: FoldCheckBody) -> Iterator[str]:
    lost = body["lost"]
    yield f"{len(lost)} of {body['sentences']} constraints and requests are not in the summary"
    for one in lost:
        missing = ", ".join(one["missing"]) or "its negation"
        yield f"{one['kind']:>10}  {one['position']:>5}  {one['sentence']}  (missing: {missing})"

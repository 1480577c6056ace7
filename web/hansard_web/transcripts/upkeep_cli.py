"""Looking after transcripts: redact, cost, stats, archive, doctor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import click

from hansard_compiler.transcripts.cost import WINDOW_TOKENS
from hansard_compiler.transcripts.reads import cache_effect, cost_of
from hansard_compiler.transcripts.views import MarkKind
from hansard_store.transcripts.archives import check_archive, write_archive
from hansard_store.transcripts.queries import decode_all, transcript_size
from hansard_web.cli.base import Command, Failed, json_option, print_json, setting_options
from hansard_web.cli.store import find_store, reading
from hansard_web.cli.tables import print_facts, print_lines
from hansard_web.cli.user import user_name
from hansard_web.transcripts.cli_store import line_of, of_log, opened
from hansard_web.transcripts.json import cost_body, effect_body, mark_body, size_body
from hansard_web.ui import format as fmt


@click.command(cls=Command)
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
    """Take a message out of views and prompts; its row stays. Tells what the cache loses.

    Example: hansard transcripts redact support-42 --position 3 --reason "a name"
    """
    kind: MarkKind = "redacted" if superseded_by is None else "superseded"
    if restore:
        kind = "restored"
    with opened(data, log) as (kept, wanted):
        made = kept.mark(
            wanted,
            position,
            kind,
            reason=reason,
            actor=user_name(),
            superseded_by=superseded_by,
        )
        effect = cache_effect(kept, wanted, position)
    if as_json:
        print_json({**mark_body(made), "cache": effect_body(effect)})
        return
    lines = [f"message {position} is {kind}; the next call reads about "
             f"{effect.cold_tokens:,} tokens cold"]  # fmt: skip
    if effect.folds_over:
        lines.append("a summary may repeat it: fold again")
    print_lines(lines)


@click.command(cls=Command)
@of_log
@click.option("--model", default="", help="Whose tokens are counted.")
@click.option("--window-tokens", default=WINDOW_TOKENS, show_default=True, type=click.IntRange(1))
def cost(*, log: str, data: str | None, model: str, window_tokens: int, as_json: bool) -> None:
    """Estimate what going on costs before it is paid, and say whether to fold.

    Example: hansard transcripts cost support-42 --model gpt-4o
    """
    with opened(data, log) as (kept, wanted):
        body = cost_body(cost_of(kept, wanted, model=model, window_tokens=window_tokens))
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


@click.command(cls=Command)
@of_log
def stats(*, log: str, data: str | None, as_json: bool) -> None:
    """Tell how large a conversation is, and how much of it is folded.

    Example: hansard transcripts stats support-42
    """
    with opened(data, log) as (_, wanted), reading(data) as connection:
        body = size_body(transcript_size(connection, line_of(wanted)))
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


@click.command(cls=Command)
@of_log
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--check", "is_check", is_flag=True, help="Compare a file with what is stored.")
def archive(*, log: str, file: Path, data: str | None, is_check: bool, as_json: bool) -> None:
    """Write the folded part to FILE, read it back and note its sha256. The rows stay.

    Example: hansard transcripts archive support-42 support-42.jsonl
    """
    folder = find_store(data)
    with opened(data, log) as (_, wanted), reading(data) as connection:
        if is_check:
            made = check_archive(connection, file)
        else:
            made = write_archive(
                folder, connection, line_of(wanted), file, actor=user_name(), clock=time.time_ns
            )
    body = {
        "conversation_id": str(made.conversation),
        "last_position": made.last_position,
        "sha256": made.sha256,
        "size_bytes": made.size_bytes,
    }
    if as_json:
        print_json(body)
    else:
        told = "is what was archived" if is_check else "is written and read back"
        print_lines([f"{file} {told}: positions 0 to {made.last_position}, sha256 {made.sha256}"])


@click.command(cls=Command)
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
        versions_told = ", ".join(f"{n:,} of version {v}" for v, n in found.versions.items())
        print_lines([f"{found.messages:,} messages decoded ({versions_told or 'none'})",
                     *failures, *found.problems])  # fmt: skip
    if not found.is_sound:
        raise Failed(f"{len(failures) + len(found.problems)} problems")


UPKEEP: Final = (redact, cost, stats, archive, doctor)

"""`hansard memory`: what agents are to know, who wrote it, and what does not hold any more."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import click

from hansard_compiler.compile.models import parse
from hansard_compiler.models.memory import (
    CONFIDENCE,
    AcceptMemory,
    EndMemory,
    UnsupersedeMemory,
    WriteMemory,
)
from hansard_store.ids import short_id
from hansard_store.maintenance.garbage import purge as purge_store
from hansard_store.memory.maintenance.reviewed_supersessions import DecisionTaken, SupersessionBody
from hansard_store.memory.queries import list_memories
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import AccessBody, MemoryBody, memory_json
from hansard_store.memory.service import MemoryService
from hansard_store.principals.model import is_same, person_text
from hansard_web.api.queries import limit_of
from hansard_web.cli.base import (
    CommandGroup,
    Misused,
    by_option,
    confirm,
    filter_options,
    json_option,
    page_options,
    print_answer,
    print_json,
    print_page,
    setting_options,
)
from hansard_web.cli.store import find_store, maintaining, opened_service, reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.memory.bodies import Use
from hansard_web.memory.service import memory_detail, read_memory_filter

# Records of memory as the terminal shows them.


def _print_list(items: Sequence[Memory]) -> None:
    print_records(
        map(memory_json, items),
        {
            Column("MEMORY"): lambda one: short_id(one["memory_id"]),
            Column("TYPE"): lambda one: one["memory_type"],
            Column("OF"): _place,
            Column("SUBJECT", may_cut=True): lambda one: one["subject"],
            Column("STATE"): lambda one: one["state"],
            Column("CONFIDENCE", is_figure=True): lambda one: f"{one['confidence']:.2f}",
            Column("READS", is_figure=True): lambda one: f"{one['reads']:,}",
            Column("WRITTEN BY"): writer_of,
            Column("SOURCE RUN"): lambda one: _source(one)[:8],
        },
    )


def _place(one: MemoryBody) -> str:
    if one["run_id"]:
        return f"run {one['run_id'][:8]}"
    return " ".join(f"{part}:{name}" for part, name in one["namespace"].items())


def writer_of(one: MemoryBody) -> str:
    """Return as what it was written, the name that was given, and which principal sent it."""
    name, sender = one["written_by"], one["written_principal"]
    writer = (
        f"{one['writer']}: {person_text(name, one['written_method'])}" if name else one["writer"]
    )
    is_shown = sender is None or is_same(sender, name)
    return str(writer) if is_shown else f"{writer}, sent by {sender}"


def _source(one: MemoryBody) -> str:
    return str(one["source_run_id"] or "")


def print_changed(one: Memory, *, as_json: bool) -> None:
    body = {"memory": memory_json(one)}
    print_answer(body, lambda body: print_record(body["memory"]), as_json=as_json)


def print_record(one: MemoryBody) -> None:
    ended = one["ended"]
    print_facts(
        [
            ("memory", one["memory_id"]),
            ("type", one["memory_type"]),
            ("of", _place(one)),
            ("subject", one["subject"]),
            ("attribute", one["attribute"]),
            ("state", one["state"]),
            ("version", str(one["version"])),
            ("confidence", f"{one['confidence']:.2f}"),
            ("fresh as of", one["freshness_at"]),
            ("expires", one["expires_at"] or "never"),
            ("tags", ", ".join(one["tags"])),
            ("written by", writer_of(one)),
            ("approval", one["approval_id"] or ""),
            ("source run", _source(one) + (" (deleted)" if one["source_run_deleted"] else "")),
            ("source steps", ", ".join(one["source_step_ids"])),
            ("superseded by", one["superseded_by"] or ""),
            ("contradicts", one["contests"] or ""),
            (
                "ended",
                f"{person_text(ended['by'], ended['method'])}, {ended['at']}: {ended['reason']}"
                if ended
                else "",
            ),
            ("content", text_of(one["content"])),
        ]
    )


def text_of(content: Any) -> str:
    if content is None:
        return "(purged)"
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def access_line(one: AccessBody) -> str:
    where = one["step_id"] or one["run_id"] or "no run"
    return f"{one['at'][:19]} {one['kind']} {where} {one['agent'] or ''}".rstrip()


def use_line(one: Use) -> str:
    return f"{one['at'][:19]} {one['decision']} ({one['reason']}) {one['step_id']}"


def supersession_line(one: SupersessionBody) -> str:
    """Return who or what let one record supersede another, why, and whether that was taken back."""
    score = "" if one["score"] is None else f", score {one['score']:.2f}"
    decided, undone = one["decision"], one["undone"]
    person = f", {one['state']} by {_person(decided)}" if decided else ""
    taken_back = f"; taken back by {_person(undone)}, {undone['at'][:19]}" if undone else ""
    return (
        f"  {one['at'][:19]} {(one['older'] or '?')[:8]} by {(one['newer'] or '?')[:8]}, "
        f"{one['cause']}, {one['state']}: {one['rationale']} ({one['judge']}{score}{person})"
        f"{taken_back}"
    )


def _person(decision: DecisionTaken) -> str:
    return person_text(decision["by"], decision["method"])


_FILTERS = {
    "q": "Words that it says.",
    "state": "current (default), superseded, review, invalidated, expired, purged, hidden, all.",
    "layer": "working or durable.",
    "type": "fact, preference, constraint, …",
    "tag": "A tag.",
    "project": "Of this project.",
    "user": "Of this user.",
    "agent": "Of this agent.",
    "writer": "app, approved_tool_output, human_approved_summary, post_step_summarizer.",
    "slot": "Slot of working memory.",
    "run": "Comes from this run, is its working memory, or was touched in it.",
    "approval": "Written under this approval: its id, or 8 digits of it.",
    "fresh-since": "So at or after: RFC 3339 or nanoseconds.",
    "unread-since": "Not read since then.",
}


@click.group(cls=CommandGroup)
def memory() -> None:
    """Memory: list, show, history, write, invalidate, accept, unsupersede, purge, gc."""


@memory.command("list")
@setting_options("data")
@filter_options(_FILTERS, renamed={"q": "text", "type": "memory_type"})
@click.option("--min-confidence", type=click.FloatRange(0, 1), help="At least so sure.")
@page_options
def list_(
    *,
    data: str | None,
    limit: str,
    cursor: str | None,
    as_json: bool,
    min_confidence: float | None,
    **filters: str | None,
) -> None:
    """List records, the last written first; all filters must be met.

    Example: hansard memory list --project quillbook --min-confidence 0.8
    """
    with reading(data) as connection:
        filtered_by = read_memory_filter(connection, min_confidence=min_confidence, **filters)
        page = list_memories(
            connection, filtered_by, now_ns=time.time_ns(), limit=limit_of(limit), cursor=cursor
        )
    print_page(page, memory_json, _print_list, as_json=as_json)


@memory.command()
@click.argument("memory_id")
@setting_options("data")
@json_option
def show(*, memory_id: str, data: str | None, as_json: bool) -> None:
    """Show a record: its content, its source, who read it and where it was used.

    Example: hansard memory show 1f8b2c3d
    """
    with reading(data) as connection:
        detail = memory_detail(connection, memory_id, now_ns=time.time_ns())
    if as_json:
        print_json(detail)
        return
    print_record(detail["memory"])
    for title, lines in (
        ("written by", map(access_line, detail["written_by"])),
        ("read by", map(access_line, detail["read_by"])),
        ("used in", map(use_line, detail["used_in"])),
    ):
        print_lines([f"{title}:", *(f"  {line}" for line in lines)])


@memory.command()
@click.argument("memory_id")
@setting_options("data")
@json_option
def history(*, memory_id: str, data: str | None, as_json: bool) -> None:
    """Show the versions of a record, the newest first, and what superseded what, and why.

    Example: hansard memory history 1f8b2c3d
    """
    with reading(data) as connection:
        detail = memory_detail(connection, memory_id, now_ns=time.time_ns())
    if as_json:
        print_json({"items": detail["versions"], "supersessions": detail["supersessions"]})
        return
    for one in detail["versions"]:
        print_lines([f"version {one['version']}, {one['state']}, {one['created_at'][:19]} UTC, "
                     f"by {writer_of(one)}", f"  {text_of(one['content'])}"])  # fmt: skip
    if detail["supersessions"]:
        print_lines(["superseded:", *map(supersession_line, detail["supersessions"])])


@memory.command()
@click.argument("content")
@click.option("--subject", required=True, help="What it is about.")
@click.option("--attribute", default="", help="Which fact about it.")
@click.option("--type", "memory_type", default="fact", show_default=True, help="Sort of memory.")
@click.option("--writer", type=click.Choice(list(CONFIDENCE)), required=True, help="Who writes.")
@click.option("--project", help="Namespace.")
@click.option("--user", help="Namespace.")
@click.option("--agent", "of_agent", help="Namespace.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="How sure it is.")
@click.option("--ttl-s", type=int, help="Seconds after which it is not read any more.")
@click.option("--tag", "tags", multiple=True, help="A tag; several times.")
@click.option("--approval", "approval_id", help="Approval that permits it.")
@click.option("--run", "run_id", help="Run it comes from, whole id.")
@click.option("--step", "step_id", help="Step it comes from, whole id.")
@click.option("--replaces", help="Record that must be current, and is superseded.")
@by_option()
@click.option("--structured", is_flag=True, help="CONTENT is a JSON object.")
@setting_options("data", "retention")
@json_option
def write(
    *,
    content: str,
    data: str | None,
    retention: str | None,
    as_json: bool,
    structured: bool,
    project: str | None,
    user: str | None,
    of_agent: str | None,
    by: str,
    **options: Any,
) -> None:
    """Write a record of durable memory; a newer one supersedes the older of its subject.

    Example: hansard memory write 'CI runs Python 3.12' --subject CI --project quillbook
    --writer app
    """
    named = {"project": project, "user": user, "agent": of_agent}
    fields = {key: value for key, value in options.items() if value not in (None, ())}
    request = parse(
        WriteMemory,
        {
            **fields,
            "tags": list(options["tags"]),
            "content": _structured(content) if structured else content,
            "namespace": {key: value for key, value in named.items() if value},
            "by": by,
        },
    )
    with opened_service(MemoryService, data, retention) as service:
        result = service.write(request).json()
    if as_json:
        print_json(result)
        return
    print_facts([("outcome", result["outcome"]), ("change", result["change"]),
                 ("superseded", ", ".join(result["superseded"])),
                 ("current_memory_id", result["current_memory_id"] or ""),
                 *(("contradicts" if one["is_certain"] else "may contradict", one["memory_id"])
                   for one in result["conflicts"])])  # fmt: skip
    print_record(result["memory"])


@memory.command()
@click.argument("memory_id")
@click.option("--reason", required=True, help="Why it does not hold.")
@by_option()
@setting_options("data")
@json_option
def invalidate(*, memory_id: str, reason: str, by: str, data: str | None, as_json: bool) -> None:
    """Say that a record does not hold: it is read no more, and stays with the reason.

    Example: hansard memory invalidate 1f8b2c3d --reason 'CI moved'
    """
    with opened_service(MemoryService, data) as service:
        request = EndMemory(memory_id=memory_id, reason=reason, by=by)
        print_changed(service.invalidate(request), as_json=as_json)


@memory.command()
@click.argument("memory_id")
@by_option()
@setting_options("data")
@json_option
def accept(*, memory_id: str, by: str, data: str | None, as_json: bool) -> None:
    """Let a record that waits for a review stand; what it contradicts is superseded.

    Example: hansard memory accept 1f8b2c3d
    """
    with opened_service(MemoryService, data) as service:
        request = AcceptMemory(memory_id=memory_id, by=by)
        print_changed(service.accept(request), as_json=as_json)


@memory.command()
@click.argument("memory_id")
@click.option("--reason", default="", help="Why it holds.")
@click.option("--superseded-by", help="Only while it is superseded by this record.")
@by_option()
@setting_options("data")
@json_option
def unsupersede(
    *,
    memory_id: str,
    reason: str,
    superseded_by: str,
    by: str,
    data: str | None,
    as_json: bool,
) -> None:
    """Let a superseded record stand again. Maintenance does not supersede it by the same one again.

    A newer version in its place is superseded by it. Refused where another version was written
    since.

    Example: hansard memory unsupersede 1f8b2c3d --reason 'both hold'
    """
    with opened_service(MemoryService, data) as service:
        request = UnsupersedeMemory(
            memory_id=memory_id,
            by=by,
            reason=reason,
            superseded_by=superseded_by,
        )
        print_changed(service.unsupersede(request), as_json=as_json)


@memory.command()
@click.argument("memory_id")
@click.option("--reason", required=True, help="Why it must go.")
@by_option()
@click.option("--yes", is_flag=True, help="Do not ask.")
@setting_options("data")
@json_option
def purge(
    *, memory_id: str, reason: str, by: str, yes: bool, data: str | None, as_json: bool
) -> None:
    """Remove a record's content for good and write the file anew; who and why stay.

    Prompts that had it keep it: delete those runs as well where that is meant.

    Example: hansard memory purge 1f8b2c3d --reason 'asked for by noor' --yes
    """
    confirm(f"Remove the content of memory {memory_id} for good?", yes=yes)
    with opened_service(MemoryService, data) as service:
        request = EndMemory(memory_id=memory_id, reason=reason, by=by)
        record = service.purge(request)
    with maintaining(find_store(data), secure=True) as connection:
        purge_store(connection)
    print_changed(record, as_json=as_json)


@memory.command()
@setting_options("data")
@json_option
def gc(*, data: str | None, as_json: bool) -> None:
    """Mark what is past its time. Reads leave it out before that; nothing is removed.

    Example: hansard memory gc
    """
    with opened_service(MemoryService, data) as service:
        expired = service.expire_due()
    if as_json:
        print_json({"expired": expired})
        return
    click.echo(f"{expired:,} expired")


def _structured(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Misused(f"CONTENT is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Misused("CONTENT is no JSON object")
    return value

"""`hansard events`: the audit log, and whether anybody altered it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from hansard_store.approvals.json import event_json, head_json, report_json
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import EventFilter, Head, StoredEvent
from hansard_web.api.queries import limit_of, trace_id_of
from hansard_web.api.values import dump, page_body
from hansard_web.approvals.cli import SETTINGS, accounting, actor_text
from hansard_web.audit.filters import event_filter, events_page, read_anchor
from hansard_web.cli.base import (
    CommandGroup,
    by_option,
    filter_options,
    json_option,
    page_options,
    print_answer,
    print_json,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.ui.format import day_time, plural

_FILTERS = {
    "type": "action.approved, tool.called, failure, …",
    "actor": "agent, me, tool or system.",
    "who": "Name of the actor.",
    "action": "Mostly the name of a tool.",
    "source": "Where it came from: api, cli, repl, sdk, …",
    "subject": "What it concerned, as approval:ID or conversation:ID.",
    "approval": "Approval, or a unique beginning of its id.",
    "run": "Run, or a unique beginning of its id.",
    "since": "At or after: RFC 3339 or nanoseconds.",
    "until": "Before.",
}
_AT_ONCE = 500


@click.group(cls=CommandGroup)
def events() -> None:
    """Events: the audit log: list, head, verify, export."""


@events.command("list")
@setting_options(*SETTINGS)
@filter_options(_FILTERS)
@click.option("--seals", is_flag=True, help="List seals of telemetry as well.")
@page_options
def list_(*, seals: bool, limit: str, cursor: str | None, as_json: bool, **options: Any) -> None:
    """List events, the newest first; all filters must be met.

    Seals of telemetry are listed with --seals, or by their type.

    Example: hansard events list --actor me --since 2026-01-31
    """
    with _opened_events(options) as (approvals, filters):
        filters = replace(filters, with_seals=seals)
        page = events_page(approvals, filters, cursor, limit=limit_of(limit))
    if as_json:
        print_json(page_body(page, event_json))
        return
    print_records(
        page.items,
        {
            Column("seq", is_figure=True): lambda event: str(event.seq),
            Column("time"): lambda event: day_time(event.time_ns),
            Column("type"): lambda event: event.type,
            Column("by"): actor_text,
            Column("action"): lambda event: event.action,
            Column("about", may_cut=True): _about,
        },
    )


@events.command()
@setting_options(*SETTINGS)
@json_option
def head(*, as_json: bool, **options: Any) -> None:
    """Print the end of the chain, SEQ:HASH: kept elsewhere, it proves what came before it.

    Example: hansard events head
    """
    with accounting(options) as approvals:
        found = approvals.head()
    print_answer(head_json(found), lambda body: print_lines([found.text]), as_json=as_json)


@events.command()
@setting_options(*SETTINGS)
@click.option("--anchor", help="A head that was kept, SEQ:HASH; without it a cut end is not seen.")
@json_option
def verify(*, anchor: str | None, as_json: bool, **options: Any) -> None:
    """Check the whole chain; exit 1 and name the first row that is not as it was written.

    Example: hansard events verify --anchor "$(cat kept-head)"
    """
    anchor_head = read_anchor(anchor)
    with accounting(options) as approvals:
        report = approvals.verify(anchor=anchor_head)
    if as_json:
        print_json(report_json(report))
    elif report.broken is None:
        seen = _seen(anchor_head, report.heads_checked)
        print_facts(
            [
                ("events", f"{report.checked:,}"),
                ("chain", f"whole; {seen}"),
                ("head", report.head.text),
            ]
        )
    else:
        print_facts(
            [
                ("broken", f"event {report.broken.seq} {report.broken.problem}"),
                ("sound before it", f"{report.checked:,}"),
            ]
        )
    if not report.is_sound:
        raise click.exceptions.Exit(1)


@events.command("accept-head")
@click.option("--note", default="", help="Why this state is the valid one.")
@by_option("Who decides; default: the user of this system.")
@setting_options(*SETTINGS)
@json_option
def accept_head(*, note: str, by: str, as_json: bool, **options: Any) -> None:
    """Take the log as it is for the valid one, though it had come further when a head was kept.

    A store that is older than a head that was kept of it runs no approved action: what it would
    run may have run already. This gives those heads up, and the audit log says who did so.

    Example: hansard events accept-head --note "the disk died; this is Friday's backup"
    """
    with accounting(options) as approvals:
        given_up = approvals.accept_head(by=by, note=note)
        found = approvals.head()
    if as_json:
        gone = [{"head": one.head.text, "file": str(one.path)} for one in given_up]
        print_json({**head_json(found), "discarded": gone})
        return
    print_facts(
        [
            *(("given up", f"{one.head.seq} of {one.folder}, in {one.path}") for one in given_up),
            ("head", found.text),
        ]
    )


@events.command()
@setting_options(*SETTINGS)
@filter_options(_FILTERS)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file, not stdout."
)
def export(*, output: Path | None, **options: Any) -> None:
    """Write events as JSON lines, the newest first; drafts, notes and seals included.

    Example: hansard events export --since 2026-01-01 -o events.jsonl
    """
    with _opened_events(options) as (approvals, filters):
        write_bytes(_lines(approvals, replace(filters, with_seals=True)), output)


def _seen(anchor: Head | None, days: int) -> str:
    """Say what a cut end was held against."""
    against = [] if anchor is None else [f"up to the anchor {anchor.seq} and beyond"]
    if days:
        against.append(
            f"by {plural(days, 'head')} that {'was' if days == 1 else 'were'} kept of it"
        )
    return ", ".join(against) or "whether its end was cut off is not known: no head was kept"


def _lines(approvals: ApprovalService, filters: EventFilter) -> Iterator[bytes]:
    before: int | None = None
    while True:
        page = approvals.events(filters, before=before, limit=_AT_ONCE)
        for one in page:
            yield dump(event_json(one)) + b"\n"
        if len(page) < _AT_ONCE:
            return
        before = page[-1].seq


@contextmanager
def _opened_events(options: dict[str, Any]) -> Iterator[tuple[ApprovalService, EventFilter]]:
    """Open accountability for a block, with the filter that the options say."""
    data = options.get("data")
    filters = {name: options.pop(name) for name in _FILTERS}
    with accounting(options) as approvals:
        yield (
            approvals,
            event_filter(
                find_approval=lambda text: approvals.approval(text).key,
                find_run=lambda text: trace_id_of(text, partial(reading, data)),
                **filters,
            ),
        )


def _about(event: StoredEvent) -> str:
    note = next((str(event.contents[name]) for name in ("note", "reason", "error")
                 if name in event.contents), "")  # fmt: skip
    return f"{event.subject} — {note!r}" if note else event.subject

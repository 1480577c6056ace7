"""`hansard interests`: topics of recent memory, each with the entries that support it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import click

from hansard_collector.interests.finder import (
    InterestFinder,
    InterestsResult,
    result_json,
)
from hansard_collector.judges import Judges
from hansard_collector.judges.recording import CallTrace
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.ids import short_id
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.records import Memory
from hansard_store.times import time_text
from hansard_web.app.config import JUDGE_SETTINGS, Config, judges_of
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.store import find_store, reading, use_store
from hansard_web.cli.tables import Column, print_records
from hansard_web.ui import format as fmt

_SERVICE = "hansard.interests"
_MOST_LISTED = 200


@click.command(cls=Command)
@setting_options("data", "config", "retention", *JUDGE_SETTINGS)
@click.option("--dry-run", is_flag=True, help="Write nothing: show what would be found.")
@click.option("--list", "is_list", is_flag=True, help="Show the interests that stand; find none.")
@json_option
def interests(*, dry_run: bool, is_list: bool, as_json: bool, **arguments: Any) -> None:
    """Find the topics of recent memory, or list the interests.

    Recent decisions, notes and corrections are read, and new topics are written as interests. Each
    names the entries that support it; a topic without support is dropped. Notes that Hansard
    writes about its own work, and what came from outside, are not read.

    Example: hansard interests --dry-run
    """
    if is_list:
        if dry_run:
            raise Misused("--list and --dry-run do not go together")
        _print_list(arguments.get("data"), as_json=as_json)
        return
    config = read_config(**arguments)
    use_store(str(config.data))
    with closing(judges_of(config)) as judges:
        result = _found(config, judges, is_dry=dry_run)
        usage = judges.usage.json()
    if as_json:
        print_json({"dry_run": dry_run, **result_json(result), **usage})
        return
    _print(result, is_dry=dry_run)


def _found(config: Config, judges: Judges, *, is_dry: bool) -> InterestsResult:
    """Return what an extraction finds; it is a step of a run of its own, with calls of models."""
    folder, mode = find_store(str(config.data)), RetentionMode(config.retention)
    judges.need_extractor()
    trace = CallTrace(folder, mode, _SERVICE)
    with trace.span("interests", always=not is_dry):
        bound = judges.recorded_by(trace.recorder)
        finder = InterestFinder(folder, mode, bound.need_extractor(), bound.embedder)
        return finder.find(finder.recent(), step_id=None if is_dry else trace.step_id)


def _print(result: InterestsResult, *, is_dry: bool) -> None:
    figures = result.figures
    click.echo(
        f"{fmt.plural(figures['entries'], 'entry', 'entries')} read, "
        f"{figures['excluded_diagnostic']:,} diagnostic and {figures['excluded_external']:,} "
        f"external ones left out: {figures['written']:,} new, {figures['known']:,} known, "
        f"{figures['unsupported']:,} without support"
        + (" (dry run: nothing is kept)" if is_dry else "")
    )
    if result.topics:
        print_records(
            result.topics,
            {
                Column("TOPIC", may_cut=True): lambda one: one.text,
                Column("OUTCOME"): lambda one: one.outcome,
                Column("PROJECT"): lambda one: next((name for name in one.owner if name), ""),
                Column("ENTRIES", is_figure=True): lambda one: f"{len(one.entries):,}",
                Column("SUPPORT", may_cut=True): lambda one: " ".join(map(short_id, one.entries)),
            },
        )


# ---- what stands


def _print_list(data: str | None, *, as_json: bool) -> None:
    filters = MemoryFilter(memory_type="interest")
    with reading(data) as connection:
        page = list_memories(connection, filters, now_ns=time.time_ns(), limit=_MOST_LISTED)
    if as_json:
        print_json({"items": [_interest_json(one) for one in page.items]})
        return
    print_records(
        page.items,
        {
            Column("ID"): lambda one: short_id(one.memory_id),
            Column("WRITTEN (UTC)"): lambda one: fmt.day_time(one.created_ns),
            Column("PROJECT"): lambda one: one.project or one.user or one.agent,
            Column("FROM"): lambda one: str(one.metadata.get("extractor", one.writer)),
            Column("TOPIC", may_cut=True): lambda one: one.subject,
        },
    )


def _interest_json(one: Memory) -> dict[str, Any]:
    return {
        "memory_id": one.memory_id,
        "topic": one.content if isinstance(one.content, str) else one.subject,
        "namespace": one.namespace,
        "extractor": one.metadata.get("extractor"),
        "entries": list(one.metadata.get("entries", ())),
        "written_at": time_text(one.created_ns),
    }

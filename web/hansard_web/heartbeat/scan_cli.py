"""`hansard scan`: the top stories of an outside source, held against the interests in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from hansard._runtime.locks import hold_lock
from hansard_collector.judges.recording import CallTrace
from hansard_collector.scanning import (
    LIMIT,
    MOST_STORIES,
    SOURCES,
    THRESHOLD,
    ScanIncomplete,
    Scanned,
    Scanner,
    ScanResult,
    ScanRunning,
)
from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.stories.rows import ProcessedStory, list_processed
from hansard_store.stories.service import StoryService
from hansard_store.times import time_text
from hansard_web.app.config import Config, judges_of
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.store import find_store, opened_service, reading
from hansard_web.cli.tables import Column, print_lines, print_table, progress
from hansard_web.ui import format as fmt

_SERVICE = "hansard.scan"
_STORY = (
    Column("STORY"),
    Column("NEAR", is_figure=True),
    Column("INTEREST", may_cut=True),
    Column("POINTS", is_figure=True),
    Column("TITLE", may_cut=True),
    Column("ADDRESS", may_cut=True),
)


@click.command(cls=Command)
@setting_options("data", "config", "retention", "outbound", "classifier", "model_server", "script")
@click.option("--source", type=click.Choice(list(SOURCES)), default="hackernews", show_default=True,
              help="Where stories come from.")  # fmt: skip
@click.option("--url", help="Address of the source's API. Default: its own.")
@click.option("--limit", type=click.IntRange(1, MOST_STORIES), default=LIMIT, show_default=True,
              help="How many of the top stories, or lines of the history.")  # fmt: skip
@click.option("--threshold", type=click.FloatRange(0, 1, min_open=True), default=THRESHOLD,
              show_default=True, help="How near an accepted story is, up to 1.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Keep nothing: show what would be accepted.")
@click.option("--history", is_flag=True, help="Show what was processed; asks nobody.")
@json_option
def scan(
    *,
    source: str,
    url: str | None,
    limit: int,
    threshold: float,
    dry_run: bool,
    history: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Hold the top stories of an outside source against interests.

    Each story is classified once. Those that are near an interest become notes in memory, trusted
    by nobody. Asks no one unless `outbound` is on.

    Example: hansard scan --outbound on --dry-run
    """
    if history:
        if dry_run:
            raise Misused("--history and --dry-run do not go together")
        _print_history(arguments.get("data"), limit=limit, as_json=as_json)
        return
    config = read_config(**arguments)
    _check_permitted(config)
    folder = find_store(str(config.data))
    trace = CallTrace(folder, RetentionMode(config.retention), _SERVICE)
    with (
        closing(judges_of(config)) as judges,
        opened_service(StoryService, str(config.data), config.retention) as service,
        hold_lock(folder.scanning, ScanRunning),
        trace.span("scan", always=False),
        progress() as tell,
    ):
        classifier = judges.recorded_by(trace.recorder).for_task("topic")
        stories = SOURCES[source](url or config.scan_url)
        scanner = Scanner(stories, service, classifier, threshold=threshold, is_dry=dry_run)
        result = scanner.scan(limit=limit, progress=tell)
    if as_json:
        print_json(_result_json(result, is_dry=dry_run))
    else:
        _print_result(result, is_dry=dry_run)
    if result.has_failed:
        raise ScanIncomplete(source)


def _check_permitted(config: Config) -> None:
    if config.outbound != "on":
        raise ConfigError(
            "a scan asks a source outside of this machine, and `outbound` is off: permit it with "
            '--outbound on, HANSARD_OUTBOUND=on, or outbound = "on" in hansard.toml'
        )


# ---- what a scan did


def _result_json(result: ScanResult, *, is_dry: bool) -> Json:
    return {
        "source": result.source,
        "classifier": result.classifier,
        "interests": result.interests,
        "dry_run": is_dry,
        **result.figures,
        "stories": [_scanned_json(one) for one in result.stories if one.outcome != "known"],
    }


def _scanned_json(one: Scanned) -> Json:
    return {
        "story_id": one.story_id,
        "outcome": one.outcome,
        "title": one.story.title if one.story else None,
        "url": one.story.url if one.story else None,
        "score": one.story.score if one.story else None,
        "interest_id": one.interest.memory_id if one.interest else None,
        "interest": one.interest.subject if one.interest else None,
        "classifier_score": one.score if one.story else None,
        "memory_id": one.memory_id,
        "error": {"code": one.error.code, "message": str(one.error)} if one.error else None,
    }


def _print_result(result: ScanResult, *, is_dry: bool) -> None:
    figures = result.figures
    left = f", {figures['left']:,} left" if figures["left"] else ""
    click.echo(
        f"{fmt.plural(figures['listed'], 'story', 'stories')} listed, {figures['known']:,} known, "
        f"{figures['fetched']:,} fetched: {figures['accepted']:,} accepted, "
        f"{figures['refused']:,} refused, {figures['failed']:,} failed{left}"
        + (" (dry run: nothing is kept)" if is_dry else "")
    )
    accepted = [one for one in result.stories if one.outcome == "accepted"]
    if accepted:
        print_table(_STORY, [_cells(one) for one in accepted])
    for one in result.stories:
        if one.error is not None:
            print_lines([fmt.printable(f"{one.story_id}: {one.error}")], err=True)


def _cells(one: Scanned) -> Sequence[str]:
    assert one.story is not None  # it was accepted
    interest = one.interest.subject if one.interest else ""
    story = one.story
    return (one.story_id, f"{one.score:.2f}", interest, f"{story.score:,}", story.title, story.url)


# ---- what was processed


def _print_history(data: str | None, *, limit: int, as_json: bool) -> None:
    with reading(data) as connection:
        items = list_processed(connection, limit=limit)
    if as_json:
        print_json({"items": [_processed_json(one) for one in items]})
        return
    columns = (Column("PROCESSED (UTC)"), Column("SOURCE"), Column("OUTCOME"), *_STORY)
    print_table(columns, [_processed_cells(one) for one in items])


def _processed_json(one: ProcessedStory) -> Json:
    story = one.story
    return {
        "source": story.source,
        "story_id": story.story_id,
        "title": story.title,
        "url": story.url,
        "score": story.score,
        "outcome": "accepted" if one.memory_id else "refused",
        "interest_id": one.interest_id,
        "interest": one.interest,
        "classifier": one.classifier,
        "classifier_score": one.score,
        "threshold": one.threshold,
        "processed_at": time_text(one.processed_ns),
        "memory_id": one.memory_id,
    }


def _processed_cells(one: ProcessedStory) -> Sequence[str]:
    story = one.story
    return (
        (time_text(one.processed_ns) or "")[:19].replace("T", " "),
        story.source,
        "accepted" if one.memory_id else "refused",
        story.story_id,
        f"{one.score:.2f}",
        one.interest,
        f"{story.score:,}",
        story.title,
        story.url,
    )

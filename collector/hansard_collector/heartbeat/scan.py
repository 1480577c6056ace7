"""The daily scan: top stories of an outside source, held against the interests in memory."""

from __future__ import annotations

from contextlib import closing

from hansard._runtime.locks import hold_lock
from hansard_collector.heartbeat.errors import PhaseSkipped
from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_collector.judges.errors import JudgeMissing
from hansard_collector.scanning import (
    LIMIT,
    SOURCES,
    NoInterests,
    ScanIncomplete,
    Scanner,
    ScanUnderWay,
)
from hansard_store.memory.errors import NotRemembered
from hansard_store.stories.service import StoryBook

SOURCE = "hackernews"


def run(context: CycleContext) -> PhaseResult:
    """Scan once, and keep what is near an interest as notes that nobody vouches for.

    Skipped, with no request to anybody, where `outbound` is off, without a classifier and without
    an interest. A source that is down fails the phase; the next cycle tries again.
    """
    if not context.settings.outbound:
        raise PhaseSkipped("`outbound` is off: no source outside is asked")
    source = SOURCES[SOURCE](context.settings.options.get("scan_url"))
    before = context.judges.usage
    try:
        classifier = context.judges.for_task("topic")
        book = StoryBook(context.folder, context.mode, clock=lambda: context.now_ns)
        with closing(book), hold_lock(context.folder.scanning, ScanUnderWay):
            result = Scanner(source, book, classifier).scan(limit=LIMIT)
    except (JudgeMissing, NoInterests, NotRemembered) as reason:
        raise PhaseSkipped(str(reason)) from None
    if result.has_failed:
        raise ScanIncomplete(result.source)
    figures = {
        "source": result.source,
        "classifier": result.classifier,
        "interests": result.interests,
        **result.figures,
        **context.judges.usage.since(before).json(),
    }
    summary = (
        f"{figures['listed']} stories listed, {figures['fetched']} fetched: "
        f"{figures['accepted']} accepted, {figures['refused']} refused, {figures['failed']} failed"
    )
    return PhaseResult(summary, figures)

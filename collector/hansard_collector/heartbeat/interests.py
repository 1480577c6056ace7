"""Topics of recent memory become interests, each with the entries that support it."""

from __future__ import annotations

from hansard_collector.heartbeat.errors import PhaseSkipped
from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_collector.interests.finder import InterestFinder
from hansard_collector.judges.errors import JudgeMissing
from hansard_store.memory.errors import NotRemembered

NAME = "interests"


def run(context: CycleContext) -> PhaseResult:
    """Extract topics, and write those that memory does not have.

    Skipped without an extractor, without entries, and where nothing was written or ended since the
    last extraction. A malformed answer of a model fails the phase; nothing is written then.
    """
    judges = context.judges
    try:
        extractor = judges.need_extractor()
        finder = InterestFinder(
            context.folder,
            context.mode,
            extractor,
            judges.embedder,
            clock=lambda: context.now_ns,
        )
        recent = finder.recent()
    except (JudgeMissing, NotRemembered) as reason:
        raise PhaseSkipped(str(reason)) from None
    if not recent.count:
        raise PhaseSkipped("memory has no recent decision, note or correction")
    last = context.last(NAME)
    known = {} if last is None else last.figures
    if (known.get("digest"), known.get("extractor")) == (recent.digest, extractor.name):
        raise PhaseSkipped("no entry came or went since the last extraction")
    before = judges.usage
    result = finder.find(recent, step_id=context.step_id)
    figures = {**result.figures, **judges.usage.since(before).json()}
    summary = (
        f"{figures['topics']} topics of {figures['entries']:,} entries: {figures['written']} new, "
        f"{figures['known']} known, {figures['unsupported']} without support"
    )
    return PhaseResult(summary, figures)

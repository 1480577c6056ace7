"""The detector: patterns of failure at three levels, each a blocked task for a person."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import LEVELS, adjusted_rules
from hansard_store.detection.scan import scan
from hansard_store.tasks.service import TaskBook


def run(context: CycleContext) -> PhaseResult:
    """Look for every pattern, and open a task for each that has none. Raises BadQueryError."""
    wanted = adjusted_rules(**detection_options(context.settings.options))
    with closing(open_reader(context.folder)) as connection:
        found = scan(connection, wanted, now_ns=context.now_ns)
    with closing(
        TaskBook(context.folder, context.mode, origin="cli", clock=lambda: context.now_ns)
    ) as book:
        recorded = book.record(found.findings)
    opened = sum(one.outcome == "opened" for one in recorded)
    levels = {level: sum(one.finding.rule.level == level for one in recorded) for level in LEVELS}
    figures = {
        "patterns": len(recorded),
        "opened": opened,
        "counted": sum(one.outcome == "counted" for one in recorded),
        "levels": levels,
        "rules": sorted({one.finding.rule.name for one in recorded}),
        "left_off": found.left_off,
    }
    return PhaseResult(f"{len(recorded)} patterns, {opened} new reviews opened", figures)


def detection_options(options: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    """Return the numbers of rules that are set: a mapping a kind, by the name of the rule."""
    return {
        "thresholds": dict(options.get("detect_threshold", {})),
        "windows_ns": dict(options.get("detect_window", {})),
        "leasts": dict(options.get("detect_min_cases", {})),
    }

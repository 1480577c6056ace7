"""The comparison of weeks, reported weekly, and a rolling test for changes, each day."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from hansard_collector.heartbeat.errors import PhaseSkipped
from hansard_collector.heartbeat.phase import DAY_NS, CycleContext, PhaseResult
from hansard_collector.trends.model import distinct
from hansard_collector.trends.weekly import WEEK, compare_weeks, read_days, rolling
from hansard_store.database.readers import open_reader
from hansard_store.heartbeat.cycles import phase_history

NAME: Final = "longitudinal"
EVERY_NS: Final = DAY_NS
_WEEKLY: Final = "weekly"  # the figure of a run that compared two weeks


def run(context: CycleContext) -> PhaseResult:
    """Test each share of errors for a rise; once a week compare the last one with the one before.

    Raises PhaseSkipped where nothing was recorded in the last four weeks.
    """
    with closing(open_reader(context.folder)) as connection:
        days = read_days(connection, now_ns=context.now_ns)
        if not days:
            raise PhaseSkipped("no call was recorded in the last 28 days")
        trends = rolling(days, now_ns=context.now_ns)
        figures: dict[str, Any] = {"subjects": len(days) - 1, "rises": len(trends)}
        runs = phase_history(
            connection, NAME, since_ns=context.now_ns - WEEK * DAY_NS + DAY_NS // 2
        )
        if not any(_WEEKLY in one.figures for one in runs):
            weeks = compare_weeks(connection, days, now_ns=context.now_ns)
            trends = distinct([*trends, *weeks.trends])
            figures[_WEEKLY] = weeks.json()
    figures["trends"] = [one.json() for one in trends]
    compared = "; compared two weeks" if _WEEKLY in figures else ""
    summary = f"{figures['rises']} error rates have risen in the last 28 days{compared}"
    return PhaseResult(summary, figures)

"""The review of the log: what is worse in the last hour or day than in the week before."""

from __future__ import annotations

from contextlib import closing

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_collector.trends.recent import PERIODS, review
from hansard_store.database.readers import open_reader


def run(context: CycleContext) -> PhaseResult:
    """Compare errors, their kinds and latency with their own baseline; changes nothing."""
    with closing(open_reader(context.folder)) as connection:
        found = review(connection, now_ns=context.now_ns)
    figures = {
        "trends": [one.json() for one in found.trends],
        "left_off": found.left_off,
        "calls": found.calls,
        "errors": found.errors,
        "subjects": found.subjects,
    }
    counts = {period: sum(one.period == period for one in found.trends) for period in PERIODS}
    summary = (
        f"{counts['hour']} things are worse in the last hour, {counts['day']} in the last day; "
        f"{found.errors:,} of {found.calls:,} calls failed in the last day"
    )
    return PhaseResult(summary, figures)

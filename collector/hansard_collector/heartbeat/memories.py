"""What is in memory when the cycle begins, so that later phases and reports can compare."""

from __future__ import annotations

from contextlib import closing

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_store.database.readers import open_reader
from hansard_store.memory.queries import facets


def run(context: CycleContext) -> PhaseResult:
    """Count memory by state, and what is current by type; changes nothing."""
    with closing(open_reader(context.folder)) as connection:
        found = facets(connection, now_ns=context.now_ns)
    current, review = (found.states.get(one, 0) for one in ("current", "review"))
    summary = f"{current:,} records are current, {review:,} wait for a review"
    return PhaseResult(summary, {"states": dict(found.states), "types": dict(found.types)})

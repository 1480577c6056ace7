"""Tasks that are open: blocked until a person decides, or approved for a program that does them."""

from __future__ import annotations

from contextlib import closing

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_store.database.readers import open_reader
from hansard_store.tasks.rows import count_tasks


def run(context: CycleContext) -> PhaseResult:
    """Count tasks by state. The heartbeat does none of them: it is no orchestrator."""
    with closing(open_reader(context.folder)) as connection:
        counts = count_tasks(connection)
    summary = f"{counts['blocked']:,} wait for a person, {counts['approved']:,} are to be done"
    return PhaseResult(summary, counts)

"""What hooks wrote down while no server answered, and how often hooks warned."""

from __future__ import annotations

from contextlib import closing

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_collector.log_sessions.hook_spool import ingest_hook_spool_offline
from hansard_store.database.readers import open_reader
from hansard_store.heartbeat.hook_rates import hook_rates


def run(context: CycleContext) -> PhaseResult:
    """Read the spool of hooks into the store, and count calls with a score within the window."""
    ingested = ingest_hook_spool_offline(context.folder.path, context.mode)
    with closing(open_reader(context.folder)) as connection:
        rates = hook_rates(connection, context.since_ns)
    summary = (
        f"{ingested.stored:,} records of hooks were read; "
        f"{rates.warned:,} of {rates.evaluated:,} calls were warned of"
    )
    figures = {
        "stored": ingested.stored,
        "refused": ingested.refused,
        "waiting": ingested.waiting,
        "evaluated": rates.evaluated,
        "warned": rates.warned,
    }
    return PhaseResult(summary, figures)

"""Memory kept honest: contradicted records superseded, corrections linked, stale ones counted."""

from __future__ import annotations

from contextlib import closing

from hansard_collector.heartbeat.phase import CycleContext, PhaseResult
from hansard_collector.maintenance import Maintainer, MaintenanceSettings, result_json
from hansard_store.memory.maintenance.service import MaintenanceBook


def run(context: CycleContext) -> PhaseResult:
    """Run maintenance; parts without a classifier or embedder are skipped, and say so."""
    settings = context.settings.options.get("maintenance") or MaintenanceSettings()
    with closing(
        MaintenanceBook(
            context.folder,
            context.mode,
            by="heartbeat:maintenance",
            step_id=context.step_id,
            clock=lambda: context.now_ns,
        )
    ) as book:
        result = Maintainer(book, context.judges, settings).run()
    told = result_json(result)
    figures = {**result.figures, **{name: told[name] for name in ("skipped", "stale")}}
    for part in ("contradictions", "corrections"):
        figures[part] = told[part]
    return PhaseResult(result.summary, figures)

"""What a step is compared with most: the calls around it, and both sides of a compaction."""

from __future__ import annotations

import apsw

from hansard_store.runs.queries import RunItem
from hansard_store.steps.queries import StepSkeleton
from hansard_web.diff.compaction import find_compaction, says_compaction
from hansard_web.diff.neighbours import neighbours_of


def step_comparisons(
    connection: apsw.Connection, step: StepSkeleton, run: RunItem, *, now_ns: int
) -> tuple[tuple[str, str], ...]:
    """Return the comparisons that a step offers, each with its address."""
    around = neighbours_of(connection, step, run=run.id)
    found = []
    if around.before is not None:
        found.append(("previous call", f"/diff/{around.before.step_id}/{step.step_id}"))
    if around.after is not None:
        found.append(("next call", f"/diff/{step.step_id}/{around.after.step_id}"))
    compaction = find_compaction(connection, step, now_ns=now_ns) if says_compaction(step) else None
    if compaction is not None:
        href = f"/diff/{compaction.before}/{compaction.after}"
        found.append(("before and after it", href))
    return (*found, ("another step…", f"/diff?left={step.step_id}"))

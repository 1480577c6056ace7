"""Corrections: memory records that name what the record contradicts, beside what they correct.

A correction of a memory stands in that memory's namespace, under its subject; one of a run in the
namespace that the run used, or its agent's, under the tool's name. It holds no words of the claim:
those can be deleted or purged, and a correction outlives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hansard_collector.evaluation.words import moment, normal_words
from hansard_compiler.models.memory import Namespace, WriteMemory
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.memory.records import Memory

TAG: Final = "correction"
ORIGIN: Final = "evaluation"
BY: Final = "heartbeat:evaluation"
_MOST_STEPS: Final = 20
_CONFIDENCE: Final = 0.8  # it rests on what was recorded


def correction_of_memory(
    row: VerdictRow, memory: Memory, *, step_id: str | None
) -> WriteMemory | None:
    """Return the correction of a claim in memory; None where it has no namespace, as of a run."""
    if not memory.namespace:
        return None
    return _write(
        row,
        namespace=Namespace(**memory.namespace),
        subject=memory.subject or row.subject,
        # Unique to what is corrected: two records on one subject have a correction each.
        attribute=f"correction of {memory.memory_id[:16]}",
        scope=memory.scope,
        corrects=memory.memory_id,
        step_id=step_id,
    )


def correction_of_run(
    row: VerdictRow, namespace: Mapping[str, str], *, step_id: str | None
) -> WriteMemory | None:
    """Return the correction of a run's claim; None where nobody would read it."""
    named = {part: name for part, name in namespace.items() if name}
    if not named:
        return None
    return _write(
        row,
        namespace=Namespace(**named),
        subject=row.tool or row.subject,
        attribute=f"correction of {row.subject} {row.polarity}",
        scope={},
        corrects=None,
        step_id=step_id,
    )


def content_of(row: VerdictRow) -> str:
    """Return the text of a correction, in Hansard's own words."""
    tool = row.tool or row.subject
    source = f"run {row.run_id[:8]}" if row.run_id and row.source != "memory" else "memory"
    claim = f"Claimed in {source} at {moment(row.claimed_ns)}: {normal_words(row)}."
    if row.verdict != "contradicted":
        return f"Withdrawn: what arrived later shows otherwise. {claim}"
    ended = "succeeded" if row.polarity == "failure" else "failed"
    count = row.executions - row.failures if ended == "succeeded" else row.failures
    times = "" if row.executions <= 1 else f" ({count:,} of {row.executions:,} runs)"
    at = f" at {moment(row.decided_ns)}" if row.decided_ns else ""
    step = f" (step {row.evidence[0]})" if row.evidence else ""
    later = f" It has succeeded again since {moment(row.recovered_ns)}." if row.recovered_ns else ""
    return f"Correction: {tool} {ended}{at}{step}{times}. {claim}{later}"


def _write(
    row: VerdictRow,
    *,
    namespace: Namespace,
    subject: str,
    attribute: str,
    scope: Mapping[str, Any],
    corrects: str | None,
    step_id: str | None,
) -> WriteMemory:
    evidence = [one for one in row.evidence if len(one) in (49, 56)][:_MOST_STEPS]
    decided = row.decided_ns or row.claimed_ns
    return WriteMemory(
        # A summarizer names the step that did it; run by hand there is none.
        writer="app" if step_id is None else "post_step_summarizer",
        by=BY,
        step_id=step_id,
        memory_type="correction",
        subject=subject,
        attribute=attribute[:256],
        content=content_of(row),
        namespace=namespace,
        scope=dict(scope),
        confidence=_CONFIDENCE,
        freshness_ts=datetime.fromtimestamp(decided / 1e9, UTC),
        tags=[TAG],
        source_run_id=evidence[0][:32] if evidence else None,
        source_step_ids=evidence,
        metadata={
            "origin": ORIGIN,
            "corrects": corrects,
            "evidence": evidence,
            "claim_step": row.step_id,
            "tool": row.tool or row.subject,
            "verdict": row.verdict,
            "recovered_at": moment(row.recovered_ns) if row.recovered_ns else None,
        },
    )

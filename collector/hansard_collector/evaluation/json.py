"""Verdicts as programs get them: the same over HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from hansard_collector.evaluation.words import verdict_words
from hansard_compiler.calls import Json
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.times import time_text


def verdict_json(row: VerdictRow, memories: Mapping[int, str]) -> Json:
    """Return a verdict; `memories` has the ids of the records that it names, by number."""
    return {
        "evaluation_id": row.key.hex(),
        "verdict": row.verdict,
        "action_status": row.action_status,
        "summary": verdict_words(row),
        "reason": row.why,
        "claim": {
            "source": row.source,
            "run_id": row.run_id,
            "step_id": row.step_id,
            "memory_id": None if row.memory is None else memories.get(row.memory),
            "message_id": None if row.message is None else row.message.hex(),
            "sentence": row.said or None,
            "start": row.start,
            "language": row.language,
            "tool": row.subject,
            "is_tool": row.is_tool,
            "qualifier": row.qualifier or None,
            "polarity": row.polarity,
            "at": time_text(row.claimed_ns),
            "ns": str(row.claimed_ns),
        },
        "evidence": {
            "tool": row.tool or None,
            "step_ids": list(row.evidence),
            "executions": row.executions,
            "failures": row.failures,
            "at": time_text(row.decided_ns),
            "recovered_at": time_text(row.recovered_ns),
        },
        "correction_id": None if row.correction is None else memories.get(row.correction),
        "count": row.count,
        "first_seen_at": time_text(row.first_seen_ns),
        "last_seen_at": time_text(row.last_seen_ns),
    }

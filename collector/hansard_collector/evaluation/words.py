"""A verdict as a sentence and as JSON: on pages, in responses, in corrections and as telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from hansard_compiler.calls import Json
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.times import time_text

_MOST_CHARS: Final = 160


def claim_words(row: VerdictRow) -> str:
    """Return what was claimed, quoted as far as it is stored: `said “tests pass”`."""
    verb = "wrote" if row.source == "memory" else "said"
    if row.said:
        sentence = row.said if len(row.said) <= _MOST_CHARS else f"{row.said[: _MOST_CHARS - 1]}…"
        return f"{verb} “{sentence}”"
    return f"{verb} that {normal_words(row)}"


def normal_words(row: VerdictRow) -> str:
    """Return a claim in Hansard's own words, without anything recorded but the tool's name."""
    subject = f"{row.qualifier} {row.subject}".strip()
    return {
        "success": f"{subject} succeeded",
        "failure": f"{subject} failed",
        "acted": f"{subject} was done",
    }[row.polarity]


def evidence_words(row: VerdictRow) -> str:
    """Return what the record shows: `the last run of tests (bash) failed`."""
    subject = f"{row.qualifier} {row.subject}".strip()
    if row.tool and row.tool != row.subject:
        subject = f"{subject} ({row.tool})"
    if row.verdict == "claimed":
        return f"no run of {subject} is recorded"
    if row.verdict == "unknown":
        return f"the outcome of the last run of {subject} is not known"
    has_failed = (row.verdict == "contradicted") == (row.polarity != "failure")
    ended = "failed" if has_failed else "succeeded"
    if row.source != "memory":
        return f"the last run of {subject} {ended}"
    if row.executions <= 1:
        return f"the one run of {subject} {ended}"
    count = row.failures if has_failed else row.executions - row.failures
    return f"{count:,} of {row.executions:,} runs of {subject} {ended}"


def verdict_words(row: VerdictRow) -> str:
    """Return claim and evidence: said “tests pass”; the last run of the tests failed."""
    later = f"; it has succeeded again since {moment(row.recovered_ns)}" if row.recovered_ns else ""
    return f"{claim_words(row)}; {evidence_words(row)}{later}"


def moment(time_ns: int) -> str:
    """Return a time to the second, in UTC."""
    at = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


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

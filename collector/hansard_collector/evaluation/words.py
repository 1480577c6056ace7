"""A verdict as a sentence: on pages, in responses, in corrections and as telemetry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from hansard_store.evaluation.verdicts import VerdictRow

_MOST_CHARS: Final = 160
_LABELS: Final = {
    "confirmed": "confirmed",
    "contradicted": "contradicted",
    "claimed": "no evidence",
    "unknown": "outcome unknown",
}


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


def verdict_label(verdict: str) -> str:
    """Return a verdict as a page names it."""
    return _LABELS[verdict]


def moment(time_ns: int) -> str:
    """Return a time to the second, in UTC."""
    at = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")

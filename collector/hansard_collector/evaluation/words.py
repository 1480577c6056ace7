"""A verdict as a sentence and as JSON: on pages, in responses, in corrections and as telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from hansard_store.bodies import Body, Description, body_of
from hansard_store.evaluation.verdicts import ActionStatus, Source, Verdict, VerdictRow
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


class EvaluatedClaim(Body):
    """What was said, where, and when."""

    source: Source
    run_id: Annotated[str | None, Description("that said it; of memory, that wrote it")]
    step_id: str | None
    memory_id: str | None
    message_id: Annotated[str | None, Description("of a transcript")]
    sentence: Annotated[
        str | None, Description("the sentence; null where it is not stored any more")
    ]
    start: Annotated[int, Description("its place in the text, in characters")]
    language: Literal["en", "de", "fr", "es"]
    tool: Annotated[str, Description("what it is about: a tool, or a topic such as tests")]
    is_tool: Annotated[bool, Description("false: a topic of a data set")]
    qualifier: Annotated[str | None, Description("the part that is spoken of, such as unit")]
    polarity: Literal["success", "failure", "acted"]
    at: str
    ns: str


class EvaluationEvidence(Body):
    """What the record shows; the step that decided is the first."""

    tool: Annotated[str | None, Description("of the step that decided; null: none was found")]
    step_ids: list[str]
    executions: Annotated[int, Description("that were looked at")]
    failures: int
    at: str | None
    recovered_at: Annotated[
        str | None, Description("of a contradiction: since when it succeeds again")
    ]


class ClaimEvaluation(Body):
    """A claim held against the record."""

    evaluation_id: str
    verdict: Verdict
    action_status: Annotated[
        ActionStatus | None, Description("null of a claim that something failed")
    ]
    summary: Annotated[str, Description("claim and evidence in one sentence")]
    reason: str
    claim: EvaluatedClaim
    evidence: EvaluationEvidence
    correction_id: Annotated[str | None, Description("the memory record that corrects it")]
    count: Annotated[int, Description("evaluations that saw it so")]
    first_seen_at: str
    last_seen_at: str


def verdict_json(row: VerdictRow, memories: Mapping[int, str]) -> ClaimEvaluation:
    """Return a verdict; `memories` has the ids of the records that it names, by number."""
    claim = body_of(
        EvaluatedClaim,
        row,
        memory_id=None if row.memory is None else memories.get(row.memory),
        message_id=None if row.message is None else row.message.hex(),
        sentence=row.said or None,
        tool=row.subject,
        qualifier=row.qualifier or None,
        at=time_text(row.claimed_ns),
        ns=str(row.claimed_ns),
    )
    evidence = body_of(
        EvaluationEvidence,
        row,
        tool=row.tool or None,
        step_ids=list(row.evidence),
        at=time_text(row.decided_ns),
    )
    return body_of(
        ClaimEvaluation,
        row,
        evaluation_id=row.key.hex(),
        summary=verdict_words(row),
        reason=row.why,
        claim=claim,
        evidence=evidence,
        correction_id=None if row.correction is None else memories.get(row.correction),
    )

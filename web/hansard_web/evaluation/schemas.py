"""Verdicts on claims as the API describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hansard_web.api.bodies import Body, Page


class EvaluatedClaim(Body):
    """What was said, where, and when."""

    source: Literal["step", "message", "memory"]
    run_id: str | None = Field(description="that said it; of memory, that wrote it")
    step_id: str | None
    memory_id: str | None
    message_id: str | None = Field(description="of a transcript")
    sentence: str | None = Field(description="the sentence; null where it is not stored any more")
    start: int = Field(description="its place in the text, in characters")
    language: Literal["en", "de", "fr", "es"]
    tool: str = Field(description="what it is about: a tool, or a topic such as tests")
    is_tool: bool = Field(description="false: a topic of a data set")
    qualifier: str | None = Field(description="the part that is spoken of, such as unit")
    polarity: Literal["success", "failure", "acted"]
    at: str
    ns: str


class EvaluationEvidence(Body):
    """What the record shows; the step that decided is the first."""

    tool: str | None = Field(description="of the step that decided; null: none was found")
    step_ids: list[str]
    executions: int = Field(description="that were looked at")
    failures: int
    at: str | None
    recovered_at: str | None = Field(description="of a contradiction: since when it succeeds again")


class ClaimEvaluation(Body):
    """A claim held against the record."""

    evaluation_id: str
    verdict: Literal["confirmed", "contradicted", "claimed", "unknown"]
    action_status: Literal["acted", "verified", "contradicted", "unknown"] | None = Field(
        description="null of a claim that something failed"
    )
    summary: str = Field(description="claim and evidence in one sentence")
    reason: str
    claim: EvaluatedClaim
    evidence: EvaluationEvidence
    correction_id: str | None = Field(description="the memory record that corrects it")
    count: int = Field(description="evaluations that saw it so")
    first_seen_at: str
    last_seen_at: str


class EvaluationList(Page):
    """Verdicts, the last found first."""

    items: list[ClaimEvaluation]

"""What a run of maintenance did, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hansard_compiler.calls import Json
from hansard_store.bodies import Body, body_of
from hansard_store.memory.maintenance.reviewed_supersessions import NewSupersession
from hansard_store.memory.maintenance.service import Stale
from hansard_store.memory.records import Memory

Part = Literal["contradictions", "corrections", "staleness"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part that was not done, and why."""

    part: Part
    reason: str


@dataclass(frozen=True, slots=True)
class Act:
    """A supersession that was applied, or is proposed to a person."""

    link: NewSupersession
    older: Memory
    newer: Memory
    task_id: str | None = None  # of a proposal; None in a dry run


@dataclass(slots=True)
class Contradictions:
    """What the two stages of contradiction detection did."""

    classifier: str
    entries: int = 0  # records that were considered
    new: int = 0  # of which those that had not been compared
    pairs: int = 0  # that the full-text filter found
    prefilter_ms: float = 0.0
    calls: int = 0  # of the classifier
    failed: int = 0  # calls without a usable answer; these pairs are left to the next run
    left: int = 0  # pairs beyond the bounds of this run
    changed: int = 0  # pairs of which one record did not stand any more when it was superseded
    waiting: int = 0  # doubtful pairs for which the next run opens a task
    found: int = 0  # pairs that contradict each other, certain or doubtful
    applied: list[Act] = field(default_factory=list)
    proposed: list[Act] = field(default_factory=list)


@dataclass(slots=True)
class Corrections:
    """What linking did."""

    embedder: str
    corrections: int = 0  # without a link before
    embedded: int = 0  # texts that were sent to the embedder
    unlinked: int = 0  # corrections that are near no record
    left: int = 0  # beyond the bounds of this run
    failed: int = 0
    applied: list[Act] = field(default_factory=list)
    proposed: list[Act] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What one run did; a part that was skipped is None."""

    is_dry: bool
    contradictions: Contradictions | None
    corrections: Corrections | None
    stale: Stale
    stale_ns: int
    skipped: Sequence[Skipped] = ()

    @property
    def applied(self) -> list[Act]:
        """Every supersession, of contradictions and of corrections."""
        return [act for part in self._parts for act in part.applied]

    @property
    def proposed(self) -> list[Act]:
        """Everything that waits for a person now."""
        return [act for part in self._parts for act in part.proposed]

    @property
    def _parts(self) -> list[Contradictions | Corrections]:
        parts = (self.contradictions, self.corrections)
        return [part for part in parts if part is not None]

    @property
    def figures(self) -> dict[str, int]:
        """The counts of a run."""
        found, linked = self.contradictions, self.corrections
        return {
            "contradictions_found": 0 if found is None else found.found,
            "corrections_linked": 0 if linked is None else len(linked.applied),
            "stale_entries": self.stale.count,
            "supersessions_applied": len(self.applied),
            "classifier_calls": 0 if found is None else found.calls,
            "review_tasks_opened": len(self.proposed),
        }

    @property
    def summary(self) -> str:
        """One sentence without recorded content."""
        counts = self.figures
        skipped = "".join(f"; {one.part} skipped: {one.reason}" for one in self.skipped)
        return (
            f"{counts['contradictions_found']:,} contradictions, "
            f"{counts['corrections_linked']:,} corrections linked, "
            f"{counts['supersessions_applied']:,} supersessions, "
            f"{counts['review_tasks_opened']:,} for review, "
            f"{counts['stale_entries']:,} not retrieved for {self.stale_ns // _DAY_NS:,} days"
            f"{skipped}"
        )


_DAY_NS = 24 * 3_600 * 10**9


class ContradictionsBody(Body):
    classifier: str
    entries: int
    new: int
    pairs: int
    prefilter_ms: float
    calls: int
    failed: int
    left: int
    changed: int
    waiting: int
    found: int


class CorrectionsBody(Body):
    embedder: str
    corrections: int
    embedded: int
    linked: int
    unlinked: int
    left: int
    failed: int


def result_json(result: MaintenanceResult) -> Json:
    """Return a run as programs see it."""
    found, linked = result.contradictions, result.corrections
    return {
        "dry_run": result.is_dry,
        **result.figures,
        "skipped": [{"part": one.part, "reason": one.reason} for one in result.skipped],
        "contradictions": found
        and body_of(ContradictionsBody, found, prefilter_ms=round(found.prefilter_ms, 1)),
        "corrections": linked and body_of(CorrectionsBody, linked, linked=len(linked.applied)),
        "stale": {
            "days": result.stale_ns // _DAY_NS,
            "count": result.stale.count,
            "never_read": result.stale.never_read,
            "longest": list(result.stale.longest),
        },
        "supersessions": [_act_json(one) for one in result.applied],
        "reviews": [_act_json(one) for one in result.proposed],
    }


def _act_json(one: Act) -> Json:
    return {
        "older": one.older.memory_id,
        "newer": one.newer.memory_id,
        "subject": one.older.subject,
        "cause": one.link.cause,
        "rationale": one.link.rationale,
        "score": one.link.score,
        "judge": one.link.judge,
        "task_id": one.task_id,
    }

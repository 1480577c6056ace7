"""What a run of maintenance did, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hansard_compiler.calls import Json
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


@dataclass(frozen=True, slots=True)
class Contradictions:
    """What the two stages of contradiction detection did."""

    classifier: str
    entries: int  # records that were considered
    new: int  # of which those that had not been compared
    pairs: int  # that the full-text filter found
    prefilter_ms: float
    calls: int  # of the classifier
    failed: int  # calls without a usable answer; these pairs are left to the next run
    left: int  # pairs beyond the bounds of this run
    changed: int  # pairs of which one record did not stand any more when it was to be superseded
    waiting: int  # doubtful pairs for which the next run opens a task
    found: int  # pairs that contradict each other, certain or doubtful
    applied: Sequence[Act] = ()
    proposed: Sequence[Act] = ()


@dataclass(frozen=True, slots=True)
class Corrections:
    """What linking did."""

    embedder: str
    corrections: int  # without a link before
    embedded: int  # texts that were sent to the embedder
    unlinked: int  # corrections that are near no record
    left: int  # beyond the bounds of this run
    failed: int
    applied: Sequence[Act] = ()
    proposed: Sequence[Act] = ()


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
        parts = (self.contradictions, self.corrections)
        return [act for part in parts if part is not None for act in part.applied]

    @property
    def proposed(self) -> list[Act]:
        """Everything that waits for a person now."""
        parts = (self.contradictions, self.corrections)
        return [act for part in parts if part is not None for act in part.proposed]

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


def result_json(result: MaintenanceResult) -> Json:
    """Return a run as programs see it."""
    return {
        "dry_run": result.is_dry,
        **result.figures,
        "skipped": [{"part": one.part, "reason": one.reason} for one in result.skipped],
        "contradictions": _contradictions_json(result.contradictions),
        "corrections": _corrections_json(result.corrections),
        "stale": {
            "days": result.stale_ns // _DAY_NS,
            "count": result.stale.count,
            "never_read": result.stale.never_read,
            "longest": list(result.stale.longest),
        },
        "supersessions": [_act_json(one) for one in result.applied],
        "reviews": [_act_json(one) for one in result.proposed],
    }


def _contradictions_json(one: Contradictions | None) -> Mapping[str, Any] | None:
    if one is None:
        return None
    return {
        "classifier": one.classifier,
        "entries": one.entries,
        "new": one.new,
        "pairs": one.pairs,
        "prefilter_ms": round(one.prefilter_ms, 1),
        "calls": one.calls,
        "failed": one.failed,
        "left": one.left,
        "changed": one.changed,
        "waiting": one.waiting,
        "found": one.found,
    }


def _corrections_json(one: Corrections | None) -> Mapping[str, Any] | None:
    if one is None:
        return None
    return {
        "embedder": one.embedder,
        "corrections": one.corrections,
        "embedded": one.embedded,
        "linked": len(one.applied),
        "unlinked": one.unlinked,
        "left": one.left,
        "failed": one.failed,
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

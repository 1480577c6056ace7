"""The verdict on a claim: confirmed, contradicted, claimed, or unknown.

*Claimed* is a claim without any evidence; *unknown* one whose evidence does not tell. The absence
of evidence is never read as success or failure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from hansard_collector.evaluation.claims import Claim
from hansard_collector.evaluation.outcomes import (
    Evidence,
    Execution,
    Outcome,
    is_relevant,
    outcome_of,
)
from hansard_collector.evaluation.topics import Polarity

VerdictKind = Literal["confirmed", "contradicted", "claimed", "unknown"]
VERDICTS: Final[tuple[VerdictKind, ...]] = ("confirmed", "contradicted", "claimed", "unknown")
_MOST_EVIDENCE: Final = 20  # steps that a verdict names


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with what it rests on."""

    verdict: VerdictKind
    why: str  # one sentence, nothing recorded
    evidence: tuple[str, ...] = ()  # step ids, the one that decided first
    tool: str = ""  # of the step that decided
    executions: int = 0
    failures: int = 0
    decided_ns: int | None = None  # when the deciding execution ended
    recovered_ns: int | None = None  # of a contradicted success: since when it succeeds again


def judge_claim(
    claim: Claim, before: Iterable[Execution], evidence: Sequence[Evidence] = ()
) -> Judgement:
    """Judge a claim by the last relevant execution before it; `before` is newest first."""
    last = next((one for one in before if is_relevant(one, claim.topic)), None)
    if last is None:
        return Judgement("claimed", "no execution of it is recorded")
    outcome = outcome_of(last, claim.topic, evidence)
    verdict, why = _compared(claim, last, outcome)
    failed = int(outcome.kind == "failed")
    return Judgement(verdict, why, (last.step_id,), last.tool, 1, failed, _moment(last))


@dataclass(frozen=True, slots=True)
class Record:
    """Executions in the order of time with how each ended: made once, asked for many claims."""

    executions: Sequence[Execution]
    outcomes: Sequence[Outcome]
    moments: Sequence[int]
    failed: Sequence[int]  # places of those that failed
    succeeded: Sequence[int]

    @classmethod
    def of(cls, executions: Sequence[Execution], outcomes: Sequence[Outcome]) -> Record:
        """Return the record of relevant executions, the oldest first."""
        places: dict[str, list[int]] = {"failed": [], "succeeded": [], "unknown": []}
        for place, one in enumerate(outcomes):
            places[one.kind].append(place)
        moments = [_moment(one) for one in executions]
        return cls(executions, outcomes, moments, places["failed"], places["succeeded"])

    @property
    def is_mixed(self) -> bool:
        """Whether some failed and others succeeded."""
        return bool(self.failed) and bool(self.succeeded)

    def steps(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the newest steps of some places, the last first."""
        return tuple(self.executions[at].step_id for at in reversed(places[-_MOST_EVIDENCE:]))

    def recovery(self, failure: int) -> int | None:
        """Return when the first success after a place ended; None where none did."""
        later = bisect_right(self.moments, self.moments[failure])
        at = bisect_left(self.succeeded, later)
        return self.moments[self.succeeded[at]] if at < len(self.succeeded) else None


def judge_standing(polarity: Polarity, record: Record, *, said_ns: int) -> Judgement:
    """Judge a claim that stands until it is taken back, such as "the tool is healthy" in memory.

    The last execution before it counts, and all after it: one failure contradicts that the tool
    succeeds.
    """
    first = max(0, bisect_right(record.moments, said_ns) - 1)
    count = len(record.executions) - first
    if not count:
        return Judgement("claimed", "no execution of it is recorded")
    failed = record.failed[bisect_left(record.failed, first) :]
    succeeded = record.succeeded[bisect_left(record.succeeded, first) :]
    is_failure = polarity == "failure"
    against, for_it = (succeeded, failed) if is_failure else (failed, succeeded)
    if against:
        last = against[-1]
        why = f"{len(against)} of {count} executions {'succeeded' if is_failure else 'failed'}"
        return Judgement(
            "contradicted", why, record.steps(against), record.executions[last].tool, count,
            len(failed), record.moments[last], None if is_failure else record.recovery(last),
        )  # fmt: skip
    if for_it:
        why = f"{len(for_it)} of {count} executions bear it out, and none contradicts it"
        last = for_it[-1]
        return Judgement(
            "confirmed", why, record.steps(for_it), record.executions[last].tool, count,
            len(failed), record.moments[last],
        )  # fmt: skip
    latest = record.executions[-1]
    why = f"the outcome of its last execution is not known: {record.outcomes[-1].why}"
    return Judgement("unknown", why, (latest.step_id,), latest.tool, count, 0, record.moments[-1])


def _compared(claim: Claim, last: Execution, outcome: Outcome) -> tuple[VerdictKind, str]:
    if outcome.kind == "unknown":
        return "unknown", f"the outcome of the last execution is not known: {outcome.why}"
    has_failed = outcome.kind == "failed"
    is_borne_out = has_failed == (claim.polarity == "failure")
    # A part of what ran: the whole says nothing of it, unless all of it went well.
    is_other = bool(claim.qualifier) and not _speaks_of(last, claim.qualifier)
    if is_other and (has_failed or claim.polarity == "failure"):
        return "unknown", f"the last execution is not of that part alone: {outcome.why}"
    words = "failed" if has_failed else "succeeded"
    verdict: VerdictKind = "confirmed" if is_borne_out else "contradicted"
    return verdict, f"the last execution {words}: {outcome.why}"


def _speaks_of(execution: Execution, word: str) -> bool:
    if word in execution.tool.lower():
        return True
    try:
        told = orjson.dumps(execution.arguments).decode().lower()
    except TypeError:
        return False
    return word in told


def _moment(one: Execution) -> int:
    return one.started_ns if one.ended_ns is None else one.ended_ns

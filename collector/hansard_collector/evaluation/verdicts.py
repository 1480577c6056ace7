"""The verdict on a claim: confirmed, contradicted, claimed, or unknown.

*Claimed* is a claim without any evidence; *unknown* one whose evidence does not tell. The absence
of evidence is never read as success or failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def judge_standing(
    polarity: Polarity,
    executions: Sequence[Execution],
    outcome: Callable[[Execution], Outcome],
    *,
    said_ns: int,
) -> Judgement:
    """Judge a claim that stands until it is taken back, such as "the tool is healthy" in memory.

    The last execution before it counts, and all after it: one failure contradicts that the tool
    succeeds. `executions` are relevant ones in the order of time.
    """
    earlier = [one for one in executions if _moment(one) <= said_ns]
    counted = [*earlier[-1:], *(one for one in executions if _moment(one) > said_ns)]
    if not counted:
        return Judgement("claimed", "no execution of it is recorded")
    told = [(one, outcome(one)) for one in counted]
    failed = [one for one, found in told if found.kind == "failed"]
    succeeded = [one for one, found in told if found.kind == "succeeded"]
    if polarity == "failure":
        against, against_words = succeeded, "succeeded"
        for_it = failed
    else:
        against, against_words = failed, "failed"
        for_it = succeeded
    if against:
        last = against[-1]
        recovered = None
        if polarity != "failure":
            later = [one for one in succeeded if _moment(one) > _moment(last)]
            recovered = _moment(later[0]) if later else None
        why = f"{len(against)} of {len(counted)} executions {against_words}"
        return Judgement(
            "contradicted", why, _steps(against), last.tool, len(counted), len(failed),
            _moment(last), recovered,
        )  # fmt: skip
    if for_it:
        why = f"{len(for_it)} of {len(counted)} executions bear it out, and none contradicts it"
        last = for_it[-1]
        return Judgement(
            "confirmed", why, _steps(for_it), last.tool, len(counted), len(failed), _moment(last)
        )
    last = counted[-1]
    why = f"the outcome of its last execution is not known: {told[-1][1].why}"
    return Judgement("unknown", why, (last.step_id,), last.tool, len(counted), 0, _moment(last))


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


def _steps(executions: Sequence[Execution]) -> tuple[str, ...]:
    return tuple(one.step_id for one in reversed(executions))[:_MOST_EVIDENCE]


def _moment(one: Execution) -> int:
    return one.started_ns if one.ended_ns is None else one.ended_ns

"""The verdict on a claim: confirmed, contradicted, claimed, or unknown.

*Claimed* is a claim without any evidence; *unknown* one whose evidence does not tell. The absence
of evidence is never read as success or failure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final

import orjson

from hansard_collector.evaluation.claims import Claim
from hansard_collector.evaluation.outcomes import (
    OutcomeEvidence,
    ToolExecution,
    ToolOutcome,
    is_relevant,
    outcome_of,
)
from hansard_collector.evaluation.sentences import words_in
from hansard_collector.evaluation.topics import Polarity
from hansard_store.evaluation.verdicts import Verdict

_MOST_EVIDENCE: Final = 20  # steps that a verdict names
_MOST_COMPARED: Final = 10  # executions before the last one, of other arguments
_WHOLE: Final = frozenset(
    ("all", "every", "everything", "alle", "alles", "tous", "toutes", "tout", "todas", "todos")
)
_PARTS: Final = frozenset(("but", "while", "except", "aber", "mais", "pero"))


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A verdict with what it rests on."""

    verdict: Verdict
    why: str  # one sentence, nothing recorded
    evidence: tuple[str, ...] = ()  # step ids, the one that decided first
    tool: str = ""  # of the step that decided
    executions: int = 0
    failures: int = 0
    decided_ns: int | None = None  # when the deciding execution ended
    recovered_ns: int | None = None  # of a contradicted success: since when it succeeds again


def judge_claim(
    claim: Claim, before: Iterable[ToolExecution], evidence: Sequence[OutcomeEvidence] = ()
) -> ClaimJudgement:
    """Judge a claim by the last relevant execution before it; `before` is newest first."""
    relevant = (one for one in before if is_relevant(one, claim.topic))
    last = next(relevant, None)
    if last is None:
        return ClaimJudgement("claimed", "no execution of it is recorded")
    outcome = outcome_of(last, claim.topic, evidence)
    verdict, why = _compared(claim, last, outcome)
    if verdict == "contradicted":
        others = _others(last, islice(relevant, _MOST_COMPARED))
        if (found := _of_another(claim, last, others, evidence)) is not None:
            return found
    failed = int(outcome.kind == "failed")
    return ClaimJudgement(verdict, why, (last.step_id,), last.tool, 1, failed, _moment(last))


def _others(last: ToolExecution, before: Iterable[ToolExecution]) -> Iterator[ToolExecution]:
    """Yield executions of the same run with other arguments than the last one's."""
    run = last.step_id.partition("-")[0]
    for one in before:
        if not one.step_id.startswith(run):
            return
        if one.arguments != last.arguments:
            yield one


def _of_another(
    claim: Claim,
    last: ToolExecution,
    others: Iterable[ToolExecution],
    evidence: Sequence[OutcomeEvidence],
) -> ClaimJudgement | None:
    """Judge a claim that the last execution contradicts by one of something else that ran, too.

    Three flights were booked and the third failed: "I booked the flight" may be about another.
    None: the last execution is what the claim is about.
    """
    words = frozenset(words_in(claim.sentence))
    is_whole = not _WHOLE.isdisjoint(words)
    for one in others:
        outcome = outcome_of(one, claim.topic, evidence)
        if _compared(claim, one, outcome)[0] != "confirmed":
            continue
        mine, its = _named(words, last, one), _named(words, one, last)
        if its and not mine:
            why = f"the execution that it names: {outcome.why}"
            failed = int(outcome.kind == "failed")
            return ClaimJudgement(
                "confirmed", why, (one.step_id,), one.tool, 1, failed, _moment(one)
            )
        is_of_last = bool(mine) and not its and words.isdisjoint(_PARTS)
        if not is_of_last and not is_whole and (its or claim.polarity == "acted"):
            why = "executions with other arguments ended otherwise"
            return ClaimJudgement(
                "unknown", why, (last.step_id, one.step_id), last.tool, 2, 1, _moment(last)
            )
    return None


def _named(words: Set[str], execution: ToolExecution, other: ToolExecution) -> Set[str]:
    """Return the words that are among the arguments of one execution and not of another."""
    mine, its = (frozenset(words_in(_text(one.arguments))) for one in (execution, other))
    return {one for one in words & (mine - its) if len(one) > 1}


def _text(arguments: object) -> str:
    try:
        return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    except TypeError:
        return ""


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """Executions in the order of time with how each ended: made once, used for many claims."""

    executions: Sequence[ToolExecution]
    outcomes: Sequence[ToolOutcome]
    moments: Sequence[int]
    failed: Sequence[int]  # places of those that failed
    succeeded: Sequence[int]

    @classmethod
    def of(
        cls, executions: Sequence[ToolExecution], outcomes: Sequence[ToolOutcome]
    ) -> VerdictRecord:
        """Return the record of relevant executions, the oldest first."""
        places: dict[str, list[int]] = {"failed": [], "succeeded": [], "unknown": []}
        for index, one in enumerate(outcomes):
            places[one.kind].append(index)
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


def judge_standing(polarity: Polarity, record: VerdictRecord, *, output_ns: int) -> ClaimJudgement:
    """Judge a claim that holds until it is taken back, such as "the tool is healthy" in memory.

    The last execution before it counts, and all after it: one failure contradicts that the tool
    succeeds.
    """
    first = max(0, bisect_right(record.moments, output_ns) - 1)
    count = len(record.executions) - first
    if not count:
        return ClaimJudgement("claimed", "no execution of it is recorded")
    failed = record.failed[bisect_left(record.failed, first) :]
    succeeded = record.succeeded[bisect_left(record.succeeded, first) :]
    is_failure = polarity == "failure"
    against, for_it = (succeeded, failed) if is_failure else (failed, succeeded)
    if against:
        last = against[-1]
        why = f"{len(against)} of {count} executions {'succeeded' if is_failure else 'failed'}"
        return ClaimJudgement(
            "contradicted", why, record.steps(against), record.executions[last].tool, count,
            len(failed), record.moments[last], None if is_failure else record.recovery(last),
        )  # fmt: skip
    if for_it:
        why = f"{len(for_it)} of {count} executions bear it out, and none contradicts it"
        last = for_it[-1]
        return ClaimJudgement(
            "confirmed", why, record.steps(for_it), record.executions[last].tool, count,
            len(failed), record.moments[last],
        )  # fmt: skip
    latest = record.executions[-1]
    why = f"the outcome of its last execution is not known: {record.outcomes[-1].why}"
    return ClaimJudgement(
        "unknown", why, (latest.step_id,), latest.tool, count, 0, record.moments[-1]
    )


def _compared(claim: Claim, last: ToolExecution, outcome: ToolOutcome) -> tuple[Verdict, str]:
    if outcome.kind == "unknown":
        return "unknown", f"the outcome of the last execution is not known: {outcome.why}"
    has_failed = outcome.kind == "failed"
    is_borne_out = has_failed == (claim.polarity == "failure")
    # A part of what ran: the whole says nothing of it, unless all of it went well.
    is_other = bool(claim.qualifier) and not _speaks_of(last, claim.qualifier)
    if is_other and (has_failed or claim.polarity == "failure"):
        return "unknown", f"the last execution is not of that part alone: {outcome.why}"
    words = "failed" if has_failed else "succeeded"
    verdict: Verdict = "confirmed" if is_borne_out else "contradicted"
    return verdict, f"the last execution {words}: {outcome.why}"


def _speaks_of(execution: ToolExecution, word: str) -> bool:
    if word in execution.tool.lower():
        return True
    try:
        arguments = orjson.dumps(execution.arguments).decode().lower()
    except TypeError:
        return False
    return word in arguments


def _moment(one: ToolExecution) -> int:
    return one.started_ns if one.ended_ns is None else one.ended_ns

"""From a step on: later turns of the run against recorded tool results, until they part.

A tool is never run. As long as the model asks for the recorded calls, the recorded results are its
results; the first answer that cannot be followed is named, and the caller decides what next.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.live import RecordedResult, live_calls, results_in
from hansard_compiler.replay.turns import (
    Divergence,
    calls_in,
    first_divergence,
    with_answer,
)
from hansard_store.replays import later_calls
from hansard_store.steps.queries import steps_by_number
from hansard_web.replay.changed_call import Making, changed_turn
from hansard_web.replay.fork.live import call_body, turn_estimate
from hansard_web.replay.recompile import Past, Spoken
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.source import ReplayedStep, read_source
from hansard_web.replay.trace import CallOutcome
from hansard_web.replay.transport.turn import ReplayTurn, exact_turn

MOST_TURNS: Final = 200
_LOOKED_AT: Final = 50  # later calls, among which the one that follows is looked for
# Without the recorded bytes a later turn can still be rebuilt; the first one was requested exactly.
_REBUILDABLE: Final = frozenset(
    {
        ReplayReason.NOT_RECORDED,
        ReplayReason.BYTES_MISSING,
        ReplayReason.BYTES_REDACTED,
        ReplayReason.SECRETS_CUT,
    }
)


@dataclass(slots=True)
class Fork:
    """The turns of one fork, one after the other; it holds the messages of each."""

    request: ReplayInput
    making: Making
    past: Past = ()

    def after(
        self, connection: apsw.Connection, turn: ReplayTurn, reply: CallOutcome
    ) -> ReplayTurn | Divergence | None:
        """Return the turn that follows an answer, or where it parts; None: the run ended there.

        Raises NotReplayable where the next turn cannot be made.
        """
        recorded = () if turn.source.call is None else turn.source.call.output
        spoken = Spoken(recorded, reply.answer.call.output)
        parted = first_divergence(recorded, spoken.found)
        if parted is not None:
            return parted
        later = following(connection, turn.source)
        if later is None:
            return None
        if not spoken.is_same and not calls_in(recorded):
            return Divergence("other_answer")
        self.past = (*self.past, spoken)
        return self._turn(connection, later)

    def _turn(self, connection: apsw.Connection, later: ReplayedStep) -> ReplayTurn:
        """Return a later turn: exactly as recorded, unless something was changed or said anew."""
        request, making = self.request, self.making
        if not request.mutations and all(one.is_same for one in self.past):
            try:
                return exact_turn(connection, later, request, making.reach)
            except NotReplayable as why:
                if why.reason not in _REBUILDABLE or request.recorded:
                    raise
        return changed_turn(connection, later, request, making, past=self.past)


def following(connection: apsw.Connection, source: ReplayedStep) -> ReplayedStep | None:
    """Return the first later call of the run that holds this one's answer."""
    call, step = source.call, source.step
    if call is None or not call.output:
        return None
    numbers = later_calls(
        connection, step.run_id, sort_ns=step.sort_ns, span=step.id, limit=_LOOKED_AT
    )
    steps = steps_by_number(connection, numbers, now_ns=time.time_ns())
    for number in numbers:
        one = steps.get(number)
        if one is None or one.duplicate != step.duplicate:
            continue
        later = read_step(connection, number).normal.call
        if later is not None and with_answer(later.input, call.output, call.output) is not None:
            return read_source(connection, one.step_id, now_ns=time.time_ns())
    return None


def recorded_results(connection: apsw.Connection, source: ReplayedStep) -> list[RecordedResult]:
    """Return what tools gave from a call on, in the order of the record: its own calls first."""
    known = Counter(map(_pair, _results(source)))
    found: list[RecordedResult] = []
    later = following(connection, source)
    for _ in range(MOST_TURNS):
        if later is None:
            break
        new = _beyond(known, _results(later))
        known.update(map(_pair, new))
        found += new
        later = following(connection, later)
    return found


def _results(source: ReplayedStep) -> list[RecordedResult]:
    return [] if source.call is None else results_in(source.call.input, source.step.step_id)


def _pair(one: RecordedResult) -> tuple[str, str]:
    return one.call_id, one.key


def _beyond(
    known: Counter[tuple[str, str]], results: Sequence[RecordedResult]
) -> list[RecordedResult]:
    """Return the results beyond the known ones. Counted: a server may give every call one id."""
    left = Counter(known)
    left.subtract(map(_pair, results))
    new = []
    for one in reversed(results):
        if left[_pair(one)] < 0:
            left[_pair(one)] += 1
            new.append(one)
    return new[::-1]


def parting_body(
    parted: Divergence,
    turn: ReplayTurn,
    reply: CallOutcome,
    *,
    number: int,
    pool: Sequence[RecordedResult],
) -> Json:
    """Return what the report says of where a fork parted, and what it takes to go on.

    `number` counts the turns from 1. To go on, calls that were not recorded would have to be run:
    that is for a program's gate, with a person's word, and never for the replay.
    """
    asked_for = live_calls(reply.answer.call.output, turn=number, pool=pool, used=())
    needed = any(one.state == "needed" for one in asked_for)
    return {
        "divergence": {
            "turn": number,
            "source_step_id": turn.source.step.step_id,
            "step_id": reply.step_id,
            **parted.json(),
        },
        "ask": {
            "kind": "continue_live",
            "needs": "results" if needed else "nothing",
            "step_id": reply.step_id,
            "calls": [call_body(one) for one in asked_for],
            "estimate": turn_estimate(turn, reply.answer),
        },
    }

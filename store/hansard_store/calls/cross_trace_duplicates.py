"""A call that two traces report, counted in one of them, in whatever order they came.

Outside of a run, a client that records itself and a framework that records it begin a trace each.
Both name the provider's response id. Two calls of different runs are one call if they have one
response id, come from one program but from two instrumentations, agree in model and, unless one
was at work within the other, in usage, and were at work at the same time. The response id alone
proves nothing: scripted models give the same one again and again, and one instrumentation reports
each call once.

The verdict is on the runs that report a response id. It follows from what is stored of them alone,
so it is the same after a late arrival, a deletion and a rebuild. It is taken at the end of each
transaction, for the response ids of the calls that it changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.calls import usage_rollup
from hansard_store.calls.duplicates import CALL_FACTS, OURS, CallFacts, is_repeat
from hansard_store.runs.projection import RunWriter
from hansard_store.steps.flags import SpanFlag

# Runs that report one response id, before and after a run: real ids have one or two, a scripted
# model has all its calls under one.
_NEAR = 8
_MOST_CALLS = 64

# Of (response id, run): those that another run reports. Two seeks in an index each.
_SHARED = """
SELECT value ->> 0, value ->> 1 FROM json_each(?)
WHERE value ->> 1 <>
    (SELECT run FROM call WHERE response_id = value ->> 0 ORDER BY run LIMIT 1)
  OR value ->> 1 <>
    (SELECT run FROM call WHERE response_id = value ->> 0 ORDER BY run DESC LIMIT 1)
"""
_RUNS_NEAR = """
SELECT run FROM (
  SELECT DISTINCT run FROM call WHERE response_id = :id AND run < :run
  ORDER BY run DESC LIMIT :most)
UNION ALL
SELECT run FROM (
  SELECT DISTINCT run FROM call WHERE response_id = :id AND run > :run
  ORDER BY run LIMIT :most)
UNION ALL SELECT :run
"""
_CALLS = f"""
SELECT call.run, run.trace_id, call.counted, span.flags, span.parent_span_id IS NULL,
  span.resource, resource.service_name, {CALL_FACTS}
FROM json_each(:runs) AS wanted
  CROSS JOIN call ON call.response_id = :id AND call.run = wanted.value
  CROSS JOIN span ON span.id = call.span
  CROSS JOIN run ON run.id = call.run
  CROSS JOIN resource ON resource.id = span.resource
WHERE candidate = 1
LIMIT {_MOST_CALLS}
"""
_OF_SPANS = """
SELECT DISTINCT call.response_id FROM json_each(:spans) AS gone CROSS JOIN call
  ON call.span = gone.value WHERE call.response_id IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class _Call:
    run: int
    trace_id: bytes
    counted: bool
    flags: int
    is_root: bool
    resource: int
    service: str | None
    facts: CallFacts

    @property
    def is_elsewhere(self) -> bool:
        return bool(self.flags & SpanFlag.REPORTED_ELSEWHERE)

    @property
    def stands_in_its_run(self) -> bool:
        """Whether its own run has no other span that reports it."""
        return self.counted or self.is_elsewhere

    @property
    def order(self) -> tuple[bool, bool, int, int, int]:
        """Where it is preferred: inside of a run, recorded by Hansard, else by instrumentation."""
        facts = self.facts
        return self.is_root, facts.dialect != OURS, facts.scope, facts.start_ns, facts.span


def settle(connection: apsw.Connection, runs: RunWriter) -> None:
    """Judge what this transaction changed; costs one query where no response id is shared."""
    changed = [(response, run.id) for run in runs.changed() for response in run.responses]
    settle_responses(connection, runs, changed)


def settle_responses(
    connection: apsw.Connection, runs: RunWriter, changed: Iterable[tuple[str, int]]
) -> None:
    """Judge response ids of runs that report them, or no longer do, and what is near them."""
    hashes = json.dumps(sorted(changed))
    if hashes == "[]":
        return
    shared: list[Any] = connection.execute(_SHARED, (hashes,)).fetchall()
    for response, run in shared:
        _settle_around(connection, runs, response, run)


def responses_of(connection: apsw.Connection, spans: Sequence[int]) -> list[str]:
    """Return the response ids that some spans report."""
    return [row[0] for row in connection.execute(_OF_SPANS, {"spans": json.dumps(spans)})]


def _settle_around(connection: apsw.Connection, runs: RunWriter, response: str, run: int) -> None:
    """Judge the calls of a run with a response id, and those that they may speak against."""
    near = _calls_near(connection, response, run)
    mine = near.pop(run, [])
    _judge(connection, runs, mine, near.values())
    for other, calls in near.items():
        if any(call.is_elsewhere or _repeats_one(call, mine) for call in calls):
            others = _calls_near(connection, response, other)
            _judge(connection, runs, others.pop(other, []), others.values())


def _calls_near(connection: apsw.Connection, response: str, run: int) -> dict[int, list[_Call]]:
    """Return the calls with a response id, of a run and of those stored just before and after."""
    parameters = {"id": response, "run": run, "most": _NEAR}
    runs = [row[0] for row in connection.execute(_RUNS_NEAR, parameters)]
    found: defaultdict[int, list[_Call]] = defaultdict(list)
    rows: Iterator[Any] = connection.execute(_CALLS, {"id": response, "runs": json.dumps(runs)})
    for number, trace_id, counted, flags, is_root, resource, service, *facts in rows:
        found[number].append(
            _Call(
                number, trace_id, bool(counted), flags, bool(is_root), resource, service,
                CallFacts(*facts),
            )
        )  # fmt: skip
    return found


def _judge(
    connection: apsw.Connection,
    runs: RunWriter,
    calls: Sequence[_Call],
    others: Iterable[Sequence[_Call]],
) -> None:
    """Count the calls of one run, except those that a preferred run reports."""
    if not calls:
        return
    position = _position(calls)
    preferred = [call for other in others if _position(other) < position for call in other]
    for call in calls:
        is_elsewhere = call.stands_in_its_run and _repeats_one(call, preferred)
        if is_elsewhere != call.is_elsewhere:
            run = runs.find(call.trace_id)
            if run is not None:
                usage_rollup.set_reported_elsewhere(
                    connection, run, call.facts.span, elsewhere=is_elsewhere
                )


def _position(calls: Sequence[_Call]) -> tuple[Any, ...]:
    """Return the place of a run among those that report a call.

    First one that counts the call in a step that does not name the response id: nothing could take
    the call out of its totals.
    """
    return any(call.stands_in_its_run for call in calls), min(call.order for call in calls)


def _repeats_one(call: _Call, others: Iterable[_Call]) -> bool:
    return any(
        call.facts.scope != other.facts.scope
        and _is_one_program(call, other)
        and _overlap(call.facts, other.facts)
        and is_repeat(other.facts, call.facts)
        for other in others
    )


def _is_one_program(one: _Call, other: _Call) -> bool:
    if one.resource == other.resource:
        return True
    return bool(one.service) and one.service == other.service


def _overlap(one: CallFacts, other: CallFacts) -> bool:
    one_end, other_end = one.end_ns or one.start_ns, other.end_ns or other.start_ns
    return one.start_ns <= other_end and other.start_ns <= one_end

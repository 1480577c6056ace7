"""Calls that two traces of one prompt tell: counted in each run, and once in their group.

Spans may tell a call in one trace and log records, or another instrumentation, in another one. The
rules are those of one trace (duplicates.py), but stricter, as rounds of a prompt may run at once.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from hansard_store.calls.duplicates import CALL_FACTS, OURS, CallFacts, is_repeat
from hansard_store.runs.projection import USAGE_COLUMNS

_MOST_CALLS = 10_000  # of all groups that are looked at together
_CALLS = f"""
SELECT call.run, {", ".join(f"call.{column}" for column in USAGE_COLUMNS)}, {CALL_FACTS}
FROM json_each(:runs) AS wanted
  CROSS JOIN call ON call.run = wanted.value CROSS JOIN span ON span.id = call.span
WHERE call.counted = 1 LIMIT {_MOST_CALLS}
"""
_TOOLS = f"""
SELECT tool_event.run, tool_event.call_id, tool_event.name, requested, ran, ran_by.sort_ns,
  coalesce(ran_by.end_ns, ran_by.sort_ns), ran_by.scope
FROM json_each(:runs) AS wanted
  CROSS JOIN tool_event ON tool_event.run = wanted.value AND tool_event.call_id IS NOT NULL
  LEFT JOIN span AS ran_by ON ran_by.id = tool_event.ran
ORDER BY tool_event.id LIMIT {_MOST_CALLS}
"""


@dataclass(slots=True)
class Repeats:
    """What the runs of a group count more than once together."""

    calls: int = 0
    tools: int = 0
    usage: dict[str, int] = field(default_factory=dict)  # by the columns of a run


class _Call(NamedTuple):
    run: int
    usage: tuple[int | None, ...]
    facts: CallFacts


class _Tool(NamedTuple):
    run: int
    call_id: str
    name: str | None
    requested: int | None
    ran: int | None
    start_ns: int | None  # of the step that ran it, as the next two
    end_ns: int | None
    scope: int | None


def find_repeats(connection: apsw.Connection, groups: Mapping[int, str]) -> dict[str, Repeats]:
    """Return what is reported more than once, by group; `groups`: that of each run (run.id)."""
    parameters = {"runs": json.dumps(list(groups))}
    calls: defaultdict[str, list[_Call]] = defaultdict(list)
    tools: defaultdict[str, list[_Tool]] = defaultdict(list)
    for run, *row in connection.execute(_CALLS, parameters):
        usage, facts = row[: len(USAGE_COLUMNS)], row[len(USAGE_COLUMNS) :]
        calls[groups[run]].append(_Call(run, tuple(usage), CallFacts(*facts)))
    for row in connection.execute(_TOOLS, parameters):
        tools[groups[row[0]]].append(_Tool(*row))
    return {
        group: _repeats(calls.get(group, ()), tools.get(group, ()))
        for group in dict.fromkeys(groups.values())
    }


def _repeats(calls: Sequence[_Call], tools: Sequence[_Tool]) -> Repeats:
    found = Repeats()
    repeated = _repeated_calls(calls)
    for call in repeated:
        found.calls += 1
        for column, value in zip(USAGE_COLUMNS, call.usage, strict=True):
            if value is not None:
                found.usage[column] = found.usage.get(column, 0) + value
    found.tools = _repeated_tools(tools, {call.facts.span for call in repeated})
    return found


def _repeated_calls(calls: Sequence[_Call]) -> list[_Call]:
    """Return the calls that repeat one of another run; ours stand, then the earlier."""
    known: defaultdict[Any, list[_Call]] = defaultdict(list)  # by what a repeat has in common
    repeated: list[_Call] = []
    if len({call.run for call in calls}) < 2:
        return repeated
    for call in sorted(calls, key=_order):
        keys = (("id", call.facts.response_id), ("output", call.facts.tokens_output))
        alike = [other for key in keys if key[1] for other in known[key]]
        if any(other.run != call.run and is_repeat(other.facts, call.facts) for other in alike):
            repeated.append(call)
            continue
        for key in keys:
            if key[1]:
                known[key].append(call)
    return repeated


def _order(call: _Call) -> tuple[bool, int, int]:
    return call.facts.dialect != OURS, call.facts.start_ns, call.facts.span


def _repeated_tools(tools: Sequence[_Tool], repeated_calls: set[int]) -> int:
    """Return how many tool calls are reported more than once.

    One that a repeated call requested; one that two instrumentations ran at the same time; and one
    that was requested in one run and run in another. Call ids alone would not do: some senders
    begin them anew in every round.
    """
    by_id: defaultdict[tuple[str, str | None], list[_Tool]] = defaultdict(list)
    for tool in tools:
        by_id[tool.call_id, tool.name].append(tool)
    return sum(
        _repeats_of_one(reports, repeated_calls)
        for reports in by_id.values()
        if len(_runs(reports)) > 1
    )


def _repeats_of_one(reports: Sequence[_Tool], repeated_calls: set[int]) -> int:
    distinct_reports: list[_Tool] = []
    for tool in sorted(reports, key=lambda one: (one.ran is None, one.requested is None)):
        is_sent_again = tool.ran is None and tool.requested in repeated_calls
        if not is_sent_again and not any(_is_same_work(other, tool) for other in distinct_reports):
            distinct_reports.append(tool)
    halves = Counter((one.requested is None, one.ran is None) for one in distinct_reports)
    is_apart = (
        len(_runs(one for one in distinct_reports if one.requested is None or one.ran is None)) > 1
    )
    pairs = min(halves[True, False], halves[False, True]) if is_apart else 0
    return len(reports) - len(distinct_reports) + pairs


def _runs(tools: Iterable[_Tool]) -> set[int]:
    return {tool.run for tool in tools}


def _is_same_work(one: _Tool, other: _Tool) -> bool:
    if one.run == other.run or one.scope == other.scope:
        return False
    if None in (one.start_ns, one.end_ns, other.start_ns, other.end_ns):
        return False
    return one.start_ns <= other.end_ns and other.start_ns <= one.end_ns  # type: ignore[operator]

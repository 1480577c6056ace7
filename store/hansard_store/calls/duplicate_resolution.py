"""Which steps near one another are one call or one tool run, in whatever order they came.

Every pair at most `REACH` levels apart is judged as soon as both are there, also when what joins
them is the last to come. A verdict only ever speaks against a step, and several may speak against
one, so the order of arrival does not matter. When a report is replaced, the calls that it may have
spoken against are acquitted and judged again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import apsw

from hansard_store.calls import tool_calls, usage_rollup
from hansard_store.calls.duplicates import (
    OURS,
    CallFacts,
    DuplicateVerdict,
    are_twins,
    call_facts,
    calls_beside,
    have_the_same_text,
    is_usage_of,
    judge,
    usage_and_calls,
)
from hansard_store.ingest.in_memory_runs import REACH, Near, near_above, near_below
from hansard_store.runs.projection import MANY_SCOPES, RunState
from hansard_store.steps.flags import SpanFlag

CALL_ROLES = ("llm", "embedding")
TOOL_ROLES = ("tool", "mcp")
_JUDGED = (*CALL_ROLES, *TOOL_ROLES)

_SAME_RESPONSE = """
SELECT span FROM call WHERE run = ? AND response_id = ? AND span <> ? LIMIT 8
"""
_UNCOUNTED = "SELECT 1 FROM call WHERE span = ? AND candidate = 1 AND counted = 0"
_IS_DUPLICATE = f"SELECT flags & {int(SpanFlag.DUPLICATE)} FROM span WHERE id = ?"
_RESPONSE = "SELECT response_id FROM call WHERE span = ?"
_PLACE = """
SELECT span_id, parent_span_id, role, tool_name, tool_call_id FROM span WHERE id = ?
"""


class CallPlace(NamedTuple):
    """Where a stored step stands in its run, and what it is."""

    span: int
    span_id: bytes
    parent_span_id: bytes | None
    role: str
    tool_name: str | None
    call_id: str | None  # of a tool step


def settle(connection: apsw.Connection, run: RunState, call: CallPlace) -> None:
    """Judge every pair that a step is part of or joins; costs one query for a leaf of no role."""
    judged: set[int] = set()
    for outer, inner in _pairs(connection, run, call):
        if outer.role in CALL_ROLES and inner.role == outer.role:
            _settle_calls(connection, run, outer.span, inner.span)
            judged |= {outer.span, inner.span}
        elif outer.role in TOOL_ROLES and inner.role in TOOL_ROLES:
            _settle_tools(connection, run, outer, inner)
    if call.role in CALL_ROLES:
        _settle_twins(connection, run, call.span, judged=judged)


def uncounted_near(connection: apsw.Connection, run: RunState, call: CallPlace) -> list[int]:
    """Return the calls that a call may have spoken against; asked before it is replaced."""
    if call.role not in CALL_ROLES:
        return []
    near = [other.span for pair in _pairs(connection, run, call) for other in pair]
    near += _possible_twins(connection, run, call.span)
    return [
        span
        for span in dict.fromkeys(near)
        if span != call.span and connection.execute(_UNCOUNTED, (span,)).get is not None
    ]


def judge_again(connection: apsw.Connection, run: RunState, spans: list[int]) -> None:
    """Acquit some calls, then hear again what speaks against them."""
    for span in spans:
        usage_rollup.set_call_counted(connection, run, span, counted=True)
    for span in spans:
        settle(connection, run, place_of(connection, span))


def place_of(connection: apsw.Connection, span: int) -> CallPlace:
    """Return where a stored step stands."""
    row: Any = connection.execute(_PLACE, (span,)).get
    return CallPlace(span, *row)


def _pairs(
    connection: apsw.Connection, run: RunState, call: CallPlace
) -> Iterator[tuple[Near, Near]]:
    """Yield (outer, inner) of every pair in reach that the step is part of or joins.

    The outermost come first: of several spans about one tool run, it stands for all.
    """
    me = Near(call.span, call.role, call.tool_name, call.call_id, 0)
    above = _above(connection, run, call)
    if not any(near.role in _JUDGED for near in (me, *above)):
        return  # it joins nothing; what comes above it later finds what is below it
    fresh = run.fresh
    if fresh is None:
        found = near_below(connection, run.trace_id, call.span_id)
    else:
        found = fresh.below(call.span_id)
    below = [near for near in found if near.span != call.span]
    if {near.span for near in above} & {near.span for near in below}:
        return  # in a cycle everything is above and below itself: nothing follows from that
    for outer in (*reversed(above), me):
        for inner in (me, *below):
            if 0 < outer.level + inner.level <= REACH:
                yield outer, inner


def _above(connection: apsw.Connection, run: RunState, call: CallPlace) -> list[Near]:
    above: list[Near] = []
    fresh, parent = run.fresh, call.parent_span_id
    found = near_above(connection, run.trace_id, parent) if fresh is None else fresh.above(parent)
    for near in found:
        if near.span in (call.span, *(one.span for one in above)):
            break  # a span that is its own parent
        above.append(near)
    return above


def _settle_calls(connection: apsw.Connection, run: RunState, outer: int, inner: int) -> None:
    above, below = call_facts(connection, outer), call_facts(connection, inner)
    if above is None or below is None:
        return
    verdict = judge(above, below)
    if verdict is DuplicateVerdict.INNER_REPEATS:
        usage_rollup.set_call_counted(connection, run, inner, counted=False)
    elif verdict in (DuplicateVerdict.OUTER_REPEATS, DuplicateVerdict.OUTER_SUMS):
        usage_rollup.set_call_counted(connection, run, outer, counted=False)


def _settle_tools(connection: apsw.Connection, run: RunState, outer: Near, inner: Near) -> None:
    """Two nested steps of one tool are its two ends: the outer one is the tool."""
    if not outer.tool_name or outer.tool_name != inner.tool_name:
        return
    if outer.call_id and inner.call_id and outer.call_id != inner.call_id:
        return  # a tool that runs itself again
    if connection.execute(_IS_DUPLICATE, (outer.span,)).get:
        # A third one stands for both; what is in its reach was handed over to it before.
        tool_calls.remove(connection, run, inner.span)
    else:
        tool_calls.hand_over(connection, run, inner=inner.span, outer=outer.span)
    usage_rollup.set_flags(connection, run, inner.span, duplicate=True)


def _settle_twins(
    connection: apsw.Connection, run: RunState, span: int, *, judged: Collection[int]
) -> None:
    """Side by side at one time with one usage: the later span repeats the earlier.

    A span of our own is the call whichever came first: it names the exact bytes. `judged` are above
    or below it, and have their verdict: a second one could leave neither of the two.
    """
    others = [one for one in _possible_twins(connection, run, span) if one not in judged]
    mine = call_facts(connection, span) if others else None
    if mine is None:
        return
    for other in others:
        facts = call_facts(connection, other)
        if facts is None:
            continue
        if is_usage_of(mine, facts) or is_usage_of(facts, mine):
            usage = mine if mine.is_usage_alone else facts
            usage_rollup.set_call_counted(connection, run, usage.span, counted=False)
        elif have_the_same_text(mine, facts):
            repeat = max(mine, facts, key=_order_of_equals)
            usage_rollup.set_call_counted(connection, run, repeat.span, counted=False)
        elif are_twins(mine, facts):
            repeat = max(mine, facts, key=_order)
            usage_rollup.set_call_counted(connection, run, repeat.span, counted=False)


def _order(call: CallFacts) -> tuple[bool, int, int]:
    return call.dialect != OURS, call.start_ns, call.span


def _order_of_equals(call: CallFacts) -> tuple[bool, bool, int, int]:
    # Of several equal calls at one time, all that one instrumentation reported must stay: the one
    # with the provider's ids.
    return call.dialect != OURS, call.response_id is None, call.start_ns, call.span


def _possible_twins(connection: apsw.Connection, run: RunState, span: int) -> list[int]:
    same = _same_response(connection, run, span)
    beside: list[int] = []
    if run.call_scope == MANY_SCOPES:
        beside = calls_beside(connection, span)
    if run.fresh is None or run.fresh.has_usage_alone:
        beside += usage_and_calls(connection, span)
    return list(dict.fromkeys([*same, *beside]))


def _same_response(connection: apsw.Connection, run: RunState, span: int) -> list[int]:
    if run.fresh is not None:
        return run.fresh.same_response(span)
    response = connection.execute(_RESPONSE, (span,)).get
    if response is None:
        return []
    rows: list[Any] = connection.execute(_SAME_RESPONSE, (run.id, response, span)).fetchall()
    return [row[0] for row in rows]

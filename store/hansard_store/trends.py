"""Counts of calls over time, as baselines of trends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from hansard_store.database.row_order import first_span_since
from hansard_store.steps.flags import SpanFlag

# Calls of tools, models and agents, counted by time and by duration.
#
# What was received in the time is read once, from its first row on; each count is grouped in
# SQLite. Runs that were deleted do not count, on either side of a comparison.

MOST_SPANS: Final = 2_000_000  # of more that were received in the time, the newest
DURATION_STEPS: Final = 4  # classes of duration in each doubling
_HIDDEN: Final = SpanFlag.DUPLICATE | SpanFlag.PENDING | SpanFlag.FOLDED
_NAME_CHARS: Final = 200
_HEARTBEAT: Final = "hansard.heartbeat"
_SUBJECT: Final = f"""
  CASE WHEN role IN ('tool', 'mcp') THEN 'tool' WHEN role = 'agent' THEN 'agent' ELSE 'model' END,
  substr(CASE WHEN role IN ('tool', 'mcp') THEN coalesce(tool_name, label, name)
    WHEN role = 'agent' THEN coalesce(agent_name, label, name)
    ELSE coalesce(model, label, name) END, 1, {_NAME_CHARS})
"""
_OF_CALLS: Final = f"""
FROM span WHERE id >= :first AND sort_ns > :since AND sort_ns <= :until
  AND role IN ('tool', 'mcp', 'llm', 'embedding', 'agent') AND flags & {_HIDDEN} = 0
  AND NOT (role = 'agent' AND agent_name IS '{_HEARTBEAT}')
"""
_COUNTS: Final = f"""
SELECT {_SUBJECT}, (:until - sort_ns) / :length, count(*), sum(flags & {SpanFlag.ERROR} <> 0)
{_OF_CALLS} GROUP BY 1, 2, 3
"""
_DURATIONS: Final = f"""
SELECT {_SUBJECT}, {{stretch}},
  CAST(log2(max(end_ns - start_ns, 1)) * {DURATION_STEPS} AS INTEGER), count(*)
{_OF_CALLS} AND end_ns >= start_ns AND flags & {SpanFlag.ERROR} = 0 GROUP BY 1, 2, 3, 4
"""
_NEWEST: Final = "SELECT coalesce(max(id), 0) FROM span"


class CallCount(NamedTuple):
    """Calls of one subject in one stretch of time."""

    kind: str  # tool model agent
    name: str
    ago: int  # how many stretches before the end: 0 is the last one
    calls: int
    errors: int


class DurationCount(NamedTuple):
    """Calls of one subject that took about as long; those that failed are left out."""

    kind: str
    name: str
    since_ns: int  # they came after this time, and not after the next one that was requested
    step: int  # DURATION_STEPS times the binary logarithm of nanoseconds
    calls: int

    @property
    def duration_ns(self) -> float:
        return float(2 ** ((self.step + 0.5) / DURATION_STEPS))


def count_calls(
    connection: apsw.Connection, *, since_ns: int, until_ns: int, length_ns: int
) -> Sequence[CallCount]:
    """Count calls by subject and stretch of time, counted back from the end."""
    parameters = _window(connection, since_ns, until_ns) | {"length": length_ns}
    return [CallCount(*row) for row in connection.execute(_COUNTS, parameters)]


def count_durations(
    connection: apsw.Connection, *, times_ns: Sequence[int], until_ns: int
) -> Sequence[DurationCount]:
    """Count calls by subject and duration between each of some times, in order, and the next."""
    since_ns, *later = times_ns
    bounds = {f"bound{number}": bound for number, bound in enumerate(later)}
    stretch = " + ".join(f"(sort_ns > :{name})" for name in bounds) or "0"
    parameters = _window(connection, since_ns, until_ns) | bounds
    rows: Any = connection.execute(_DURATIONS.format(stretch=stretch), parameters)
    return [
        DurationCount(kind, name, times_ns[number], step, calls)
        for kind, name, number, step, calls in rows
    ]


def _window(connection: apsw.Connection, since_ns: int, until_ns: int) -> dict[str, Any]:
    newest: int = connection.execute(_NEWEST).get
    # What begins within the time was received in it too, but for clocks that differ by an hour.
    first = first_span_since(connection, since_ns - 3_600 * 10**9)
    return {"first": max(first, newest - MOST_SPANS + 1), "since": since_ns, "until": until_ns}

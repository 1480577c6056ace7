"""Tokens and money by day, model, agent, user, service, tag and conversation.

All but models are summed from the totals of runs, which count every call once; models from the
calls themselves. A run belongs to the day on which it started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import apsw

from hansard_store.errors import InvalidQueryError
from hansard_store.runs.status import TokenSums, token_sums
from hansard_store.steps.flags import SpanFlag

_DAY_NS = 86_400 * 1_000_000_000
_MAX_NS = (1 << 63) - 1
MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one day, model, agent, user … used; None sums = nothing reported any."""

    key: str | None  # a day as 2026-01-31; None: the runs or calls that name none
    runs: int
    model_calls: int
    tokens: TokenSums | None
    cost_usd_nano: int | None


_SUMS = """
  sum({table}.tokens_input), sum({table}.tokens_output), sum({table}.tokens_cache_read),
  sum({table}.tokens_cache_write), sum({table}.tokens_reasoning), sum({table}.cost_usd_nano)
"""
_RUN_SUMS, _CALL_SUMS = _SUMS.format(table="run"), _SUMS.format(table="call")
_BY_RUN = """
SELECT {key}, count(*), sum(run.model_calls), {sums}
FROM run INDEXED BY run_started
WHERE run.started_ns >= :since AND run.started_ns < :until
GROUP BY 1 ORDER BY {order} LIMIT :limit
"""
_BY_MODEL = f"""
SELECT coalesce(call.response_model, call.request_model), count(DISTINCT call.run), count(*),
  {_CALL_SUMS}
FROM run INDEXED BY run_started CROSS JOIN call ON call.run = run.id
WHERE run.started_ns >= :since AND run.started_ns < :until AND call.counted = 1
GROUP BY 1 ORDER BY 9 DESC, 4 DESC, 1 LIMIT :limit
"""
_OF_RUN = f"""
SELECT coalesce(call.response_model, call.request_model), 1, count(*), {_CALL_SUMS}
FROM call WHERE call.run = :run AND call.counted = 1
GROUP BY 1 ORDER BY 9 DESC, 4 DESC, 1
"""
# Calls that ended well and report nothing; none where a step above them reports the sum of all.
_SILENT = f"""
SELECT
  coalesce(sum(call.tokens_input IS NULL AND call.tokens_output IS NULL), 0),
  coalesce(sum(call.cost_usd_nano IS NULL), 0)
FROM call INDEXED BY call_run CROSS JOIN span ON span.id = call.span
WHERE call.run = :run AND call.counted = 1 AND span.end_ns IS NOT NULL
  AND NOT span.flags & {int(SpanFlag.ERROR)}
  AND NOT EXISTS (SELECT 1 FROM usage_sum WHERE usage_sum.run = :run AND usage_sum.counted = 1)
"""
# A run counts for each of its services and tags.
_BY_FACET = """
SELECT wanted.value, count(*), sum(run.model_calls), {sums}
FROM run INDEXED BY run_started LEFT JOIN ({values}) AS wanted ON wanted.run = run.id
WHERE run.started_ns >= :since AND run.started_ns < :until
GROUP BY 1 ORDER BY 9 DESC, 4 DESC, 1 LIMIT :limit
"""
_SERVICES = "SELECT run, value FROM run_facet WHERE kind = 'service'"
_TAGS = """
SELECT DISTINCT run.id AS run, annotation.name AS value
FROM annotation CROSS JOIN run ON run.trace_id = annotation.trace_id
WHERE annotation.kind = 'tag' AND annotation.ended_ns IS NULL
"""
_QUERIES = {
    "day": _BY_RUN.format(
        key=f"date(run.started_ns / {_DAY_NS} * 86400, 'unixepoch')",
        sums=_RUN_SUMS,
        order="1 DESC",
    ),
    "model": _BY_MODEL,
    "agent": _BY_RUN.format(key="run.agent_name", sums=_RUN_SUMS, order="9 DESC, 4 DESC, 1"),
    "user": _BY_RUN.format(key="run.user_id", sums=_RUN_SUMS, order="9 DESC, 4 DESC, 1"),
    "service": _BY_FACET.format(sums=_RUN_SUMS, values=_SERVICES),
    "tag": _BY_FACET.format(sums=_RUN_SUMS, values=_TAGS),
    "conversation": _BY_RUN.format(
        key="run.conversation_id", sums=_RUN_SUMS, order="9 DESC, 4 DESC, 1"
    ),
}
USAGE_GROUPS = tuple(_QUERIES)


@dataclass(frozen=True, slots=True)
class SilentCalls:
    """How many counted calls of a run ended without an error and report no tokens, or no cost.

    Where there are any, the run's sums are lower bounds.
    """

    tokens: int
    cost: int


def list_usage(
    connection: apsw.Connection,
    by: str,
    *,
    since_ns: int = 0,
    until_ns: int = _MAX_NS,
    limit: int = MOST_ROWS,
) -> list[UsageRow]:
    """Return what the runs that started in a window used: days newest first, others dearest first.

    Days are of UTC. Reads every run of the window, and for models every call.
    """
    if by not in _QUERIES:
        known = ", ".join(USAGE_GROUPS)
        raise InvalidQueryError("by", f"usage by {by!r} is not known; known are {known}")
    parameters = {"since": since_ns, "until": until_ns, "limit": limit}
    return [_row(row) for row in connection.execute(_QUERIES[by], parameters)]


def total_usage(rows: Sequence[UsageRow], *, key: str | None = None) -> UsageRow:
    """Return the sum of rows; sums that none of them has are None."""
    sums = [row.tokens for row in rows if row.tokens]
    costs = [row.cost_usd_nano for row in rows if row.cost_usd_nano is not None]
    return UsageRow(
        key=key,
        runs=sum(row.runs for row in rows),
        model_calls=sum(row.model_calls for row in rows),
        tokens=_add(sums) if sums else None,
        cost_usd_nano=sum(costs) if costs else None,
    )


def _add(sums: Sequence[TokenSums]) -> TokenSums:
    def total(values: Sequence[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return TokenSums(
        *(total([getattr(one, field.name) for one in sums]) for field in fields(TokenSums))
    )


def run_usage(connection: apsw.Connection, run: int) -> list[UsageRow]:
    """Return what one run (by run.id) used, by model, the dearest first."""
    return [_row(row) for row in connection.execute(_OF_RUN, {"run": run})]


def silent_calls(connection: apsw.Connection, run: int) -> SilentCalls:
    """Return how many calls of one run (by run.id) are missing in its sums."""
    return SilentCalls(*connection.execute(_SILENT, {"run": run}).get)


def _row(row: Any) -> UsageRow:
    key, runs, calls, *sums, cost = row
    return UsageRow(key, runs, calls, token_sums(sums), cost)

"""When the newest runs started, how long they took and what they cost: for charts of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.database.transactions import snapshot
from hansard_store.runs.filters import NEWEST_FIRST, RunFilter, first_page, run_query
from hansard_store.runs.status import ALIVE_UNTIL, run_status


@dataclass(frozen=True, slots=True)
class RunDot:
    """One run as a point."""

    started_ns: int
    duration_ns: int | None  # None: it has no end
    status: str
    cost_usd_nano: int | None


def sample_runs(
    connection: apsw.Connection, wanted: RunFilter, *, now_ns: int, limit: int = 1000
) -> list[RunDot]:
    """Return the runs last seen first among those that meet a filter, newest first."""
    sort = NEWEST_FIRST
    with snapshot(connection):
        query = run_query(connection, wanted, sort=sort, after=first_page(sort), now_ns=now_ns)
        sql = (
            "SELECT run.started_ns, run.ended_ns, run.status, "
            f"{ALIVE_UNTIL}, run.cost_usd_nano"
            f" FROM {query.source} WHERE {query.where} ORDER BY {query.order} LIMIT :limit"
        )
        rows = connection.execute(sql, {**query.bindings, "limit": limit}).fetchall()
    return [_dot(row, now_ns=now_ns) for row in rows]


def _dot(row: Any, *, now_ns: int) -> RunDot:
    started_ns, ended_ns, stored, alive_until_ns, cost_usd_nano = row
    status = run_status(stored, alive_until_ns=alive_until_ns, now_ns=now_ns)
    has_end = status not in ("open", "no_end")
    return RunDot(
        started_ns, max(ended_ns - started_ns, 0) if has_end else None, status, cost_usd_nano
    )

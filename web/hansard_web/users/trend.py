"""A user's runs and cost over time, by day of UTC or by several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from hansard_store.runs.users import UserDay
from hansard_web.ui.charts import Buckets, Chart, ChartOf, Series

_DAY_NS: Final = 86_400 * 1_000_000_000
_FEWEST: Final = 14  # columns
_MOST: Final = 90


def trend(
    days: Sequence[UserDay], *, today: date, href: Callable[[str, str], str]
) -> tuple[Chart, ...]:
    """Return runs by outcome, and cost where any is known; nothing where there are no runs.

    `href` returns the address of the runs of a time.
    """
    if not days:
        return ()
    first = min(date.fromisoformat(days[-1].day), today - timedelta(days=_FEWEST - 1))
    last = max(date.fromisoformat(days[0].day), today)
    count = (last - first).days + 1
    step = -(-count // _MOST)
    columns = -(-count // step)
    start_ns = int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp())
    start_ns *= 1_000_000_000
    buckets = Buckets(
        tuple(start_ns + index * step * _DAY_NS for index in range(columns)),
        start_ns + columns * step * _DAY_NS,
    )
    ok, failed, cost = [0.0] * columns, [0.0] * columns, [0.0] * columns
    for day in days:
        index = (date.fromisoformat(day.day) - first).days // step
        ok[index] += day.runs - day.failed_runs
        failed[index] += day.failed_runs
        cost[index] += day.cost_usd_nano or 0
    charts = ChartOf(buckets, href)
    by = "day" if step == 1 else f"{step} days"
    runs = charts.bars(
        "runs",
        f"Runs by {by}",
        "count",
        [
            Series("not failed", tuple(ok), total=sum(ok)),
            Series("failed", tuple(failed), mark="error", total=sum(failed)),
        ],
    )
    if all(day.cost_usd_nano is None for day in days):
        return (runs,)
    spent = charts.bars("cost", f"Cost by {by}", "money", [Series("cost", tuple(cost))])
    return (runs, spent)

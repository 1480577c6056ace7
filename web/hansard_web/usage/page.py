"""Tokens and cost by day, model, agent and conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.runs.status import TokenSums
from hansard_store.runs.usage import UsageRow, count_unpriced, list_usage, total_usage
from hansard_web.app.addresses import conversation_href
from hansard_web.app.site import SiteDep
from hansard_web.ui import format as figures

router = APIRouter()

_NS_PER_S: Final = 1_000_000_000
_PERIODS: Final = {"7d": ("7 days", 7), "30d": ("30 days", 30), "90d": ("90 days", 90)}
_ROWS: Final = 25
_CHART_HEIGHT: Final = 100
_FEWEST_COLUMNS: Final = 14
_MOST_COLUMNS: Final = 120
# Whole tables are summed here: more than a list may take, less than a proxy's patience.
_TIMEOUT_MS: Final = 15_000


@dataclass(frozen=True, slots=True)
class _Period:
    label: str
    url: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a stacked column."""

    kind: str  # cached, fresh, output
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class DayColumn:
    x: int
    title: str
    url: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DayChart:
    columns: tuple[DayColumn, ...]
    width: int
    most: int  # tokens of the highest column
    ticks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One row of a table; `bar_pct` compares its cost."""

    label: str
    url: str | None  # the runs behind it
    row: UsageRow
    bar_pct: float
    cached_pct: int | None


@dataclass(frozen=True, slots=True)
class UsageTable:
    title: str
    name: str
    lines: tuple[UsageLine, ...]
    hidden: int  # rows beyond those shown, at least


@dataclass(frozen=True, slots=True)
class UsagePage:
    periods: tuple[_Period, ...]
    period: str
    total: UsageRow
    unpriced: int  # model calls whose cost is not known
    chart: DayChart | None
    tables: tuple[UsageTable, ...]


@router.get("/usage")
def usage(request: Request, site: SiteDep, since: Annotated[str, Query()] = "30d") -> Response:
    days = _PERIODS[since][1] if since in _PERIODS else None
    with site.readers.read(timeout_ms=_TIMEOUT_MS) as connection:
        page = _usage_page(connection, since if days else "all", days, now=datetime.now(UTC))
    return site.renderer.page(request, "usage.html", here="usage", page=page)


def _usage_page(
    connection: apsw.Connection, period: str, days: int | None, *, now: datetime
) -> UsagePage:
    # Whole days of UTC, so that the first one is not cut.
    first = None if days is None else now.date() - timedelta(days=days - 1)
    since_ns = 0 if first is None else _day_start_ns(first.isoformat())
    by_day = list_usage(connection, "day", since_ns=since_ns)
    window = {} if first is None else {"since": first.isoformat()}

    def runs_with(key: str) -> Callable[[UsageRow], str | None]:
        return lambda row: f"/?{urlencode({key: row.key, **window})}" if row.key else None

    def table(title: str, name: str, url_of: Callable[[UsageRow], str | None]) -> UsageTable:
        rows = list_usage(connection, name, since_ns=since_ns, limit=_ROWS + 1)
        return _table(title, name, rows, url_of)

    return UsagePage(
        periods=tuple(
            _Period(label, f"/usage?since={name}", is_on=name == period)
            for name, (label, _) in {**_PERIODS, "all": ("all time", None)}.items()
        ),
        period=f"the last {_PERIODS[period][0]}" if period in _PERIODS else "all time",
        total=total_usage(by_day),
        unpriced=count_unpriced(connection, since_ns=since_ns),
        chart=_chart(by_day, first=first, last=now.date()),
        tables=(
            table("By model", "model", runs_with("model")),
            table("By agent", "agent", runs_with("agent")),
            table(
                "By conversation",
                "conversation",
                lambda row: conversation_href(row.key) if row.key else None,
            ),
            _table("By day", "day", by_day[:_ROWS], _day_url, hidden=len(by_day[_ROWS:])),
        ),
    )


def _day_url(row: UsageRow) -> str:
    day = datetime.fromisoformat(str(row.key))
    until = (day + timedelta(days=1)).date().isoformat()
    return f"/?{urlencode({'since': str(row.key), 'until': until})}"


def _table(
    title: str,
    name: str,
    rows: Sequence[UsageRow],
    url_of: Callable[[UsageRow], str | None],
    *,
    hidden: int = 0,
) -> UsageTable:
    shown = [row for row in rows[:_ROWS] if row.model_calls]
    most = max((row.cost_usd_nano or 0 for row in shown), default=0) or 1
    lines = tuple(
        UsageLine(
            label=row.key or f"no {name} named",
            url=url_of(row),
            row=row,
            bar_pct=round(100 * (row.cost_usd_nano or 0) / most, 1),
            cached_pct=_cached_pct(row.tokens),
        )
        for row in shown
    )
    return UsageTable(title, name, lines, hidden or len(rows[_ROWS:]))


def _cached_pct(tokens: TokenSums | None) -> int | None:
    if tokens is None or not tokens.input or tokens.cache_read is None:
        return None
    return min(round(100 * tokens.cache_read / tokens.input), 100)


def _chart(rows: Sequence[UsageRow], *, first: date | None, last: date) -> DayChart | None:
    """Return a column for every day of the period, and for every day with tokens after it."""
    by_day = {str(row.key): row for row in rows if row.tokens}
    if not by_day:
        return None
    last = max(last, date.fromisoformat(max(by_day)))
    earliest = first or date.fromisoformat(min(by_day))
    days = max((last - earliest).days + 1, _FEWEST_COLUMNS)
    days = min(days, _MOST_COLUMNS)
    names = [(last - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    most = max((row.tokens.total for row in by_day.values() if row.tokens), default=0) or 1
    columns = tuple(
        _column(number, name, by_day[name], most)
        for number, name in enumerate(names)
        if name in by_day
    )
    ticks = tuple(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))
    return DayChart(columns, len(names) * 10, most, ticks)


def _column(number: int, day: str, row: UsageRow, most: int) -> DayColumn:
    tokens = row.tokens or TokenSums()
    cached = min(tokens.cache_read or 0, tokens.input or 0)
    amounts = (
        ("output", tokens.output or 0),
        ("fresh", (tokens.input or 0) - cached),
        ("cached", cached),
    )
    parts, top = [], float(_CHART_HEIGHT)
    for kind, amount in reversed(amounts):
        height = round(_CHART_HEIGHT * amount / most, 2)
        top = round(top - height, 2)
        parts.append(Part(kind, max(top, 0), height))
    cost = "cost unknown" if row.cost_usd_nano is None else figures.money(row.cost_usd_nano)
    title = f"{day}: {figures.tokens(tokens.total)} tokens, {cost}, {row.runs:,} runs"
    return DayColumn(number * 10, title, _day_url(row), tuple(parts))


def _day_start_ns(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * _NS_PER_S

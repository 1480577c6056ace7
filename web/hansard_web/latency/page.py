"""How long models, tools and agents take, how often they fail, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

import apsw
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.histograms import Histogram
from hansard_store.figures.records import Dimension, Figures
from hansard_store.runs.queries import last_change
from hansard_web.app.site import SiteDep
from hansard_web.overview.page import (
    TIMEOUT_MS,
    Chip,
    Choice,
    PeriodHead,
    accuracy,
    chips_of,
    exported,
    merge_switch,
    period_head,
    results_fragment,
)
from hansard_web.overview.reading import read_totals
from hansard_web.overview.state import (
    LATENCY_DIMENSIONS,
    OverviewState,
    read_overview,
)
from hansard_web.runs.filters import to_filter
from hansard_web.ui.charts import Spread, spread

router = APIRouter()
_ROWS: Final = 200
_LABELS: Final = {"model": "Model", "tool": "Tool", "agent": "Agent"}
_WHAT: Final = {
    "model": "duration of model calls",
    "tool": "duration of tool calls",
    "agent": "duration of runs",
}


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """What calls of a model or a tool, or runs of an agent, took and cost."""

    key: str | None
    count: int
    errors: int
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    cost_usd_nano: int | None

    @property
    def error_pct(self) -> float:
        return 100 * self.errors / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class LatencyLine:
    row: LatencyRow
    spread: Spread | None
    slowest: str | None  # addresses of runs
    dearest: str | None
    failed: str | None


@dataclass(frozen=True, slots=True)
class LatencyHead:
    key: str
    label: str
    url: str
    sorting: str  # aria-sort, or ""


@dataclass(frozen=True, slots=True)
class LatencyPage:
    """Everything latency.html shows."""

    head: PeriodHead
    state: OverviewState
    problems: tuple[str, ...]
    chips: tuple[Chip, ...]
    hidden: tuple[tuple[str, str], ...]
    dimensions: tuple[Choice, ...]
    merged: Choice | None
    label: str
    what: str
    exported: tuple[tuple[str, str], ...]
    heads: tuple[LatencyHead, ...]
    lines: tuple[LatencyLine, ...]
    left_out: int
    accuracy: str
    has_runs: bool
    longest: str


_ORDERS: Final[dict[str, tuple[str, Callable[[LatencyRow], float | None]]]] = {
    "count": ("Count", lambda row: row.count),
    "p50": ("p50", lambda row: row.p50_ns),
    "p95": ("p95", lambda row: row.p95_ns),
    "p99": ("p99", lambda row: row.p99_ns),
    "errors": ("Errors", lambda row: row.errors),
    "cost": ("Cost", lambda row: row.cost_usd_nano),
}
_USUAL: Final = "-p95"


# async: reading the address is no work for a worker thread.
async def latency_state(request: Request) -> OverviewState:
    """Return the state that an address describes."""
    return read_overview(
        request.query_params.multi_items(), path="/latency", dimensions=LATENCY_DIMENSIONS
    )


StateDep = Annotated[OverviewState, Depends(latency_state)]


@router.get("/latency")
def latency(request: Request, site: SiteDep, state: StateDep) -> Response:
    """Percentiles of durations by model, tool or agent."""
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        page = _page(connection, state, now_ns=time.time_ns())
    return site.renderer.page(request, "latency.html", here="latency", page=page)


@router.get("/fragments/latency")
def latency_fragment(request: Request, site: SiteDep, state: StateDep) -> Response:
    """The table for what is being typed into the filter box."""
    return results_fragment(
        request,
        site,
        state,
        "latency/_results.html",
        lambda connection: _page(connection, state, now_ns=time.time_ns()),
    )


def _page(connection: apsw.Connection, state: OverviewState, *, now_ns: int) -> LatencyPage:
    window = state.window(now_ns=now_ns)
    meant = to_filter(state.runs, now_ns=now_ns)
    problems = list(meant.problems)
    rows: list[LatencyRow] = []
    note = ""
    try:
        totals = read_totals(
            connection, window, by=state.by, filters=meant.filter, merge_models=not state.is_dated
        )
        rows = latency_rows(totals.items, state.by)
        values, note = totals.values, accuracy(totals.report, now_ns)
    except InvalidQueryError as error:
        problems.append(str(error))
        values = {}
    return LatencyPage(
        head=period_head(state, window, "Latency"),
        state=state,
        problems=tuple(problems),
        chips=chips_of(state),
        hidden=tuple(pair for pair in state.pairs() if pair[0] != "q"),
        dimensions=tuple(
            Choice(one, replace(state, by=one).url, is_on=one == state.by)
            for one in LATENCY_DIMENSIONS
        ),
        merged=_merged(state),
        label=_LABELS[state.by],
        what=_WHAT[state.by],
        exported=(*exported(state), ("order", state.order)),
        heads=_heads(state),
        lines=_lines(ordered(rows, state.order)[:_ROWS], state, values),
        left_out=max(len(rows) - _ROWS, 0),
        accuracy=note,
        has_runs=bool(last_change(connection)),
        longest=state.period("90d").url,
    )


def latency_rows(items: Sequence[tuple[str | None, Figures]], by: Dimension) -> list[LatencyRow]:
    """Return rows of what was called at all."""
    rows = [_row(key, figures, by) for key, figures in items]
    return [row for row in rows if row.count]


def _row(key: str | None, figures: Figures, by: Dimension) -> LatencyRow:
    count, errors, latency = _counted(figures, by)
    cost = None if by == "tool" else figures.cost_usd_nano
    return LatencyRow(key, count, errors, latency.p50_ns, latency.p95_ns, latency.p99_ns, cost)


def _counted(figures: Figures, by: Dimension) -> tuple[int, int, Histogram]:
    match by:
        case "model":
            return figures.model_calls, figures.failed_calls, figures.call_latency
        case "tool":
            return figures.tool_calls, figures.failed_tools, figures.tool_latency
        case _:
            return figures.runs, figures.failed_runs, figures.run_latency


def ordered(rows: Sequence[LatencyRow], order: str) -> list[LatencyRow]:
    """Return rows by a column; unknown values are last in both directions."""
    key = (order or _USUAL).lstrip("-")
    if key == "name":
        return sorted(rows, key=lambda row: row.key or "", reverse=order.startswith("-"))
    get = _ORDERS.get(key, _ORDERS["p95"])[1]
    sign = -1 if (order or _USUAL).startswith("-") or key not in _ORDERS else 1

    def rank(row: LatencyRow) -> tuple[bool, float, str]:
        value = get(row)
        return value is None, sign * (value or 0), row.key or ""

    return sorted(rows, key=rank)


def _heads(state: OverviewState) -> tuple[LatencyHead, ...]:
    order = state.order or _USUAL
    heads = [("name", _LABELS[state.by]), *((key, label) for key, (label, _) in _ORDERS.items())]
    found = []
    for key, label in heads:
        if key == "cost" and state.by == "tool":
            continue
        is_on = order.lstrip("-") == key
        usual = key if key == "name" else f"-{key}"
        turned = order.lstrip("-") if order.startswith("-") else f"-{key}"
        url = replace(state, order=turned if is_on else usual).url
        sorting = ("descending" if order.startswith("-") else "ascending") if is_on else ""
        found.append(LatencyHead(key, label, url, sorting))
    return tuple(found)


def _lines(
    rows: Sequence[LatencyRow], state: OverviewState, values: dict[str, tuple[str, ...]]
) -> tuple[LatencyLine, ...]:
    known = [one for row in rows for one in (row.p50_ns, row.p99_ns) if one is not None]
    least, most = min(known, default=1.0), max(known, default=10.0)
    period = [("since", state.since)] if not state.runs.value("since") else []
    lines = []
    for row in rows:
        bar = None
        if row.p50_ns is not None and row.p95_ns is not None and row.p99_ns is not None:
            bar = spread(row.p50_ns, row.p95_ns, row.p99_ns, least=least * 0.8, most=most)
        names = values.get(row.key or "", (row.key or "",))
        of = [*period, *((state.by, name) for name in names)]
        lines.append(
            LatencyLine(
                row=row,
                spread=bar,
                slowest=state.runs_url(*of, ("sort", "-duration_ms")) if row.key else None,
                dearest=state.runs_url(*of, ("sort", "-cost_usd")) if row.key else None,
                failed=state.runs_url(*of, ("status", "error")) if row.key and row.errors else None,
            )
        )
    return tuple(lines)


def _merged(state: OverviewState) -> Choice | None:
    if state.by != "model":
        return None
    return merge_switch(state)

"""Tokens, cost and calls: one chart over time, and tables by what they were used for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.records import DAY_NS, Dimension, Figures, FigureWindow
from hansard_store.figures.sums import FigureSums, figure_sums, first_run_ns
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import last_change
from hansard_web.app.site import SiteDep
from hansard_web.overview.arrangement import (
    HeadFigure,
    chart_frame,
    head_of,
    stacked_chart,
    token_kinds,
)
from hansard_web.overview.page import (
    TIMEOUT_MS,
    Chip,
    Choice,
    PeriodHead,
    accuracy,
    chips_of,
    csv_address,
    filter_keys,
    merge_switch,
    period_head,
    results_fragment,
    step_choices,
)
from hansard_web.overview.points import PeriodFigures, Point
from hansard_web.overview.reading import (
    figure_window,
    model_names,
    narrowing,
    point_of,
    read_figures,
)
from hansard_web.overview.state import DIMENSIONS, OverviewState, Window, read_overview
from hansard_web.runs.filters import to_filter
from hansard_web.ui.chart_axes import Unit, interval_text, value_text
from hansard_web.ui.charts import Chart
from hansard_web.ui.format import plural

router = APIRouter()

_ALL: Final = "all"
DEFAULT_PERIOD: Final = "30d"
_MORE_PERIODS: Final = {_ALL: "All time"}
_MOST_DAYS: Final = 192  # columns of the chart; the tables are of all time
_ROWS: Final = 10
_TITLES: Final[Mapping[Dimension, str]] = {
    "model": "Model",
    "agent": "Agent",
    "user": "User",
    "service": "Service",
    "tag": "Tag",
}


class _Measure(NamedTuple):
    label: str
    unit: Unit
    get: Callable[[Point], float | None]


_KINDS: Final = "kinds"
_MEASURES: Final[Mapping[str, _Measure]] = {
    "cost": _Measure("Cost", "money", lambda one: one.cost_usd_nano),
    "tokens": _Measure("Tokens", "tokens", lambda one: one.tokens),
    _KINDS: _Measure("Tokens by kind", "tokens", lambda one: one.tokens),
    "calls": _Measure("Model calls", "count", lambda one: one.calls),
}


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One row of a table; `bar_pct` compares its cost, or its tokens where none has a cost."""

    key: str | None
    url: str | None  # the runs behind it
    figures: Figures
    bar_pct: float
    cached_pct: int | None


@dataclass(frozen=True, slots=True)
class UsageTable:
    title: str
    name: Dimension
    lines: tuple[UsageLine, ...]
    hidden: int  # rows beyond those shown
    exported: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UsagePage:
    """Everything usage.html and its partial show."""

    head: PeriodHead
    state: OverviewState
    problems: tuple[str, ...]
    chips: tuple[Chip, ...]
    hidden: tuple[tuple[str, str], ...]
    measures: tuple[Choice, ...]
    dimensions: tuple[Choice, ...]  # none: the measure is stacked by kind
    steps: tuple[Choice, ...]
    merged: Choice
    heads: tuple[HeadFigure, ...]
    unpriced: int  # model calls whose cost is not known
    chart: Chart | None
    peak: str
    tables: tuple[UsageTable, ...]
    conversations_href: str
    accuracy: str
    has_runs: bool
    all_time: str
    without_filters: str


# async: reading the address is no work for a worker thread.
async def usage_state(request: Request) -> OverviewState:
    """Return the state that an address describes."""
    state = read_overview(
        request.query_params.multi_items(), path="/usage", default_period=DEFAULT_PERIOD
    )
    return replace(state, show=state.show if state.show in _MEASURES else "")


StateDep = Annotated[OverviewState, Depends(usage_state)]


@router.get("/usage")
def usage(request: Request, site: SiteDep, state: StateDep) -> Response:
    """Tokens and cost over time, and by model, agent, user, service and tag."""
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        page = _page(connection, state, now_ns=time.time_ns())
    return site.renderer.page(request, "usage.html", here="usage", page=page)


@router.get("/fragments/usage")
def usage_fragment(request: Request, site: SiteDep, state: StateDep) -> Response:
    """The figures for what is being typed into the filter box."""
    return results_fragment(
        request,
        site,
        state,
        "usage/_results.html",
        lambda connection: _page(connection, state, now_ns=time.time_ns()),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What is read for a page."""

    over_time: PeriodFigures
    before: Point | None
    sums: FigureSums
    values: Mapping[str, tuple[str, ...]]  # models by their name without a date


def _page(connection: apsw.Connection, state: OverviewState, *, now_ns: int) -> UsagePage:
    window, charted = usage_windows(connection, state, now_ns=now_ns)
    is_all = state.since == _ALL and not state.runs.value("until")
    meant = to_filter(state.runs.without("since") if is_all else state.runs, now_ns=now_ns)
    problems = list(meant.problems)
    found: _Found | None = None
    try:
        found = _read(connection, state, window, charted, meant.filter)
    except InvalidQueryError as error:
        problems.append(str(error))
    has_runs = found is not None and bool(found.sums.total.model_calls)
    bare = replace(state, runs=state.runs.without(*filter_keys(state)).searching(""))
    return UsagePage(
        head=period_head(state, window, "Usage", _MORE_PERIODS),
        state=state,
        problems=tuple(problems),
        chips=chips_of(state),
        hidden=tuple(pair for pair in state.pairs() if pair[0] != "q"),
        measures=_measures(state),
        dimensions=_dimensions(state),
        steps=() if is_all else step_choices(state, charted),
        merged=merge_switch(state),
        heads=_heads(found) if found else (),
        unpriced=found.sums.total.unpriced_calls if found else 0,
        chart=_chart(found.over_time, state, charted) if found and has_runs else None,
        peak=_peak(found.over_time, state, charted) if found and has_runs else "",
        tables=_tables(found, state) if found and has_runs else (),
        conversations_href=_conversations_href(state),
        accuracy=accuracy(found.sums, now_ns) if found else "",
        has_runs=bool(last_change(connection)),
        all_time=replace(bare, runs=bare.runs.without("until").setting("since", _ALL)).url,
        without_filters=bare.url,
    )


def usage_windows(
    connection: apsw.Connection, state: OverviewState, *, now_ns: int
) -> tuple[Window, Window]:
    """Return the window of the tables, and that of the chart: its last days, for all time."""
    if state.since != _ALL or state.runs.value("until"):
        window = state.window(now_ns=now_ns)
        return window, window
    until_ns = -(-now_ns // DAY_NS) * DAY_NS
    first_ns = min(first_run_ns(connection) or now_ns, now_ns) // DAY_NS * DAY_NS
    shown_ns = max(first_ns, until_ns - _MOST_DAYS * DAY_NS)
    # A single column is as wide as the page: a week is the least.
    shown_ns = min(shown_ns, until_ns - 7 * DAY_NS)
    return (
        Window(first_ns, until_ns, DAY_NS, now_ns),
        Window(shown_ns, until_ns, DAY_NS, now_ns),
    )


def _read(
    connection: apsw.Connection,
    state: OverviewState,
    window: Window,
    charted: Window,
    filters: RunFilter,
) -> _Found:
    merge_models = not state.is_dated
    reading = read_figures(
        connection,
        charted,
        by=state.by,
        filters=filters,
        merge_models=merge_models,
        has_before=state.since != _ALL,
    )
    sums = read_sums(connection, window, DIMENSIONS, filters, merge_models=merge_models)
    values = model_names(connection) if merge_models else {}
    return _Found(reading.now, reading.before_total, sums, values)


def read_sums(
    connection: apsw.Connection,
    window: Window,
    dimensions: Sequence[Dimension],
    filters: RunFilter,
    *,
    merge_models: bool,
) -> FigureSums:
    """Return what a window comes to by several dimensions."""
    of: FigureWindow = figure_window(window)
    return figure_sums(
        connection,
        of,
        dimensions,
        filters=narrowing(filters),
        merge_models=merge_models,
        now_ns=window.now_ns,
    )


def _measures(state: OverviewState) -> tuple[Choice, ...]:
    shown = state.show or "cost"
    return tuple(
        Choice(one.label, replace(state, show="" if name == "cost" else name).url, name == shown)
        for name, one in _MEASURES.items()
    )


def _dimensions(state: OverviewState) -> tuple[Choice, ...]:
    if state.show == _KINDS:
        return ()
    return tuple(
        Choice(one, replace(state, by=one).url, is_on=one == state.by) for one in DIMENSIONS
    )


def _heads(found: _Found) -> tuple[HeadFigure, ...]:
    now, before = point_of(found.sums.total), found.before
    cached = value_text(now.cached_pct, "percent")
    return (
        head_of(now, before, "Cost", "money", lambda one: one.cost_usd_nano),
        head_of(now, before, "Model calls", "count", lambda one: one.calls),
        head_of(now, before, "Input tokens", "tokens", lambda one: one.input_tokens),
        head_of(
            now, before, "Cached input", "tokens", lambda one: one.cached_tokens,
            detail=f"{cached} of input" if cached != "–" else "",
        ),
        head_of(now, before, "Output tokens", "tokens", lambda one: one.output_tokens),
        head_of(now, before, "Reasoning", "tokens", lambda one: one.reasoning_tokens),
    )  # fmt: skip


def _chart(over_time: PeriodFigures, state: OverviewState, window: Window) -> Chart:
    frame = chart_frame(over_time, state, window, csv=csv_address(state))
    if state.show == _KINDS:
        return token_kinds(frame, over_time.points)
    name = state.show or "cost"
    label, unit, get = _MEASURES[name]
    return stacked_chart(frame, (name, label, unit), get, over_time, state)


def _peak(over_time: PeriodFigures, state: OverviewState, window: Window) -> str:
    """Return the highest column in words: `Peak: 5.10M tokens, Nov 12 (UTC)`."""
    _, unit, get = _MEASURES[state.show or "cost"]
    values = [(get(one) or 0, at) for at, one in enumerate(over_time.points)]
    most, at = max(values, default=(0, 0))
    if not most:
        return ""
    since_ns = over_time.starts_ns[at]
    shown = plural(int(most), "model call") if unit == "count" else value_text(most, unit)
    return (
        f"Peak: {shown}{' tokens' if unit == 'tokens' else ''}, "
        f"{interval_text(since_ns, since_ns + window.step_ns)} (UTC)"
    )


def _tables(found: _Found, state: OverviewState) -> tuple[UsageTable, ...]:
    tables = (_table(name, found, state) for name in _TITLES)
    return tuple(one for one in tables if any(line.key for line in one.lines))


def _table(name: Dimension, found: _Found, state: OverviewState) -> UsageTable:
    items = [one for one in found.sums.of[name] if one[1].model_calls]
    by_cost = any(one.cost_usd_nano for _, one in items)
    most = max((_size(one, by_cost=by_cost) for _, one in items), default=0) or 1
    period = [("since", state.since)] if not state.runs.value("since") else []
    lines = []
    for key, one in items[:_ROWS]:
        names = found.values.get(key, (key,)) if key and name == "model" else (key,)
        url = state.runs_url(*period, *((name, str(value)) for value in names)) if key else None
        share = round(100 * _size(one, by_cost=by_cost) / most, 1)
        cached = point_of(one).cached_pct
        lines.append(UsageLine(key, url, one, share, None if cached is None else round(cached)))
    exported = [("by", name), ("dated", "1" if state.is_dated else ""), *period]
    return UsageTable(
        _TITLES[name],
        name,
        tuple(lines),
        len(items[_ROWS:]),
        tuple(pair for pair in (*exported, *state.runs.pairs()) if pair[1]),
    )


def _size(one: Figures, *, by_cost: bool) -> int:
    if by_cost:
        return one.cost_usd_nano or 0
    return 0 if one.tokens is None else one.tokens.total


def _conversations_href(state: OverviewState) -> str:
    """Return the address of the conversations of the period, the dearest first."""
    since = _ALL if state.is_custom else state.since
    return f"/conversations?{urlencode({'since': since, 'sort': '-cost_usd'})}"

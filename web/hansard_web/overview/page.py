"""The overview: figures over time, the period before beside them, a click from the runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.histograms import RELATIVE_ERROR
from hansard_store.figures.records import FigureReport
from hansard_store.figures.sums import FigureSums
from hansard_store.runs.queries import last_change
from hansard_web.app.site import Site, SiteDep
from hansard_web.overview.arrangement import HeadFigure, charts_of, head_figures
from hansard_web.overview.reading import Reading, read_figures
from hansard_web.overview.state import (
    DIMENSIONS,
    PERIODS,
    OverviewState,
    Window,
    read_overview,
)
from hansard_web.runs.filters import to_filter
from hansard_web.ui import format as figures
from hansard_web.ui.chart_axes import interval_text
from hansard_web.ui.charts import Chart

router = APIRouter()
# With a filter every matching run is counted: more than a list may take.
TIMEOUT_MS: Final = 15_000
_PERIOD_KEYS: Final = ("since", "until")


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    url: str
    is_on: bool
    title: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition that is on, and the page without it."""

    label: str
    shown: str
    without: str


@dataclass(frozen=True, slots=True)
class PeriodHead:
    """What stands at the head of a page with a period: choices, and the form of any other."""

    state: OverviewState
    title: str
    period: str
    periods: tuple[Choice, ...]
    carried: tuple[tuple[str, str], ...]  # what the form of a period carries along
    since_input: str
    until_input: str
    is_custom: bool


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """Everything overview.html and its partials show."""

    head: PeriodHead
    state: OverviewState
    problems: tuple[str, ...]
    chips: tuple[Chip, ...]
    hidden: tuple[tuple[str, str], ...]
    dimensions: tuple[Choice, ...]
    steps: tuple[Choice, ...]
    switches: tuple[Choice, ...]
    exported: tuple[tuple[str, str], ...]
    heads: tuple[HeadFigure, ...]
    charts: tuple[Chart, ...]
    accuracy: str
    has_runs: bool
    endpoint: str
    without_filters: str
    longest: str


# async: reading the address is no work for a worker thread.
async def overview_state(request: Request) -> OverviewState:
    """Return the state that an address describes."""
    return read_overview(request.query_params.multi_items())


StateDep = Annotated[OverviewState, Depends(overview_state)]


@router.get("/overview")
def overview(request: Request, site: SiteDep, state: StateDep) -> Response:
    """Cost, calls, tokens, latency, errors and cache hits over time."""
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        page = _page(connection, state, site, now_ns=time.time_ns())
    return site.renderer.page(request, "overview.html", here="overview", page=page)


@router.get("/fragments/overview")
def overview_fragment(request: Request, site: SiteDep, state: StateDep) -> Response:
    """The figures for what is being typed into the filter box."""
    return results_fragment(
        request,
        site,
        state,
        "overview/_results.html",
        lambda connection: _page(connection, state, site, now_ns=time.time_ns()),
    )


def results_fragment(
    request: Request,
    site: Site,
    state: OverviewState,
    template: str,
    page_of: Callable[[apsw.Connection], object],
) -> Response:
    """Return what htmx replaces while a filter is typed; others are led to the page itself."""
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(state.url, 303)
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        page = page_of(connection)
    return site.renderer.fragment(
        request, template, page=page, headers={"HX-Replace-Url": state.url}
    )


def _page(
    connection: apsw.Connection, state: OverviewState, site: SiteDep, *, now_ns: int
) -> OverviewPage:
    window = state.window(now_ns=now_ns)
    meant = to_filter(state.runs, now_ns=now_ns)
    problems = list(meant.problems)
    found: Reading | None = None
    try:
        found = read_figures(
            connection,
            window,
            by=state.by,
            filters=meant.filter,
            merge_models=not state.is_dated,
            has_before=state.has_before,
        )
    except InvalidQueryError as error:
        problems.append(str(error))
    scheme = "https" if site.settings.secure_cookies else "http"
    bare = replace(state, runs=state.runs.without(*filter_keys(state)).searching(""))
    return OverviewPage(
        head=period_head(state, window, "Overview"),
        state=state,
        problems=tuple(problems),
        chips=chips_of(state),
        hidden=tuple(pair for pair in state.pairs() if pair[0] != "q"),
        dimensions=tuple(
            Choice(one, replace(state, by=one).url, is_on=one == state.by) for one in DIMENSIONS
        ),
        steps=step_choices(state, window),
        switches=_switches(state),
        exported=tuple(exported(state)),
        heads=head_figures(found.now.total, found.before_total) if found else (),
        charts=_charts(found, state, window),
        accuracy=accuracy(found.report, now_ns, by=state.by) if found else "",
        has_runs=bool(last_change(connection)),
        endpoint=f"{scheme}://{site.settings.http_address}",
        without_filters=bare.url,
        longest=state.period("90d").url,
    )


def _charts(found: Reading | None, state: OverviewState, window: Window) -> tuple[Chart, ...]:
    if found is None or not found.now.total.runs:
        return ()
    return charts_of(found.now, found.before, state, window, csv=csv_address(state))


def csv_address(state: OverviewState) -> str:
    """Return where the figures of a period are saved as CSV."""
    return f"/v1/tables/overview?{urlencode([*exported(state), ('format', 'csv')])}"


def exported(state: OverviewState) -> list[tuple[str, str]]:
    """Return the filters of the page's figures as a file."""
    own = [("by", state.by), ("step", state.step), ("dated", "1" if state.is_dated else "")]
    period = [] if state.runs.value("since") else [("since", state.since)]
    return [pair for pair in (*own, *period, *state.runs.pairs()) if pair[1]]


def period_head(
    state: OverviewState, window: Window, title: str, more: Mapping[str, str] = {}
) -> PeriodHead:
    """Return the head of a page with a period; `more`: periods that it has beside the usual."""
    until_ns = min(window.until_ns, window.now_ns) if not state.is_custom else window.until_ns
    return PeriodHead(
        state=state,
        title=title,
        period=interval_text(window.since_ns, window.until_ns),
        periods=tuple(
            Choice(
                label,
                state.period(name).url,
                is_on=name == state.since and not state.runs.value("until"),
            )
            for name, label in {**PERIODS, **more}.items()
        ),
        carried=tuple(pair for pair in state.pairs() if pair[0] not in _PERIOD_KEYS),
        since_input=figures.iso_time(window.since_ns)[:16],
        until_input=figures.iso_time(until_ns)[:16],
        is_custom=state.is_custom and state.since not in more,
    )


def chips_of(state: OverviewState) -> tuple[Chip, ...]:
    """Return the filters in force, but for the period, which stands in the head."""
    chips = [
        Chip(term.label, term.shown, state.with_runs(state.runs.toggled(term.key, term.value)).url)
        for term in state.runs.terms
        if term.key not in _PERIOD_KEYS
    ]
    if state.runs.words:
        without = state.with_runs(state.runs.searching("")).url
        chips.append(Chip("text", state.runs.words, without))
    return tuple(chips)


def filter_keys(state: OverviewState) -> set[str]:
    return {term.key for term in state.runs.terms} - set(_PERIOD_KEYS)


def step_choices(state: OverviewState, window: Window) -> tuple[Choice, ...]:
    if not state.can_be_hours(window):
        return ()
    shown = interval_name(window)
    return tuple(
        Choice(f"by {one}", replace(state, step=one).url, is_on=one == shown)
        for one in ("hour", "day")
    )


def interval_name(window: Window) -> str:
    return "day" if window.step_ns >= 86_400 * 10**9 else "hour"


def _switches(state: OverviewState) -> tuple[Choice, ...]:
    before = Choice(
        "Period before",
        replace(state, has_before=not state.has_before).url,
        is_on=state.has_before,
        title="compare with the period of the same length before",
    )
    merged = merge_switch(state)
    return (before, merged) if state.by == "model" else (before,)


def merge_switch(state: OverviewState) -> Choice:
    """Return the switch that merges the dated versions of models."""
    return Choice(
        "Merge dated versions",
        replace(state, is_dated=not state.is_dated).url,
        is_on=not state.is_dated,
        title="gpt-4o-2024-08-06 counts as gpt-4o",
    )


def accuracy(report: FigureReport | FigureSums, now_ns: int, *, by: str = "") -> str:
    """Say what the figures count, and how exact and current they are."""
    several = {"tag": "tags", "service": "services"}.get(by)
    parts = [f"A run with several {several} counts for each."] if several else []
    parts += [
        "Runs count at the time of their start. Counts, tokens and cost are exact; percentiles are "
        f"within {100 * RELATIVE_ERROR:.1f}%."
    ]
    if report.as_of_ns:
        parts.append(
            f"Hours that still change are as of {figures.ago(now_ns - report.as_of_ns)} ago."
        )
    if report.pending_hours:
        hours = figures.plural(report.pending_hours, "hour")
        parts.append(f"{hours} not computed yet; reload the page in a moment.")
    return " ".join(parts)

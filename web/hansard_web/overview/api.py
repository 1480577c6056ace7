"""Figures over time over HTTP: `/v1/overview`, and `/v1/latency` without its points."""

from __future__ import annotations

import time
from typing import Annotated, Any

import apsw
from fastapi import Depends, Query

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.queries import figure_report
from hansard_store.figures.records import (
    DAY_NS,
    DIMENSIONS,
    STEPS,
    Dimension,
    FigureReport,
    FigureWindow,
    Step,
)
from hansard_store.runs.filters import RunFilter
from hansard_web.api.parameters import Limit, one_of, read_run_filter
from hansard_web.api.queries import read_word
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.overview.bodies import figure_answer

router = NounRouter("overview")

MOST_STEPS = 2_000  # of one report
_USUAL_DAYS = 30
_FILTERED_TIMEOUT_MS = 15_000  # every run that meets a filter is counted

RunFilterDep = Annotated[RunFilter, Depends(read_run_filter)]
MergeDep = Annotated[
    bool, Query(description="count gpt-4o-mini-2024-07-18 as gpt-4o-mini, and the like")
]


@router.get("/v1/overview", "overview.bodies.FigureAnswer")
def overview(
    site: SiteDep,
    filters: RunFilterDep,
    limit: Limit,
    by: Annotated[
        str | None, one_of(*DIMENSIONS), Query(description="also by the values of this")
    ] = None,
    step: Annotated[
        str | None, one_of(*STEPS), Query(description="hour up to 7 days, else day, unless given")
    ] = None,
    merge_models: MergeDep = False,
) -> ApiResponse:
    """Sum runs, calls, tokens, cost, errors and latency over time; 30 days unless given.

    A run, with all in it, counts in the step in which it started. Without a filter only runs of
    kind agent count. A window that ends before it begins, or of more than 2,000 steps, is refused.
    """
    report = _report(
        site,
        filters,
        by=read_word("by", by, DIMENSIONS),
        step=read_word("step", step, STEPS),
        merge_models=merge_models,
    )
    return ApiResponse(figure_answer(report, limit=limit))


@router.get("/v1/latency", "overview.bodies.FigureAnswer")
def latency(
    site: SiteDep,
    filters: RunFilterDep,
    limit: Limit,
    by: Annotated[
        str, one_of(*DIMENSIONS), Query(description="the values that are compared")
    ] = "model",
    merge_models: MergeDep = False,
) -> ApiResponse:
    """Compare count, p50, p95, p99, errors and cost of models, tools or agents; without points.

    30 days unless given; a window that ends before it begins, or of more than 2,000 days, is
    refused.
    """
    report = _report(
        site,
        filters,
        by=read_word("by", by, DIMENSIONS),
        step=None,
        merge_models=merge_models,
    )
    return ApiResponse(figure_answer(report, limit=limit, with_points=False))


def _report(
    site: Any,
    filters: RunFilter,
    *,
    by: Dimension | None,
    step: Step | None,
    merge_models: bool,
) -> FigureReport:
    timeout = {} if is_bare(filters) else {"timeout_ms": _FILTERED_TIMEOUT_MS}
    with site.readers.read(**timeout) as connection:
        return read_report(connection, filters, by=by, step=step, merge_models=merge_models)


def read_report(
    connection: apsw.Connection,
    filters: RunFilter,
    *,
    by: Dimension | None,
    step: Step | None = None,
    merge_models: bool = False,
) -> FigureReport:
    """Return the figures of the runs that meet a filter, whose times are the window.

    Raises InvalidQueryError for a window of more than 2,000 steps.
    """
    now_ns = time.time_ns()
    window = window_of(filters, step, now_ns=now_ns)
    return figure_report(
        connection,
        window,
        by=by,
        filters=None if is_bare(filters) else filters,
        merge_models=merge_models,
        with_latency=True,
        now_ns=now_ns,
    )


def is_bare(filters: RunFilter) -> bool:
    """Whether a filter asks for nothing but a time, and perhaps runs of agents: rows answer it."""
    kinds = (None, "agent")
    bare = RunFilter(kind=filters.kind, since_ns=filters.since_ns, until_ns=filters.until_ns)
    return filters == bare and filters.kind in kinds


def window_of(filters: RunFilter, step: Step | None, *, now_ns: int) -> FigureWindow:
    """Return the window of a filter in whole steps: the last 30 days unless it names another."""
    until_ns = now_ns if filters.until_ns is None else filters.until_ns
    since_ns = until_ns - _USUAL_DAYS * DAY_NS if filters.since_ns is None else filters.since_ns
    if since_ns >= until_ns:
        raise InvalidQueryError("since", "the window ends before it begins")
    chosen: Step = step or ("hour" if until_ns - since_ns <= 7 * DAY_NS else "day")
    window = FigureWindow.around(since_ns, until_ns, chosen)
    if len(window.slots) > MOST_STEPS:
        raise InvalidQueryError(
            "step",
            f"the window has {len(window.slots):,} steps of one {chosen}; at most {MOST_STEPS:,} "
            "are answered",
        )
    return window

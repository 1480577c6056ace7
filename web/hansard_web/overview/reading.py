"""The figures of a window, read from the store as the page's points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard_compiler.model_names import undated
from hansard_store.figures.queries import figure_report, merged_series
from hansard_store.figures.records import (
    DAY_NS,
    HOUR_NS,
    NOTHING,
    Dimension,
    FigureReport,
    Figures,
    FigureSeries,
    FigureWindow,
)
from hansard_store.runs.filters import RUN_KINDS, RunFilter
from hansard_store.runs.values import filter_values
from hansard_web.overview.points import OTHERS, PeriodFigures, Point, PointSeries
from hansard_web.overview.state import Window
from hansard_web.ui.charts import SERIES_COLOURS

_MOST_MODELS: Final = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """A window and the one before it. `report` says how current the rows are."""

    now: PeriodFigures
    before: PeriodFigures | None
    before_total: Point | None  # as much of the period before as has passed of this one
    report: FigureReport


def is_narrowed(filters: RunFilter) -> bool:
    """Whether a filter leaves anything out that rows of figures count."""
    return replace(filters, since_ns=None, until_ns=None, kind=None) != RunFilter() or (
        filters.kind not in (None, RUN_KINDS[0])
    )


def narrowing(filters: RunFilter) -> RunFilter | None:
    """Return a filter without its period; None where it leaves nothing out."""
    kind = filters.kind or RUN_KINDS[0]
    wanted = replace(filters, since_ns=None, until_ns=None, kind=kind)
    return wanted if is_narrowed(filters) else None


def read_figures(
    connection: apsw.Connection,
    window: Window,
    *,
    by: Dimension,
    filters: RunFilter,
    merge_models: bool,
    has_before: bool,
) -> Reading:
    """Return the figures of a window by a dimension, and those of the window before."""
    found = narrowing(filters)
    report = figure_report(
        connection,
        figure_window(window),
        by=by,
        filters=found,
        merge_models=merge_models,
        now_ns=window.now_ns,
    )
    series = _series(connection, report, merge_models=merge_models)
    now = _period(report, series)
    if not has_before:
        return Reading(now, None, None, report)
    past = window.before()
    so_far_ns = min(past.now_ns, past.until_ns)
    # Counted from the runs, the last column ends at the same hour as today's.
    limited = None if found is None else replace(found, until_ns=so_far_ns)
    before = figure_report(connection, figure_window(past), filters=limited, now_ns=window.now_ns)
    total = before.total.total
    if found is None and so_far_ns < past.until_ns:
        part = FigureWindow.around(past.since_ns, so_far_ns // HOUR_NS * HOUR_NS, "hour")
        total = figure_report(connection, part, now_ns=window.now_ns).total.total
    return Reading(now, _period(before, ()), point_of(total), report)


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of each value of a dimension in a window; `values` are as `_names` has them."""

    items: tuple[tuple[str | None, Figures], ...]
    values: dict[str, tuple[str, ...]]
    report: FigureReport


def read_totals(
    connection: apsw.Connection,
    window: Window,
    *,
    by: Dimension,
    filters: RunFilter,
    merge_models: bool,
) -> Totals:
    """Return the figures of a window by a dimension, without those of its hours or days."""
    report = figure_report(
        connection,
        figure_window(window),
        by=by,
        filters=narrowing(filters),
        merge_models=merge_models,
        now_ns=window.now_ns,
    )
    items = tuple((one.key, one.total) for one in report.series)
    is_merged = by == "model" and merge_models
    return Totals(items, model_names(connection) if is_merged else {}, report)


def model_names(connection: apsw.Connection) -> dict[str, tuple[str, ...]]:
    """Return the names of models by their name without a date."""
    names: dict[str, tuple[str, ...]] = {}
    for one in filter_values(connection, "model", limit=_MOST_MODELS).items:
        names[undated(one.value)] = (*names.get(undated(one.value), ()), one.value)
    return names


def figure_window(window: Window) -> FigureWindow:
    """Return the window as the store takes it."""
    is_day = window.step_ns == DAY_NS
    return FigureWindow(window.since_ns, window.until_ns, "day" if is_day else "hour")


def _series(
    connection: apsw.Connection, report: FigureReport, *, merge_models: bool
) -> tuple[PointSeries, ...]:
    shown = list(report.series[:SERIES_COLOURS])
    rest = report.series[SERIES_COLOURS:]
    names = model_names(connection) if report.by == "model" and merge_models else {}
    slots = report.window.slots
    found = [
        PointSeries(
            one.key,
            _points(one, slots),
            point_of(one.total),
            () if one.key is None else names.get(one.key, (one.key,)),
        )
        for one in shown
    ]
    if rest:
        others = merged_series(rest, key=OTHERS)
        total = point_of(others.total)
        found.append(PointSeries(OTHERS, _points(others, slots), total, is_others=True))
    return tuple(found)


def _period(report: FigureReport, series: Sequence[PointSeries]) -> PeriodFigures:
    slots = report.window.slots
    total = point_of(report.total.total)
    return PeriodFigures(tuple(slots), _points(report.total, slots), total, tuple(series))


def _points(series: FigureSeries, slots: range) -> tuple[Point, ...]:
    return tuple(point_of(series.points.get(start_ns, NOTHING)) for start_ns in slots)


def point_of(figures: Figures) -> Point:
    """Return stored figures as a point of a chart."""
    tokens = figures.tokens
    return Point(
        runs=figures.runs,
        failed_runs=figures.failed_runs,
        calls=figures.model_calls,
        errors=figures.failed_calls,
        cost_usd_nano=figures.cost_usd_nano,
        input_tokens=None if tokens is None else tokens.input,
        cached_tokens=None if tokens is None else tokens.cache_read,
        output_tokens=None if tokens is None else tokens.output,
        reasoning_tokens=None if tokens is None else tokens.reasoning,
        p50_ns=figures.call_latency.p50_ns,
        p95_ns=figures.call_latency.p95_ns,
        p99_ns=figures.call_latency.p99_ns,
        first_token_p50_ns=figures.first_token.p50_ns,
        first_token_p95_ns=figures.first_token.p95_ns,
    )

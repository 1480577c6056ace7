"""The figures of a period as files: over time by a dimension, and latency by what was called."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.records import Dimension
from hansard_store.runs.filters import RunFilter
from hansard_web.exports.table import Row, Source, Table
from hansard_web.latency.page import latency_rows, ordered
from hansard_web.overview.page import TIMEOUT_MS
from hansard_web.overview.points import PeriodFigures, Point
from hansard_web.overview.reading import read_figures, read_totals
from hansard_web.overview.state import (
    DEFAULT_PERIOD,
    DIMENSIONS,
    LATENCY_DIMENSIONS,
    OverviewState,
    Window,
    read_overview,
)
from hansard_web.runs.filters import KEYS, to_filter
from hansard_web.ui.charts import moment

_NANO: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
FIGURE_FILTERS: Final = ("by", "step", "dated", "q", *KEYS)


def read_filters(
    filters: Mapping[str, str],
    dimensions: Sequence[Dimension],
    *,
    now_ns: int,
    path: str = "/overview",
    default_period: str = DEFAULT_PERIOD,
) -> tuple[OverviewState, RunFilter]:
    """Return the state and the filter of runs that the filters of a table describe.

    Raises InvalidQueryError for what is not known.
    """
    pairs = [(name, value) for name, text in filters.items() for value in text.split("\n")]
    state = read_overview(pairs, path=path, dimensions=dimensions, default_period=default_period)
    by = filters.get("by")
    if by and by != state.by:
        known = ", ".join(dimensions)
        raise InvalidQueryError("by", f"figures by {by[:40]!r} are not known; known are {known}")
    is_all = state.since == "all" and default_period != DEFAULT_PERIOD
    meant = to_filter(state.runs.without("since") if is_all else state.runs, now_ns=now_ns)
    if meant.problems:
        raise InvalidQueryError("filters", meant.problems[0])
    return state, meant.filter


def _read(
    filters: Mapping[str, str], dimensions: Sequence[Dimension]
) -> tuple[OverviewState, Window, RunFilter]:
    now_ns = time.time_ns()
    state, wanted = read_filters(filters, dimensions, now_ns=now_ns)
    return state, state.window(now_ns=now_ns), wanted


def _over_time(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    state, window, wanted = _read(filters, DIMENSIONS)
    with source.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        found = read_figures(
            connection,
            window,
            by=state.by,
            filters=wanted,
            merge_models=not state.is_dated,
            has_before=False,
        )
    return _time_rows(found.now, state.by)


def _time_rows(figures: PeriodFigures, by: str) -> Iterator[Row]:
    groups: list[tuple[str | None, str | None, Sequence[Point]]] = [(None, None, figures.points)]
    groups += [(by, one.key or "", one.points) for one in figures.series]
    for dimension, key, points in groups:
        for start_ns, point in zip(figures.starts_ns, points, strict=True):
            if point.runs or point.calls or dimension is None:
                yield {"since": moment(start_ns), "by": dimension, "key": key, **_cells(point)}


def _cells(point: Point) -> Row:
    return {
        "runs": point.runs,
        "failed_runs": point.failed_runs,
        "model_calls": point.calls,
        "failed_calls": point.errors,
        "cost_usd": usd(point.cost_usd_nano),
        "input_tokens": point.input_tokens,
        "cached_tokens": point.cached_tokens,
        "output_tokens": point.output_tokens,
        "reasoning_tokens": point.reasoning_tokens,
        "p50_ms": _ms(point.p50_ns),
        "p95_ms": _ms(point.p95_ns),
        "p99_ms": _ms(point.p99_ns),
        "first_token_p50_ms": _ms(point.first_token_p50_ns),
        "first_token_p95_ms": _ms(point.first_token_p95_ns),
    }


def _latency(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    order = filters.get("order", "")
    rest = {name: text for name, text in filters.items() if name != "order"}
    state, window, wanted = _read(rest, LATENCY_DIMENSIONS)
    with source.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        found = read_totals(
            connection, window, by=state.by, filters=wanted, merge_models=not state.is_dated
        )
    for row in ordered(latency_rows(found.items, state.by), order):
        yield {
            "by": state.by,
            "key": row.key,
            "count": row.count,
            "errors": row.errors,
            "p50_ms": _ms(row.p50_ns),
            "p95_ms": _ms(row.p95_ns),
            "p99_ms": _ms(row.p99_ns),
            "cost_usd": usd(row.cost_usd_nano),
        }


def usd(nano: int | None) -> float | None:
    """Return nano-dollars as dollars."""
    return None if nano is None else nano / _NANO


def _ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / _NS_PER_MS, 3)


TABLE: Final = Table(
    name="overview",
    columns=("since", "by", "key", *_cells(Point())),
    filters=FIGURE_FILTERS,
    rows=_over_time,
)
LATENCY: Final = Table(
    name="latency",
    columns=("by", "key", "count", "errors", "p50_ms", "p95_ms", "p99_ms", "cost_usd"),
    filters=(*FIGURE_FILTERS, "order"),
    rows=_latency,
)

"""The JSON of figures over time, for the API and the commands."""

from __future__ import annotations

from typing import Annotated, Literal

from hansard_store.bodies import Answer, Body, Description, body_of
from hansard_store.figures.histograms import RELATIVE_ERROR, Histogram
from hansard_store.figures.records import Dimension, FigureReport, Figures, FigureSeries
from hansard_store.times import time_text
from hansard_web.api.bodies import TokensBody, tokens_body

_NS_PER_MS = 1_000_000


class LatencyBody(Body):
    """Percentiles in milliseconds, each within 2.2 % of the exact one; null without any."""

    count: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class FiguresBody(Body):
    runs: int
    failed_runs: int
    model_calls: int
    failed_calls: int
    tool_calls: int
    failed_tools: int
    tokens: Annotated[TokensBody | None, Description("null: nothing reported any")]
    cost_usd: Annotated[float | None, Description("without the unpriced calls")]
    unpriced_calls: Annotated[int, Description("calls without an error whose price is not known")]
    error_rate: Annotated[float | None, Description("failed runs of all runs")]
    cache_hit_rate: Annotated[float | None, Description("input tokens read from the cache")]
    run_latency: LatencyBody
    call_latency: LatencyBody
    tool_latency: LatencyBody
    first_token: Annotated[LatencyBody, Description("from a call's start to its first token")]


class FigurePointBody(Body):
    at: Annotated[str, Description("start of the hour or day, UTC")]
    figures: FiguresBody


class FigureSeriesBody(Body):
    key: Annotated[str | None, Description("null: runs or calls that name none")]
    total: FiguresBody
    points: Annotated[list[FigurePointBody], Description("steps without any run are left out")]


class FigureAnswer(Answer):
    """Figures of the runs that started in a window, in whole steps of UTC."""

    since: str
    until: str
    step: Literal["hour", "day"]
    by: Dimension | None
    total: FigureSeriesBody
    series: Annotated[list[FigureSeriesBody], Description("the dearest first; empty without `by`")]
    relative_error: Annotated[float, Description("of percentiles, at most; counts are exact")]
    as_of: Annotated[str | None, Description("hours that still change are as of then; null: now")]
    pending_hours: Annotated[int, Description("hours that are not computed yet, and left out")]


def figure_answer(report: FigureReport, *, limit: int, with_points: bool = True) -> FigureAnswer:
    """Return a report as programs get it, with the first `limit` series."""

    def series(one: FigureSeries) -> FigureSeriesBody:
        return _series_body(one, with_points=with_points)

    window = report.window
    return body_of(
        FigureAnswer,
        report,
        schema_version="1",
        since=time_text(window.since_ns),
        until=time_text(window.until_ns),
        step=window.step,
        total=series(report.total),
        series=[series(one) for one in report.series[:limit]],
        relative_error=round(RELATIVE_ERROR, 4),
        as_of=time_text(report.as_of_ns),
    )


def _series_body(one: FigureSeries, *, with_points: bool) -> FigureSeriesBody:
    points = one.points.items() if with_points else ()
    return FigureSeriesBody(
        key=one.key,
        total=_figures_body(one.total),
        points=[
            FigurePointBody(at=str(time_text(start_ns)), figures=_figures_body(figures))
            for start_ns, figures in points
        ],
    )


def _figures_body(one: Figures) -> FiguresBody:
    return body_of(
        FiguresBody,
        one,
        tokens=tokens_body(one.tokens),
        run_latency=_latency_body(one.run_latency),
        call_latency=_latency_body(one.call_latency),
        tool_latency=_latency_body(one.tool_latency),
        first_token=_latency_body(one.first_token),
    )


def _latency_body(one: Histogram) -> LatencyBody:
    def milliseconds(share: float) -> float | None:
        found = one.percentile_ns(share)
        return None if found is None else round(found / _NS_PER_MS, 3)

    return LatencyBody(
        count=one.total,
        p50_ms=milliseconds(0.5),
        p95_ms=milliseconds(0.95),
        p99_ms=milliseconds(0.99),
    )

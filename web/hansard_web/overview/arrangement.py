"""The overview as its template shows it: head figures with their change, and the charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from hansard_web.overview.points import OTHERS, PeriodFigures, Point, PointSeries
from hansard_web.overview.state import OverviewState, Window
from hansard_web.ui.chart_axes import Unit, value_text
from hansard_web.ui.charts import Buckets, Chart, ChartOf, Series, change_text, points_text

_Get = Callable[[Point], float | None]
_NOT_NAMED: Final = "(none)"
# Lines differ by their dashes as well as by colour.
_MARKS: Final = {"p50": "p50", "p95": "p95", "p99": "p99", "runs": "p50", "model calls": "p95"}


@dataclass(frozen=True, slots=True)
class HeadFigure:
    """A figure of the whole period; `change` compares it with the period before."""

    label: str
    text: str
    change: str
    tone: str  # good, bad or "" where more is neither
    before: str
    detail: str = ""
    title: str = ""


def head_of(
    now: Point,
    before: Point | None,
    label: str,
    unit: Unit,
    get: _Get,
    *,
    less_is_good: bool | None = None,
    detail: str = "",
) -> HeadFigure:
    """Return one figure of a period, with its change since the period before."""
    value, past = get(now), None if before is None else get(before)
    change = points_text(value, past) if unit == "percent" else change_text(value, past)
    tone = ""
    if less_is_good is not None and change[:1] in "+−×" and change:
        tone = "good" if (change[0] == "−") == less_is_good else "bad"
    exact = f"{value:,.0f} tokens" if unit == "tokens" and value is not None else ""
    return HeadFigure(
        label, value_text(value, unit), change, tone, value_text(past, unit), detail, exact
    )


def head_figures(now: Point, before: Point | None) -> tuple[HeadFigure, ...]:
    """Return the figures above the charts."""
    head = partial(head_of, now, before)
    cached = value_text(now.cached_pct, "percent")
    reasoning = value_text(now.reasoning_tokens, "tokens")
    latency = f"p50 {value_text(now.p50_ns, 'duration')}, p99 {value_text(now.p99_ns, 'duration')}"
    first = value_text(now.first_token_p95_ns, "duration")
    return (
        head("Cost", "money", lambda one: one.cost_usd_nano),
        head("Model calls", "count", lambda one: one.calls),
        head("Input tokens", "tokens", lambda one: one.input_tokens),
        head(
            "Output tokens",
            "tokens",
            lambda one: one.output_tokens,
            detail=f"{reasoning} reasoning",
        ),
        head(
            "Cache-hit rate",
            "percent",
            lambda one: one.cached_pct,
            less_is_good=False,
            detail=f"{value_text(now.cached_tokens, 'tokens')} of input cached"
            if cached != "–"
            else "",
        ),
        head("Latency p95", "duration", lambda one: one.p95_ns, less_is_good=True, detail=latency),
        head(
            "Time to first token p50",
            "duration",
            lambda one: one.first_token_p50_ns,
            less_is_good=True,
            detail=f"p95 {first}",
        ),
        head(
            "Error rate",
            "percent",
            lambda one: one.failed_run_pct,
            less_is_good=True,
            detail=f"{now.failed_runs:,} of {now.runs:,} runs",
        ),
    )


class _Line(NamedTuple):
    """A chart of lines: what each is of, and which of them is compared with the period before."""

    name: str
    title: str
    unit: Unit
    gets: Mapping[str, _Get]
    compared: str


_LATENCY: Final = _Line(
    "latency",
    "Latency of model calls",
    "duration",
    {"p50": lambda p: p.p50_ns, "p95": lambda p: p.p95_ns, "p99": lambda p: p.p99_ns},
    "p95",
)
_FIRST_TOKEN: Final = _Line(
    "first-token",
    "Time to first token",
    "duration",
    {"p50": lambda p: p.first_token_p50_ns, "p95": lambda p: p.first_token_p95_ns},
    "p50",
)
_ERROR_RATE: Final = _Line(
    "error-rate",
    "Error rate",
    "percent",
    {"runs": lambda p: p.failed_run_pct, "model calls": lambda p: p.error_pct},
    "runs",
)
_CACHE_HITS: Final = _Line(
    "cache-hits",
    "Cache-hit rate",
    "percent",
    {"cache-hit rate": lambda p: p.cached_pct},
    "cache-hit rate",
)


def chart_frame(
    figures: PeriodFigures, state: OverviewState, window: Window, *, csv: str
) -> ChartOf:
    """Return what the charts of a page share: columns that lead to their runs."""
    return ChartOf(
        Buckets(figures.starts_ns, window.until_ns),
        lambda since, until: state.runs_url(("since", since), ("until", until)),
        page=state.url,
        csv=csv,
    )


def stacked_chart(
    chart: ChartOf,
    named: tuple[str, str, Unit],
    get: _Get,
    figures: PeriodFigures,
    state: OverviewState,
    past: Sequence[Point] = (),
) -> Chart:
    """Return a figure over time, stacked by the dimension that is chosen; `named`: name, title."""
    name, title, unit = named
    series = [_dimension(one, state, get) for one in figures.series]
    series = series or [Series(title, _values(figures.points, get))]
    return chart.bars(name, title, unit, series, before=_values(past, get))


def charts_of(
    figures: PeriodFigures,
    before: PeriodFigures | None,
    state: OverviewState,
    window: Window,
    *,
    csv: str,
) -> tuple[Chart, ...]:
    """Return the charts of the page, in the order in which they are looked at."""
    chart = chart_frame(figures, state, window, csv=csv)
    past = before.points if before and before.total.runs else ()

    def stacked(name: str, title: str, unit: Unit, get: _Get) -> Chart:
        return stacked_chart(chart, (name, title, unit), get, figures, state, past)

    def lines(of: _Line) -> Chart:
        return _line_chart(chart, of, figures.points, past)

    return (
        stacked("cost", "Cost", "money", lambda one: one.cost_usd_nano),
        stacked("calls", "Model calls", "count", lambda one: one.calls),
        stacked("tokens", "Tokens", "tokens", lambda one: one.tokens),
        lines(_LATENCY),
        lines(_FIRST_TOKEN),
        lines(_ERROR_RATE),
        token_kinds(chart, figures.points),
        lines(_CACHE_HITS),
        # Of a model only its calls are counted, not the runs around them.
        stacked("errors", "Failed model calls", "count", lambda one: one.errors)
        if state.by == "model"
        else stacked("errors", "Failed runs", "count", lambda one: one.failed_runs),
    )


def _line_chart(chart: ChartOf, of: _Line, points: Sequence[Point], past: Sequence[Point]) -> Chart:
    plain = len(of.gets) == 1
    series = [
        Series(label, _values(points, get), mark="s1" if plain else _MARKS[label])
        for label, get in of.gets.items()
    ]
    return chart.lines(
        of.name,
        of.title,
        of.unit,
        series,
        before=_values(past, of.gets[of.compared]),
        before_of="" if plain else of.compared,
    )


def token_kinds(chart: ChartOf, points: Sequence[Point]) -> Chart:
    """Return tokens by kind: cached and other input, output and reasoning add up to all."""

    def fresh(one: Point) -> float | None:
        return None if one.input_tokens is None else one.input_tokens - _cached(one)

    def answer(one: Point) -> float | None:
        return None if one.output_tokens is None else one.output_tokens - _reasoning(one)

    gets: dict[str, _Get] = {
        "input, cached": lambda one: None if one.cached_tokens is None else _cached(one),
        "input": fresh,
        "output": answer,
        "reasoning": lambda one: None if one.reasoning_tokens is None else _reasoning(one),
    }
    series = []
    for name, get in gets.items():
        values = _values(points, get)
        known = [value for value in values if value is not None]
        series.append(Series(name, values, total=sum(known) if known else None))
    return chart.bars("token-kinds", "Tokens by kind", "tokens", series)


def _cached(one: Point) -> int:
    return min(one.cached_tokens or 0, one.input_tokens or 0)


def _reasoning(one: Point) -> int:
    return min(one.reasoning_tokens or 0, one.output_tokens or 0)


def _dimension(one: PointSeries, state: OverviewState, get: _Get) -> Series:
    href = None
    if one.values and not one.is_others:
        period = [("since", state.since)] if not state.runs.value("since") else []
        href = state.runs_url(*period, *((state.by, value) for value in one.values))
    name = OTHERS if one.is_others else one.key if one.key is not None else _NOT_NAMED
    mark = "other" if one.is_others or one.key is None else ""
    return Series(name, _values(one.points, get), href, mark, get(one.total))


def _values(points: Sequence[Point], get: _Get) -> tuple[float | None, ...]:
    return tuple(get(one) for one in points)

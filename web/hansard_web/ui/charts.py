"""Charts as geometry: numbers in, frozen records of rectangles, paths and labels out. Pure.

`templates/macros/charts.html` draws them as SVG, without script. The plot is 1000 by 100 units and
stretched to its box; labels stand outside it, so that no letter is stretched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from hansard_web.ui import format as figures
from hansard_web.ui.chart_axes import (
    Tick,
    Unit,
    ValueAxis,
    interval_text,
    time_ticks,
    value_axis,
    value_text,
)

WIDTH: Final = 1000
HEIGHT: Final = 100
SERIES_COLOURS: Final = 6  # further series, and those named so, are grey: `other`
BEFORE: Final = "period before"
_LONE_SHARE: Final = 0.5  # of its column, that a point without neighbours is wide
_GAP: Final = 0.22  # of a column, between bars
_LONGEST_NAME: Final = 60  # characters in a title
_SPARK_WIDTH: Final = 100
_SPARK_HEIGHT: Final = 20

Kind = Literal["bars", "lines"]


@dataclass(frozen=True, slots=True)
class Buckets:
    """The columns of a chart: when each begins, and when the last one ends."""

    starts_ns: tuple[int, ...]
    end_ns: int

    def until_ns(self, index: int) -> int:
        return self.starts_ns[index + 1] if index + 1 < len(self.starts_ns) else self.end_ns

    def label(self, index: int) -> str:
        return interval_text(self.starts_ns[index], self.until_ns(index))


@dataclass(frozen=True, slots=True)
class Series:
    """One figure for each column; None where nothing is known."""

    name: str
    values: tuple[float | None, ...]
    href: str | None = None  # the runs behind the whole series
    mark: str = ""  # a class of its own instead of the next colour: error, p50, p95 …
    total: float | None = None  # what the legend shows; none: nothing


@dataclass(frozen=True, slots=True)
class Bar:
    mark: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A column to point at: the runs behind it and what it holds, in words."""

    x: float
    width: float
    href: str
    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Line:
    mark: str
    path: str


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend."""

    name: str
    mark: str
    total: str
    href: str | None


@dataclass(frozen=True, slots=True)
class DataRow:
    label: str
    href: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    name: str  # unique on its page
    title: str
    kind: Kind
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    before: str  # path of the period before, "" without
    before_name: str
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    keys: tuple[Key, ...]
    heads: tuple[str, ...]  # of the data table, after the time
    rows: tuple[DataRow, ...]
    summary: str
    csv: str = ""  # address of the same figures as a file
    page: str = ""  # address that a range is added to

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of any column."""
        return not any(line.path for line in self.lines) and not any(
            column.bars for column in self.columns
        )


@dataclass(frozen=True, slots=True)
class Sparkline:
    line: str
    area: str
    summary: str
    width: int = _SPARK_WIDTH
    height: int = _SPARK_HEIGHT


@dataclass(frozen=True, slots=True)
class ChartOf:
    """What every chart of a page shares: its columns and where its links lead."""

    buckets: Buckets
    href: Callable[[str, str], str]  # (since, until) -> the runs of that time
    page: str = ""
    csv: str = ""

    def bars(
        self,
        name: str,
        title: str,
        unit: Unit,
        series: Sequence[Series],
        *,
        before: Sequence[float | None] = (),
    ) -> Chart:
        """Return stacked bars, the first series at the bottom."""
        sums = [
            sum(one.values[index] or 0 for one in series)
            for index in range(len(self.buckets.starts_ns))
        ]
        axis = value_axis([*sums, *_known(before)], unit)
        stacked = self._stack(series, axis)
        return self._chart(name, title, unit, "bars", series, before, axis=axis, bars=stacked)

    def lines(
        self,
        name: str,
        title: str,
        unit: Unit,
        series: Sequence[Series],
        *,
        before: Sequence[float | None] = (),
        before_of: str = "",
    ) -> Chart:
        """Return a line for each series; a gap where a value is not known."""
        known = [value for one in series for value in _known(one.values)]
        axis = value_axis([*known, *_known(before)], unit)
        drawn = self._chart(name, title, unit, "lines", series, before, axis=axis, bars=None)
        return replace(drawn, before_name=f"{before_of} {BEFORE}") if before_of else drawn

    def _stack(self, series: Sequence[Series], axis: ValueAxis) -> list[tuple[Bar, ...]]:
        width = WIDTH / max(len(self.buckets.starts_ns), 1)
        stacked = []
        for index in range(len(self.buckets.starts_ns)):
            bars, top = [], float(HEIGHT)
            for mark, one in zip(marks(series), series, strict=True):
                value = one.values[index]
                if not value or value < 0:
                    continue
                height = axis.height(value)
                top = round(top - height, 2)
                x, wide = _short((index + _GAP / 2) * width), _short(width * (1 - _GAP))
                bars.append(Bar(mark, x, _short(max(top, 0), 2), wide, _short(height, 2)))
            stacked.append(tuple(bars))
        return stacked

    def _chart(
        self,
        name: str,
        title: str,
        unit: Unit,
        kind: Kind,
        series: Sequence[Series],
        before: Sequence[float | None],
        *,
        axis: ValueAxis,
        bars: Sequence[tuple[Bar, ...]] | None,
    ) -> Chart:
        columns, rows = [], []
        count = len(self.buckets.starts_ns)
        edges = [_short(WIDTH * index / max(count, 1)) for index in range(count + 1)]
        for index in range(count):
            since = moment(self.buckets.starts_ns[index])
            until = moment(self.buckets.until_ns(index))
            href = self.href(since, until)
            label = self.buckets.label(index)
            texts = [value_text(one.values[index], unit) for one in series]
            past = [value_text(before[index], unit)] if before else []
            columns.append(
                Column(
                    x=edges[index],
                    width=_short(edges[index + 1] - edges[index]),
                    href=href,
                    title=_title(label, series, texts, index, past),
                    bars=bars[index] if bars else (),
                )
            )
            rows.append(DataRow(label, href, (*texts, *past)))
        lines = () if bars else tuple(_lines(series, axis))
        heads = [one.name for one in series] + ([BEFORE] if before else [])
        return Chart(
            name=name,
            title=title,
            kind=kind,
            columns=tuple(columns),
            lines=lines,
            before=path(before, axis),
            before_name=BEFORE,
            y_ticks=axis.ticks,
            x_ticks=time_ticks(self.buckets.starts_ns, self.buckets.end_ns),
            keys=_keys(series, unit),
            heads=tuple(heads),
            rows=tuple(rows),
            summary=_summary(title, unit, series, self.buckets, stacked=bars is not None),
            csv=self.csv,
            page=self.page,
        )


def marks(series: Sequence[Series]) -> list[str]:
    """Return the class of each series: its own, the next colour, or `other`."""
    return [
        one.mark or (f"s{number + 1}" if number < SERIES_COLOURS else "other")
        for number, one in enumerate(series)
    ]


def moment(epoch_ns: int) -> str:
    """Return a moment as addresses have it."""
    text = figures.iso_time(epoch_ns)
    return text[:19] + "Z" if text[20:29] == "000000000" else text[:23] + "Z"


def path(values: Sequence[float | None], axis: ValueAxis) -> str:
    """Return a path through the middles of the columns; a lone point is a stroke of its column."""
    if not values:
        return ""
    width = WIDTH / len(values)
    known = (False, *(value is not None for value in values), False)
    parts = []
    for index, value in enumerate(values):
        if value is None:
            continue
        x, y = _short((index + 0.5) * width), _short(HEIGHT - axis.height(value, HEIGHT), 2)
        if known[index]:
            parts.append(f"L{x} {y}")
        elif known[index + 2]:
            parts.append(f"M{x} {y}h.01")
        else:
            half = width * _LONE_SHARE / 2
            parts.append(f"M{_short(x - half)} {y}h{_short(2 * half)}")
    return "".join(parts)


def _short(value: float, digits: int = 1) -> float:
    """Return a place as few letters: a tenth of a unit is less than a tenth of a pixel."""
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def sparkline(values: Sequence[float | None], unit: Unit = "count") -> Sparkline:
    """Return a line of a row's figures over time, without axes. None counts as nothing known."""
    known = _known(values)
    most = max(known, default=0) or 1
    points = []
    span = max(len(values) - 1, 1)
    for index, value in enumerate(values):
        if value is not None:
            x = round(_SPARK_WIDTH * index / span, 2)
            points.append((x, round(_SPARK_HEIGHT - 1 - (_SPARK_HEIGHT - 2) * value / most, 2)))
    line = "".join(f"{'L' if place else 'M'}{x} {y}" for place, (x, y) in enumerate(points))
    area = f"{line}V{_SPARK_HEIGHT}H{points[0][0]}Z" if len(points) > 1 else ""
    summary = (
        f"from {value_text(known[0], unit)} to {value_text(known[-1], unit)}, "
        f"at most {value_text(max(known), unit)}"
        if known
        else "no figures"
    )
    return Sparkline(line if len(points) > 1 else line and line + "h.01", area, summary)


@dataclass(frozen=True, slots=True)
class Spread:
    """The range from p50 to p99 on a scale of powers of ten, in percent of its box."""

    from_pct: float
    width_pct: float
    p95_pct: float
    title: str


def spread(p50: float, p95: float, p99: float, *, least: float, most: float) -> Spread:
    """Return where three percentiles lie between two lengths of time, on a log scale."""
    from math import log10

    low, high = log10(max(least, 1)), log10(max(most, 10, least * 10))

    def place(value: float) -> float:
        return round(100 * min(max((log10(max(value, 1)) - low) / (high - low), 0), 1), 2)

    words = ", ".join(
        f"{name} {value_text(value, 'duration')}"
        for name, value in (("p50", p50), ("p95", p95), ("p99", p99))
    )
    return Spread(place(p50), max(round(place(p99) - place(p50), 2), 1), place(p95), words)


def change_text(now: float | None, before: float | None) -> str:
    """Return a change in percent of the period before: `+12%`, `−3%`; "" where none can be said."""
    if now is None or not before:
        return ""
    change = 100 * (now - before) / before
    if abs(change) < 0.5:
        return "±0%"
    sign = "+" if change > 0 else "−"
    return f"{sign}{abs(change):.0f}%" if abs(change) < 1000 else f"×{now / before:.0f}"


def points_text(now: float | None, before: float | None) -> str:
    """Return the change of a percentage in percentage points: `+2.5 pp`; "" where unknown."""
    if now is None or before is None:
        return ""
    change = round(now - before, 1)
    return f"{'+' if change > 0 else '−'}{abs(change):g} pp" if change else "±0 pp"


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _lines(series: Sequence[Series], axis: ValueAxis) -> list[Line]:
    return [
        Line(mark, path(one.values, axis)) for mark, one in zip(marks(series), series, strict=True)
    ]


def _keys(series: Sequence[Series], unit: Unit) -> tuple[Key, ...]:
    return tuple(
        Key(one.name, mark, "" if one.total is None else value_text(one.total, unit), one.href)
        for mark, one in zip(marks(series), series, strict=True)
    )


def _title(
    label: str, series: Sequence[Series], texts: Sequence[str], index: int, past: Sequence[str]
) -> str:
    shown = [
        f"{figures.shorten(one.name, _LONGEST_NAME)}: {text}"
        for one, text in zip(series, texts, strict=True)
        if one.values[index] is not None and (one.values[index] or len(series) == 1)
    ]
    shown += [f"{BEFORE}: {text}" for text in past if text != "–"]
    return "\n".join((label, *(shown or ["nothing"])))


def _summary(
    title: str, unit: Unit, series: Sequence[Series], buckets: Buckets, *, stacked: bool
) -> str:
    sums: list[float | None] = []
    for index in range(len(buckets.starts_ns)):
        known = [one.values[index] for one in series if one.values[index] is not None]
        sums.append((sum(known) if stacked else max(known)) if known else None)  # type: ignore[type-var,arg-type]
    highest = max((value for value in sums if value is not None), default=None)
    if highest is None:
        return f"{title}: nothing in this period"
    at = sums.index(highest)
    return f"{title}; highest: {value_text(highest, unit)}, {buckets.label(at)} (UTC)"

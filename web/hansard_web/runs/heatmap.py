"""The heatmap over the runs list: when runs started against how long they took. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hansard_store.runs.queries import RunDot
from hansard_web.ui import format as figures

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_YEAR_2000_NS: Final = 946_684_800 * _NS_PER_S  # earlier starts are broken clocks
COLUMNS: Final = 96
_LEVELS: Final = 5
# Upper ends of the rows in seconds, shortest first: a row is about √10 times the one below it.
_ROW_ENDS_S: Final = (0.6, 2, 6, 20, 60, 180, 600)
_ROW_NAMES: Final = (
    "under 0.6 s", "0.6–2 s", "2–6 s", "6–20 s", "20–60 s", "1–3 min", "3–10 min", "over 10 min",
)  # fmt: skip
_CELL: Final = 10  # of the view box: 960 × 84
_ROW: Final = 9
_ERRORS_Y: Final = 75
_MOST_TICKS: Final = 8
_SLICES: Final = 8  # rows of the table of the same figures
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_STEPS_S: Final = (
    1, 5, 15, 30, _MINUTE_S, 5 * _MINUTE_S, 15 * _MINUTE_S, 30 * _MINUTE_S, _HOUR_S, 3 * _HOUR_S,
    6 * _HOUR_S, 12 * _HOUR_S, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 14 * _DAY_S, 30 * _DAY_S,
    90 * _DAY_S, 365 * _DAY_S, 3650 * _DAY_S,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One rectangle: some runs of one column and row, or the errors of one column."""

    x: int
    y: int
    height: int
    level: str  # h1 … h5, he for errors
    title: str


@dataclass(frozen=True, slots=True)
class _Column:
    """A slice of time that holds runs; its address narrows the list to it."""

    since: str
    until: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class _Tick:
    """A mark of the axis of time."""

    label: str
    at_pct: float
    is_major: bool  # also on a phone, which has room for three


@dataclass(frozen=True, slots=True)
class _Slice:
    """A row of the table that says what the map shows."""

    since: str
    until: str
    runs: int
    errors: int
    p50: str
    p95: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    columns: tuple[_Column, ...]
    ticks: tuple[_Tick, ...]
    slices: tuple[_Slice, ...]
    from_ms: int
    to_ms: int
    most: int  # runs in the fullest cell
    p50: str
    p95: str
    summary: str  # the same in words


def heat_map(dots: Sequence[RunDot], *, since_ns: int | None, until_ns: int) -> HeatMap | None:
    """Return the map of runs between two moments; None when there is too little for a picture.

    Without since_ns it begins with the earliest run. Runs without an end are left out.
    """
    ended = [
        dot
        for dot in dots
        if dot.duration_ns is not None and _YEAR_2000_NS <= dot.started_ns < until_ns
    ]
    if len(ended) < 2:
        return None
    first_ns = min(dot.started_ns for dot in ended) if since_ns is None else since_ns
    step_ns = max((until_ns - first_ns + COLUMNS - 1) // COLUMNS, _NS_PER_S)
    runs: Counter[tuple[int, int]] = Counter()
    errors: Counter[int] = Counter()
    for dot in ended:
        column = (dot.started_ns - first_ns) // step_ns
        if not 0 <= column < COLUMNS:
            continue
        runs[column, _row_of(dot.duration_ns or 0)] += 1
        errors[column] += dot.status == "error"
    if not runs:
        return None
    most = max(runs.values())
    columns = tuple(
        _column(number, first_ns + number * step_ns, step_ns, runs, errors, most)
        for number in sorted({column for column, _ in runs})
    )
    last_ns = first_ns + step_ns * COLUMNS
    lengths = sorted(dot.duration_ns or 0 for dot in ended)
    p50, p95 = _percentile(lengths, 50), _percentile(lengths, 95)
    return HeatMap(
        columns=columns,
        ticks=_ticks(first_ns // _NS_PER_S, last_ns // _NS_PER_S),
        slices=_slices(ended, first_ns, last_ns),
        from_ms=first_ns // _NS_PER_MS,
        to_ms=last_ns // _NS_PER_MS,
        most=most,
        p50=p50,
        p95=p95,
        summary=f"Duration of {figures.plural(len(ended), 'run')} over time: median {p50}, 95th "
        f"percentile {p95}; {figures.plural(sum(errors.values()), 'error')}.",
    )


def _row_of(duration_ns: int) -> int:
    return bisect_right(_ROW_ENDS_S, duration_ns / _NS_PER_S)


def _column(
    number: int,
    start_ns: int,
    step_ns: int,
    runs: Counter[tuple[int, int]],
    errors: Counter[int],
    most: int,
) -> _Column:
    clock = figures.clock(start_ns)[:5]
    cells = [
        Cell(
            x=number * _CELL,
            y=(len(_ROW_ENDS_S) - row) * _ROW,
            height=_ROW,
            level=f"h{_level(runs[number, row], most)}",
            title=f"{clock}, {name}: {figures.plural(runs[number, row], 'run')}",
        )
        for row, name in enumerate(_ROW_NAMES)
        if runs[number, row]
    ]
    if errors[number]:
        title = f"{clock}: {figures.plural(errors[number], 'error')}"
        cells.append(Cell(number * _CELL, _ERRORS_Y, _ROW, "he", title))
    return _Column(_moment(start_ns), _moment(start_ns + step_ns), tuple(cells))


def _level(count: int, most: int) -> int:
    """Return 1 to 5 by the square root of the share, so that single runs stay visible."""
    return max(1, round(_LEVELS * math.sqrt(count / most)))


def _moment(epoch_ns: int) -> str:
    return figures.iso_time(epoch_ns)[:23] + "Z"


def _ticks(first_s: int, last_s: int) -> tuple[_Tick, ...]:
    """Return marks at round moments of UTC, whose labels differ."""
    span_s = max(last_s - first_s, 1)
    step_s = next((step for step in _STEPS_S if span_s <= step * _MOST_TICKS), _STEPS_S[-1])
    if step_s < _MINUTE_S:
        shape = "%H:%M:%S"
    elif step_s < _DAY_S:
        shape = "%H:%M" if span_s < _DAY_S else "%b %d, %H:%M"
    else:
        shape = "%b %d" if span_s < 365 * _DAY_S else "%b %d, %Y"
    moments = range(-(-first_s // step_s) * step_s, last_s + 1, step_s)[: 2 * _MOST_TICKS]
    every = max(-(-len(moments) // 3), 1)
    return tuple(
        _Tick(
            f"{datetime.fromtimestamp(moment, UTC):{shape}}",
            round(100 * (moment - first_s) / span_s, 2),
            number % every == every // 2,
        )
        for number, moment in enumerate(moments)
    )


def _slices(ended: Sequence[RunDot], first_ns: int, last_ns: int) -> tuple[_Slice, ...]:
    size_ns = max((last_ns - first_ns) // _SLICES, 1)
    of: dict[int, list[RunDot]] = {}
    for dot in ended:
        if first_ns <= dot.started_ns < last_ns:
            of.setdefault((dot.started_ns - first_ns) // size_ns, []).append(dot)
    slices = []
    for number, dots in sorted(of.items()):
        lengths = sorted(dot.duration_ns or 0 for dot in dots)
        slices.append(
            _Slice(
                since=_moment(first_ns + number * size_ns),
                until=_moment(first_ns + (number + 1) * size_ns),
                runs=len(dots),
                errors=sum(dot.status == "error" for dot in dots),
                p50=_percentile(lengths, 50),
                p95=_percentile(lengths, 95),
            )
        )
    return tuple(slices)


def _percentile(lengths_ns: Sequence[int], pct: int) -> str:
    """Return the nearest-rank percentile of sorted lengths, in words."""
    return figures.duration(lengths_ns[max(-(-len(lengths_ns) * pct // 100) - 1, 0)])

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
_TICKS: Final = 8


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
class HeatMap:
    columns: tuple[_Column, ...]
    ticks: tuple[str, ...]
    most: int  # runs in the fullest cell
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
    return HeatMap(columns, _ticks(first_ns, step_ns), most, _summary(ended, sum(errors.values())))


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


def _ticks(first_ns: int, step_ns: int) -> tuple[str, ...]:
    span_s = step_ns * COLUMNS // _NS_PER_S
    # Of a shorter map two ticks fall on one day: a day alone would stand there twice.
    days = "%b %d, %H:%M" if span_s < _TICKS * 86_400 else "%b %d"
    shape = "%H:%M:%S" if span_s < 1200 else "%H:%M" if span_s < 86_400 else days
    moments = (first_ns + step_ns * COLUMNS * tick // _TICKS for tick in range(_TICKS + 1))
    return tuple(f"{datetime.fromtimestamp(ns / _NS_PER_S, UTC):{shape}}" for ns in moments)


def _summary(ended: Sequence[RunDot], errors: int) -> str:
    lengths = sorted(dot.duration_ns or 0 for dot in ended)
    middle, slow = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    return (
        f"Duration of {figures.plural(len(ended), 'run')} over time: half took less than "
        f"{figures.duration(middle)}, one in ten more than {figures.duration(slow)}; "
        f"{figures.plural(errors, 'error')}."
    )

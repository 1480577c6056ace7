"""Axes of charts: ticks at round values, labels that never repeat, times as hours or days. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from hansard_web.ui import format as figures

Unit = Literal["count", "tokens", "money", "duration", "percent"]

_S: Final = 1_000_000_000
_HOUR_NS: Final = 3600 * _S
_DAY_NS: Final = 24 * _HOUR_NS
# Steps of an axis of durations above a second, in seconds: what clocks and calendars divide by.
_DURATION_STEPS_S: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip
_TIME_STEPS_NS: Final = (
    *(hours * _HOUR_NS for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY_NS for days in (1, 2, 3, 5, 7, 10, 14, 30, 60, 90, 180, 365)),
)
_MOST_TIME_TICKS: Final = 7


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on an axis; `at_pct` is its place from the top or from the left."""

    at_pct: float
    label: str
    is_minor: bool = False  # left out where the chart is narrow
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class ValueAxis:
    most: float  # the value at the top; above 0
    ticks: tuple[Tick, ...]

    def height(self, value: float, of: float = 100) -> float:
        """Return the height of a value, 0 to `of`."""
        return round(of * min(max(value, 0), self.most) / self.most, 2)


def value_axis(values: Sequence[float], unit: Unit, *, steps: int = 4) -> ValueAxis:
    """Return an axis from 0 to a round value that is not below any of these."""
    most = max((value for value in values if math.isfinite(value)), default=0.0)
    if unit == "percent" and most > 60:
        step, top = 50.0, 100.0
    else:
        step = _step(max(most, 0.0) / steps, unit)
        top = step * max(math.ceil(most / step - 1e-9), 1)
    marks = [step * number for number in range(round(top / step) + 1)]
    ticks = [Tick(round(100 - 100 * mark / top, 2), tick_label(mark, unit)) for mark in marks]
    return ValueAxis(top, tuple(ticks))


def _step(least: float, unit: Unit) -> float:
    if unit == "duration" and least > _S / 2:
        place = bisect_left(_DURATION_STEPS_S, least / _S)
        if place < len(_DURATION_STEPS_S):
            return float(_DURATION_STEPS_S[place] * _S)
        return 86_400.0 * _S * _round_up(least / _S / 86_400)
    smallest = {"count": 1.0, "tokens": 1.0, "money": 10_000.0, "duration": 1000.0, "percent": 0.1}
    return _round_up(max(least, smallest[unit]))


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    factor = next(one for one in (1, 2, 5, 10) if one * power >= value * (1 - 1e-9))
    return factor * power


def tick_label(value: float, unit: Unit) -> str:
    """Return a round value as an axis shows it: `500 ms`, `20k`, `$0.05`, `50%`."""
    if unit == "duration":
        return _duration_label(value)
    if unit == "percent":
        return f"{value:g}%"
    if unit == "money":
        return "$" + _short(value / _S)
    return _short(value)


def _short(value: float) -> str:
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _duration_label(value: float) -> str:
    units = ((86_400 * _S, "d"), (_HOUR_NS, "h"), (60 * _S, "m"), (_S, "s"), (1e6, "ms"))
    for size, suffix in units:
        if value >= size:
            return f"{value / size:g} {suffix}"
    return f"{value / 1000:g} µs" if value else "0"


def value_text(value: float | None, unit: Unit) -> str:
    """Return a value as tables and tooltips show it; `–` where it is not known."""
    if value is None:
        return "–"
    formats: dict[Unit, Callable[[float], str]] = {
        "count": lambda number: figures.count(round(number)),
        "tokens": lambda number: figures.tokens(round(number)),
        "money": lambda number: figures.money(round(number)),
        "duration": lambda number: figures.duration(round(number)),
        "percent": lambda number: f"{number:.1f}%" if 0 < number < 10 else f"{number:.0f}%",
    }
    return formats[unit](value)


def time_ticks(starts_ns: Sequence[int], end_ns: int) -> tuple[Tick, ...]:
    """Return labels below columns that begin at these moments: hours or days of UTC, none twice."""
    if not starts_ns:
        return ()
    first_ns = starts_ns[0]
    length_ns = max(end_ns - first_ns, 1)
    step_ns = next(
        (one for one in _TIME_STEPS_NS if length_ns / one <= _MOST_TIME_TICKS), _TIME_STEPS_NS[-1]
    )
    width_ns = starts_ns[1] - first_ns if len(starts_ns) > 1 else length_ns
    step_ns = max(step_ns, width_ns)
    # Counted from the first midnight, so that steps of days do not hang on the epoch.
    origin_ns = first_ns - first_ns % _DAY_NS
    marks = [start_ns for start_ns in starts_ns if (start_ns - origin_ns) % step_ns == 0]
    marks = marks or [first_ns]
    shown = {0, len(marks) // 2, len(marks) - 1} if len(marks) > 3 else set(range(len(marks)))
    labels: dict[str, Tick] = {}
    for place, mark_ns in enumerate(marks):
        # Below the middle of its column, which is what a bar or a point stands at.
        at_pct = round(100 * (mark_ns - first_ns + width_ns / 2) / length_ns, 2)
        label = _time_label(mark_ns, step_ns, length_ns)
        anchor = "start" if at_pct < 3 else "end" if at_pct > 97 else "middle"
        labels.setdefault(label, Tick(at_pct, label, place not in shown, anchor))
    return tuple(labels.values())


def _time_label(epoch_ns: int, step_ns: int, length_ns: int) -> str:
    moment = datetime.fromtimestamp(epoch_ns // _S, UTC)
    if length_ns > 370 * _DAY_NS:
        return f"{moment:%b} {moment.day}, {moment:%Y}"
    if step_ns >= _DAY_NS or (moment.hour == 0 and moment.minute == 0):
        return f"{moment:%b} {moment.day}"
    return (
        f"{moment:%H:%M}"
        if length_ns <= 2 * _DAY_NS
        else f"{moment:%b} {moment.day}, {moment:%H:%M}"
    )


def interval_text(start_ns: int, end_ns: int) -> str:
    """Return what a column stands for: `Nov 28`, `Nov 28, 06:00–07:00`; whole days in full. UTC."""
    start = datetime.fromtimestamp(start_ns // _S, UTC)
    end = datetime.fromtimestamp(end_ns // _S, UTC)
    day = f"{start:%b} {start.day}"
    length_ns = end_ns - start_ns
    if start_ns % _DAY_NS == 0 and length_ns % _DAY_NS == 0:
        last = datetime.fromtimestamp(end_ns // _S - 1, UTC)
        return day if length_ns == _DAY_NS else f"{day} – {last:%b} {last.day}"
    if start.date() == datetime.fromtimestamp(end_ns // _S - 1, UTC).date():
        return f"{day}, {start:%H:%M}–{end:%H:%M}"
    return f"{day}, {start:%H:%M} – {end:%b} {end.day}, {end:%H:%M}"

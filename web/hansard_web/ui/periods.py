"""Periods that pages offer: the last day, week, month, quarter, or all time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_HOUR_NS: Final = 3600 * 1_000_000_000
_PERIODS: Final = {
    "24h": ("24 hours", 24),
    "7d": ("7 days", 7 * 24),
    "30d": ("30 days", 30 * 24),
    "90d": ("90 days", 90 * 24),
    "all": ("All time", 0),
}


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    label: str
    url: str
    is_on: bool


def known_period(name: str, default: str) -> str:
    """Return the name of a period, the default for any other text."""
    return name if name in _PERIODS else default


def period_start_ns(name: str, now_ns: int) -> int:
    """Return when a period began; 0 for all time."""
    hours = _PERIODS[name][1]
    return max(now_ns - hours * _HOUR_NS, 0) if hours else 0


def period_words(name: str) -> str:
    """Return a period as it stands in a sentence: `the last 7 days`, `all time`."""
    return f"the last {_PERIODS[name][0]}" if _PERIODS[name][1] else "all time"


def period_choices(current: str, url_of: Callable[[str], str]) -> tuple[PeriodChoice, ...]:
    """Return every period with its address."""
    return tuple(
        PeriodChoice(label, url_of(name), name == current) for name, (label, _) in _PERIODS.items()
    )

"""The figures of a period as the page draws them: one record a column, and one for all of it."""

from __future__ import annotations

from dataclasses import dataclass

OTHERS = "other"


@dataclass(frozen=True, slots=True)
class Point:
    """What happened in a column or a period; None where nothing reported it."""

    runs: int = 0
    failed_runs: int = 0
    calls: int = 0  # of models
    errors: int = 0  # failed calls of models
    cost_usd_nano: int | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    p50_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    first_token_p50_ns: float | None = None
    first_token_p95_ns: float | None = None

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @property
    def error_pct(self) -> float | None:
        return 100 * self.errors / self.calls if self.calls else None

    @property
    def failed_run_pct(self) -> float | None:
        return 100 * self.failed_runs / self.runs if self.runs else None

    @property
    def cached_pct(self) -> float | None:
        if not self.input_tokens or self.cached_tokens is None:
            return None
        return min(100 * self.cached_tokens / self.input_tokens, 100.0)


@dataclass(frozen=True, slots=True)
class PointSeries:
    """One value of a dimension over time; no key: runs that name none; OTHERS: all further ones."""

    key: str | None
    points: tuple[Point, ...]
    total: Point
    values: tuple[str, ...] = ()  # what the filter of the run list takes for it
    is_others: bool = False


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    starts_ns: tuple[int, ...]
    points: tuple[Point, ...]
    total: Point
    series: tuple[PointSeries, ...] = ()

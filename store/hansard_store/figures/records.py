"""Figures of a time, and of one value of a dimension in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hansard_store.figures.histograms import EMPTY, Histogram
from hansard_store.runs.status import TokenSums

Dimension = Literal["model", "agent", "service", "user", "tag", "tool"]
DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)
Step = Literal["hour", "day"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
HOUR_NS: Final = 3_600 * 10**9
DAY_NS: Final = 24 * HOUR_NS
STEP_NS: Final[Mapping[Step, int]] = {"hour": HOUR_NS, "day": DAY_NS}


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts, sums and latency of runs; of a model or a tool those of its calls alone.

    Failed calls are among the calls. Sums are None where nothing reported any.
    """

    runs: int = 0
    failed_runs: int = 0
    model_calls: int = 0
    failed_calls: int = 0
    tool_calls: int = 0
    failed_tools: int = 0
    tokens: TokenSums | None = None
    cost_usd_nano: int | None = None
    unpriced_calls: int = 0  # without an error, and without a cost
    run_latency: Histogram = EMPTY  # of runs that have ended
    call_latency: Histogram = EMPTY  # of model calls
    tool_latency: Histogram = EMPTY
    first_token: Histogram = EMPTY  # time from a call's start to its first token

    @property
    def error_rate(self) -> float | None:
        """Share of runs that failed; None without runs."""
        return self.failed_runs / self.runs if self.runs else None

    @property
    def call_error_rate(self) -> float | None:
        """Share of model calls that failed; None without calls."""
        return self.failed_calls / self.model_calls if self.model_calls else None

    @property
    def tool_error_rate(self) -> float | None:
        """Share of tool calls that failed; None without calls."""
        return self.failed_tools / self.tool_calls if self.tool_calls else None

    @property
    def cache_hit_rate(self) -> float | None:
        """Share of input tokens that were read from the provider's cache; None where unknown."""
        if self.tokens is None or not self.tokens.input or self.tokens.cache_read is None:
            return None
        return min(self.tokens.cache_read / self.tokens.input, 1.0)


NOTHING: Final = Figures()


@dataclass(frozen=True, slots=True)
class FigureWindow:
    """Runs that started in [since, until), in whole steps of UTC; Unix nanoseconds."""

    since_ns: int
    until_ns: int
    step: Step

    @staticmethod
    def around(since_ns: int, until_ns: int, step: Step) -> FigureWindow:
        """Return the smallest window in whole steps that holds a time."""
        size = STEP_NS[step]
        return FigureWindow(since_ns // size * size, -(-until_ns // size) * size, step)

    @property
    def slots(self) -> range:
        """The start of every step."""
        return range(self.since_ns, self.until_ns, STEP_NS[self.step])

    def before(self) -> FigureWindow:
        """Return the window of the same length that ends where this one begins."""
        length = self.until_ns - self.since_ns
        return FigureWindow(self.since_ns - length, self.since_ns, self.step)


@dataclass(frozen=True, slots=True)
class FigureSeries:
    """One value of a dimension over time; `key` None: those that name none."""

    key: str | None
    total: Figures
    points: Mapping[int, Figures]  # start of a step -> figures; steps without any are left out


@dataclass(frozen=True, slots=True)
class FigureReport:
    """Figures of a window: of all runs, and by the values of a dimension.

    A run counts for every service, tag, model and tool that it has, so those may add up to more
    than the total.
    """

    window: FigureWindow
    by: Dimension | None
    total: FigureSeries
    series: Sequence[FigureSeries]  # the dearest first, then those with most calls; () without `by`
    as_of_ns: int | None = None  # hours whose runs still change are as of then; None: as of now
    pending_hours: int = 0  # hours of the window that are not computed yet, and left out

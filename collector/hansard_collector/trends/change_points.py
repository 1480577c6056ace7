"""Whether a share has risen, and since when: likelihood ratios of binomial counts. Pure.

Days of agents' work are more alike within a day than coin tosses are, so the ratio is divided by
how much more the days before the change differ than chance has it (quasi-likelihood: McCullagh and
Nelder, Generalized Linear Models, 4.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Final, NamedTuple

LEAST_DAYS_BEFORE: Final = 5
LEAST_CALLS: Final = 20  # before the change
LEAST_ERRORS: Final = 5  # after the change
LEAST_RISE: Final = 0.01  # a smaller one does not matter
# Standard deviations. Of steady series tested every day for a year, few pass (bench longitudinal).
ROLLING_LIMIT: Final = 5.0
WINDOW_LIMIT: Final = 3.2  # of two fixed windows: one test a week, no choice of a day
_PRIOR_DAYS: Final = 6.0  # with which a dispersion of 1 is believed beforehand


class Count(NamedTuple):
    """Errors of so many calls."""

    errors: int
    calls: int

    @classmethod
    def of(cls, counts: Iterable[Count]) -> Count:
        """Return several counts as one."""
        errors, calls = zip((0, 0), *counts, strict=True)
        return cls(sum(errors), sum(calls))

    @property
    def rate(self) -> float:
        return self.errors / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class _Change:
    """A rise between two stretches of time."""

    at: int  # index of the first count after it
    before: Count
    after: Count
    score: float  # standard deviations


def find_rise(days: Sequence[Count], *, limit: float = ROLLING_LIMIT) -> _Change | None:
    """Return the rise that best explains a series and lasts to its end; None where none does.

    Counts are in the order of time. O(n) in their number after one pass of sums.
    """
    best: _Change | None = None
    for at in range(LEAST_DAYS_BEFORE, len(days)):
        found = rise_between(days[:at], days[at:], at=at)
        if found is not None and (best is None or found.score > best.score):
            best = found
    return best if best is not None and best.score >= limit else None


def rise_between(before: Sequence[Count], after: Sequence[Count], *, at: int = 0) -> _Change | None:
    """Return how far the second counts lie above the first; None where it is no rise to judge."""
    first, second = Count.of(before), Count.of(after)
    if first.calls < LEAST_CALLS or second.errors < LEAST_ERRORS:
        return None
    if second.rate < first.rate + LEAST_RISE:
        return None
    ratio = _ratio(first, second)
    return _Change(at, first, second, sqrt(ratio / _dispersion(before, first.rate)))


def _ratio(first: Count, second: Count) -> float:
    """Return twice the logarithm of how much likelier two rates are than one for both."""
    both = Count.of((first, second))
    return max(2 * (_likelihood(first) + _likelihood(second) - _likelihood(both)), 0.0)


def _likelihood(count: Count) -> float:
    """Return the logarithm of the greatest likelihood, without what does not depend on the rate."""
    failed, passed = count.errors, count.calls - count.errors
    return sum(part * log(part / count.calls) for part in (failed, passed) if part)


def _dispersion(counts: Sequence[Count], rate: float) -> float:
    """Return how many times more counts vary than chance has it; at least 1."""
    known = [one for one in counts if one.calls]
    if not 0 < rate < 1 or len(known) < 2:
        return 1.0
    pearson = sum(
        (one.errors - one.calls * rate) ** 2 / (one.calls * rate * (1 - rate)) for one in known
    )
    return max((pearson + _PRIOR_DAYS) / (len(known) - 1 + _PRIOR_DAYS), 1.0)


def share_score(first: Count, second: Count) -> float:
    """Return how many standard deviations two shares differ; both may be `errors` of `calls`."""
    if not first.calls or not second.calls:
        return 0.0
    return sqrt(_ratio(first, second))


# Whether calls take longer than they did: the rank-sum test over classes of duration. Pure.


LEAST_TIMED_CALLS: Final = 20  # on each side
LEAST_TIMES: Final = 2.0  # so many times the median of before
LIMIT: Final = 4.0  # standard deviations


@dataclass(frozen=True, slots=True)
class Slower:
    """Medians in nanoseconds, as exact as the classes are."""

    before_ns: float
    now_ns: float
    calls: int
    score: float


def slower(before: Mapping[float, int], recent: Mapping[float, int]) -> Slower | None:
    """Compare durations, each with how many calls took it; None where they are not much longer."""
    old, new = sum(before.values()), sum(recent.values())
    if min(old, new) < LEAST_TIMED_CALLS:
        return None
    was_ns, is_ns = _median(before), _median(recent)
    score = _rank_score(before, recent)
    if is_ns < LEAST_TIMES * was_ns or score < LIMIT:
        return None
    return Slower(was_ns, is_ns, new, score)


def _median(counts: Mapping[float, int]) -> float:
    left = (sum(counts.values()) + 1) // 2
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return 0.0


def _rank_score(before: Mapping[float, int], recent: Mapping[float, int]) -> float:
    """Return the normal score of Wilcoxon's rank-sum test, corrected for ties."""
    old, new = sum(before.values()), sum(recent.values())
    whole, rank_sum, below, ties = old + new, 0.0, 0, 0.0
    for value in sorted({*before, *recent}):
        equal = before.get(value, 0) + recent.get(value, 0)
        rank_sum += recent.get(value, 0) * (below + (equal + 1) / 2)
        ties += equal**3 - equal
        below += equal
    variance = old * new / 12 * (whole + 1 - ties / (whole * (whole - 1)))
    return (rank_sum - new * (whole + 1) / 2) / sqrt(variance) if variance > 0 else 0.0


def histogram(counts: Sequence[tuple[float, int]]) -> dict[float, int]:
    """Return counts by value."""
    found: dict[float, int] = {}
    for value, calls in counts:
        found[value] = found.get(value, 0) + calls
    return found

"""Whether calls take longer than they did: the rank-sum test over classes of duration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

LEAST_CALLS: Final = 20  # on each side
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
    if min(old, new) < LEAST_CALLS:
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

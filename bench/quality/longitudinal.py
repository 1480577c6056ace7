"""How soon a degradation is found, in days, and how often steady noise is taken for one.

Synthetic life of one tool: calls a day vary with the weekday and by chance, the share of errors of
a day varies around its mean more than chance has it (beta-binomial), and is higher from a day on.
Weekly windows are what is compared without the rolling test: at the end of each seven days.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.figures import Figure, at_least, below
from hansard_collector.trends.change_points import Count, find_rise
from hansard_collector.trends.weekly import DAYS, WEEK, weekly_rise

BASE_RATE: Final = 0.05
CALLS: Final = 200  # a day, on the mean of a week
OVERDISPERSION: Final = 0.01  # of the beta-binomial: at 200 calls a day the variance is three times
SUCCESS_AFTER: Final = (0.93, 0.90, 0.85, 0.75, 0.50)  # of 0.95 before
SEEDS: Final = 200
LIFE_DAYS: Final = 28 + 56  # four weeks before the change; looked for during eight weeks
CHANGE: Final = 28
STEADY_DAYS: Final = 365
_WEEKDAYS: Final = (1.2, 1.3, 1.25, 1.2, 1.05, 0.5, 0.5)

Detector = Callable[[Sequence[Count]], bool]


@dataclass(frozen=True, slots=True)
class Delays:
    """Days from a change until it was found, one number a seed; None: not within eight weeks."""

    days: tuple[int | None, ...]
    early: int  # seeds with an alarm before the change

    @property
    def found(self) -> list[int]:
        return sorted(day for day in self.days if day is not None)

    def share(self, part: float) -> float:
        """Return within how many days this part of the seeds was found; inf: fewer were."""
        found, at = self.found, int(part * len(self.days))
        return float(found[at]) if at < len(found) else float("inf")


def life(
    seed: int, *, days: int, change: int | None = None, after: float = BASE_RATE
) -> list[Count]:
    """Return the calls and errors of each day."""
    source = random.Random(seed)
    found = []
    for day in range(days):
        calls = max(int(source.gauss(1, 0.1) * CALLS * _WEEKDAYS[(day + seed) % 7]), 1)
        rate = BASE_RATE if change is None or day < change else after
        whole = 1 / OVERDISPERSION - 1
        of_day = source.betavariate(rate * whole, (1 - rate) * whole)
        found.append(Count(sum(source.random() < of_day for _ in range(calls)), calls))
    return found


def rolling_alarm(seen: Sequence[Count]) -> bool:
    """Whether the rolling test finds a rise in what was seen up to this day."""
    return find_rise(seen[-DAYS:]) is not None


def weekly_alarm(seen: Sequence[Count]) -> bool:
    """Whether the comparison of weeks does, at the end of a week."""
    return len(seen) % WEEK == 0 and len(seen) >= 2 * WEEK and weekly_rise(seen)


def delays(detector: Detector, after: float, *, seeds: int = SEEDS) -> Delays:
    """Return how long a rise to `after` stays unseen; it begins on any day of the week."""
    found: list[int | None] = []
    early = 0
    for seed in range(seeds):
        change = CHANGE + seed % WEEK
        days = life(seed, days=LIFE_DAYS, change=change, after=after)
        early += any(detector(days[:end]) for end in range(2 * WEEK, change + 1))
        ends = range(change + 1, LIFE_DAYS + 1)
        found.append(next((end - change for end in ends if detector(days[:end])), None))
    return Delays(tuple(found), early)


def false_alarms(detector: Detector, *, seeds: int = SEEDS, days: int = STEADY_DAYS) -> float:
    """Return alarms in a year of steady noise, those of one spell counted once."""
    alarms = 0
    for seed in range(seeds):
        steady = life(10_000 + seed, days=days)
        was = False
        for end in range(2 * WEEK, days + 1):
            # The comparison of weeks stands until the next one.
            if detector is weekly_alarm and end % WEEK:
                continue
            is_alarm = detector(steady[:end])
            alarms += is_alarm and not was
            was = is_alarm
    return alarms / seeds * 365 / days


def run() -> list[Figure]:
    """Print a table of delays by size, beside false alarms."""
    return figures(seeds=SEEDS, days=STEADY_DAYS)


def figures(*, seeds: int, days: int) -> list[Figure]:
    """Return the figures for so many seeds."""
    found: list[Figure] = []
    for success in SUCCESS_AFTER:
        for name, detector in (("rolling", rolling_alarm), ("weeks", weekly_alarm)):
            told = delays(detector, 1 - success, seeds=seeds)
            what = f"success 95 % to {success:.0%}, {name}: median days to detection"
            note = (
                f"90 % within {told.share(0.9):g} days; {len(told.found)} of {seeds} found "
                "within eight weeks"
            )
            found.append(Figure(what, told.share(0.5), "days", note=note))
    big = delays(rolling_alarm, 0.25, seeds=seeds)
    found.append(
        below("drop to 75 %, rolling: 90 % of seeds within", big.share(0.9), "days", bar=3)
    )
    small = delays(rolling_alarm, 0.10, seeds=seeds)
    share = 100 * len(small.found) / seeds
    found.append(at_least("drop to 90 %, rolling: found within eight weeks", share, "%", bar=90))
    for name, detector in (("rolling", rolling_alarm), ("weeks", weekly_alarm)):
        alarms = false_alarms(detector, seeds=seeds, days=days)
        what = f"steady noise, {name}: false alarms a year and tool"
        found.append(below(what, alarms, "", bar=1, note=f"{seeds} seeds of {days} days"))
    return found

"""The last hour and the last day against the week before them: errors, new errors, latency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.trends.change_points import Count, histogram, rise_between, slower
from hansard_collector.trends.model import Period, Trend, distinct
from hansard_store.database.transactions import snapshot
from hansard_store.detection.failed_steps import errors_by_kind
from hansard_store.detection.rules import HOUR_NS
from hansard_store.trends import CallCount, DurationCount, count_calls, count_durations

BASELINE_HOURS: Final = 7 * 24  # before the period
PERIODS: Final[Mapping[Period, int]] = {"hour": 1, "day": 24}  # hours
MOST_TRENDS: Final = 50
LEAST_NEW_ERRORS: Final = 3  # of a kind that was not seen before
LEAST_SHARE: Final = 0.5  # of calls that fail, where there is nothing to compare with
LEAST_CALLS: Final = 10  # there
LEAST_RISE: Final = 0.05  # of the share of calls that fail
LEAST_TIMES: Final = 1.5
LIMIT: Final = 4.0  # standard deviations

Subject = tuple[str, str]  # kind and name


@dataclass(frozen=True, slots=True)
class Review:
    """What is worse than it was, the worst first, and how much was looked at."""

    trends: tuple[Trend, ...]
    left_off: int  # trends beyond the most
    calls: int  # of tools and models in the last day
    errors: int
    subjects: int


def review(connection: apsw.Connection, *, now_ns: int) -> Review:
    """Compare the last hour and the last day with the seven days before each."""
    since_ns = now_ns - (BASELINE_HOURS + max(PERIODS.values())) * HOUR_NS
    with snapshot(connection):
        counts = count_calls(connection, since_ns=since_ns, until_ns=now_ns, length_ns=HOUR_NS)
        durations = _durations(connection, now_ns)
        found: list[Trend] = []
        for period, hours in PERIODS.items():
            found += _error_rates(counts, period, hours)
            found += _new_errors(connection, counts, period, hours, now_ns=now_ns)
            found += _latencies(durations, period, hours, now_ns=now_ns)
    trends = distinct(found)
    # A failing call fails its agent, too: it counts once.
    day = [one for one in counts if one.ago < PERIODS["day"] and one.kind != "agent"]
    return Review(
        trends=tuple(trends[:MOST_TRENDS]),
        left_off=max(len(trends) - MOST_TRENDS, 0),
        calls=sum(one.calls for one in day),
        errors=sum(one.errors for one in day),
        subjects=len({(one.kind, one.name) for one in counts if one.ago < PERIODS["day"]}),
    )


def _error_rates(counts: Sequence[CallCount], period: Period, hours: int) -> list[Trend]:
    by_subject: dict[Subject, dict[int, Count]] = defaultdict(dict)
    for one in counts:
        by_subject[one.kind, one.name][one.ago] = Count(one.errors, one.calls)
    found = []
    for (kind, name), at in by_subject.items():
        recent = [count for ago, count in at.items() if ago < hours]
        before = [count for ago, count in at.items() if hours <= ago < hours + BASELINE_HOURS]
        trend = _rate_trend(kind, name, period, before, recent)
        if trend is not None:
            found.append(trend)
    return sorted(found, key=lambda one: -one.now * one.calls)


def _rate_trend(
    kind: str, name: str, period: Period, before: Sequence[Count], recent: Sequence[Count]
) -> Trend | None:
    now = Count.of(recent)
    if not before:
        is_bad = now.calls >= LEAST_CALLS and now.rate >= LEAST_SHARE
        return (
            Trend("error_rate", period, kind, name, None, now.rate, now.calls) if is_bad else None
        )
    rise = rise_between(before, recent)
    if rise is None or rise.score < LIMIT:
        return None
    was = rise.before.rate
    if now.rate < was + LEAST_RISE or now.rate < LEAST_TIMES * was:
        return None
    return Trend("error_rate", period, kind, name, was, now.rate, now.calls)


def _new_errors(
    connection: apsw.Connection,
    counts: Sequence[CallCount],
    period: Period,
    hours: int,
    *,
    now_ns: int,
) -> Iterator[Trend]:
    """Yield kinds of errors that were not seen in the week before; nothing where that is empty."""
    if not any(one.ago >= hours for one in counts) or not any(
        one.errors for one in counts if one.ago < hours
    ):
        return
    since_ns = now_ns - hours * HOUR_NS
    old_ns = since_ns - BASELINE_HOURS * HOUR_NS
    recent = errors_by_kind(connection, since_ns=since_ns, now_ns=now_ns)
    known = errors_by_kind(connection, since_ns=old_ns, now_ns=since_ns).keys()
    # A tool that was not called before fails in no new way: its rate of errors says it.
    old = {(one.kind, one.name) for one in counts if one.ago >= hours}
    new = {
        kind: times
        for kind, times in recent.items()
        if kind not in known and (kind.subject_kind == "step" or kind[:2] in old)
    }
    for kind, times in sorted(new.items(), key=lambda one: -len(one[1])):
        if len(times) >= LEAST_NEW_ERRORS:
            yield Trend(
                "new_error", period, kind.subject_kind, kind.subject, 0, len(times), len(times),
                step_id=times[0].id,
            )  # fmt: skip


def _durations(connection: apsw.Connection, now_ns: int) -> Sequence[DurationCount]:
    """Count durations between all the times at which a period or the time before it begins."""
    hours = {ago for one in PERIODS.values() for ago in (one, one + BASELINE_HOURS)}
    times_ns = [now_ns - ago * HOUR_NS for ago in sorted(hours, reverse=True)]
    return count_durations(connection, times_ns=times_ns, until_ns=now_ns)


def _latencies(
    counts: Sequence[DurationCount], period: Period, hours: int, *, now_ns: int
) -> Iterator[Trend]:
    recent_ns = now_ns - hours * HOUR_NS
    since_ns = recent_ns - BASELINE_HOURS * HOUR_NS
    sides: dict[Subject, tuple[list[tuple[float, int]], list[tuple[float, int]]]]
    sides = defaultdict(lambda: ([], []))
    for one in counts:
        if one.since_ns >= since_ns:
            is_recent = one.since_ns >= recent_ns
            sides[one.kind, one.name][is_recent].append((one.duration_ns, one.calls))
    for (kind, name), (before, recent) in sides.items():
        found = slower(histogram(before), histogram(recent))
        if found is not None:
            yield Trend("latency", period, kind, name, found.before_ns, found.now_ns, found.calls)

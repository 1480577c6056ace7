"""Weeks against weeks, and a test each day for what began in between.

Two windows of seven days see a change of a week two weeks after it began: one to fill the window,
one to compare. The rolling test checks each day whether a share has risen since any day of the last
four weeks, so that it sees a large rise on the next day and a small one when it has cases enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.trends.change_points import (
    WINDOW_LIMIT,
    Count,
    find_rise,
    rise_between,
    share_score,
)
from hansard_collector.trends.model import Trend
from hansard_store.database.transactions import snapshot
from hansard_store.detection.rules import HOUR_NS
from hansard_store.reports.state import written_between
from hansard_store.trends import CallCount, count_calls

DAY_NS: Final = 24 * HOUR_NS
DAYS: Final = 28  # that the rolling test looks back
WEEK: Final = 7
MOST_TRENDS: Final = 50
MOST_ROWS: Final = 100  # of the table of a week: the subjects with the most calls
LEAST_SHARE_CHANGE: Final = 0.10  # of all calls of a kind
LEAST_GROWTH: Final = 100  # memories more than the week before,
LEAST_GROWTH_TIMES: Final = 2.0  # and so many times as many

Subject = tuple[str, str]
ALL: Final[Subject] = ("all", "")


@dataclass(frozen=True, slots=True)
class WeekRow:
    """A subject in the last seven days and in the seven days before."""

    kind: str
    name: str
    now: Count
    before: Count
    share: float  # of the calls of its kind
    share_before: float

    def json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "calls": self.now.calls,
            "calls_before": self.before.calls,
            "errors": self.now.errors,
            "errors_before": self.before.errors,
            "error_rate": round(self.now.rate, 4),
            "error_rate_before": round(self.before.rate, 4),
            "error_rate_delta": round(self.now.rate - self.before.rate, 4),
            "share": round(self.share, 4),
            "share_before": round(self.share_before, 4),
            "share_delta": round(self.share - self.share_before, 4),
        }


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two weeks beside each other."""

    rows: tuple[WeekRow, ...]  # all calls first, then those with the most calls
    left_off: int
    memories: int
    memories_before: int
    trends: tuple[Trend, ...]

    def json(self) -> dict[str, Any]:
        return {
            "rows": [row.json() for row in self.rows],
            "left_off": self.left_off,
            "memories": self.memories,
            "memories_before": self.memories_before,
            "memories_delta": self.memories - self.memories_before,
        }


Series = Mapping[Subject, Sequence[Count]]  # a count a day, in the order of time


def read_days(connection: apsw.Connection, *, now_ns: int) -> Series:
    """Return the calls of the last 28 days by subject; days are 24 hours, counted back from now."""
    counts = count_calls(
        connection, since_ns=now_ns - DAYS * DAY_NS, until_ns=now_ns, length_ns=DAY_NS
    )
    return days_of(counts)


def days_of(counts: Sequence[CallCount]) -> Series:
    """Return counts as a series a subject, with one of all calls but those of agents.

    A failing call fails its agent, too: it counts once.
    """
    found: dict[Subject, list[Count]] = defaultdict(lambda: [Count(0, 0)] * DAYS)
    for one in counts:
        at = DAYS - 1 - one.ago
        if at < 0:
            continue
        found[one.kind, one.name][at] = Count(one.errors, one.calls)
        if one.kind != "agent":
            was = found[ALL][at]
            found[ALL][at] = Count(was.errors + one.errors, was.calls + one.calls)
    return found


def rolling(days: Series, *, now_ns: int) -> list[Trend]:
    """Return the shares of errors that have risen since a day of the last four weeks."""
    found = []
    for (kind, name), counts in days.items():
        change = find_rise(counts)
        if change is not None:
            since_ns = now_ns - (DAYS - change.at) * DAY_NS
            found.append(
                Trend("error_rate", "rolling", kind, name, change.before.rate, change.after.rate,
                      change.after.calls, since_ns=since_ns)
            )  # fmt: skip
    return sorted(found, key=lambda one: -one.now * one.calls)[:MOST_TRENDS]


def compare_weeks(connection: apsw.Connection, days: Series, *, now_ns: int) -> _Comparison:
    """Compare the last seven days with the seven days before them."""
    with snapshot(connection):
        memories = written_between(connection, now_ns - WEEK * DAY_NS, now_ns)
        before = written_between(connection, now_ns - 2 * WEEK * DAY_NS, now_ns - WEEK * DAY_NS)
    rows = sorted(_rows(days), key=lambda row: (row.kind != "all", -row.now.calls, row.name))
    trends = [*_rates(days), *_shares(rows), *_growth(memories, before)]
    return _Comparison(
        rows=tuple(rows[:MOST_ROWS]),
        left_off=max(len(rows) - MOST_ROWS, 0),
        memories=memories,
        memories_before=before,
        trends=tuple(trends[:MOST_TRENDS]),
    )


def weekly_rise(counts: Sequence[Count]) -> bool:
    """Whether the share of errors of the last week lies above that of the week before."""
    change = rise_between(counts[-2 * WEEK : -WEEK], counts[-WEEK:])
    return change is not None and change.score >= WINDOW_LIMIT


def _rates(days: Series) -> Iterator[Trend]:
    for (kind, name), counts in days.items():
        if weekly_rise(counts):
            before, now = _week(counts, 1), _week(counts, 0)
            yield Trend("error_rate", "week", kind, name, before.rate, now.rate, now.calls)


def _rows(days: Series) -> Iterator[WeekRow]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (kind, _), counts in days.items():
        for ago in (0, 1):
            sums[kind][ago] += _week(counts, ago).calls
    for (kind, name), counts in days.items():
        now, before = _week(counts, 0), _week(counts, 1)
        if now.calls or before.calls:
            share, was = (
                week.calls / max(sums[kind][ago], 1) for ago, week in enumerate((now, before))
            )
            yield WeekRow(kind, name, now, before, share, was)


def _shares(rows: Sequence[WeekRow]) -> Iterator[Trend]:
    """Yield what is used much more or less than before, where there was something before."""
    whole: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        whole[row.kind][0] += row.now.calls
        whole[row.kind][1] += row.before.calls
    for row in rows:
        now, before = whole[row.kind]
        score = share_score(Count(row.before.calls, before), Count(row.now.calls, now))
        is_other = abs(row.share - row.share_before) >= LEAST_SHARE_CHANGE
        if before and now and is_other and score >= WINDOW_LIMIT:
            yield Trend("usage", "week", row.kind, row.name, row.share_before, row.share,
                        row.now.calls)  # fmt: skip


def _growth(memories: int, before: int) -> Iterator[Trend]:
    if memories - before >= LEAST_GROWTH and memories >= LEAST_GROWTH_TIMES * before:
        yield Trend("memory_growth", "week", "memory", "", before, memories, memories)


def _week(counts: Sequence[Count], ago: int) -> Count:
    end = len(counts) - ago * WEEK
    return Count.of(counts[max(end - WEEK, 0) : end])

"""Reports of figures: from rows, or counted from the runs where there is a filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from hansard_store.database.transactions import snapshot
from hansard_store.figures.records import (
    DAY_NS,
    HOUR_NS,
    NOTHING,
    STEP_NS,
    Dimension,
    FigureReport,
    Figures,
    FigureSeries,
    FigureWindow,
)
from hansard_store.figures.rollup import FIGURE_COLUMNS, count_hours, due_in
from hansard_store.figures.tally import ALL, MERGED_MODEL, Tallies, Tally, count_runs_into
from hansard_store.runs.filters import NEWEST_FIRST, RunFilter, first_page
from hansard_store.runs.queries import matching_rows

# Spans of runs that are counted while a report is read; more of them are as their rows say.
_LIVE_SPANS: Final = 3_000
_EVERY_RUN: Final = 1 << 60  # twice of it is still an index of Python's
_ROWS: Final = f"""
SELECT start_ns, key, {FIGURE_COLUMNS} FROM figure
WHERE step = :step AND dimension = :dimension AND start_ns >= :since AND start_ns < :until
"""
_COMPUTED: Final = """
SELECT start_ns, computed_ns FROM figure
WHERE step = 'hour' AND dimension = '' AND key = '' AND start_ns >= :since AND start_ns < :until
"""
_SPANS: Final = """
SELECT coalesce(sum(span_count), 0) FROM run INDEXED BY run_agent_started
WHERE started_ns >= :since AND started_ns < :until AND work_count > 0
"""


def figure_report(
    connection: apsw.Connection,
    window: FigureWindow,
    *,
    by: Dimension | None = None,
    filters: RunFilter | None = None,
    merge_models: bool = False,
    with_latency: bool = False,
    now_ns: int,
) -> FigureReport:
    """Return the figures of the runs that started in a window: in total, and by a dimension.

    Without a filter only runs of kind agent count, and rows are read, which costs the same however
    many runs there are; of hours whose runs still change up to 3,000 spans are counted now, and
    more are as `as_of_ns` says. With a filter every matching run is counted: 5 to 10 µs a span.
    Points of series have no histograms unless `with_latency`; totals always have.
    """
    dimension = MERGED_MODEL if merge_models and by == "model" else by
    reader = _Reader(connection, window, by, dimension)
    with snapshot(connection):
        if filters is None:
            return reader.stored(with_latency=with_latency)
        return reader.counted(filters, now_ns=now_ns)


@dataclass(frozen=True, slots=True)
class _Due:
    """The hours of a window that are not as their rows say."""

    counted: Tallies  # of those that were counted now
    hours: frozenset[int]  # that were
    as_of_ns: int | None
    pending: int


class _Reader:
    """Reads one report, within the snapshot of its caller."""

    def __init__(
        self,
        connection: apsw.Connection,
        window: FigureWindow,
        by: Dimension | None,
        dimension: str | None,
    ) -> None:
        self._connection = connection
        self._window = window
        self._by, self._dimension = by, dimension

    def stored(self, *, with_latency: bool) -> FigureReport:
        due = self._due()
        points, totals = Tallies(), Tallies()
        for dimension in (ALL, self._dimension) if self._dimension else (ALL,):
            keeps_latency = with_latency or dimension == ALL
            self._add_points(points, dimension, due, with_latency=keeps_latency)
            self._add_totals(totals, dimension, due)
        report = self._report(points, totals)
        return replace(report, as_of_ns=due.as_of_ns, pending_hours=due.pending)

    def counted(self, filters: RunFilter, *, now_ns: int) -> FigureReport:
        window = self._window
        since_ns = max(window.since_ns, filters.since_ns or window.since_ns)
        until_ns = min(window.until_ns, filters.until_ns or window.until_ns)
        wanted = replace(filters, since_ns=since_ns, until_ns=until_ns)
        found = matching_rows(
            self._connection,
            wanted,
            "1",
            sort=NEWEST_FIRST,
            after=first_page(NEWEST_FIRST),
            now_ns=now_ns,
            limit=_EVERY_RUN,
        )
        points = Tallies()
        count_runs_into(
            self._connection,
            points,
            (number for number, _ in found),
            step_ns=STEP_NS[window.step],
            dimensions=(self._dimension,) if self._dimension else (),
        )
        totals = Tallies()
        for (dimension, _, key), tally in points.items():
            totals[dimension, 0, key].add_stored(tally.stored())
        return self._report(points, totals)

    def _report(self, points: Tallies, totals: Tallies) -> FigureReport:
        dimension = self._dimension
        found = _series_of(points, totals, dimension, _keys(totals, dimension))
        return FigureReport(
            window=self._window,
            by=self._by,
            total=_series_of(points, totals, ALL, [ALL])[0],
            series=_ranked(found) if dimension else (),
        )

    def _due(self) -> _Due:
        """Count due hours, the newest first, while they are small; the others are as they were."""
        window = self._window
        computed = dict(
            self._connection.execute(
                _COMPUTED, {"since": window.since_ns, "until": window.until_ns}
            )
        )
        hours, left = set(), _LIVE_SPANS
        as_of_ns, pending = None, 0
        for start_ns in due_in(self._connection, window.since_ns, window.until_ns):
            bounds = {"since": start_ns, "until": start_ns + HOUR_NS}
            spans: int = self._connection.execute(_SPANS, bounds).get
            if spans <= left:
                left -= spans
                hours.add(start_ns)
            elif start_ns in computed:
                as_of_ns = min(as_of_ns or computed[start_ns], computed[start_ns])
            else:
                pending += 1
        dimensions = (self._dimension,) if self._dimension else ()
        counted = count_hours(self._connection, hours, dimensions)
        return _Due(counted, frozenset(hours), as_of_ns, pending)

    def _add_points(
        self, points: Tallies, dimension: str, due: _Due, *, with_latency: bool
    ) -> None:
        """Add the figures of every step of the window."""
        step_ns = STEP_NS[self._window.step]
        changed = {hour // step_ns * step_ns for hour in due.hours}
        for start_ns, key, *row in self._rows(self._window.step, dimension):
            if start_ns not in changed:
                name = str(key)
                points[dimension, start_ns, name].add_stored(row, with_latency=with_latency)
        for start_ns, key, tally in self._hours_of(dimension, changed, step_ns, due):
            points[dimension, start_ns, key].add_stored(tally.stored(), with_latency=with_latency)

    def _hours_of(
        self, dimension: str, steps: Iterable[int], step_ns: int, due: _Due
    ) -> Iterator[tuple[int, str, Tally]]:
        """Yield what the hours of some steps come to: as counted now, else by their rows."""
        for start_ns in steps:
            hours = Tallies()
            if step_ns > HOUR_NS:
                for hour_ns, key, *row in self._rows("hour", dimension, start_ns, step_ns):
                    if hour_ns not in due.hours:
                        hours[dimension, start_ns, str(key)].add_stored(row)
            for (of, hour_ns, key), tally in due.counted.items():
                if of == dimension and start_ns <= hour_ns < start_ns + step_ns:
                    place = dimension, start_ns, str(key)
                    hours[place].add_stored(tally.stored())
            for (_, _, key), tally in hours.items():
                yield start_ns, key, tally

    def _add_totals(self, totals: Tallies, dimension: str, due: _Due) -> None:
        """Add what the whole window comes to: by whole days where it has any, else by hours."""
        window = self._window
        first_day = -(-window.since_ns // DAY_NS) * DAY_NS
        last_day = max(window.until_ns // DAY_NS * DAY_NS, first_day)
        parts = (
            (("hour", window.since_ns, window.until_ns, HOUR_NS),)
            if first_day >= last_day
            else (
                ("hour", window.since_ns, first_day, HOUR_NS),
                ("day", first_day, last_day, DAY_NS),
                ("hour", last_day, window.until_ns, HOUR_NS),
            )
        )
        for step, since_ns, until_ns, step_ns in parts:
            changed = {
                hour // step_ns * step_ns for hour in due.hours if since_ns <= hour < until_ns
            }
            length = until_ns - since_ns
            for start_ns, key, *row in self._rows(step, dimension, since_ns, length):
                if start_ns not in changed:
                    totals[dimension, 0, str(key)].add_stored(row)
            for _, key, tally in self._hours_of(dimension, changed, step_ns, due):
                totals[dimension, 0, key].add_stored(tally.stored())

    def _rows(
        self, step: str, dimension: str, since_ns: int | None = None, length_ns: int = 0
    ) -> list[Any]:
        window = self._window
        since = window.since_ns if since_ns is None else since_ns
        until = window.until_ns if since_ns is None else since_ns + length_ns
        bounds = {"step": step, "dimension": dimension, "since": since, "until": until}
        return self._connection.execute(_ROWS, bounds).fetchall()


def _keys(totals: Tallies, dimension: str | None) -> list[str]:
    return [key for of, _, key in totals if of == dimension]


def _series_of(
    points: Tallies, totals: Tallies, dimension: str | None, keys: Sequence[str]
) -> list[FigureSeries]:
    of: dict[str, dict[int, Figures]] = {key: {} for key in keys}
    for (found, start_ns, key), tally in points.items():
        if found == dimension:
            of.setdefault(key, {})[start_ns] = tally.figures()
    return [
        FigureSeries(
            key or None,
            _total(totals, dimension, key),
            dict(sorted(of[key].items())),
        )
        for key in of
    ]


def _total(totals: Tallies, dimension: str | None, key: str) -> Figures:
    place = dimension or ALL, 0, key
    return totals[place].figures() if place in totals else NOTHING


def _ranked(series: list[FigureSeries]) -> tuple[FigureSeries, ...]:
    """Return them with the dearest first, then those with most calls and runs."""

    def rank(one: FigureSeries) -> tuple[int, int, int, str]:
        total = one.total
        calls = total.model_calls + total.tool_calls
        return -(total.cost_usd_nano or 0), -calls, -total.runs, one.key or ""

    return tuple(sorted(series, key=rank))


def merged_series(series: Sequence[FigureSeries], *, key: str) -> FigureSeries:
    """Return the sum of several series under one name: those that a chart has no room for."""
    total, points = Tally(), Tallies()
    for one in series:
        total.add_stored(_stored(one.total))
        for start_ns, figures in one.points.items():
            points[ALL, start_ns, ALL].add_stored(_stored(figures))
    of: Mapping[int, Figures] = {
        start_ns: tally.figures() for (_, start_ns, _), tally in sorted(points.items())
    }
    return FigureSeries(key, total.figures(), of)


def _stored(figures: Figures) -> tuple[Any, ...]:
    tokens = figures.tokens
    return (
        figures.runs,
        figures.failed_runs,
        figures.model_calls,
        figures.failed_calls,
        figures.tool_calls,
        figures.failed_tools,
        *(
            (None,) * 5
            if tokens is None
            else (
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write,
                tokens.reasoning,
            )
        ),
        figures.cost_usd_nano,
        figures.unpriced_calls,
        *(
            one.text()
            for one in (
                figures.run_latency,
                figures.call_latency,
                figures.tool_latency,
                figures.first_token,
            )
        ),
    )

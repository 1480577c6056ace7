"""Sums of a window by the values of dimensions, without latency: what tables of usage show."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.database.transactions import snapshot
from hansard_store.figures.queries import due_of, runs_of_filter
from hansard_store.figures.records import DAY_NS, Dimension, Figures, FigureWindow
from hansard_store.figures.tally import ALL, MERGED_MODEL, Tallies, Tally, count_runs_into
from hansard_store.runs.filters import RunFilter

_ALL_TIME_NS: Final = 1 << 63  # one step that holds every time that OTLP can say
_SUMS: Final = """
SELECT key, sum(runs), sum(failed_runs), sum(model_calls), sum(failed_calls), sum(tool_calls),
  sum(failed_tools), sum(tokens_input), sum(tokens_output), sum(tokens_cache_read),
  sum(tokens_cache_write), sum(tokens_reasoning), sum(cost_usd_nano), sum(unpriced_calls)
FROM figure
WHERE step = :step AND dimension = :dimension AND start_ns >= :since AND start_ns < :until
  AND start_ns NOT IN (SELECT value FROM json_each(:left_out))
GROUP BY key
"""
_FIRST_RUN: Final = """
SELECT started_ns FROM run INDEXED BY run_agent_started WHERE work_count > 0
ORDER BY started_ns LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class FigureSums:
    """What a window comes to, and by the values of dimensions, the dearest first.

    Counts, tokens and cost alone: histograms are empty. The key None: runs or calls that name none.
    """

    total: Figures
    of: Mapping[Dimension, Sequence[tuple[str | None, Figures]]]
    as_of_ns: int | None  # hours whose runs still change are as of then; None: as of now
    pending_hours: int  # hours of the window that are not computed yet, and left out


def first_run_ns(connection: apsw.Connection) -> int | None:
    """Return when the first run that figures count started; None without any."""
    found: int | None = connection.execute(_FIRST_RUN).get
    return found


def figure_sums(
    connection: apsw.Connection,
    window: FigureWindow,
    dimensions: Sequence[Dimension],
    *,
    filters: RunFilter | None = None,
    merge_models: bool = False,
    now_ns: int,
) -> FigureSums:
    """Return the sums of the runs that started in a window, by several dimensions at once.

    Which runs count, and how current they are, is as `figure_report` has it.
    """
    stored = {one: MERGED_MODEL if merge_models and one == "model" else one for one in dimensions}
    names = (ALL, *stored.values())
    with snapshot(connection):
        if filters is None:
            due = due_of(connection, window, names[1:])
            sums = _stored(connection, window, names, due.counted, due.hours)
            as_of_ns, pending = due.as_of_ns, due.pending
        else:
            sums, as_of_ns, pending = _counted(connection, window, names, filters, now_ns), None, 0
    of = {one: _ranked(sums, name) for one, name in stored.items()}
    total = sums[ALL, 0, ALL].figures()
    return FigureSums(total, of, as_of_ns, pending)


def _stored(
    connection: apsw.Connection,
    window: FigureWindow,
    names: Sequence[str],
    counted: Tallies,
    hours: Collection[int],
) -> Tallies:
    """Sum rows of days, of hours where a day is cut or changes, and what was counted now."""
    sums = Tallies()
    changed = {hour // DAY_NS * DAY_NS for hour in hours}
    for step, since_ns, until_ns, left_out in _parts(window, changed, hours):
        for name in names:
            bounds = {
                "step": step, "dimension": name, "since": since_ns, "until": until_ns,
                "left_out": json.dumps(sorted(left_out)),
            }  # fmt: skip
            row: Sequence[Any]
            for key, *row in connection.execute(_SUMS, bounds):
                sums[name, 0, str(key)].add_stored(row, with_latency=False)
    for (name, _, key), tally in counted.items():
        if name in names:
            sums[name, 0, key].add_stored(tally.stored(), with_latency=False)
    return sums


def _parts(
    window: FigureWindow, changed: Collection[int], hours: Collection[int]
) -> Iterator[tuple[str, int, int, Collection[int]]]:
    """Yield step, bounds and what is left out of rows that together make the window."""
    first_day = -(-window.since_ns // DAY_NS) * DAY_NS
    last_day = window.until_ns // DAY_NS * DAY_NS
    if first_day >= last_day:
        yield "hour", window.since_ns, window.until_ns, hours
        return
    yield "hour", window.since_ns, first_day, hours
    yield "day", first_day, last_day, changed
    for day_ns in changed:
        if first_day <= day_ns < last_day:
            yield "hour", day_ns, day_ns + DAY_NS, hours
    yield "hour", last_day, window.until_ns, hours


def _counted(
    connection: apsw.Connection,
    window: FigureWindow,
    names: Sequence[str],
    filters: RunFilter,
    now_ns: int,
) -> Tallies:
    sums = Tallies()
    runs = runs_of_filter(connection, window, filters, now_ns=now_ns)
    count_runs_into(connection, sums, runs, step_ns=_ALL_TIME_NS, dimensions=names[1:])
    for tally in sums.values():
        for latency in tally.histograms():
            latency.clear()
    return sums


def _ranked(sums: Tallies, name: str) -> list[tuple[str | None, Figures]]:
    def rank(one: tuple[str, Tally]) -> tuple[int, int, int, str]:
        key, tally = one
        return -(tally.cost_usd_nano or 0), -tally.model_calls, -tally.runs, key

    found = [(key, tally) for (of, _, key), tally in sums.items() if of == name]
    return [(key or None, tally.figures()) for key, tally in sorted(found, key=rank)]

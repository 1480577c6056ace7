"""Rows of figures by hour and day: which hours are due, and computing them again.

A trigger marks the hour of a run as due with every change of the run. An hour is counted from a
snapshot, outside of any transaction; its rows are written in a short one, which takes the mark away
unless the hour changed meanwhile. A day is the sum of its hours.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.database.transactions import observing_transaction, snapshot
from hansard_store.figures.records import DAY_NS, HOUR_NS
from hansard_store.figures.tally import ALL, MERGED_MODEL, Place, Tallies, Tally, count_runs_into

# Dimensions that have rows, beside the total of all runs.
STORED: Final = (ALL, "agent", "model", MERGED_MODEL, "service", "tag", "tool", "user")
_COLUMNS: Final = (
    "runs", "failed_runs", "model_calls", "failed_calls", "tool_calls", "failed_tools",
    "tokens_input", "tokens_output", "tokens_cache_read", "tokens_cache_write",
    "tokens_reasoning", "cost_usd_nano", "unpriced_calls", "run_latency", "call_latency",
    "tool_latency", "first_token",
)  # fmt: skip
FIGURE_COLUMNS: Final = ", ".join(_COLUMNS)
_OF_HOUR: Final = """
SELECT id FROM run INDEXED BY run_agent_started
WHERE started_ns >= :since AND started_ns < :until AND work_count > 0
"""
_DUE: Final = """
SELECT start_ns, changes FROM figure_due WHERE start_ns >= :since AND start_ns < :until
ORDER BY start_ns DESC
"""
_CHANGES: Final = "SELECT changes FROM figure_due WHERE start_ns = ?"
_TAKE_MARK: Final = "DELETE FROM figure_due WHERE start_ns = :start AND changes = :changes"
_REMOVE: Final = """
DELETE FROM figure WHERE step = :step AND dimension = :dimension AND start_ns = :start
"""
_ADD: Final = f"""
INSERT INTO figure (step, dimension, start_ns, key, computed_ns, {FIGURE_COLUMNS})
VALUES (?, ?, ?, ?, ?, {", ".join("?" for _ in _COLUMNS)})
"""
_HOURS_OF_DAY: Final = f"""
SELECT key, {FIGURE_COLUMNS} FROM figure
WHERE step = 'hour' AND dimension = :dimension AND start_ns >= :since AND start_ns < :until
"""
_ALL_TIME: Final = {"since": -(1 << 63), "until": (1 << 63) - 1}


@dataclass(frozen=True, slots=True)
class DueHour:
    """An hour whose runs changed since its figures were computed."""

    start_ns: int
    changes: int


def due_hours(connection: apsw.Connection) -> list[DueHour]:
    """Return the hours that are due, the newest first."""
    return [DueHour(*row) for row in connection.execute(_DUE, _ALL_TIME)]


def due_in(connection: apsw.Connection, since_ns: int, until_ns: int) -> list[int]:
    """Return the hours of a window that are due."""
    return [row[0] for row in connection.execute(_DUE, {"since": since_ns, "until": until_ns})]


def count_hours(
    connection: apsw.Connection, starts_ns: Iterable[int], dimensions: Collection[str] = STORED
) -> Tallies:
    """Count the runs of some hours, hour by hour, in some dimensions."""
    tallies = Tallies()
    count_runs_into(
        connection,
        tallies,
        (run for start_ns in starts_ns for run in _runs_of(connection, start_ns)),
        step_ns=HOUR_NS,
        dimensions=dimensions,
    )
    return tallies


def compute_hour(connection: apsw.Connection, hour: DueHour) -> None:
    """Compute the rows of an hour and of its day again.

    `connection` writes, and is outside of any transaction. The mark stays where runs of the hour
    changed while they were counted.
    """
    with snapshot(connection):
        changes = connection.execute(_CHANGES, (hour.start_ns,)).get
        tallies = count_hours(connection, [hour.start_ns])
    now_ns = time.time_ns()
    day_ns = hour.start_ns // DAY_NS * DAY_NS
    with observing_transaction(connection):
        _write(connection, "hour", hour.start_ns, tallies, now_ns=now_ns)
        _write(connection, "day", day_ns, _sum_of_hours(connection, day_ns), now_ns=now_ns)
        connection.execute(_TAKE_MARK, {"start": hour.start_ns, "changes": changes})


def _runs_of(connection: apsw.Connection, start_ns: int) -> Iterator[int]:
    bounds = {"since": start_ns, "until": start_ns + HOUR_NS}
    rows: list[Any] = connection.execute(_OF_HOUR, bounds).fetchall()
    return (number for (number,) in rows)


def _sum_of_hours(connection: apsw.Connection, day_ns: int) -> Tallies:
    tallies = Tallies()
    for dimension in STORED:
        wanted = {"dimension": dimension, "since": day_ns, "until": day_ns + DAY_NS}
        row: Sequence[Any]
        for key, *row in connection.execute(_HOURS_OF_DAY, wanted):
            tallies[dimension, day_ns, str(key)].add_stored(row)
    return tallies


def _write(
    connection: apsw.Connection, step: str, start_ns: int, tallies: Tallies, *, now_ns: int
) -> None:
    for dimension in STORED:
        connection.execute(_REMOVE, {"step": step, "dimension": dimension, "start": start_ns})
    connection.executemany(_ADD, (_row(step, *one, now_ns=now_ns) for one in tallies.items()))


def _row(step: str, place: Place, tally: Tally, *, now_ns: int) -> tuple[Any, ...]:
    dimension, start_ns, key = place
    return step, dimension, start_ns, key, now_ns, *tally.stored()

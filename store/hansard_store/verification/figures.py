"""Figures by hour and day held against the runs that they count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from hansard_store.figures.records import DAY_NS, HOUR_NS
from hansard_store.figures.rollup import FIGURE_COLUMNS, count_hours, due_hours
from hansard_store.figures.tally import Place, Tallies
from hansard_store.verification.derived import Difference, differences

_STEPS: Final = {"hour": HOUR_NS, "day": DAY_NS}
_COLUMNS: Final = tuple(FIGURE_COLUMNS.split(", "))
_KEYS: Final = "step, dimension, start_ns, key"
_STARTS: Final = "SELECT DISTINCT start_ns FROM figure WHERE step = 'hour'"
_ROWS: Final = f"SELECT {_KEYS}, {FIGURE_COLUMNS} FROM figure ORDER BY 1, 3, 2, 4"


def check_figures(connection: apsw.Connection) -> Iterator[Difference]:
    """Yield rows of figures that are not what their runs give; hours that are due are left out.

    Reads every run of the hours that have rows.
    """
    due = {hour.start_ns for hour in due_hours(connection)}
    hours: list[int] = [start for (start,) in connection.execute(_STARTS) if start not in due]
    expected = {"hour": count_hours(connection, hours)}
    expected["day"] = _days_of(expected["hour"])
    left_out = {"hour": due, "day": {hour // DAY_NS * DAY_NS for hour in due}}
    seen: dict[str, set[Place]] = {"hour": set(), "day": set()}
    rows: Any = connection.execute(_ROWS)
    for row in rows:
        step, dimension, start_ns, key, *values = row
        if step not in _STEPS or start_ns in left_out[step]:
            continue
        place = dimension, start_ns, key
        seen[step].add(place)
        yield from _compare(step, place, values, expected[step])
    for step, tallies in expected.items():
        for place in tallies.keys() - seen[step]:
            if place[1] not in left_out[step]:
                yield Difference("figure", _row(step, place), "is gone: its runs give it")


def _compare(
    step: str, place: Place, values: Sequence[Any], expected: Tallies
) -> Iterator[Difference]:
    if place not in expected:
        yield Difference("figure", _row(step, place), "was added: its runs do not give it")
        return
    names = differences(_COLUMNS, values, expected[place].stored())
    if names:
        yield Difference("figure", _row(step, place), f"has {names} as its runs give it")


def _days_of(hours: Tallies) -> Tallies:
    days = Tallies()
    for (dimension, start_ns, key), tally in hours.items():
        days[dimension, start_ns // DAY_NS * DAY_NS, key].add_stored(tally.stored())
    return days


def _row(step: str, place: Place) -> str:
    dimension, start_ns, key = place
    return f"{step},{dimension},{start_ns},{key[:60]}"

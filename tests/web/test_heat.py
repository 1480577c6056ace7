"""The heatmap over the runs list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hansard_store.runs.queries import RunDot
from hansard_web.runs.heatmap import COLUMNS, heat_map

S = 1_000_000_000
NOW = 1_800_000_000 * S


def dot(age_s: float, length_s: float | None, status: str = "ok") -> RunDot:
    length_ns = None if length_s is None else round(length_s * S)
    return RunDot(NOW - round(age_s * S), length_ns, status, None)


def test_runs_stand_in_the_row_of_their_length_and_the_column_of_their_start() -> None:
    heat = heat_map([dot(3600, 1), dot(1, 1000)], since_ns=None, until_ns=NOW)

    assert heat is not None
    first, last = heat.columns[0], heat.columns[-1]
    assert first.cells[0].x == 0
    assert first.cells[0].title.endswith("0.6–2 s: 1 run")
    assert last.cells[0].x == (COLUMNS - 1) * 10
    assert last.cells[0].y == 0


def test_errors_have_a_row_of_their_own() -> None:
    heat = heat_map([dot(60, 1, "error"), dot(1, 1)], since_ns=None, until_ns=NOW)

    assert heat is not None
    assert [cell.level for cell in heat.columns[0].cells][-1] == "he"
    assert "1 error" in heat.summary


def test_a_column_narrows_the_list_to_its_runs() -> None:
    heat = heat_map([dot(3600, 1), dot(1, 1)], since_ns=None, until_ns=NOW)

    assert heat is not None
    assert heat.columns[0].since == "2027-01-15T07:00:00.000Z"


def test_no_two_marks_of_the_axis_read_the_same() -> None:
    for days in (0.01, 1, 3, 7, 30):
        heat = heat_map([dot(days * 86_400, 1), dot(1, 1)], since_ns=None, until_ns=NOW)

        assert heat is not None
        labels = [tick.label for tick in heat.ticks]
        assert 2 <= len(set(labels)) == len(labels) <= 9, labels
        assert sum(tick.is_major for tick in heat.ticks) <= 3


def test_one_run_is_no_picture() -> None:
    assert heat_map([dot(60, 1), dot(30, None)], since_ns=None, until_ns=NOW) is None


DOTS = st.builds(
    dot,
    st.floats(0.001, 1e6),
    st.none() | st.floats(0, 1e6),
    st.sampled_from(["ok", "error"]),
)


@given(st.lists(DOTS, max_size=40))
def test_every_ended_run_is_counted_in_exactly_one_cell(dots: list[RunDot]) -> None:
    heat = heat_map(dots, since_ns=None, until_ns=NOW)

    ended = [one for one in dots if one.duration_ns is not None]
    if heat is None:
        assert len(ended) < 2
        return
    counted = [
        int(cell.title.rsplit(": ", 1)[1].split()[0].replace(",", ""))
        for column in heat.columns
        for cell in column.cells
        if cell.level != "he"
    ]
    assert sum(counted) == len(ended)

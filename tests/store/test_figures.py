"""Figures by hour and day: rows say what counting the runs says, whatever happened to them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.model_names import undated
from hansard_store.annotations.service import AnnotationService
from hansard_store.database.connections import open_for_maintenance
from hansard_store.figures.histograms import EMPTY, RELATIVE_ERROR, Histogram, bucket_of, merged
from hansard_store.figures.queries import figure_report
from hansard_store.figures.records import (
    DAY_NS,
    DIMENSIONS,
    HOUR_NS,
    Dimension,
    FigureReport,
    Figures,
    FigureWindow,
    Step,
)
from hansard_store.figures.rollup import compute_hour, due_hours
from hansard_store.figures.sums import figure_sums
from hansard_store.maintenance.deletion import delete_run
from hansard_store.runs.filters import RunFilter
from tests.web.makers import RunMaker

_SHARES = (0.5, 0.95, 0.99, 1.0)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunMaker]:
    maker = RunMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def connection(runs: RunMaker) -> Iterator[apsw.Connection]:
    with closing(open_for_maintenance(runs.folder)) as opened:
        yield opened


def window_of(days: int, step: Step) -> FigureWindow:
    now_ns = time.time_ns()
    return FigureWindow.around(now_ns - days * DAY_NS, now_ns + HOUR_NS, step)


def report(
    connection: apsw.Connection,
    step: Step = "hour",
    by: Dimension | None = None,
    *,
    is_live: bool = False,
    merge_models: bool = False,
    filters: RunFilter | None = None,
) -> FigureReport:
    if is_live:
        filters = RunFilter(kind="agent")
    return figure_report(
        connection, window_of(9, step), by=by, filters=filters, merge_models=merge_models,
        with_latency=True, now_ns=time.time_ns(),
    )  # fmt: skip


def roll_up(connection: apsw.Connection) -> int:
    due = due_hours(connection)
    for hour in due:
        compute_hour(connection, hour)
    return len(due)


def assert_rows_are_right(connection: apsw.Connection) -> None:
    """Compare every report by rows with one that counts the runs."""
    for step in ("hour", "day"):
        for by in (None, *DIMENSIONS):
            for merge_models in (False, True):
                rows = report(connection, step, by, merge_models=merge_models)
                live = report(connection, step, by, is_live=True, merge_models=merge_models)
                assert rows == live, (step, by, merge_models)
                if by is not None:
                    assert_sums_are_right(connection, rows, by, merge_models=merge_models)


def assert_sums_are_right(
    connection: apsw.Connection, rows: FigureReport, by: Dimension, *, merge_models: bool
) -> None:
    """Compare the sums of tables, by rows and counted, with those of a report."""
    for filters in (None, RunFilter(kind="agent")):
        sums = figure_sums(
            connection, rows.window, (by,), filters=filters, merge_models=merge_models,
            now_ns=time.time_ns(),
        )  # fmt: skip
        expected = {one.key: without_latency(one.total) for one in rows.series}
        assert dict(sums.of[by]) == expected
        assert sums.total == without_latency(rows.total.total)


def without_latency(figures: Figures) -> Figures:
    return replace(
        figures, run_latency=EMPTY, call_latency=EMPTY, tool_latency=EMPTY, first_token=EMPTY
    )


@given(st.lists(st.integers(1, 10**13), min_size=1, max_size=80), st.integers(1, 79))
def test_a_percentile_is_within_its_bound_and_merging_changes_nothing(
    durations: list[int], cut: int
) -> None:
    def histogram(some: list[int]) -> Histogram:
        counts: dict[int, int] = {}
        for one in some:
            counts[bucket_of(one)] = counts.get(bucket_of(one), 0) + 1
        return Histogram(counts)

    whole = histogram(durations)
    ordered = sorted(durations)

    assert merged([histogram(durations[:cut]), histogram(durations[cut:])]) == whole
    for share in _SHARES:
        exact = ordered[max(math.ceil(share * len(ordered)), 1) - 1]
        found = whole.percentile_ns(share)
        assert found is not None
        assert abs(found - exact) <= exact * (RELATIVE_ERROR + 1e-9)


@pytest.mark.slow
def test_rows_are_what_counting_says_after_runs_came_late_changed_and_went(
    runs: RunMaker, connection: apsw.Connection
) -> None:
    for number in range(24):
        runs.run(
            agent=("clerk", "mender")[number % 2],
            model=("gpt-4o-mini", "gpt-4o-mini-2024-07-18", "o3")[number % 3],
            tool="find_order" if number % 4 == 0 else None,
            service=f"svc-{number % 3}",
            status=2 if number % 5 == 0 else 0,
            age_s=60 + number * 17_000,
            duration_s=None if number == 7 else 0.3 + number,
        )
    assert_rows_are_right(connection)  # nothing is rolled up: every hour is counted
    assert roll_up(connection) > 10
    assert_rows_are_right(connection)
    assert due_hours(connection) == []

    late = runs.run(agent="latecomer", age_s=3 * 86_400)
    gone = runs.run(agent="short-lived", age_s=5 * 86_400)
    assert_rows_are_right(connection)
    roll_up(connection)
    delete_run(connection, bytes.fromhex(gone), reason="user", by="ana")
    with closing(AnnotationService(runs.folder)) as notes:
        notes.write_json({"run_id": late, "kind": "tag", "tag": "odd"})
    assert_rows_are_right(connection)
    roll_up(connection)
    assert_rows_are_right(connection)

    agents = {one.key: one.total.runs for one in report(connection, by="agent").series}
    assert agents == {"clerk": 12, "mender": 12, "latecomer": 1}
    assert report(connection, by="tag").series[0].total.runs >= 1


def test_figures_are_those_of_the_runs(runs: RunMaker, connection: apsw.Connection) -> None:
    runs.run(model="gpt-4o-mini", duration_s=2)
    runs.run(model="gpt-4o-mini-2024-07-18", duration_s=4, status=2, tool="find_order")

    total = report(connection).total.total
    merged_models = report(connection, by="model", merge_models=True).series

    assert (total.runs, total.failed_runs, total.model_calls) == (2, 1, 2)
    assert total.tokens is not None
    assert (total.tokens.input, total.tokens.output, total.tokens.cache_read) == (2400, 160, 1200)
    assert (total.cost_usd_nano, total.error_rate, total.cache_hit_rate) == (700_000, 0.5, 0.5)
    assert total.run_latency.p50_ns == pytest.approx(2e9, rel=0.022)
    assert total.run_latency.p99_ns == pytest.approx(4e9, rel=0.022)
    assert [(one.key, one.total.runs, one.total.model_calls) for one in merged_models] == [
        ("gpt-4o-mini", 2, 2)
    ]


def test_a_filter_narrows_figures_to_the_runs_that_meet_it(
    runs: RunMaker, connection: apsw.Connection
) -> None:
    runs.run(agent="clerk")
    runs.run(agent="mender", status=2)

    found = report(connection, by="agent", filters=RunFilter(status=("error",)))

    assert [(one.key, one.total.runs) for one in found.series] == [("mender", 1)]
    assert found.total.total.runs == 1


def test_the_window_before_is_as_long_and_ends_where_this_one_begins() -> None:
    window = FigureWindow.around(5 * DAY_NS + 1, 7 * DAY_NS, "day")

    assert (window.since_ns, window.until_ns) == (5 * DAY_NS, 7 * DAY_NS)
    assert window.before() == FigureWindow(3 * DAY_NS, 5 * DAY_NS, "day")
    assert list(window.slots) == [5 * DAY_NS, 6 * DAY_NS]


@pytest.mark.parametrize(
    ("dated", "name"),
    [
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic.claude-3-5-sonnet"),
        ("mistral-large-latest", "mistral-large"),
        ("llama3:latest", "llama3"),
        ("gpt-4o", "gpt-4o"),
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash-001"),
        ("model-20259999", "model-20259999"),
        ("gpt-4-0613", "gpt-4-0613"),
        ("-2024-07-18", "-2024-07-18"),
    ],
)
def test_a_date_is_taken_from_the_end_of_a_model_s_name_and_nothing_else(
    dated: str, name: str
) -> None:
    assert undated(dated) == name

"""Charts as geometry: axes, stacks, lines with gaps, links and words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_web.ui.chart_axes import Unit, interval_text, tick_label, time_ticks, value_axis
from hansard_web.ui.charts import (
    HEIGHT,
    Buckets,
    ChartOf,
    Series,
    change_text,
    sparkline,
    spread,
)

HOUR = 3600 * 1_000_000_000
DAY = 24 * HOUR
MIDNIGHT = 1_795_824_000 * 1_000_000_000  # 2026-11-28T00:00:00Z
UNITS: tuple[Unit, ...] = ("count", "tokens", "money", "duration", "percent")


def buckets(count: int, step_ns: int = DAY, first_ns: int = MIDNIGHT) -> Buckets:
    starts = tuple(first_ns + index * step_ns for index in range(count))
    return Buckets(starts, first_ns + count * step_ns)


def chart_of(count: int) -> ChartOf:
    return ChartOf(buckets(count), lambda since, until: f"/?since={since}&until={until}")


@given(st.sampled_from(UNITS), st.floats(min_value=0, max_value=1e18))
def test_an_axis_reaches_over_its_values_and_repeats_no_label(unit: Unit, most: float) -> None:
    if unit == "percent":
        most = most % 100
    axis = value_axis([most, 0.0], unit)

    labels = [tick.label for tick in axis.ticks]
    assert axis.most >= most * 0.999999
    assert 2 <= len(labels) <= 8
    assert len(set(labels)) == len(labels), labels


@pytest.mark.parametrize(
    ("value", "unit", "label"),
    [
        (500e6, "duration", "500 ms"),
        (90e9 * 20, "duration", "30 m"),
        (50_000_000, "money", "$0.05"),
        (20_000, "tokens", "20k"),
        (50, "percent", "50%"),
        (0, "count", "0"),
    ],
)
def test_a_tick_reads_in_the_unit_of_its_axis(value: float, unit: Unit, label: str) -> None:
    assert tick_label(value, unit) == label


@given(st.integers(1, 400), st.sampled_from((HOUR, 6 * HOUR, DAY)), st.integers(0, 23))
def test_times_below_a_chart_repeat_no_label_and_stand_in_order(
    count: int, step_ns: int, hour: int
) -> None:
    shown = buckets(count, step_ns, MIDNIGHT + (hour * HOUR if step_ns == HOUR else 0))

    ticks = time_ticks(shown.starts_ns, shown.end_ns)

    labels = [tick.label for tick in ticks]
    assert 1 <= len(labels) <= 9
    assert len(set(labels)) == len(labels)
    assert all(left.at_pct < right.at_pct for left, right in pairwise(ticks))
    assert sum(not tick.is_minor for tick in ticks) <= 3


def test_a_column_says_its_interval_as_hours_or_days() -> None:
    assert interval_text(MIDNIGHT, MIDNIGHT + DAY) == "Nov 28"
    assert interval_text(MIDNIGHT, MIDNIGHT + 7 * DAY) == "Nov 28 – Dec 4"
    assert interval_text(MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR) == "Nov 28, 01:00–02:00"


def test_bars_stand_on_one_another_and_lead_to_their_runs() -> None:
    series = [Series("a", (30.0, None)), Series("b", (10.0, 0.0))]

    chart = chart_of(2).bars("calls", "Calls", "count", series)

    lower, upper = chart.columns[0].bars
    assert (lower.mark, upper.mark) == ("s1", "s2")
    assert lower.y + lower.height == HEIGHT
    assert upper.y + upper.height == pytest.approx(lower.y)
    assert chart.columns[1].bars == ()
    assert chart.columns[0].href == "/?since=2026-11-28T00:00:00Z&until=2026-11-29T00:00:00Z"
    assert chart.columns[0].title == "Nov 28\na: 30\nb: 10"
    assert [row.cells for row in chart.rows] == [("30", "10"), ("–", "0")]


def test_a_line_is_broken_where_nothing_is_known() -> None:
    chart = chart_of(4).lines(
        "p50", "Latency", "duration", [Series("p50", (1e9, None, 2e9, 3e9), mark="p50")]
    )

    assert chart.lines[0].path.count("M") == 2
    assert chart.lines[0].path.count("L") == 1
    assert "NaN" not in chart.lines[0].path


def test_the_period_before_is_a_line_and_a_column_of_the_data() -> None:
    chart = chart_of(2).bars("c", "C", "count", [Series("runs", (1.0, 2.0))], before=(4.0, None))

    assert chart.before
    assert chart.heads == ("runs", "period before")
    assert chart.rows[0].cells == ("1", "4")
    assert chart.y_ticks[-1].at_pct == 0


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e15)), max_size=60))
def test_every_sparkline_stays_in_its_box(values: list[float | None]) -> None:
    line = sparkline(values)

    assert "nan" not in line.line
    assert "inf" not in line.line


@given(st.floats(1e3, 1e13), st.floats(1, 1e3), st.floats(1, 1e3))
def test_a_spread_lies_between_its_ends(p50: float, to_p95: float, to_p99: float) -> None:
    p95 = p50 * to_p95
    p99 = p95 * to_p99

    found = spread(p50, p95, p99, least=p50, most=p99)

    assert found.from_pct <= found.p95_pct <= found.from_pct + found.width_pct + 0.02
    assert 0 <= found.from_pct <= 100


def test_a_change_says_its_sign_and_nothing_without_a_period_before() -> None:
    assert change_text(112, 100) == "+12%"
    assert change_text(88, 100) == "−12%"
    assert change_text(1, 0) == ""
    assert change_text(None, 4) == ""
    assert change_text(100, 100) == "±0%"
    assert change_text(5000, 100) == "×50"

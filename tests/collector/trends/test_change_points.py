"""Whether a share has risen: the test, its limits, and how soon it sees a change."""

from __future__ import annotations

import pytest

from bench.quality.longitudinal import (
    CHANGE,
    delays,
    false_alarms,
    life,
    rolling_alarm,
    weekly_alarm,
)
from hansard_collector.trends.change_points import Count, find_rise, rise_between, slower


@pytest.mark.covers("HB-08")
def test_a_rise_is_found_with_the_day_on_which_it_began() -> None:
    found = find_rise([Count(5, 100)] * 14 + [Count(30, 100)] * 3)

    assert found is not None
    assert (found.at, found.before.rate, found.after.rate) == (14, 0.05, 0.3)


@pytest.mark.parametrize(
    "days",
    [
        [],
        [Count(5, 100)] * 28,
        [Count(30, 100)] * 14 + [Count(5, 100)] * 14,  # it falls
        [Count(0, 0)] * 27 + [Count(9, 9)],  # nothing before
        [Count(5, 100)] * 27 + [Count(4, 5)],  # too few to judge
        [Count(50, 10_000)] * 20 + [Count(90, 10_000)] * 8,  # too small to matter
        [Count(2, 100), Count(20, 100)] * 14,  # it varies as much from day to day
    ],
)
def test_what_is_no_rise_is_none(days: list[Count]) -> None:
    assert find_rise(days) is None


def test_days_without_calls_are_left_out() -> None:
    week = [Count(5, 100)] * 5 + [Count(0, 0)] * 2

    assert find_rise(week * 3 + [Count(40, 100)] * 2) is not None
    assert rise_between([Count(0, 0)], [Count(0, 0)]) is None


@pytest.mark.covers("HB-08")
def test_the_rolling_test_sees_a_drop_sooner_than_weeks_do_and_noise_seldom() -> None:
    rolling, weeks = (delays(one, 0.25, seeds=14) for one in (rolling_alarm, weekly_alarm))

    assert rolling.share(0.5) <= 2 < weeks.share(0.5)
    assert len(rolling.found) == 14
    assert false_alarms(rolling_alarm, seeds=10, days=180) <= 3


def test_a_synthetic_life_is_the_same_for_a_seed() -> None:
    assert life(3, days=40) == life(3, days=40) != life(4, days=40)
    assert life(3, days=40, change=CHANGE, after=0.5)[:CHANGE] == life(3, days=40)[:CHANGE]


def test_latency_is_compared_by_ranks() -> None:
    fast, slow = {1e8: 50, 2e8: 50}, {4e8: 30, 8e8: 5}

    found = slower(fast, slow)

    assert found is not None
    assert (found.before_ns, found.now_ns, found.calls) == (1e8, 4e8, 35)
    assert slower(fast, fast) is None
    assert slower(slow, fast) is None
    assert slower(fast, {8e8: 5}) is None
    assert slower({}, {}) is None

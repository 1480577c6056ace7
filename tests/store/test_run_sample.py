"""Runs as points, for charts of a list."""

from __future__ import annotations

from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import RunDot, sample_runs
from tests.store.maker import NOW, SECOND, StoreMaker
from tests.store.plans import QueryPlans


def test_the_newest_runs_that_meet_a_filter_are_points(store: StoreMaker) -> None:
    store.span("a", run="one", start_s=0, duration_s=2, facets=[("agent", "x")])
    store.span("b", run="two", start_s=5, duration_s=None, facets=[("agent", "x")])
    store.span("c", run="three", start_s=9, status=2)

    found = sample_runs(store.db, RunFilter(agent=("x",)), now_ns=NOW)

    start = NOW - 3600 * SECOND
    assert found == [
        RunDot(start + 5 * SECOND, None, "open", None),
        RunDot(start, 2 * SECOND, "ok", None),
    ]


def test_a_sample_is_no_larger_than_asked(store: StoreMaker) -> None:
    for number in range(5):
        store.span("a", run=f"run {number}", start_s=number)

    found = sample_runs(store.db, RunFilter(), now_ns=NOW, limit=2)

    assert [(dot.started_ns - NOW) // SECOND + 3600 for dot in found] == [4, 3]


def test_a_sample_searches_and_never_scans(store: StoreMaker, plans: QueryPlans) -> None:
    with plans.watch(store.db):
        sample_runs(store.db, RunFilter(), now_ns=NOW)
        sample_runs(store.db, RunFilter(status=("error",), since_ns=NOW), now_ns=NOW)

    assert plans.scans() == []

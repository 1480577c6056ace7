"""Steps: trees from the store, skeletons, ids, links both ways."""

from __future__ import annotations

import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.runs.status import SILENCE_NS
from hansard_store.steps.queries import (
    get_step,
    get_tree,
    links_from,
    links_to_run,
    links_to_step,
    recent_durations,
    tree_rows,
)
from hansard_store.steps.tree import TreeCache
from tests.store.maker import NOW, SECOND, StoreMaker, span_id, trace_id
from tests.store.plans import QueryPlans

RUN = trace_id("run").hex()


def step_id(name: str, run: str = "run") -> str:
    return f"{trace_id(run).hex()}-{span_id(name).hex()}"


def test_the_tree_of_a_run_gives_its_rows_in_order(store: StoreMaker) -> None:
    store.span("child", "root", start_s=1, label="chat gpt-4o")
    store.span("root", start_s=0)
    store.span("lost", "gone", start_s=2)

    tree = get_tree(store.db, RUN[:8])
    rows = tree_rows(store.db, tree, range(3), now_ns=NOW)

    assert [(row.step.name, row.depth, row.orphan) for row in rows] == [
        ("root", 0, False),
        ("chat gpt-4o", 1, False),
        ("lost", 0, True),
    ]
    assert [row.has_children for row in rows] == [True, False, False]
    assert rows[1].step.step_id == step_id("child")
    assert rows[1].step.parent_span_id == span_id("root").hex()
    assert rows[1].step.span_name == "child"


def test_a_cached_tree_is_read_again_when_its_run_changed(store: StoreMaker) -> None:
    cache = TreeCache()
    store.span("root")
    first = get_tree(store.db, RUN, cache=cache)
    again = get_tree(store.db, RUN, cache=cache)
    store.span("late", "root")
    changed = get_tree(store.db, RUN, cache=cache)

    assert first.tree is again.tree
    assert changed.version > first.version
    assert len(changed.tree) == 2


@pytest.mark.parametrize(
    ("status", "duration_s", "later_ns", "shown"),
    [
        (0, 1, 0, "unset"),
        (1, 1, 0, "ok"),
        (2, 1, 0, "error"),
        (0, None, 0, "open"),
        (0, None, SILENCE_NS + 1, "no_end"),
    ],
)
def test_the_status_of_a_step(
    store: StoreMaker, status: int, duration_s: float | None, later_ns: int, shown: str
) -> None:
    store.span("a", status=status, duration_s=duration_s)

    assert get_step(store.db, step_id("a"), now_ns=NOW + later_ns).status == shown


def test_halves_of_a_shared_id_are_two_steps(store: StoreMaker) -> None:
    store.span("a", service="client")
    store.span("a", service="server", side=1)

    assert get_step(store.db, step_id("a"), now_ns=NOW).side == 0
    server = get_step(store.db, step_id("a") + ".server", now_ns=NOW)
    assert server.side == 1
    assert server.step_id == step_id("a") + ".server"


def test_a_server_span_alone_has_the_plain_id_and_is_found_by_both(store: StoreMaker) -> None:
    store.span("a", side=1)

    for wanted in (step_id("a"), step_id("a") + ".server"):
        assert get_step(store.db, wanted, now_ns=NOW).step_id == step_id("a")


def test_a_step_is_found_by_a_prefix(store: StoreMaker) -> None:
    store.span("a")
    store.span("b")

    assert get_step(store.db, step_id("a")[:36], now_ns=NOW).name == "a"
    assert get_step(store.db, f"{RUN[:8]}-{span_id('b').hex()}", now_ns=NOW).name == "b"
    with pytest.raises(AmbiguousIdError):
        get_step(store.db, RUN, now_ns=NOW)


@pytest.mark.parametrize("wanted", ["", "x", RUN[:7], f"{RUN}-zz", f"{RUN}-{'0' * 17}", "-"])
def test_what_is_no_id_of_a_step_is_not_found(store: StoreMaker, wanted: str) -> None:
    store.span("a")

    with pytest.raises(NotFoundError):
        get_step(store.db, wanted, now_ns=NOW)


def test_links_are_followed_both_ways(store: StoreMaker) -> None:
    store.span("target", run="other")
    number = store.span("source", links=[("other", "target"), ("gone", "nowhere")])

    ends = links_from(store.db, [number], now_ns=NOW)
    target = get_step(store.db, step_id("target", "other"), now_ns=NOW)

    assert [end.step.name if end.step else None for end in ends] == ["target", None]
    assert ends[1].run_id == trace_id("gone").hex()
    assert [step.name for step in links_to_step(store.db, target, now_ns=NOW)] == ["source"]
    assert [step.name for step in links_to_run(store.db, target.run_id, now_ns=NOW)] == ["source"]


def test_recent_durations_are_of_the_same_name_and_known(store: StoreMaker) -> None:
    for number, seconds in enumerate([1, 2, None, 3]):
        store.span("same", run=f"r{number}", duration_s=seconds)
    store.span("another", run="r9", duration_s=9)
    step = get_step(store.db, step_id("same", "r3"), now_ns=NOW)

    assert recent_durations(store.db, step) == [2 * SECOND, 1 * SECOND]


def test_no_read_of_a_step_scans_a_table(store: StoreMaker, plans: QueryPlans) -> None:
    number = store.span("a", links=[("run", "a")])

    with plans.watch(store.db):
        tree = get_tree(store.db, RUN)
        tree_rows(store.db, tree, [0], now_ns=NOW)
        step = get_step(store.db, step_id("a"), now_ns=NOW)
        links_from(store.db, [number], now_ns=NOW)
        links_to_step(store.db, step, now_ns=NOW)
        links_to_run(store.db, RUN, now_ns=NOW)
        recent_durations(store.db, step)

    assert plans.lines
    assert plans.scans() == []

"""What the waterfall shows: every row is shown or counted as hidden, once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hansard_store.steps.cycles import find_cycles
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.tree import Node, Tree, build_tree
from hansard_web.run_page.arrangement import Arrangement, arrange, with_ancestors
from hansard_web.run_page.geometry import HEIGHT, WIDTH, Picture, Scale, draw_minimap


def node(
    number: int,
    parent: int | None = None,
    start: int = 0,
    end: int | None = 100,
    *,
    flags: int = 0,
    role: str = "tool",
) -> Node:
    return Node(
        id=number,
        span_id=number.to_bytes(8, "big"),
        side=0,
        parent_span_id=None if parent is None else parent.to_bytes(8, "big"),
        resource=1,
        start_ns=start,
        end_ns=end,
        sort_ns=start,
        status=0,
        role=role,
        flags=flags,
    )


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    count = draw(st.integers(0, 12))
    nodes = [
        node(
            number,
            draw(st.one_of(st.none(), st.integers(1, max(count, 1) + 2))),
            start := draw(st.integers(0, 50)),
            draw(st.one_of(st.none(), st.integers(start, 90))),
            role=draw(st.sampled_from(["tool", "llm"])),
        )
        for number in range(1, count + 1)
    ]
    return build_tree(nodes)


def shown(arrangement: Arrangement) -> list[int]:
    return [row for line, row in enumerate(arrangement.rows) if line not in arrangement.groups]


@given(trees(), st.data())
def test_every_row_is_shown_once_or_counted_as_hidden(tree: Tree, data: st.DataObject) -> None:
    rows = st.sets(st.integers(0, max(len(tree) - 1, 0)))
    shut, opened = data.draw(rows), data.draw(rows)
    kept = data.draw(st.one_of(st.none(), rows))
    only = None if kept is None else with_ancestors(tree, [row for row in kept if row < len(tree)])
    kinds = data.draw(st.sampled_from([None, [one.role for one in tree.nodes]]))

    found = arrange(
        tree,
        is_shut=shut.__contains__,
        only=only,
        cycles=find_cycles(tree, kinds, only=only) if kinds else {},
        is_group_shut=lambda cycle: cycle.members[0] not in opened,
    )

    visible = shown(found)
    assert visible == sorted(set(visible))
    assert len(visible) + found.hidden.total == len(tree)
    assert only is None or set(visible) <= only


@given(trees())
def test_nothing_is_hidden_without_a_reason(tree: Tree) -> None:
    found = arrange(tree)

    assert found.rows == list(range(len(tree)))
    assert found.depths == list(tree.depths)
    assert found.hidden.total == 0


def test_repeats_of_one_kind_become_one_line_that_opens() -> None:
    tree = build_tree(
        [node(1, end=900)]
        + [node(number, 1, number * 10, role="tool") for number in range(2, 6)]
        + [node(6, 1, 70, role="llm")]
    )
    kinds = [one.role for one in tree.nodes]

    cycles = find_cycles(tree, kinds)
    shut = arrange(tree, cycles=cycles)
    opened = arrange(tree, cycles=cycles, is_group_shut=lambda cycle: False)

    assert shut.rows == [0, 1, 5]
    assert shut.groups[1].members == (1, 2, 3, 4)
    assert shut.hidden.grouped == 4
    assert opened.rows == [0, 1, 1, 2, 3, 4, 5]
    assert opened.depths == [0, 1, 2, 2, 2, 2, 1]
    assert shut.line_showing(3) == 1
    assert opened.line_of(1) == 2


def test_two_of_a_kind_are_no_group() -> None:
    tree = build_tree([node(1), node(2, 1, 1), node(3, 1, 2)])

    assert find_cycles(tree, ["a", "b", "b"]) == {}


def test_a_filter_keeps_what_leads_to_a_match() -> None:
    tree = build_tree([node(1), node(2, 1), node(3, 2), node(4, 1)])

    found = arrange(tree, only=with_ancestors(tree, [2]))

    assert found.rows == [0, 1, 2]
    assert found.hidden.filtered == 1


def test_own_time_is_when_no_child_ran() -> None:
    picture = Picture(
        build_tree(
            [node(1, None, 0, 100), node(2, 1, 10, 30), node(3, 1, 20, 40), node(4, 1, 90, 95)]
        )
    )

    assert picture.own_time(0, 100) == ((0, 10), (40, 90), (95, 100))
    assert picture.own_time(1, 100) == ((10, 30),)


@given(trees(), st.integers(90, 200))
def test_own_time_lies_inside_its_span_and_outside_its_children(tree: Tree, until: int) -> None:
    picture = Picture(tree)
    for row in range(len(tree)):
        whole = picture.times(row, until)
        for start, end in picture.own_time(row, until):
            assert whole.start_ns <= start < end <= whole.end_ns
            for child in picture.children(row):
                part = picture.times(child, until)
                assert end <= part.start_ns or start >= part.end_ns or part.length_ns == 0


@given(trees(), st.integers(90, 200))
def test_the_critical_path_is_a_tree_from_one_top(tree: Tree, until: int) -> None:
    path = Picture(tree).critical_path(until)

    assert bool(path) == bool(len(tree))
    assert len([row for row in path if tree.parents[row] < 0]) == min(len(tree), 1)
    assert all(tree.parents[row] in path for row in path if tree.parents[row] >= 0)


def test_the_critical_path_follows_what_ended_last() -> None:
    tree = build_tree(
        [node(1, None, 0, 100), node(2, 1, 0, 60), node(3, 1, 10, 40), node(4, 1, 60, 100)]
    )

    assert Picture(tree).critical_path(100) == {0, 1, 3}


def test_an_odd_clock_does_not_squeeze_the_others() -> None:
    day = 86_400_000_000_000
    tree = build_tree(
        [node(1, None, 20_000 * day, 20_000 * day + 50), node(2, 1, 5, 9, flags=SpanFlag.TIME_ODD)]
    )

    assert Picture(tree).bounds(0) == Scale(20_000 * day, 20_000 * day + 50)


def test_open_spans_reach_to_the_given_moment() -> None:
    picture = Picture(build_tree([node(1, None, 10, None), node(2, 1, 20, 30)]))

    assert picture.bounds(500) == Scale(10, 500)
    assert picture.times(0, 500).end_ns == 500


@given(trees())
def test_the_minimap_draws_every_failure(tree: Tree) -> None:
    failed = build_tree([one._replace(flags=SpanFlag.ERROR) for one in tree.nodes])

    minimap = draw_minimap(Picture(failed), 100)

    assert (minimap.bars > 0) == (len(failed) > 0)
    assert {path.role for path in minimap.paths} <= {"error"}


def test_the_minimap_of_a_large_run_stays_small() -> None:
    nodes = [node(1, None, 0, 50_000)]
    nodes += [node(number, 1, number, number + 1) for number in range(2, 50_000)]

    minimap = draw_minimap(Picture(build_tree(nodes)), 0)

    assert minimap.bars <= WIDTH * HEIGHT
    assert sum(len(path.d) for path in minimap.paths) < 60_000

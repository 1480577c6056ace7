"""Loops of an agent: planted ones are found, nothing else is, in time that grows with the steps."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_store.steps.cycles import (
    LEAST_TIMES,
    LONGEST_PERIOD,
    find_cycles,
    find_loops,
    repeats,
)
from hansard_store.steps.tree import Node, Tree, build_tree

WITH_ARGUMENTS, WITHOUT = 1, 0


def node(
    number: int, parent: int | None, likeness: int | None, *, role: str = "tool", start: int = 0
) -> Node:
    return Node(
        id=number,
        span_id=number.to_bytes(8, "big"),
        side=0,
        parent_span_id=None if parent is None else parent.to_bytes(8, "big"),
        resource=1,
        start_ns=start or number,
        end_ns=(start or number) + 1,
        sort_ns=start or number,
        status=0,
        role=role,
        flags=0,
        likeness=likeness,
    )


def agent(likenesses: list[int | None]) -> Tree:
    """A run of one agent whose steps have these likenesses, in order."""
    below = [node(number, 1, likeness) for number, likeness in enumerate(likenesses, 2)]
    return build_tree([node(1, None, None, role="agent"), *below])


@given(
    before=st.lists(st.integers(100, 200), max_size=10, unique=True),
    cycle=st.lists(st.integers(1, 99), min_size=1, max_size=LONGEST_PERIOD, unique=True),
    times=st.integers(LEAST_TIMES, 40),
    after=st.lists(st.integers(300, 400), max_size=10, unique=True),
)
def test_a_planted_cycle_is_found_whole(
    before: list[int], cycle: list[int], times: int, after: list[int]
) -> None:
    found = repeats([*before, *cycle * times, *after])

    assert found == [(len(before), len(cycle), times)]


@given(st.lists(st.integers(), unique=True, max_size=60))
def test_steps_that_all_differ_have_none(kinds: list[int]) -> None:
    assert repeats(kinds) == []


@given(st.lists(st.integers(0, 3), max_size=40))
def test_what_is_found_repeats_and_what_is_not_found_does_not(kinds: list[int]) -> None:
    found = repeats(kinds)

    covered: set[int] = set()
    for start, period, times in found:
        assert 1 <= period <= LONGEST_PERIOD
        assert times >= LEAST_TIMES
        one = kinds[start : start + period]
        assert kinds[start : start + period * times] == one * times
        places = set(range(start, start + period * times))
        assert not covered & places
        covered |= places
    for start in set(range(len(kinds))) - covered:
        for period in range(1, LONGEST_PERIOD + 1):
            places = set(range(start, start + period * LEAST_TIMES))
            if max(places) < len(kinds) and not places & covered:
                assert kinds[start : start + period * LEAST_TIMES] != (
                    kinds[start : start + period] * LEAST_TIMES
                )


def test_a_loop_of_a_model_and_a_tool_is_one() -> None:
    model, tool = 4 | WITHOUT, 8 | WITH_ARGUMENTS
    tree = agent([2, *[model, tool] * 40, 6])

    (loop,) = find_loops(tree).values()

    assert loop.period == 2
    assert loop.times == 40
    assert loop.members == tuple(range(2, 82))


def test_calls_with_other_arguments_are_a_cycle_but_no_loop() -> None:
    tree = agent([number for turn in range(10) for number in (4, 100 + 2 * turn + WITH_ARGUMENTS)])

    assert find_loops(tree) == {}
    assert list(find_cycles(tree, ["agent", *["model", "tool"] * 10])) == [1]


def test_prompts_alone_are_no_loop_since_they_may_differ() -> None:
    assert find_loops(agent([4 | WITHOUT] * 9)) == {}


def test_steps_of_an_older_version_are_in_no_loop() -> None:
    assert find_loops(agent([None] * 9)) == {}


def test_turns_that_hold_the_same_steps_are_a_loop_whatever_their_names() -> None:
    nodes = [node(1, None, None, role="agent")]
    for turn in range(5):
        number = 10 * (turn + 1)
        nodes.append(node(number, 1, 1000 + 2 * turn, role="workflow"))
        nodes.append(node(number + 1, number, 4 | WITHOUT, role="llm"))
        nodes.append(node(number + 2, number, 8 | WITH_ARGUMENTS))

    (loop,) = find_loops(build_tree(nodes)).values()

    assert (loop.period, loop.times) == (1, 5)


@pytest.mark.slow
def test_fifty_thousand_steps_take_no_longer_than_ten_times_five_thousand() -> None:
    small, large = (agent([4, 8 | WITH_ARGUMENTS] * (many // 2)) for many in (5_000, 50_000))
    taken = []
    for tree in (small, large):
        began = time.process_time()
        for _ in range(3):
            (loop,) = find_loops(tree).values()
        taken.append(time.process_time() - began)
        assert loop.times == len(tree) // 2

    assert taken[1] < 25 * max(taken[0], 0.01)

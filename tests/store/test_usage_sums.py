"""Sums on parents: each counted row is in the sum of every step above it, once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hansard_store.steps.tree import Node, Tree, build_tree
from hansard_store.steps.usage_sums import SubtreeUsage


@st.composite
def runs(draw: st.DrawFn) -> tuple[Tree, list[tuple[Any, ...]]]:
    count = draw(st.integers(1, 15))
    nodes = [
        Node(
            id=number, span_id=number.to_bytes(8, "big"), side=0,
            parent_span_id=None if number == 1
            else draw(st.integers(1, number - 1)).to_bytes(8, "big"),
            resource=1, start_ns=number, end_ns=number + 1, sort_ns=number, status=0, role="llm",
            flags=0,
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    figures = st.one_of(st.none(), st.integers(0, 10**12))
    counted = [
        (number, draw(st.integers(0, 1)), *(draw(figures) for _ in range(6)))
        for number in draw(st.sets(st.integers(1, count + 3)))  # some are hidden in the tree
    ]
    return build_tree(nodes), counted


@given(runs())
def test_a_sum_is_that_of_what_is_counted_below(
    made: tuple[Tree, list[tuple[Any, ...]]],
) -> None:
    tree, counted = made
    sums = SubtreeUsage(tree, counted)

    for row in range(len(tree)):
        below = {one.id for one in tree.nodes[row : row + tree.sizes[row]]}
        parts = [one for one in counted if one[0] in below]
        found = sums.below(row)
        if not parts:
            assert found is None
            continue
        assert found is not None
        assert found.calls == sum(one[1] for one in parts)
        known = [one[7] for one in parts if one[7] is not None]
        assert found.cost_usd_nano == (sum(known) if known else None)
        inputs = [one[2] for one in parts if one[2] is not None]
        assert (found.tokens.input if found.tokens else None) == (sum(inputs) if inputs else None)

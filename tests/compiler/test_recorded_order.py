"""A request rendered again keeps the order in which its keys were recorded."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_json
from hansard_compiler.replay.recorded_order import in_recorded_order, says_the_same

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return an equal value with the keys of its objects in another order."""
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@given(VALUES, st.randoms())
def test_what_says_the_same_is_written_as_it_was_recorded(
    recorded: Any, chance: random.Random
) -> None:
    rendered = shuffled(recorded, chance)

    assert says_the_same(rendered, recorded)
    assert json.dumps(in_recorded_order(rendered, recorded)) == json.dumps(recorded)


@given(VALUES, VALUES)
def test_no_value_is_changed_whatever_was_recorded(rendered: Any, recorded: Any) -> None:
    assert canonical_json(in_recorded_order(rendered, recorded)) == canonical_json(rendered)


def test_a_tool_that_moved_up_keeps_its_order_and_a_changed_one_that_of_its_place() -> None:
    recorded = {"tools": [{"z": 1, "a": 1}, {"z": 2, "a": 2}, {"z": 3, "a": 3}]}
    rendered = {"new": 0, "tools": [{"a": 2, "z": 2}, {"a": 9, "b": 8, "z": 9}]}

    found = in_recorded_order(rendered, recorded)

    assert json.dumps(found) == '{"tools": [{"z": 2, "a": 2}, {"z": 9, "a": 9, "b": 8}], "new": 0}'

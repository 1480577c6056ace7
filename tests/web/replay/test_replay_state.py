"""The address of a replay's form says all of its state, whatever the changes hold."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_web.replay_page.fields import fold_fields
from hansard_web.replay_page.state import ACTS, ReplayState, read_state

STEP = f"{'1' * 32}-{'2' * 16}"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.one_of(texts, st.integers(0, 99), st.none())
changes = st.builds(
    lambda op, rest: {**rest, "op": op}, texts, st.dictionaries(texts, values, max_size=4)
)
states = st.builds(
    ReplayState,
    st.just(STEP),
    act=st.sampled_from(ACTS),
    changes=st.lists(changes, max_size=4).map(tuple),
    n=st.integers(1, 50),
    offline=st.booleans(),
    elsewhere=st.booleans(),
    editing=texts,
)


@given(states)
def test_an_address_is_read_as_the_state_it_was_made_of(state: ReplayState) -> None:
    pairs = parse_qsl(urlsplit(state.href()).query, keep_blank_values=True)

    assert read_state(STEP, pairs) == (state, [])


@given(states)
def test_a_form_that_says_nothing_changes_nothing(state: ReplayState) -> None:
    assert fold_fields(state.changes, state.fields) == (state.changes, [])


NAMES = [
    "act", "change", "n", "edit", "drop", "up", "token_budget", "weight.trust", "rules", "raw",
    "leave_out", "row", "edit_message", "remove_message", "content", "seed", "without_memory",
]  # fmt: skip
ODD = ["", "-1", "0", "1e999", "nan", "9" * 30, "²", "[]", "{}"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.one_of(texts, st.sampled_from(ODD)))))
def test_whatever_is_sent_is_read_or_said_to_be_unreadable(pairs: list[tuple[str, str]]) -> None:
    state, _ = read_state(STEP, pairs)
    found, problems = fold_fields(state.changes, pairs)

    assert all(isinstance(one["op"], str) for one in found)
    assert all(problems)
    ReplayState(STEP, act="mutated", changes=found).href()


@pytest.mark.parametrize(
    ("given_", "kept"),
    [("51", 50), ("0", 1), ("-1", 1), ("x", 1), ("9999", 1), ("³", 1), ("7", 7)],
)
def test_how_often_is_bounded(given_: str, kept: int) -> None:
    assert read_state(STEP, [("n", given_)])[0].n == kept


@pytest.mark.parametrize("text", ["1e999", "nan", "9" * 30, "two"])
def test_what_is_no_number_is_said(text: str) -> None:
    found, problems = fold_fields([], [("token_budget", text), ("weight.trust", text)])

    assert (found, len(problems)) == ((), 2)


def test_what_a_form_has_no_field_for_survives_it() -> None:
    before: list[dict[str, Any]] = [{"op": "set_sampling", "stop": ["END"], "seed": None}]

    found, _ = fold_fields(before, [("temperature", "0.5"), ("seed", "")])

    assert found == ({"op": "set_sampling", "stop": ["END"], "seed": None, "temperature": 0.5},)

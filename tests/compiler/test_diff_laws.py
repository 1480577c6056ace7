"""What holds for every comparison: nothing against itself, the mirror image under a swap."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_json
from hansard_compiler.diff import (
    MessageMark,
    StepMark,
    align,
    align_messages,
    align_steps,
    headline,
    json_diff,
    request_diff,
    text_diff,
)
from tests.compiler.mirrors import (
    left_text,
    mirrored_json,
    mirrored_steps,
    mirrored_text,
    right_text,
    value_at,
)

WORDS = st.lists(st.sampled_from(["a", "bb", "c1", " ", "\n", ".", "é", ""]), max_size=40).map(
    "".join
)
LISTS = st.lists(st.sampled_from("abcdef"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1, 1) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b c", "d"]), inner, max_size=3)
    ),
    max_leaves=12,
)
MARKS = st.lists(
    st.builds(
        StepMark,
        kind=st.sampled_from(["llm", "tool"]),
        name=st.sampled_from(["x", "y"]),
        content=st.sampled_from("123"),
        stands_for=st.sampled_from(["", "llm"]),
    ),
    max_size=14,
)


def message(match: int, told: int) -> MessageMark:
    return MessageMark(bytes([match, told]), bytes([match]), "user" if match % 2 else "assistant")


MESSAGES = st.lists(st.builds(message, st.integers(0, 4), st.integers(0, 1)), max_size=10)


@given(LISTS, LISTS)
def test_an_alignment_pairs_equal_elements_in_order_and_mirrors(a: list[str], b: list[str]) -> None:
    pairs = align(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    rising = [j for _, j in pairs]
    assert rising == sorted(set(rising))
    assert [i for i, _ in pairs] == sorted({i for i, _ in pairs})
    assert align(b, a) == [(j, i) for i, j in pairs]
    assert align(a, a) == [(at, at) for at in range(len(a))]


@given(LISTS, st.integers(0, 30), st.sampled_from("abcxyz"))
def test_one_insertion_costs_one_element(a: list[str], at: int, new: str) -> None:
    assert len(align(a, [*a[:at], new, *a[at:]])) == len(a)


@given(WORDS, WORDS)
def test_a_word_diff_puts_both_texts_together_again(left: str, right: str) -> None:
    ops = text_diff(left, right)
    assert left_text(ops) == left
    assert right_text(ops) == right
    assert text_diff(right, left) == mirrored_text(ops)
    assert all(op.kind == "same" for op in text_diff(left, left))


@given(JSON, JSON)
def test_every_json_change_stands_at_its_paths_and_mirrors(left: Any, right: Any) -> None:
    diff = json_diff(left, right)
    assert bool(diff.changes) == (canonical_json(left) != canonical_json(right))
    for change in diff.changes:
        if change.left_path is not None:
            assert canonical_json(value_at(left, change.left_path)) == canonical_json(change.left)
        if change.right_path is not None:
            found = value_at(right, change.right_path)
            assert canonical_json(found) == canonical_json(change.right)
    swapped = {repr(one) for one in json_diff(right, left).changes}
    assert swapped == {repr(one) for one in mirrored_json(diff).changes}


@given(MARKS, MARKS)
def test_aligned_steps_hold_every_step_once_and_mirror(
    left: list[StepMark], right: list[StepMark]
) -> None:
    pairs = align_steps(left, right)
    assert [one.left for one in pairs if one.left is not None] == list(range(len(left)))
    assert [one.right for one in pairs if one.right is not None] == list(range(len(right)))
    assert align_steps(right, left) == mirrored_steps(pairs)
    assert {one.state for one in align_steps(left, left)} <= {"same"}


@given(MESSAGES, MESSAGES)
def test_aligned_messages_hold_every_message_once(
    left: list[MessageMark], right: list[MessageMark]
) -> None:
    pairs = align_messages(left, right)
    assert sorted(one.left for one in pairs if one.left is not None) == list(range(len(left)))
    assert sorted(one.right for one in pairs if one.right is not None) == list(range(len(right)))
    told = sorted(
        (one.state, one.left, one.right) for one in pairs if None not in (one.left, one.right)
    )
    other = align_messages(right, left)
    assert told == sorted(
        (one.state, one.right, one.left) for one in other if None not in (one.left, one.right)
    )
    assert {one.state for one in align_messages(left, left)} <= {"same"}


@given(
    st.dictionaries(st.sampled_from(["tokens.input", "errors", "x"]), st.integers(0, 9) | st.none())
)
def test_a_headline_against_itself_says_the_same_everywhere(figures: dict[str, int | None]) -> None:
    told = headline(figures, figures)
    assert all(one.direction == "same" and not one.is_difference for one in told)


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_requests_part_at_the_first_byte_that_differs(left: bytes, right: bytes) -> None:
    diff = request_diff(left, right)
    assert diff.is_equal == (left == right)
    if diff.first_difference is not None:
        at = diff.first_difference
        assert left[:at] == right[:at]
        assert left[at : at + 1] != right[at : at + 1]
    assert request_diff(right, left).first_difference == diff.first_difference


def steps(names: Sequence[str], content: str = "") -> list[StepMark]:
    return [StepMark("tool", name, f"{content}{name}") for name in names]


MANY = [str(number) for number in range(5_000)]
HARD = {
    "one name": (["x"] * 5_000, ["x"] * 5_000),
    "one name, other contents": (["x"] * 5_000, ["x"] * 4_999),
    "reversed": (MANY, MANY[::-1]),
    "one in front": (MANY, ["new", *MANY]),
    "two names, shifted": (["a", "b"] * 2_500, ["b", "a"] * 2_500),
    "blocks exchanged": (["a"] * 2_500 + ["b"] * 2_500, ["b"] * 2_500 + ["a"] * 2_500),
    "nothing shared": (MANY, [f"other {one}" for one in MANY]),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_inputs_of_5000_steps_are_aligned_without_quadratic_work(name: str) -> None:
    left, right = HARD[name]
    began = time.process_time()
    pairs = align_steps(steps(left), steps(right, "other" if "contents" in name else ""))
    assert len(pairs) >= 5_000
    assert time.process_time() - began < 20  # quadratic work takes minutes; bench/ has the figures


def test_an_insertion_in_front_leaves_the_rest_the_same() -> None:
    pairs = align_steps(steps(MANY), steps(["new", *MANY]))
    assert [one.state for one in pairs[:2]] == ["only_right", "same"]
    assert sum(one.state == "same" for one in pairs) == 5_000


def test_model_calls_of_two_libraries_are_paired_and_unrelated_tools_are_not() -> None:
    left = [StepMark("llm", "ChatOpenAI", "1", "llm"), StepMark("tool", "read", "2")]
    right = [StepMark("llm", "chat gpt-4o", "3", "llm"), StepMark("tool", "write", "4")]
    assert [one.state for one in align_steps(left, right)] == ["changed", "only_left", "only_right"]


def test_two_texts_of_20_megabytes_are_compared_line_by_line() -> None:
    lines = [f"line {number} of a log that goes on" for number in range(600_000)]
    left = "\n".join(lines)
    lines[300_000] = "line 300000 of another log"
    ops = text_diff(left, "\n".join(lines))
    changed = [(op.kind, op.text) for op in ops if op.kind != "same"]
    assert sum(len(text) for _, text in changed) < 100
    assert left_text(ops) == left


def test_one_is_not_true_and_null_is_not_nothing() -> None:
    assert json_diff({"a": 1}, {"a": True}).changes[0].state == "changed"
    (change,) = json_diff({"a": None}, {}).changes
    assert (change.state, change.path) == ("only_left", "$.a")


def test_an_element_put_in_front_is_one_change() -> None:
    rows = [{"id": number} for number in range(50)]
    (change,) = json_diff({"rows": rows}, {"rows": [{"id": -1}, *rows]}).changes
    assert (change.path, change.state) == ("$.rows[0]", "only_right")


def test_a_huge_difference_is_cut_and_says_so() -> None:
    left = {str(number): number for number in range(3_000)}
    diff = json_diff(left, {})
    assert (len(diff.changes), diff.is_cut) == (1_000, True)


@pytest.mark.parametrize(
    ("name", "left", "right", "direction", "verdict"),
    [
        ("tokens.input", 100, 60, "less", "better"),
        ("cost_usd", 0.1, 0.2, "more", "worse"),
        ("cache_share", 40.0, 50.0, "more", "better"),
        ("steps", 4, 5, "more", "neutral"),
        ("tokens.input", None, 60, "unknown", "unknown"),
        ("status", "error", "ok", "other", "better"),
        ("errors", 0, 0, "same", "neutral"),
    ],
)
def test_a_figure_says_which_way_it_moved(
    name: str, left: Any, right: Any, direction: str, verdict: str
) -> None:
    (delta,) = headline({name: left}, {name: right})
    assert (delta.direction, delta.verdict) == (direction, verdict)


def test_what_is_unknown_is_never_counted_as_zero() -> None:
    (delta,) = headline({"cost_usd": None}, {"cost_usd": 0.5})
    assert delta.delta is None
    assert delta.share is None

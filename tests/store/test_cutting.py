"""Cutting texts at the elements of their arrays: nothing is lost, what is shared is found."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hansard_store.content.json_chunks import Cut, cut, cut_after, element_of
from tests.strategies import json_texts, large_json

JSON_LIKE = st.text(alphabet='[]{},:" a1\\', max_size=40)
ANY_TEXT = st.one_of(json_texts(), json_texts(kinds="["), large_json(), JSON_LIKE)


def joined(made: Cut) -> str:
    return "".join(made.pieces) + made.tail


def elements(made: Cut) -> list[str]:
    return [element_of(piece, first=not at) for at, piece in enumerate(made.pieces)]


@given(ANY_TEXT)
@example("[1, 2")
@example("[[1],[2]]")
@example(' {"a": [1], "b": [1, 2] } ')
@example("[1] and more")
def test_pieces_and_tail_join_to_the_text(text: str) -> None:
    made = cut(text)

    assert made is None or joined(made) == text


@given(ANY_TEXT)
@example("[[1],[2]]")
@example("\n [ 1 ,2]\t")
@example('["a","[b"]')
def test_pieces_of_a_whole_array_hold_exactly_its_elements(text: str) -> None:
    made = cut(text)

    if made is not None and made.whole:
        # repr: NaN is not equal to itself, and 1 is not 1.0
        found = [repr(json.loads(element)) for element in elements(made)]
        assert found == [repr(element) for element in json.loads(text)]


@given(ANY_TEXT, ANY_TEXT)
@example("[1, 2]", "[1, 23]")
@example("[1]", "[1, 2")
def test_cutting_after_any_other_text_loses_nothing(before: str, text: str) -> None:
    known = cut(before)
    found = cut_after(text, known.pieces) if known else None

    if known is not None and found is not None:
        shared, rest = found
        assert "".join(known.pieces[:shared]) + joined(rest) == text


@given(st.lists(st.integers(), min_size=1), st.lists(st.integers(), min_size=1))
def test_a_longer_array_shares_all_pieces_of_the_one_it_continues(
    before: list[int], more: list[int]
) -> None:
    known = cut(json.dumps(before))
    assert known is not None

    found = cut_after(json.dumps(before + more), known.pieces)

    assert found is not None
    shared, rest = found
    assert shared == len(before)
    assert list(rest.pieces) == [f", {number}" for number in more]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ('[1, {"a": 2}]', ["[1", ', {"a": 2}']),
        ('{"model": "m", "messages": [1,2]}', ['{"model": "m", "messages": [1', ",2"]),
        ("[[1, 2]]", ["[[1", ", 2"]),
        (
            '{"few": [1], "request": {"input": [1, 2, 3]}}',
            ['{"few": [1], "request": {"input": [1', ", 2", ", 3"],
        ),
        ('{"short": [1], "long": ["x", "yy"]}', ['{"short": [1], "long": ["x"', ', "yy"']),
        ("[]", []),
        ('{"no": "array"}', None),
        ('"text"', None),
        ("[1, 2", None),
        ("[" * 5000, None),
    ],
)
def test_the_main_array_is_found_where_it_stands(text: str, pieces: list[str] | None) -> None:
    made = cut(text)

    assert (list(made.pieces) if made else None) == pieces


def test_an_array_with_something_behind_it_is_not_the_whole_text() -> None:
    made = cut("[1, 2] and more")

    assert made is not None
    assert not made.whole

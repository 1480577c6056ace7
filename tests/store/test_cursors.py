"""Cursors: what was given comes back, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.errors import InvalidCursorError

numbers = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.text(), st.lists(numbers, max_size=4))
def test_a_cursor_comes_back_as_it_was_given(kind: str, position: list[int]) -> None:
    text = encode_cursor(kind, *position)

    assert decode_cursor(kind, text, count=len(position)) == tuple(position)
    assert text.isascii()
    assert not set(text) & set("+/=&? ")


@given(st.text(), numbers, st.text())
def test_a_cursor_of_another_kind_is_refused(kind: str, position: int, other: str) -> None:
    text = encode_cursor(kind, position)

    if kind != other:
        with pytest.raises(InvalidCursorError):
            decode_cursor(other, text, count=1)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor("runs", text, count=2)


def test_a_cursor_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor("runs", encode_cursor("runs", 1), count=2)

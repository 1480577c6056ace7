"""Canonical JSON: one text for a value, however it is written."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_bytes, canonical_json, stable_hash

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=5) | st.text()
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 4))
def test_written_in_pieces_the_bytes_and_the_hash_are_the_same(value: Any, pieces: int) -> None:
    whole = canonical_json(value).encode()

    assert canonical_bytes(value, pieces=pieces) == canonical_bytes(value) == whole
    assert stable_hash(value, pieces=pieces) == stable_hash(value)


@pytest.mark.parametrize(
    "value", [{"a": [1, "\ud800", math.nan]}, {"b": {"a": "\udfff\ud83d"}}, ()]
)
def test_lone_surrogates_are_escaped_in_pieces_as_well(value: Any) -> None:
    assert canonical_bytes(value, pieces=2) == canonical_json(value).encode()


@pytest.mark.parametrize("value", [{"a": object()}, [{"a": {"b": object()}}]])
def test_what_json_has_no_form_for_is_refused_in_pieces_as_well(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_bytes(value, pieces=2)

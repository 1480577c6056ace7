"""Answers made small enough for a model, with what was left out said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_web.mcp.server import bounded

pytestmark = pytest.mark.slow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=40,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=20), JSON, max_size=8), st.integers(2, 2_000))
def test_an_answer_is_never_larger_and_what_it_lacks_is_said(
    answer: dict[str, Any], most: int
) -> None:
    made, truncated = bounded(answer, most=most)

    assert len(json.dumps(made, ensure_ascii=False)) <= most
    assert (made == answer) == (not truncated)


def test_a_small_answer_stays_whole() -> None:
    answer = {"items": [{"text": "a" * 500}] * 20}

    assert bounded(answer) == (answer, [])


def test_what_was_cut_is_named_by_its_place() -> None:
    made, truncated = bounded({"items": [{"text": "a" * 50_000}], "rows": list(range(900))})

    assert [(one["at"], one["unit"], one["total"]) for one in truncated] == [
        ("items[0].text", "characters", 50_000),
        ("rows", "items", 900),
    ]
    assert len(made["rows"]) == truncated[1]["shown"]


def test_nesting_without_end_is_cut() -> None:
    deep: dict[str, Any] = {}
    for _ in range(90):
        deep = {"a": deep}

    _, truncated = bounded(deep)

    assert [one["unit"] for one in truncated] == ["levels"]


def test_many_cuts_are_counted_and_not_all_listed() -> None:
    _, truncated = bounded({"items": ["b" * 20_000] * 150})

    assert truncated[-1] == {"at": "", "unit": "further cuts", "shown": 0, "total": 120}

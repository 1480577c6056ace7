"""Figures of a compile's page hold whatever is sent: sums, decimals, addresses, stored results."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.compile.passes.score import TERMS
from hansard_web.compile_view.item_origins import safe_address
from hansard_web.compile_view.labels import points
from hansard_web.compile_view.result import Breakdown, ResultTerm, read_result
from hansard_web.compile_view.rows import sum_of
from hansard_web.compile_view.state import ContextState, parse_context_state

_MICRO = st.integers(-2_000_000, 2_000_000)
_MILLI = st.integers(-1_000_000, 1_000_000)


def number(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))


@given(st.lists(st.tuples(_MICRO, _MILLI), max_size=len(TERMS)))
def test_a_sum_on_paper_is_exact(pairs: list[tuple[int, int]]) -> None:
    terms = tuple(
        ResultTerm(name, value, weight, value * weight)
        for name, (value, weight) in zip(TERMS, pairs, strict=False)
    )
    total = sum(term.points for term in terms)
    made = sum_of(Breakdown(terms, total))

    assert made.is_exact
    assert sum(number(row.points) for row in made.rows) == number(made.total)
    assert number(made.total) == Decimal(total) / 10**9
    assert len(made.rows) + len(made.nothing) == len(terms)
    for row in made.rows:
        assert number(row.value) * number(row.weight) == number(row.points)
        assert 0 <= row.x_pct <= row.x_pct + row.width_pct <= 100.01


@given(_MICRO, _MILLI, st.integers(1, 10**12))
def test_a_sum_that_does_not_add_up_is_not_said_to(value: int, weight: int, off: int) -> None:
    made = sum_of(
        Breakdown((ResultTerm("trust", value, weight, value * weight),), value * weight + off)
    )

    assert not made.is_exact
    assert number(made.adds_up_to) * 10**9 == value * weight


@given(st.integers(-(10**15), 10**15))
def test_points_are_rounded_and_never_to_nothing(nano: int) -> None:
    shown = number(points(nano))

    assert (shown == 0) == (nano == 0)
    assert abs(shown - Decimal(nano).scaleb(-9)) <= Decimal("0.0005")
    assert number(points(nano, 9)) == Decimal(nano).scaleb(-9)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_STATES = st.builds(
    ContextState,
    decision=_TEXT,
    reason=_TEXT,
    at_pass=_TEXT,
    kind=_TEXT,
    find=_TEXT.map(lambda text: " ".join(text.split())),
    order=st.sampled_from(["place", "score", "tokens", "missed", "item"]),
    group=st.sampled_from(["place", "decision", "none"]),
    item=_TEXT,
    first=st.integers(0, 9_999_999),
    shows_request=st.booleans(),
)


@given(_STATES)
def test_an_address_is_read_back_as_it_was_written(state: ContextState) -> None:
    assert parse_context_state(dict(state.pairs())) == state


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {
            "decisions": st.lists(
                st.fixed_dictionaries(
                    {"item_id": st.just("a") | _JSON, "score_breakdown": _JSON, "removed": _JSON}
                )
                | _JSON,
                max_size=4,
            ),
            "layout": _JSON,
            "passes": _JSON | st.lists(_JSON, max_size=3),
            "token_allocation": _JSON,
        }
    )
)
def test_whatever_stands_in_a_stored_result_is_read_without_harm(told: Any) -> None:
    result = read_result(json.dumps(told).encode(), "sha256:0")

    assert result is not None
    result.breakdown("a"), result.note("a"), result.removed("a")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"decisions":{}}', b"[" * 100_000])
def test_what_is_no_result_is_none(data: bytes) -> None:
    assert read_result(data, "sha256:0") is None


@pytest.mark.parametrize(
    ("uri", "is_safe"),
    [
        ("https://docs.python.org/3/#x", True),
        ("http://localhost:8080/a", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("//evil.example", False),
        ("https://user:pw@host/", False),
        ("https://", False),
        ("https://a b/", False),
        ("https://[broken", False),
        ("java\nscript:alert(1)", False),
        (7, False),
        ("https://x/" + "a" * 3_000, False),
    ],
)
def test_only_plain_web_addresses_become_links(uri: object, *, is_safe: bool) -> None:
    assert bool(safe_address(uri)) is is_safe

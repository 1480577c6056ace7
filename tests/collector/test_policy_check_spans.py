"""Policy checks that spans tell: every one a row, whatever somebody sends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.derivation.rows import MOST_CHECKS, SPAN_NAME, checks_of
from hansard_collector.dialects.engine.item_views import SpanView


def view(name: str = SPAN_NAME, **attributes: Any) -> SpanView:
    told = {f"hansard.policy.{key}": value for key, value in attributes.items()}
    return SpanView(b"\x01" * 16, b"\x02" * 8, b"", name, 1, 5, 6, 0, "", told)


@pytest.mark.covers("RC-10")
def test_each_column_becomes_a_row_allows_included() -> None:
    rows = checks_of(
        view(
            effects=["allow", "deny"],
            actions=["see", "see"],
            subjects=["a.md", "b.md"],
            rule_ids=["", "r1"],
            reasons=["default", "rule"],
            obligations=["", "redact,require_receipt"],
            hash="cafe",
        )
    )

    assert [(one.subject, one.effect, one.rule_id) for one in rows] == [
        ("a.md", "allow", None),
        ("b.md", "deny", "r1"),
    ]
    assert rows[1].obligations == ["redact", "require_receipt"]
    assert rows[0].policy_hash == "cafe"


def test_a_span_of_another_name_tells_no_check() -> None:
    assert checks_of(view("policy", effects=["allow"])) == ()


def test_more_checks_than_our_sdk_writes_are_cut() -> None:
    assert len(checks_of(view(effects=["deny"] * 9_000))) == MOST_CHECKS


odd = st.one_of(
    st.none(), st.text(), st.integers(), st.lists(st.one_of(st.text(), st.integers(), st.none()))
)


@given(effects=odd, rule_ids=odd, subjects=odd, obligations=odd, hash=odd)
def test_hostile_columns_never_fail_and_never_make_a_check_without_effect(**columns: Any) -> None:
    rows = checks_of(view(**columns))

    assert all(row.effect for row in rows)

"""Budgeting: six classes in order, what is never dropped, what it would have taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.errors import RequiredOverBudget
from hansard_compiler.compile.passes.budget import CLASSES
from tests.compiler.compiling import compiled, item, reasons

_TEXT = "word " * 20  # 25 tokens, and what its frame takes
_ONE_EACH = {
    "limit": "constraint", "result": "tool_result", "rule": "policy", "memory": "memory",
    "doc": "retrieval_doc", "summary": "summary",
}  # fmt: skip
_UNCOMPRESSED = {"compression": {"enabled": False}, "detect_conflicts": False}


def _one_of_each_class() -> list[Any]:
    """Return items that cost more from class to class, so that none fits by being small."""
    return [
        item(name, kind, f"{_TEXT} {name} " + "more " * 5 * at)
        for at, (name, kind) in enumerate(_ONE_EACH.items())
    ]


def _included(result: CompileResult) -> list[str]:
    return [one.item_id for one in result.receipts if one.section]


@pytest.mark.covers("CP-27", "TS-05")
def test_classes_vanish_from_the_last_to_the_second_as_the_budget_shrinks() -> None:
    config = {**_UNCOMPRESSED, "required_kinds": []}
    sizes: list[list[str]] = []
    for budget in range(500, 20, -1):
        try:
            chosen = _included(compiled(_one_of_each_class(), budget=budget, compile_config=config))
        except RequiredOverBudget:
            break
        if not sizes or chosen != sizes[-1]:
            sizes.append(chosen)

    names = list(_ONE_EACH)
    assert sizes == [names[:count] for count in range(6, 0, -1)]


@pytest.mark.covers("CP-11", "CP-33", "TS-05")
def test_the_allocation_adds_up_by_class_and_by_section() -> None:
    items = [*_one_of_each_class(), item("asked", "user_msg", "what now?")]

    allocation = compiled(items, budget=1_000, response_reserve=700).token_allocation

    assert allocation["available"] == 300
    assert list(allocation["by_class"]) == list(CLASSES)
    assert sum(allocation["by_class"].values()) == allocation["used"] <= 300
    assert sum(allocation["by_section"].values()) == allocation["used"]
    assert allocation["free"] == 300 - allocation["used"]


@pytest.mark.covers("CP-33")
def test_the_reserve_is_not_given_out() -> None:
    items = [item("a", content=_TEXT)]

    assert _included(compiled(items, budget=40)) == ["a"]
    assert _included(compiled(items, budget=40, response_reserve=10)) == []


@pytest.mark.covers("CP-32")
def test_what_is_never_dropped_fails_the_compile_when_it_does_not_fit() -> None:
    items = [
        item("asked", "user_msg", "word " * 40),
        item("limit", "constraint", "word " * 20),
        item("doc", content="word"),
    ]

    with pytest.raises(RequiredOverBudget) as refused:
        compiled(items, budget=80, response_reserve=70)

    error = refused.value
    assert (error.available_tokens, error.token_budget, error.response_reserve) == (10, 80, 70)
    assert error.needed_tokens == sum(tokens for _, _, tokens in error.items)
    assert {(item_id, reason) for item_id, reason, _ in error.items} == {
        ("asked", "latest_user_request"), ("limit", "hard_constraint"),
    }  # fmt: skip
    assert f"{error.needed_tokens - 10} too few" in str(error)


@pytest.mark.covers("CP-61")
def test_what_is_left_out_says_how_many_tokens_and_points_it_lacked() -> None:
    items = [
        item("in", content="rounding " * 10, importance_score=0.9),
        item("out", content="rounding " * 9 + "other", importance_score=0.1),
        item("low", content="cats", importance_score=0.0, trust_score=0.0),
    ]
    config = {**_UNCOMPRESSED, "min_score": 0.5}

    result = compiled(items, budget=40, compile_config=config, task_summary="rounding")

    inside, out, low = result.receipts
    assert (inside.missed_by_tokens, inside.missed_by_score) == (None, None)
    assert out.original_tokens is not None
    assert out.reason == "over_budget"
    assert out.missed_by_tokens == out.original_tokens - (40 - inside.final_tokens)
    assert inside.score
    assert out.score
    assert out.missed_by_score == inside.score.total - out.score.total > 0
    assert low.reason == "below_floor"
    assert low.score
    assert low.missed_by_score == 500_000_000 - low.score.total


def test_with_the_tokens_it_lacked_an_item_goes_in() -> None:
    items = [item(name, content=_TEXT + name) for name in "abcd"]
    tight = compiled(items, budget=100, compile_config=_UNCOMPRESSED)
    out = next(one for one in tight.receipts if one.reason == "over_budget")
    assert out.missed_by_tokens

    enough = compiled(items, budget=100 + out.missed_by_tokens, compile_config=_UNCOMPRESSED)
    too_few = compiled(items, budget=99 + out.missed_by_tokens, compile_config=_UNCOMPRESSED)

    assert out.item_id in _included(enough)
    assert out.item_id not in _included(too_few)


def test_a_lower_class_may_use_what_a_large_item_leaves() -> None:
    items = [item("large", content=_TEXT * 20), item("small", "summary", "short")]

    result = compiled(items, budget=60, compile_config=_UNCOMPRESSED)

    assert reasons(result) == {"large": "over_budget", "small": "within_budget"}


def test_an_image_does_not_count_as_the_text_of_its_bytes() -> None:
    parts = [
        {"type": "text", "text": "word " * 20},
        {"type": "media", "media_type": "image/png", "data": "iVBORw0KGgo" * 20_000},
    ]
    shown = item("shown", "user_msg", {"role": "user", "parts": parts})

    (receipt,) = compiled([shown], budget=2_000).receipts

    assert receipt.final_tokens == 1_000 + 25 + 4


# --- stable from turn to turn -----------------------------------------------------------------


def _rivals(newcomer: float) -> list[Any]:
    return [
        item("before", content=_TEXT, importance_score=0.5),
        item("newcomer", content=_TEXT + "!", importance_score=newcomer),
    ]


def _turn(newcomer: float, *previous: str, margin: float = 0.1) -> CompileResult:
    config = {**_UNCOMPRESSED, "previous_selected": previous, "hysteresis_margin": margin}
    return compiled(_rivals(newcomer), budget=50, compile_config=config)


def test_what_was_in_stays_until_a_newcomer_is_better_by_the_margin() -> None:
    slightly, clearly = 0.7, 0.8  # by 0.08 and 0.12 points: the weight of importance is 0.4

    assert _included(_turn(slightly)) == ["newcomer"]
    assert _included(_turn(slightly, "before")) == ["before"]
    assert _included(_turn(clearly, "before")) == ["newcomer"]
    assert reasons(_turn(slightly, "before"))["before"] == "kept_stable"
    assert reasons(_turn(0.3, "before"))["before"] == "within_budget"


@given(st.lists(st.integers(450, 550), min_size=2, max_size=8))
def test_small_movements_never_swap_what_is_in(importances: list[int]) -> None:
    chosen = _included(_turn(0.4))

    for importance in importances:
        turn = _turn(importance / 1000, *chosen)
        assert _included(turn) == chosen


def test_a_long_chain_that_cannot_fit_is_not_walked_for_every_link() -> None:
    chain = [item(f"i{at}", dependencies=[f"i{at + 1}"]) for at in range(999)]

    result = compiled([*chain, item("i999", content="the end")], budget=1_000)

    first = result.receipts[0]
    assert first.reason == "over_budget"
    assert first.note == "needs more than 256 others: lacks at least this"
    assert first.missed_by_tokens is not None
    assert first.missed_by_tokens > 0
    assert _included(result)[-1] == "i999"
    assert result.token_allocation["used"] > 900


# --- properties -------------------------------------------------------------------------------

_KINDS = st.sampled_from(
    ["user_msg", "assistant_msg", "constraint", "tool_result", "policy", "memory", "file",
     "retrieval_doc", "summary", "task", "system", "code_diff"]
)  # fmt: skip


_TAGS = st.sampled_from(
    [[], [], ["blocking"], ["required"], ["pinned"], ["soft"], ["evidence"],
     ["blocking", "resolved"]]
)  # fmt: skip
_QUARTERS = st.integers(0, 4).map(lambda quarters: quarters / 4)


@st.composite
def candidates(draw: st.DrawFn) -> list[Any]:
    """Any items: some required, some dependent, some expired, some of another scope."""
    return [_candidate(draw, at) for at in range(draw(st.integers(1, 12)))]


def _candidate(draw: st.DrawFn, at: int) -> Any:
    return item(
        f"i{at}",
        draw(_KINDS),
        f"{at} " + "word " * draw(st.integers(1, 120)),
        created_at=f"2026-03-04T{draw(st.integers(0, 11)):02d}:00:00Z",
        trust_score=draw(_QUARTERS),
        importance_score=draw(_QUARTERS),
        ttl_seconds=draw(st.sampled_from([None, None, None, 60, 10**6])),
        scope=draw(st.sampled_from([{}, {}, {}, {"user": "other"}])),
        tags=draw(_TAGS),
        dependencies=[f"i{draw(st.integers(0, at - 1))}"] if at and draw(st.booleans()) else [],
    )


def _never_dropped(items: list[Any]) -> set[str]:
    here = [one for one in items if not one["scope"]]
    asked = [one for one in here if one["kind"] == "user_msg"]
    latest = max(asked, key=lambda one: (one["created_at"], int(one["id"][1:])), default=None)
    blocking = {"blocking"}
    return {
        one["id"]
        for one in here
        if one is latest
        or (one["kind"] == "constraint" and "soft" not in one["tags"])
        or (one["kind"] == "tool_result" and set(one["tags"]) == blocking)
        or (one["kind"] == "policy" and "required" in one["tags"])
        or one["kind"] == "system"
    }


_MISSED = ("over_budget", "compression_failed", "below_floor")


@pytest.mark.covers(
    "CP-28", "CP-29", "CP-30", "CP-31", "CP-53", "CP-54", "CP-61",
    "TS-18", "TS-19", "TS-20", "TS-21",
)  # fmt: skip
@given(items=candidates(), budget=st.integers(0, 900), reserve=st.integers(0, 100))
def test_what_holds_of_any_compile(items: list[Any], budget: int, reserve: int) -> None:
    never = _never_dropped(items)
    result = _compiled_or_refused(items, budget=budget + reserve, reserve=reserve)
    if isinstance(result, RequiredOverBudget):
        assert {item_id for item_id, _, _ in result.items} == never
        assert result.needed_tokens > result.available_tokens == budget
        return

    chosen = set(_included(result))
    assert never <= chosen
    assert result.token_allocation["used"] <= budget
    assert [one.item_id for one in result.receipts] == [one["id"] for one in items]
    for one in result.receipts:
        assert one.reason.meaning
        assert one.source.startswith("file docs/")
        assert (one.decision == "exclude") == (one.item_id not in chosen)
        assert (one.final_tokens > 0) == (one.item_id in chosen)
        assert (one.final_ref is not None) == (one.item_id in chosen)
        lacked = one.missed_by_score if one.reason == "below_floor" else one.missed_by_tokens
        assert ((lacked or 0) > 0) == (one.reason in _MISSED)
    context = result.context()
    assert set(context.selected_items) == chosen
    assert set(context.excluded_items) == {one["id"] for one in items} - chosen


def _compiled_or_refused(
    items: list[Any], *, budget: int, reserve: int
) -> CompileResult | RequiredOverBudget:
    try:
        return compiled(items, budget=budget, response_reserve=reserve)
    except RequiredOverBudget as refused:
        return refused


@given(items=candidates(), budget=st.integers(100, 900))
def test_what_went_in_by_rank_took_along_all_it_depends_on(items: list[Any], budget: int) -> None:
    try:
        result = compiled(items, budget=budget)
    except RequiredOverBudget:
        return

    chosen = set(_included(result))
    for item_id in chosen - set(result.state.required):
        assert set(result.state.needs.get(item_id, ())) <= chosen | _failed(result)


def _failed(result: CompileResult) -> set[str]:
    return {one.item_id for one in result.receipts if one.reason == "compression_failed"}

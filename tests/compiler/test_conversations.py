"""Random conversations under random budgets: calls, results and reasoning are never parted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.errors import RequiredOverBudget
from tests.compiler.compiling import compiled, item

_WORDS = st.integers(1, 80).map(lambda words: "word " * words)


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """User turns, answers, tool turns with one to three calls answered in any order.

    Reasoning stands in an item of its own, in the same item as the calls, or nowhere; other
    material lies between; some items expire, and the whole may arrive in any order.
    """
    made: list[Any] = []
    for turn in range(draw(st.integers(1, 5))):
        made.append(_said(draw, f"user{turn}", "user_msg", "user", [_text(draw)]))
        for step in range(draw(st.integers(0, 3))):
            made += _tool_turn(draw, f"{turn}.{step}")
            if draw(st.booleans()):
                made.append(item(f"doc{turn}.{step}", content=draw(_WORDS)))
        if draw(st.booleans()):
            made.append(_said(draw, f"reply{turn}", "assistant_msg", "assistant", [_text(draw)]))
    for minute, one in enumerate(made):
        one["created_at"] = f"2026-03-04T{minute // 60:02d}:{minute % 60:02d}:00Z"
    return draw(st.permutations(made)) if draw(st.booleans()) else made


def _tool_turn(draw: st.DrawFn, name: str) -> list[Any]:
    calls = [f"call{name}.{at}" for at in range(draw(st.integers(1, 3)))]
    parts: list[Any] = [
        {"type": "tool_call", "id": one, "name": "grep", "arguments": {"q": draw(_WORDS)}}
        for one in calls
    ]
    thought = {"type": "reasoning", "text": draw(_WORDS)}
    made = []
    thinking = draw(st.sampled_from(["apart", "inside", "none"]))
    if thinking == "apart":
        made.append(_said(draw, f"think{name}", "assistant_msg", "assistant", [thought]))
    if thinking == "inside":
        parts.insert(0, thought)
    made.append(_said(draw, f"ask{name}", "assistant_msg", "assistant", parts))
    for one in draw(st.permutations(calls)):
        answer = {"type": "tool_result", "id": one, "content": draw(_WORDS)}
        made.append(_said(draw, f"get{one}", "tool_result", "tool", [answer]))
    return made


def _said(draw: st.DrawFn, item_id: str, kind: str, role: str, parts: list[Any]) -> Any:
    return item(
        item_id,
        kind,
        {"role": role, "parts": parts},
        tags=draw(st.sampled_from([[], [], [], ["blocking"], ["pinned"]])),
        ttl_seconds=draw(st.sampled_from([None, None, None, None, 60])),
        importance_score=draw(st.integers(0, 4)) / 4,
    )


def _text(draw: st.DrawFn) -> Any:
    return {"type": "text", "text": draw(_WORDS)}


def _is_valid(messages: list[Any]) -> None:
    """Hold a request to what both providers demand of calls, results and reasoning."""
    open_calls: set[str] = set()
    made: set[str] = set()
    for message in messages:
        for part in message["parts"]:
            if part["type"] == "tool_result":
                assert part["id"] in open_calls, "a result without its call right before it"
                open_calls.remove(part["id"])
        answered_here = any(part["type"] == "tool_result" for part in message["parts"])
        assert answered_here or not open_calls, "something stands between a call and its result"
        calls = {part["id"] for part in message["parts"] if part["type"] == "tool_call"}
        assert not calls & made, "a call is made twice"
        open_calls |= calls
        made |= calls
    assert not open_calls, "a call without its result"


def _compiled_or_none(items: list[Any], budget: int) -> CompileResult | None:
    try:
        return compiled(items, budget=budget)
    except RequiredOverBudget:
        return None


@pytest.mark.covers("CP-30")
@given(items=conversations(), budget=st.integers(0, 1_500))
def test_any_cut_of_a_conversation_is_a_valid_request(items: list[Any], budget: int) -> None:
    result = _compiled_or_none(items, budget)
    if result is None:
        return

    messages = result.payload["messages"]
    _is_valid([one for one in messages if one["role"] != "user"])
    _is_valid(messages)


@given(items=conversations(), budget=st.integers(0, 1_500))
def test_reasoning_is_sent_with_what_it_led_to_or_not_at_all(items: list[Any], budget: int) -> None:
    result = _compiled_or_none(items, budget)
    if result is None:
        return

    chosen = set(result.context().selected_items)
    for one in items:
        if one["id"].startswith("think"):
            led_to = "ask" + one["id"].removeprefix("think")
            assert (one["id"] in chosen) == (led_to in chosen)
    order = [message["parts"][0]["type"] for message in result.payload["messages"]]
    for at, kind in enumerate(order):
        only = len(result.payload["messages"][at]["parts"]) == 1
        if kind == "reasoning" and only:
            assert order[at + 1] == "tool_call"


@given(items=conversations(), budget=st.integers(200, 1_500))
def test_what_was_said_stays_in_its_order(items: list[Any], budget: int) -> None:
    result = _compiled_or_none(items, budget)
    if result is None:
        return

    times = {one["id"]: one["created_at"] for one in items}
    for section in result.state.sections:
        turns = [times[one] for one in section.item_ids if one.startswith(("user", "ask", "reply"))]
        assert turns == sorted(turns)

"""A message's two hashes: one of its whole form, one of what was said."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.calls import Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart


def _result(content: Any, call_id: str | None = "c1") -> Message:
    return Message("tool", (ToolResultPart(call_id, content),))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_result({"b": 1, "a": [2]}), _result('{ "a": [2], "b": 1 }')),
        (_result("18 °C"), _result("18 °C", None)),
        (
            Message("developer", (TextPart("a b"),)),
            Message("system", (TextPart("a"), TextPart("b"))),
        ),
        (
            Message("assistant", (ReasoningPart("Hm"), TextPart("Hi"))),
            Message("assistant", (TextPart("Hi "),), name="agent"),
        ),
        (
            Message("assistant", (ToolCallPart("1", "f", {"a": 1, "b": 2}),)),
            Message("assistant", (ToolCallPart("2", "f", {"b": 2, "a": 1}),)),
        ),
    ],
    ids=["JSON result", "id", "developer and cut texts", "reasoning and name", "arguments"],
)
def test_what_is_said_is_recognised_whatever_the_form(one: Message, other: Message) -> None:
    assert one.match_hash == other.match_hash
    assert one.hash != other.hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_result('{"a": 1}'), _result('{"a": 2}')),
        (_result('{"a": 1'), _result('{"a": 2')),
        (Message("user", (TextPart("Hi"),)), Message("assistant", (TextPart("Hi"),))),
        (
            Message("assistant", (ToolCallPart("1", "f", {}),)),
            Message("assistant", (ToolCallPart("1", "g", {}),)),
        ),
    ],
    ids=["JSON result", "cut JSON", "role", "tool"],
)
def test_what_differs_has_another_hash(one: Message, other: Message) -> None:
    assert one.match_hash != other.match_hash


def test_a_result_nested_deeper_than_the_parser_goes_has_a_hash() -> None:
    assert len(_result("[" * 100_000).match_hash) == 32

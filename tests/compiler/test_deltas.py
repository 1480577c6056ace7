"""The pieces of a streamed answer, in one form for every provider."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from hansard_compiler.providers.registry import deltas_of
from tests.compiler.test_provider_streams import HOSTILE
from tests.instrumentation.clients.provider import STREAMS


def pieces(path: str) -> list[dict[str, Any]]:
    return [one for event in STREAMS[path] if isinstance(event, dict) for one in deltas_of(event)]


@pytest.mark.parametrize("path", sorted(STREAMS))
def test_the_texts_of_the_pieces_are_the_text_of_the_answer(path: str) -> None:
    said = [one["text"] for one in pieces(path) if one["type"] == "text"]

    assert said == ["Grü", "ße!"]


@pytest.mark.parametrize(
    ("path", "index", "call_id"),
    [("/v1/chat/completions", 0, "call_1"), ("/v1/messages", 1, "toolu_1")],
)
def test_a_tool_call_comes_with_its_id_and_name_first_and_its_arguments_in_stretches(
    path: str, index: int, call_id: str
) -> None:
    first, *rest = [one for one in pieces(path) if one["type"] == "tool_call"]

    assert (first["index"], first["call_id"], first["name"]) == (index, call_id, "get")
    assert "".join(one["arguments"] for one in (first, *rest)) == '{"k":1}'
    assert {(one["index"], one["call_id"], one["name"]) for one in rest} <= {(index, None, None)}


def test_calls_reasoning_and_refusals_of_the_responses_api_are_told_as_those_of_others() -> None:
    item = {"type": "function_call", "call_id": "call_1", "name": "get"}
    events = [
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        {"type": "response.output_item.added", "output_index": 2, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
        {"type": "response.refusal.delta", "delta": "No."},
    ]

    assert [one for event in events for one in deltas_of(event)] == [
        {"type": "reasoning", "text": "Hm."},
        {"type": "tool_call", "index": 2, "call_id": "call_1", "name": "get", "arguments": ""},
        {"type": "tool_call", "index": 2, "call_id": None, "name": None, "arguments": "{}"},
        {"type": "refusal", "text": "No."},
    ]


@given(HOSTILE)
def test_no_event_can_make_reading_it_raise(found: Any) -> None:
    for event in (found, {"choices": found}, {"type": "content_block_delta", "delta": found}):
        if isinstance(event, dict):
            assert all(one["type"] for one in deltas_of(event))

"""Putting streams together: what stands in them comes from a network and may be anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.providers.formats import anthropic_messages, openai_chat, openai_responses
from hansard_compiler.providers.formats.fields import Body
from hansard_compiler.providers.formats.sse import Streamed

Assemble = Callable[[Iterable[Body]], Streamed]

ASSEMBLERS: list[Assemble] = [
    anthropic_messages.assemble,
    openai_chat.assemble,
    openai_responses.assemble,
]
KEYS = st.sampled_from(
    ["type", "message", "delta", "index", "content_block", "choices", "tool_calls", "function",
     "finish_reason", "response", "output_index", "item", "error", "usage", "citation", "text"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "text_delta",
     "message_stop", "citations_delta", "input_json_delta", "error", "response.completed",
     "response.output_item.done", "response.output_text.delta", "stop"]
)  # fmt: skip
HOSTILE = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(KEYS, HOSTILE, max_size=6), max_size=8))
def test_no_stream_can_make_putting_it_together_raise(events: list[Any]) -> None:
    for assemble in ASSEMBLERS:
        found = assemble(events)
        assert found.whole is None or (found.is_finished and found.error is None)


def test_signatures_and_citations_are_put_together_for_going_on() -> None:
    first = {"type": "thinking", "thinking": "", "signature": ""}
    deltas: list[dict[str, Any]] = [
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "thinking_delta", "thinking": "."},
        {"type": "signature_delta", "signature": "c2ln"},
        {"type": "citations_delta", "citation": {"url": "a"}},
        {"type": "citations_delta", "citation": {"url": "b"}},
    ]

    found = anthropic_messages.assemble(
        [
            {"type": "message_start", "message": {"id": "m1", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": first},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "message_stop"},
        ]
    )

    assert found.whole is not None
    assert found.whole["content"] == [
        {
            "type": "thinking",
            "thinking": "Hm.",
            "signature": "c2ln",
            "citations": [{"url": "a"}, {"url": "b"}],
        }
    ]


@pytest.mark.parametrize("assemble", ASSEMBLERS)
def test_a_stream_without_its_end_or_with_an_error_is_no_whole_answer(assemble: Assemble) -> None:
    assert assemble([]).whole is None
    assert assemble([{"type": "message_stop"}]).whole is None
    assert assemble([{"type": "error", "error": {"type": "overloaded"}}]).whole is None

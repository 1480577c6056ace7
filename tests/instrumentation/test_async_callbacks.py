"""Functions that a program hands in and that are called without await: an async one is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hansard
from hansard.errors import AsyncCallback
from hansard.transcripts import LocalTranscripts, transcript

ITEM = {
    "id": "u", "kind": "user_msg", "content": "What was decided?",
    "source_ref": {"source_type": "user", "uri": "chat"},
}  # fmt: skip


async def later(*given: Any, **named: Any) -> Any:
    raise AssertionError("never awaited")


class Counter:
    name = "later"

    async def count(self, text: str) -> int:
        raise AssertionError("never awaited")


class Later:
    async def __call__(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("never awaited")


@pytest.mark.parametrize(
    "option",
    [{"relevance": later}, {"relevance": Later()}, {"compressor": later}, {"counter": Counter()}],
)
def test_a_compile_takes_plain_functions(option: Any) -> None:
    with pytest.raises(AsyncCallback, match=f"{next(iter(option))}= is called without await"):
        hansard.compile_step(
            None, None, [ITEM], provider="openai", model="gpt-5", token_budget=900, **option
        )


def test_a_loop_of_a_transcript_that_is_async_is_awaited() -> None:
    talk = transcript("talk", backend=LocalTranscripts())

    with pytest.raises(AsyncCallback, match="arun"):
        talk.run("go on", later)

    assert talk.messages() == []


def test_events_of_a_stream_go_to_a_plain_function() -> None:
    compiled = hansard.compile_step(
        None, None, [ITEM], provider="openai", model="gpt-5", token_budget=900
    )

    with pytest.raises(AsyncCallback, match="on_event="):
        hansard.call_model(compiled, stream=True, on_event=later)

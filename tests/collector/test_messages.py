"""The cache of messages: the same object again, and never more bytes than allowed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.normalisation import normalise
from hansard_compiler.calls import Message
from tests.collector.dialects.maker import span


def _texts(count: int) -> list[str]:
    return [f"message {at} " + "x" * 500 for at in range(count)]


def _openinference(texts: list[str]) -> dict[str, object]:
    said = {f"llm.input_messages.{at}.message.content": text for at, text in enumerate(texts)}
    return {"openinference.span.kind": "LLM", **said}


def _traceloop(texts: list[str]) -> dict[str, object]:
    said = {f"gen_ai.prompt.{at}.content": text for at, text in enumerate(texts)}
    return {"llm.request.type": "chat", **said}


@pytest.mark.parametrize("attributes", [_openinference, _traceloop])
def test_a_flat_message_sent_again_is_the_same_object(attributes: object) -> None:
    cache = MessageCache()
    made = attributes(_texts(20))  # type: ignore[operator]  # one of the two makers above

    first, second = (normalise(span(made), cache).call for _ in range(2))

    assert first is not None
    assert second is not None
    assert all(a is b for a, b in zip(first.input, second.input, strict=True))


def test_an_element_sent_again_is_the_same_object() -> None:
    cache = MessageCache()
    elements = [json.dumps({"role": "user", "content": text}) for text in _texts(20)]
    view = span(
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": f"[{','.join(elements)}]"},
        elements={"gen_ai.input.messages": elements},
    )

    first, second = (normalise(view, cache).call for _ in range(2))

    assert first is not None
    assert second is not None
    assert len(first.input) == 20
    assert all(a is b for a, b in zip(first.input, second.input, strict=True))


def test_the_cache_forgets_what_was_not_asked_for_and_keeps_what_was() -> None:
    cache = MessageCache(max_bytes=100_000)
    wanted = "wanted" * 10

    def build(source: str) -> tuple[Message, ...]:
        return (Message(source[:5], ()),)

    kept = cache.built("user", wanted, build)
    for text in _texts(1000):
        cache.built("user", text, build)
        assert cache.built("user", wanted, build) is kept

    assert len(cache) < 100


def test_a_text_larger_than_the_cache_is_built_and_not_kept() -> None:
    cache = MessageCache(max_bytes=10_000)

    assert cache.built("user", "x" * 100_000, len) == 100_000
    assert len(cache) == 0


def test_two_kinds_of_reading_one_text_do_not_mix() -> None:
    cache = MessageCache()

    assert cache.built("length", "12", len) == 2
    assert cache.built("number", "12", int) == 12


@given(st.lists(st.text(max_size=30), max_size=60))
def test_a_small_cache_answers_like_a_large_one(texts: list[str]) -> None:
    small, large = MessageCache(max_bytes=5_000), MessageCache()

    for text in texts:
        assert small.built("k", text, str.upper) == large.built("k", text, str.upper)

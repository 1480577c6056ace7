"""Content of any size, depth and encoding is read or kept as the text it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.dialects.engine import values
from hansard_compiler.calls import Message, OtherPart, TextPart
from tests.collector.dialects.maker import call_of, read

_CHAT = {"gen_ai.operation.name": "chat"}


@pytest.mark.parametrize("levels", [150, 1_000, 100_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"role":', "}"), ('[{"parts":', "}]")]
)
@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.definitions",
        "llm.invocation_parameters",
        "langfuse.observation.input",
        "mlflow.spanInputs",
        "metadata",
    ],
)
def test_deep_nesting_never_fails(key: str, opening: str, closing: str, levels: int) -> None:
    middle = "1" if opening.endswith(":") else ""
    sent = opening * levels + middle + closing * levels

    shown = read({"openinference.span.kind": "LLM", key: sent})

    assert shown.call is not None
    assert all(len(message.hash) == 32 for message in (*shown.call.input, *shown.call.output))


@pytest.mark.parametrize(
    "sent",
    ["{", '{"a": ', "[1, 2", '"open', "{'a': 1}", "<xml/>", "plain", "", "[]x"],
)
def test_what_is_not_json_stays_the_text_it_is(sent: str) -> None:
    assert values.opened(sent) == sent


def test_numbers_that_strict_json_refuses_are_read() -> None:
    assert values.opened('{"a": Infinity, "b": [1]}') == {"a": float("inf"), "b": [1]}


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    call = call_of({**_CHAT, "gen_ai.input.messages": '[{"role": "user", "content": "a\\ud800b"}]'})

    assert call.input == (Message("user", (TextPart("a\ufffdb"),)),)
    assert call.input[0].text.encode("utf-8")


def test_plain_text_where_messages_belong_is_what_was_said() -> None:
    call = call_of({**_CHAT, "gen_ai.input.messages": "Hi", "gen_ai.output.messages": "Hello"})

    assert call.input == (Message("user", (TextPart("Hi"),)),)
    assert call.output == (Message("assistant", (TextPart("Hello"),)),)


def test_a_block_that_nobody_knows_is_kept_whole() -> None:
    block = {"type": "hologram", "frames": [1, 2]}

    call = call_of({**_CHAT, "gen_ai.output.messages": [{"role": "assistant", "content": [block]}]})

    assert call.output == (Message("assistant", (OtherPart(block),)),)


def test_withheld_content_is_not_content() -> None:
    shown = read({**_CHAT, "gen_ai.input.messages": "‹withheld:812›", "session.id": "‹withheld:3›"})

    assert shown.call is not None
    assert (shown.call.input, shown.conversation_id) == ((), None)


def test_a_redacted_secret_inside_a_text_is_part_of_it() -> None:
    said = "key ‹redacted:openai:ab12›"

    call = call_of({**_CHAT, "gen_ai.input.messages": [{"role": "user", "content": said}]})

    assert call.input[0].text == said


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  [1]", [1]),
        ('"quoted"', "quoted"),
        ("5", "5"),
        ("true", "true"),
        (5, 5),
        (None, None),
    ],
)
def test_only_objects_arrays_and_quoted_texts_are_opened(value: Any, expected: Any) -> None:
    assert values.opened(value) == expected


def test_an_array_of_a_thousand_messages_is_not_taken_for_deep_nesting() -> None:
    sent = [{"role": "user", "content": [{"type": "text", "text": str(at)}]} for at in range(1000)]

    assert len(call_of({**_CHAT, "gen_ai.input.messages": json.dumps(sent)}).input) == 1000

"""Parts of messages that only some APIs have: sounds, tools of OpenAI's own, Bedrock's blocks."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_collector.dialects.content.chat import messages_of
from hansard_compiler.calls import (
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def _parts(value: Any) -> tuple[Part, ...]:
    [said] = messages_of(value, "user")
    return said.parts


def test_a_spoken_answer_is_its_transcript_and_its_sound() -> None:
    audio = {"id": "audio_1", "data": "UklG", "transcript": "Hello there."}

    parts = _parts({"role": "assistant", "content": None, "audio": audio})

    assert parts == (TextPart("Hello there."), MediaPart("audio", data="UklG"))


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "tool_plan"])
def test_thoughts_beside_the_content_are_reasoning(key: str) -> None:
    parts = _parts({"role": "assistant", "content": "18 °C", key: "I look it up."})

    assert parts == (ReasoningPart("I look it up."), TextPart("18 °C"))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}},
            Message("assistant", (ToolCallPart("c1", "local_shell", {"command": ["ls"]}),)),
        ),
        (
            {"type": "local_shell_call_output", "id": "o1", "call_id": "c1", "output": "a.txt"},
            Message("tool", (ToolResultPart("c1", "a.txt"),)),
        ),
        (
            {"type": "web_search_call", "id": "ws_1"},
            Message("assistant", (OtherPart({"type": "web_search_call", "id": "ws_1"}),)),
        ),
    ],
    ids=["a call", "its output", "a tool that the server runs"],
)
def test_tools_of_openais_own_are_said_by_the_model(item: dict[str, Any], said: Message) -> None:
    assert messages_of([item], "user") == (said,)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"image": {"format": "png", "source": {"bytes": "aGk="}}}, MediaPart("png", data="aGk=")),
        (
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://x"}}}},
            MediaPart("mp4", uri="s3://x"),
        ),
        ({"guardContent": {"text": {"text": "Be nice."}}}, TextPart("Be nice.")),
        ({"citationsContent": {"content": [{"text": "As told."}]}}, TextPart("As told.")),
        ({"citationsContent": {}}, OtherPart({"citationsContent": {}})),
        ({"guardContent": {"image": {}}}, OtherPart({"guardContent": {"image": {}}})),
    ],
)
def test_blocks_of_bedrock_tell_their_kind_of_file_and_their_text(
    block: dict[str, Any], part: Part
) -> None:
    assert _parts({"role": "user", "content": [block]}) == (part,)


def test_data_with_its_address_in_front_is_an_address() -> None:
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}

    [part] = _parts({"role": "user", "content": [{"type": "file", "file": file}]})

    assert part == MediaPart(None, uri="data:application/pdf;base64,JVBE")

"""The model that answers from a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hansard_compiler.calls import ReasoningPart, TextPart, ToolCallPart
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import ScriptError, read_script
from hansard_compiler.providers.transport.failures import AnswerTruncated, BadRequest, RateLimited
from tests.compiler.render_inputs import PLAIN, TOOL, result, said, with_messages

WEATHER: list[dict[str, Any]] = [
    {
        "when": {"last_user_contains": "weather", "has_tool": "get_weather", "answers_so_far": 0},
        "think": "I should look.",
        "say": "Let me look.",
        "call": [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
    },
    {"when": {"last_result_of": "get_weather", "last_result_contains": "RAIN"}, "say": "It rains."},
]


def model(*answers: dict[str, Any], **more: Any) -> Adapter:
    script = {"hansard_script": 1, "answers": list(answers), **more}
    settings = AdapterSettings(script=read_script(json.dumps(script).encode()))
    return adapter_for("scripted", settings)


def test_a_script_plays_a_conversation_with_a_tool() -> None:
    scripted = model(*WEATHER)
    asked = with_messages(said("user", "What is the Weather?"), tools=(TOOL,))

    first = scripted.call(asked)
    spoken = first.call.output[0]
    call = spoken.parts[2]
    assert isinstance(call, ToolCallPart)
    second = scripted.call(
        replace(asked, messages=(*asked.messages, spoken, result(call.id or "", {"a": "rain"})))
    )

    assert spoken.parts[:2] == (ReasoningPart("I should look."), TextPart("Let me look."))
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    assert first.call.finish_reason == "tool_call"
    assert second.call.output[0].text == "It rains."
    assert second.call.finish_reason == "stop"


def test_the_same_request_gets_the_same_bytes_and_another_one_other_ids() -> None:
    one, same, other = (
        model(*WEATHER, otherwise={"say": "Hello there."}).call(given)
        for given in (PLAIN, PLAIN, replace(PLAIN, system=("Be rude.",)))
    )

    assert one.exchange == same.exchange
    assert one.call.response_id != other.call.response_id


def test_a_streamed_answer_comes_in_pieces_and_means_the_same() -> None:
    scripted, pieces = model(otherwise={"say": "One two three."}), list[str]()

    whole = scripted.call(PLAIN)
    streamed = scripted.call(
        replace(PLAIN, stream=True), on_event=lambda event: pieces.append(event.get("text", ""))
    )

    assert streamed.call.output == whole.call.output
    assert "".join(pieces) == "One two three."
    assert len(pieces) == 4


def test_tokens_are_counted_unless_the_script_says_them() -> None:
    counted = model(otherwise={"say": "Hello."}).call(PLAIN).call.tokens
    told = model(otherwise={"say": "Hello.", "tokens": {"input": 7, "cache_read": 5}}).call(PLAIN)

    assert counted.input is not None
    assert counted.input > 5
    assert (told.call.tokens.input, told.call.tokens.cache_read) == (7, 5)
    assert counted.cache_read is None


def test_a_script_can_fail_and_fall_short() -> None:
    limited = model(otherwise={"fail": "rate_limited", "note": "slow down"})
    cut = model(otherwise={"say": "One", "finish": "length"})

    with pytest.raises(RateLimited, match="slow down") as failed:
        limited.call(PLAIN)
    assert failed.value.exchange is not None
    assert isinstance(cut.call(PLAIN).shortfall, AnswerTruncated)
    with pytest.raises(BadRequest):
        model().call(PLAIN)


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({"last_user_is": "Hello"}, True),
        ({"last_user_is": "hello"}, False),
        ({"any_contains": "be kind"}, True),
        ({"any_contains": "be rude"}, False),
        ({"model": "model-1"}, True),
        ({"model": "model-2"}, False),
        ({"answers_so_far": 0}, True),
        ({"last_result_of": "get_weather"}, False),
        ({"last_result_contains": "x"}, False),
        ({"has_tool": "get_weather"}, False),
        ({}, True),
    ],
)
def test_a_line_is_said_when_all_its_conditions_hold(when: dict[str, Any], holds: bool) -> None:
    scripted = model({"when": when, "say": "yes"}, otherwise={"say": "no"})

    assert scripted.call(PLAIN).call.output[0].text == ("yes" if holds else "no")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (b"{", "not JSON"),
        (b"[]", "begins with"),
        (b'{"hansard_script": 2}', "begins with"),
        (b'{"hansard_script": 1, "answers": {}}', "answers: expected a list"),
        (b'{"hansard_script": 1, "answers": [1]}', r"answers\[0\]: expected a mapping"),
        (b'{"hansard_script": 1, "answers": [{"sya": "x"}]}', r"answers\[0\]: expected"),
        (b'{"hansard_script": 1, "answers": [{"when": {"x": 1}}]}', r"answers\[0\].when"),
        (b'{"hansard_script": 1, "answers": [{"call": [{}]}]}', r"answers\[0\].call"),
        (b'{"hansard_script": 1, "otherwise": {"fail": "x"}}', "otherwise.fail: expected one of"),
    ],
)
def test_a_script_with_a_mistake_is_refused_with_its_place(script: bytes, told: str) -> None:
    with pytest.raises(ScriptError, match=told) as refused:
        read_script(script)

    assert isinstance(refused.value, ConfigError)

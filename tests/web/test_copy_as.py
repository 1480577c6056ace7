"""Copy as curl, Python and JSON: always runnable, never with a key, whatever was recorded."""

from __future__ import annotations

import ast
import json
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hansard_compiler.calls import (
    Call,
    MediaPart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_web.steps.copy_as import FORMS, copy_as, request_of

HOSTILE = [
    "'; rm -rf / #",
    "$(touch /tmp/owned) `id` ${HOME} !! \\",
    "HANSARD_REQUEST\nHANSARD_REQUEST\n",
    '"""\'\'\'\\"',
    "a\u202eb\u2066c \u2028 line \x00 \x85 \ud800",
    "</script><script>alert(1)</script>",
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3)
    ),
    max_leaves=8,
)
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=40)
PARTS = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(ToolCallPart, st.none() | TEXTS, TEXTS, JSON_VALUES),
    st.builds(ToolResultPart, st.none() | TEXTS, JSON_VALUES),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(PARTS, max_size=3).map(tuple),
    st.none() | TEXTS,
)
CALLS = st.builds(
    Call,
    provider=st.sampled_from([None, "openai", "anthropic"]) | TEXTS,
    request_model=st.none() | TEXTS,
    input=st.lists(MESSAGES, max_size=4).map(tuple),
    parameters=st.dictionaries(
        st.sampled_from(["temperature", "max_tokens", "stop", "api_key", "seed"]), JSON_VALUES
    ),
)


def body_of_curl(script: str) -> Any:
    """Run a script in a real shell where `curl` only shows what it was given to send."""
    result = subprocess.run(
        ["bash", "-euc", "curl() { cat; }\nOPENAI_API_KEY=x ANTHROPIC_API_KEY=x\n" + script],
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
        timeout=20,
    )
    assert result.stderr == b""
    return json.loads(result.stdout)


def request_of_python(source: str) -> Any:
    """Return the request that a script would send: the literal it assigns."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "request":  # type: ignore[attr-defined]
            return ast.literal_eval(statement.value)
    raise AssertionError("the script assigns no request")


HOSTILE_PROVIDER = Call(provider="evil\n\x00\r$(id)\x1b[2J\u202e \ud800", request_model="m")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@example(HOSTILE_PROVIDER)
@given(CALLS)
def test_the_shell_sends_exactly_the_request_whatever_was_recorded(call: Call) -> None:
    sent = body_of_curl(copy_as(call, "curl"))

    assert sent == json.loads(copy_as_json(request_of(call).body))


@example(HOSTILE_PROVIDER)
@given(CALLS)
def test_python_compiles_and_holds_exactly_the_request(call: Call) -> None:
    source = copy_as(call, "python")

    assert json.loads(copy_as_json(request_of_python(source))) == json.loads(
        copy_as_json(request_of(call).body)
    )


@given(CALLS, st.sampled_from(FORMS))
def test_no_form_holds_a_character_that_changes_how_lines_read(call: Call, form: Any) -> None:
    text = copy_as(call, form, notes=[HOSTILE[4]])

    text.encode("utf-8")
    assert not set(text) & set("\u202e\u2066\u2028\x85\u200b")


def copy_as_json(value: Any) -> str:
    """JSON with what JSON cannot say as null, as every form has it."""

    def finite(one: Any) -> Any:
        if (isinstance(one, float) and one != one) or one in (float("inf"), float("-inf")):
            return None
        if isinstance(one, dict):
            return {str(key): finite(child) for key, child in one.items()}
        if isinstance(one, list | tuple):
            return [finite(child) for child in one]
        return one

    return json.dumps(finite(value))


def test_a_tool_loop_is_a_valid_chat_request() -> None:
    call = Call(
        provider="openai",
        request_model="gpt-4o-mini",
        input=(
            Message("system", (TextPart("Be brief."),)),
            Message("user", (TextPart("Weather?"),)),
            Message("assistant", (ToolCallPart("c1", "weather", {"city": "Bern"}),)),
            Message("tool", (ToolResultPart("c1", "12 °C"),)),
        ),
        tools=({"type": "function", "name": "weather", "parameters": {"type": "object"}},),
        parameters={"temperature": 0.2, "api_key": "sk-secret", "extra_headers": {"x": "y"}},
    )

    body = request_of(call).body

    assert body == {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "12 °C"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
        ],
        "temperature": 0.2,
    }


def test_a_tool_loop_is_a_valid_anthropic_request() -> None:
    call = Call(
        provider="anthropic",
        request_model="claude-sonnet-4-5",
        input=(
            Message("system", (TextPart("Be brief."),)),
            Message("user", (TextPart("Weather?"), MediaPart("image/png", data="aGk="))),
            Message("assistant", (TextPart("Let me see."), ToolCallPart("c1", "weather", {}))),
            Message("tool", (ToolResultPart("c1", {"celsius": 12}),)),
            Message("user", (TextPart("And?"),)),
        ),
        tools=({"type": "function", "name": "weather", "description": "Now"},),
        parameters={"max_tokens": 50, "stop": ["END"]},
    )

    body = request_of(call).body

    assert body["system"] == "Be brief."
    assert (body["max_tokens"], body["stop_sequences"]) == (50, ["END"])
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]
    assert body["messages"][0]["content"][1]["source"]["media_type"] == "image/png"
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("form", FORMS)
def test_keys_are_named_and_never_written(form: Any) -> None:
    call = Call(
        provider="openai",
        request_model="m",
        input=(Message("user", (TextPart("hi"),)),),
        parameters={"api_key": "sk-verysecret", "headers": {"authorization": "Bearer z"}},
    )

    text = copy_as(call, form)

    assert "sk-verysecret" not in text
    assert "Bearer z" not in text
    if form != "json":
        assert "OPENAI_API_KEY" in text

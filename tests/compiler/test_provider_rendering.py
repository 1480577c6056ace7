"""What each provider's request looks like, field by field; nothing is sent here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from hansard_compiler.calls import Json, MediaPart, Message, OtherPart, ToolCallPart
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import (
    Boundary,
    RenderInput,
    Sampling,
    WireFormat,
    from_payload,
)
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.fields import provider_block
from hansard_compiler.providers.formats.openai_responses import (
    OpenAIResponses,
    read_compaction,
    render_compaction,
)
from hansard_compiler.providers.transport.failures import FeatureOff, NotRenderable
from tests.compiler.provider_schemas import assert_fits
from tests.compiler.render_inputs import (
    FORMATS,
    GIVEN,
    PATHS,
    PLAIN,
    TOOL,
    call,
    result,
    said,
    with_messages,
)

RESPONSES, MESSAGES, CHAT = FORMATS[:3]
PNG = "iVBORw0KGgo="


def assert_official(form: WireFormat, given: RenderInput) -> Json:
    """Render, and hold the body against the official package's types."""
    body = form.render(given)
    assert_fits(PATHS[form.provider], body)
    return body


@pytest.mark.covers("PA-03", "PA-05")
def test_a_responses_request_is_instructions_input_and_tools() -> None:
    body = assert_official(RESPONSES, GIVEN)

    assert body == {
        "model": "model-1",
        "instructions": "You are careful.\n\nHouse rule: be brief.",
        "input": [
            _user("Profile: lives in Oslo."),
            _user("What is the weather?"),
            {"type": "message", "role": "assistant", "content": "Let me look."},
            _call("call_1", '{"city":"Oslo"}'),
            _call("call_2", '{"city":"Bergen"}'),
            _output("call_1", '{"degrees":4,"rain":true}'),
            _output("call_2", "dry"),
            _user("Answer briefly."),
        ],
        "tools": [{**TOOL, "strict": False}],
        "max_output_tokens": 500,
        "prompt_cache_key": "ab" * 32,
        "store": False,
    }


def _user(text: str) -> Json:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def _call(id: str, arguments: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "get_weather", "arguments": arguments}


def _output(id: str, output: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": output}


@pytest.mark.covers("PA-03", "PA-13")
def test_a_messages_request_is_system_messages_and_tools() -> None:
    body = assert_official(MESSAGES, GIVEN)

    assert body == {
        "model": "model-1",
        "max_tokens": 500,
        "tools": [
            {
                "name": "get_weather",
                "description": "Current weather.",
                "input_schema": TOOL["parameters"],
            }
        ],
        "system": [_text("You are careful."), _text("House rule: be brief.")],
        "messages": [
            {
                "role": "user",
                "content": [
                    {**_text("Profile: lives in Oslo."), "cache_control": {"type": "ephemeral"}},
                    _text("What is the weather?"),
                ],
            },
            {
                "role": "assistant",
                "content": [
                    _text("Let me look."),
                    _use("call_1", {"city": "Oslo"}),
                    _use("call_2", {"city": "Bergen"}),
                ],
            },
            {
                "role": "user",
                "content": [
                    _result("call_1", '{"degrees":4,"rain":true}'),
                    _result("call_2", "dry"),
                    _text("Answer briefly."),
                ],
            },
        ],
    }


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _use(id: str, given: Json) -> Json:
    return {"type": "tool_use", "id": id, "name": "get_weather", "input": given}


def _result(id: str, content: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


@pytest.mark.covers("PA-03", "PA-21")
def test_a_chat_request_is_messages_with_one_system_message_in_front() -> None:
    body = assert_official(CHAT, GIVEN)

    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip
    assert body["messages"][0]["content"] == "You are careful.\n\nHouse rule: be brief."
    assert body["messages"][3]["tool_calls"][1] == {
        "id": "call_2",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"Bergen"}'},
    }
    assert body["tools"] == [
        {"type": "function", "function": {k: v for k, v in TOOL.items() if k != "type"}}
    ]
    assert body["max_tokens"] == 500


@pytest.mark.covers("PA-03")
def test_one_tool_is_rendered_for_each_provider_and_stays_neutral_itself() -> None:
    before = json.dumps(TOOL)

    rendered = [assert_official(form, GIVEN)["tools"][0] for form in FORMATS[:3]]

    assert [one.get("name") or one["function"]["name"] for one in rendered] == ["get_weather"] * 3
    assert rendered[0]["parameters"] == rendered[1]["input_schema"] == TOOL["parameters"]
    assert rendered[2]["function"]["parameters"] == TOOL["parameters"]
    assert json.dumps(TOOL) == before


@pytest.mark.parametrize("shape", ["input_schema", "function"])
def test_tools_in_a_providers_own_shape_mean_the_same(shape: str) -> None:
    plain = {key: value for key, value in TOOL.items() if key != "type"}
    given: Json = {"type": "function", "function": plain}
    if shape == "input_schema":
        given = {"name": TOOL["name"], "description": TOOL["description"]}
        given["input_schema"] = TOOL["parameters"]

    for form in FORMATS[:3]:
        assert form.render(replace(PLAIN, tools=(given,))) == form.render(
            replace(PLAIN, tools=(TOOL,))
        )


@pytest.mark.covers("PA-07")
@pytest.mark.parametrize(
    ("form", "tool"),
    [
        (RESPONSES, {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}),
        (RESPONSES, {"type": "mcp", "server_label": "s", "server_url": "https://a.example"}),
        (MESSAGES, {"type": "memory_20250818", "name": "memory"}),
        (MESSAGES, {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
        (RESPONSES, {"type": "holodeck_2031", "deck": 7}),
        (MESSAGES, {"type": "holodeck_2031", "name": "deck"}),
        (CHAT, {"type": "holodeck_2031", "deck": 7}),
    ],
)
def test_a_providers_built_in_tool_reaches_the_request_unchanged(
    form: WireFormat, tool: Json
) -> None:
    body = form.render(replace(PLAIN, tools=(TOOL, tool)))

    assert body["tools"][1] == tool


@pytest.mark.covers("PA-15")
@pytest.mark.parametrize(
    ("boundary", "path"),
    [
        (Boundary(system=2, tools=1, messages=1), ("messages", 0, "content", 0)),
        (Boundary(system=2, tools=1), ("system", 1)),
        (Boundary(system=1, tools=1), ("system", 0)),
        (Boundary(tools=1), ("tools", 0)),
        (None, None),
    ],
)
def test_the_cache_breakpoint_stands_at_the_end_of_the_stable_prefix_only(
    boundary: Boundary | None, path: tuple[Any, ...] | None
) -> None:
    body = assert_official(MESSAGES, replace(GIVEN, boundary=boundary))

    assert json.dumps(body).count("cache_control") == (1 if path else 0)
    found: Any = body
    for key in path or ():
        found = found[key]
    assert path is None or found["cache_control"] == {"type": "ephemeral"}


def test_a_breakpoint_never_stands_on_a_thinking_block() -> None:
    thinking = provider_block("anthropic", {"type": "thinking", "thinking": "a", "signature": "s"})
    given = with_messages(
        said("user", "Hi"),
        Message("assistant", (thinking,)),
        said("user", "Go on"),
        boundary=Boundary(messages=2),
    )

    body = assert_official(MESSAGES, given)

    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(body).count("cache_control") == 1


def test_a_longer_lifetime_of_the_cache_is_said_and_none_sets_no_breakpoint() -> None:
    hour = AnthropicMessages(cache_ttl="1h").render(GIVEN)
    never = AnthropicMessages(cache_ttl=None).render(GIVEN)

    assert '{"type": "ephemeral", "ttl": "1h"}' in json.dumps(hour)
    assert "cache_control" not in json.dumps(never)


@pytest.mark.parametrize(("messages", "index"), [(1, 0), (0, 0)])
def test_openai_gets_an_explicit_breakpoint_where_it_is_switched_on(
    messages: int, index: int
) -> None:
    given = replace(GIVEN, boundary=Boundary(system=2, tools=1, messages=messages))

    body = assert_official(OpenAIResponses(explicit_cache=True), given)

    assert json.dumps(body).count("prompt_cache_breakpoint") == 1
    assert body["input"][index]["content"][-1]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert ("instructions" in body) is (messages == 1)


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.provider)
def test_a_prefix_keeps_its_bytes_when_only_what_follows_it_changes(form: WireFormat) -> None:
    later = replace(GIVEN, messages=(*GIVEN.messages[:-1], said("user", "Answer at length.")))

    one, other = (request_bytes(form.render(given)).decode() for given in (GIVEN, later))

    assert one.partition("Answer briefly.")[0] == other.partition("Answer at length.")[0]


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes_in_another_process() -> None:
    script = (
        "import sys; from tests.compiler.render_inputs import FORMATS, GIVEN;"
        "from hansard_compiler.providers.adapter import request_bytes;"
        "sys.stdout.buffer.write(b''.join(request_bytes(one.render(GIVEN)) for one in FORMATS))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        env={"PYTHONHASHSEED": "77", "PYTHONPATH": "."},
    )

    assert ended.stdout == b"".join(request_bytes(form.render(GIVEN)) for form in FORMATS)


def test_a_lone_surrogate_is_escaped_and_other_text_is_not() -> None:
    assert request_bytes({"a": "Grüße"}) == '{"a":"Grüße"}'.encode()
    assert request_bytes({"a": "\ud800"}) == b'{"a":"\\ud800"}'


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(NotRenderable, match="not JSON"):
        request_bytes({"a": value})


@pytest.mark.covers("PA-10")
def test_a_conversation_the_provider_holds_is_gone_on_with_and_not_sent_again() -> None:
    given = replace(GIVEN, previous_response_id="resp_7", held_messages=3)

    body = assert_official(RESPONSES, given)

    assert (body["previous_response_id"], body["store"]) == ("resp_7", True)
    assert body["instructions"].startswith("You are careful.")
    assert [item["type"] for item in body["input"]] == [
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert RESPONSES.problems(body) == []


@pytest.mark.covers("PA-18")
def test_extended_thinking_is_absent_unless_its_flag_is_on() -> None:
    asked = replace(GIVEN, reasoning={"type": "adaptive"})

    body = assert_official(AnthropicMessages(extended_thinking=True), asked)

    assert "thinking" not in MESSAGES.render(GIVEN)
    assert body["thinking"] == {"type": "adaptive"}
    with pytest.raises(FeatureOff, match="extended_thinking=True"):
        MESSAGES.render(asked)


def test_reasoning_of_openai_comes_back_encrypted_when_nothing_is_stored() -> None:
    body = assert_official(RESPONSES, replace(GIVEN, sampling=Sampling(effort="high")))

    assert body["reasoning"] == {"effort": "high"}
    assert body["include"] == ["reasoning.encrypted_content"]


def test_controls_stand_where_each_provider_wants_them() -> None:
    schema: Json = {"type": "object", "properties": {}, "additionalProperties": False}
    asked = replace(
        GIVEN,
        sampling=Sampling(max_output_tokens=9, temperature=0.5, top_p=0.9, effort="low"),
        output_schema=schema,
        tool_choice="get_weather",
        stream=True,
        extra={"metadata": {"user_id": "u"}},
    )

    responses, messages, chat = (assert_official(form, asked) for form in FORMATS[:3])

    assert responses["text"]["format"]["schema"] == schema
    assert messages["output_config"]["format"]["schema"] == schema
    assert chat["response_format"]["json_schema"]["schema"] == schema
    assert responses["tool_choice"] == {"type": "function", "name": "get_weather"}
    assert messages["tool_choice"] == {"type": "tool", "name": "get_weather"}
    assert chat["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    assert responses["stream_options"] == {"include_obfuscation": False}
    assert chat["stream_options"] == {"include_usage": True}
    assert messages["output_config"]["effort"] == "low"
    assert all(body["temperature"] == 0.5 for body in (responses, messages, chat))
    assert all(body["metadata"] == {"user_id": "u"} for body in (responses, messages, chat))


@pytest.mark.parametrize(
    ("choice", "anthropic"), [("auto", "auto"), ("none", "none"), ("required", "any")]
)
def test_the_words_of_a_tool_choice_are_each_providers_own(choice: str, anthropic: str) -> None:
    given = replace(GIVEN, tool_choice=choice)

    assert RESPONSES.render(given)["tool_choice"] == choice
    assert CHAT.render(given)["tool_choice"] == choice
    assert MESSAGES.render(given)["tool_choice"] == {"type": anthropic}


REFUSED: list[Any] = [
    (RESPONSES, replace(GIVEN, sampling=Sampling(stop=("x",))), "stop sequences"),
    (RESPONSES, replace(GIVEN, sampling=Sampling(seed=1)), "seed"),
    (MESSAGES, replace(GIVEN, sampling=Sampling(seed=1)), "seed"),
    (MESSAGES, replace(GIVEN, previous_response_id="r"), "holds no conversation"),
    (CHAT, replace(GIVEN, previous_response_id="r"), "hold no conversation"),
    (CHAT, with_messages(Message("user", (MediaPart("a/b", uri="https://a.example"),))), "a/b"),
    *(
        (form, with_messages(Message("user", (MediaPart("image/png", payload="sha256:1"),))), "put")
        for form in FORMATS[:3]
    ),
    *(
        (form, replace(GIVEN, tools=({"type": "function"},)), "without a name")
        for form in FORMATS[:3]
    ),
]


@pytest.mark.parametrize(("form", "given", "told"), REFUSED)
def test_what_a_provider_has_no_form_for_is_refused_and_not_lost(
    form: WireFormat, given: RenderInput, told: str
) -> None:
    with pytest.raises(NotRenderable, match=told):
        form.render(given)


@pytest.mark.parametrize("form", FORMATS[:3], ids=lambda one: one.provider)
def test_media_are_sent_by_address_or_as_data(form: WireFormat) -> None:
    given = with_messages(
        Message(
            "user",
            (
                MediaPart("image/png", uri="https://a.example/a.png"),
                MediaPart("image/png", data=PNG),
                MediaPart("application/pdf", data=PNG),
                MediaPart(None, uri=f"data:image/png;base64,{PNG}"),
            ),
        )
    )

    text = json.dumps(assert_official(form, given))

    assert text.count("https://a.example/a.png") == 1
    assert text.count(PNG) == 3


def test_a_system_message_within_the_conversation_stays_in_its_place() -> None:
    given = with_messages(said("user", "Hi"), said("system", "New rule."), said("user", "Go on"))

    roles = [
        [item["role"] for item in assert_official(RESPONSES, given)["input"]],
        [item["role"] for item in assert_official(MESSAGES, given)["messages"]],
        [item["role"] for item in assert_official(CHAT, given)["messages"]],
    ]

    assert roles == [
        ["user", "developer", "user"],
        ["user", "system", "user"],
        ["user", "system", "user"],
    ]


def test_ids_and_arguments_of_other_providers_are_put_in_a_form_that_is_accepted() -> None:
    given = with_messages(
        said("user", "Hi"),
        Message("assistant", (ToolCallPart("call|1:a", "get_weather", "not json"),)),
        result("call|1:a", "x"),
    )

    body = assert_official(MESSAGES, given)

    assert body["messages"][1]["content"][0] == {
        "type": "tool_use",
        "id": "call_1_a",
        "name": "get_weather",
        "input": {"arguments": "not json"},
    }
    assert MESSAGES.problems(body) == []


def test_blank_texts_are_not_sent_to_anthropic_which_refuses_them() -> None:
    given = with_messages(said("user", "Hi"), said("assistant", "  \n"), said("user", "Hello?"))

    assert MESSAGES.render(given)["messages"] == [
        {"role": "user", "content": [_text("Hi"), _text("Hello?")]}
    ]


def test_signed_blocks_go_back_unchanged_to_their_own_provider_only() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    parts = (provider_block("anthropic", thinking), provider_block("openai", reasoning))
    given = with_messages(
        said("user", "Hi"), Message("assistant", (*parts, call("c1"))), result("c1", "x")
    )

    messages, responses = MESSAGES.render(given), RESPONSES.render(given)

    assert messages["messages"][1]["content"][0] == thinking
    assert responses["input"][1] == reasoning
    assert "encrypted_content" not in json.dumps(messages)
    assert "signature" not in json.dumps(responses)
    assert MESSAGES.notes(given) == ["message 1: a part that anthropic has no form for is not sent"]
    assert len(CHAT.notes(given)) == 2


def test_reasoning_without_a_signature_is_left_out_and_told() -> None:
    assert RESPONSES.notes(GIVEN) == [
        "message 2: reasoning without its provider's signature is not sent"
    ]
    assert "I should look." not in json.dumps(MESSAGES.render(GIVEN))


PAYLOAD: Json = {
    "system": [{"type": "text", "text": "Be kind."}],
    "tools": [TOOL],
    "messages": [
        {"role": "user", "parts": [{"type": "text", "text": "Profile"}]},
        {"role": "user", "parts": [{"type": "text", "text": "Hello"}]},
    ],
    "sections": [
        {"name": "stable_prefix", "hash": "sha256:a", "system": 1, "tools": 1, "messages": 1},
        {"name": "task_context", "hash": "sha256:b", "system": 1, "tools": 1, "messages": 1},
        {"name": "volatile_suffix", "hash": "sha256:c", "system": 1, "tools": 1, "messages": 2},
    ],
}


@pytest.mark.covers("PA-09")
def test_a_compiles_payload_becomes_an_input_with_its_hashes_and_boundary() -> None:
    given = from_payload(PAYLOAD, model="m", stream=True)

    assert given.boundary == Boundary(system=1, tools=1, messages=1)
    assert (given.stable_prefix_hash, given.volatile_suffix_hash) == ("sha256:a", "sha256:c")
    assert given.system == ("Be kind.",)
    assert [message.text for message in given.messages] == ["Profile", "Hello"]
    assert given.stream


@pytest.mark.parametrize(
    "payload",
    [
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "parts": [{"type": "text"}]}]},
        {"system": ["text"]},
        {"sections": [{}]},
    ],
)
def test_a_payload_of_another_shape_is_refused(payload: Json) -> None:
    with pytest.raises(NotRenderable, match="not in the normal form"):
        from_payload(payload, model="m")


@pytest.mark.covers("PA-11")
def test_compaction_by_openai_is_asked_for_and_its_items_are_kept_as_they_came() -> None:
    body = render_compaction(GIVEN)
    assert_fits("/v1/responses/compact", body)

    (kept,) = read_compaction({"output": [{"type": "compaction", "encrypted_content": "x"}]})

    assert RESPONSES.render(with_messages(kept))["input"] == [
        {"type": "compaction", "encrypted_content": "x"}
    ]
    assert set(body) == {"model", "input", "instructions", "prompt_cache_key"}


def test_an_unknown_part_is_told_as_left_out() -> None:
    given = with_messages(Message("user", (OtherPart({"type": "hologram"}),)))

    assert [form.notes(given) != [] for form in FORMATS[:3]] == [True, True, True]

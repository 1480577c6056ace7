"""The request after an answer: every byte of the sender's stays, answer and results come behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_compiler.calls import ToolResultPart
from hansard_compiler.providers.base import WireFormat
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.openai_chat import OpenAIChat
from hansard_compiler.providers.formats.openai_responses import OpenAIResponses
from hansard_compiler.providers.next_turn import continued
from hansard_compiler.providers.scripted import ScriptedFormat
from hansard_compiler.providers.transport.failures import NotRenderable

Json = dict[str, Any]

CHAT: Json = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
                ],
            }
        }
    ]
}
THINKING: Json = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
MESSAGES: Json = {
    "content": [THINKING, {"type": "tool_use", "id": "c1", "name": "get", "input": {"k": 1}}]
}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
RESPONSES: Json = {
    "output": [
        REASONING,
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "get",
            "arguments": "{}",
        },
    ]
}
SCRIPTED: Json = {
    "output": [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {}}],
        }
    ]
}
ASKED: Json = {"role": "user", "content": "Where is it?"}


@pytest.mark.parametrize(
    ("form", "request_body", "response", "key"),
    [
        (OpenAIChat(), {"messages": [ASKED], "logit_bias": {"5": 1}}, CHAT, "messages"),
        (
            AnthropicMessages(),
            {"messages": [ASKED], "max_tokens": 9, "metadata": {"user_id": "u"}},
            MESSAGES,
            "messages",
        ),
        (OpenAIResponses(), {"input": [ASKED], "service_tier": "flex"}, RESPONSES, "input"),
        (OpenAIResponses(), {"input": "Where is it?", "store": True}, RESPONSES, "input"),
        (
            ScriptedFormat(),
            {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Where?"}]}]},
            SCRIPTED,
            "messages",
        ),
    ],
)
def test_what_was_sent_stays_and_the_answer_and_its_results_come_behind(
    form: WireFormat, request_body: Json, response: Json, key: str
) -> None:
    body = {"model": "m", **request_body}

    results = [ToolResultPart("c1", {"at": "sea"}, "get")]
    made = json.loads(continued(form, json.dumps(body).encode(), response, results))

    before = body[key] if isinstance(body[key], list) else [{"type": "message", **ASKED}]
    assert {**made, key: None} == {**body, key: None}
    assert made[key][: len(before)] == before
    assert len(made[key]) > len(before) + 1
    assert form.problems(made) == []
    assert '"at":"sea"' in str(made[key][-1]).replace(" ", "").replace("'", '"')


@pytest.mark.parametrize(
    ("form", "body", "response", "block"),
    [
        (AnthropicMessages(), {"messages": [ASKED], "max_tokens": 9}, MESSAGES, THINKING),
        (OpenAIResponses(), {"input": [ASKED]}, RESPONSES, REASONING),
    ],
)
def test_signed_thinking_goes_back_as_it_came(
    form: WireFormat, body: Json, response: Json, block: Json
) -> None:
    sent = json.dumps({"model": "m", **body}).encode()
    made = json.loads(continued(form, sent, response, [ToolResultPart("c1", "x", "get")]))

    assert str(block) in str(made)


def test_the_bytes_of_the_request_stay_as_the_sender_wrote_them() -> None:
    sent = b'{"messages":[{"content":"gr\\u00fc\\u00df", "role":"user"}],"n":1.0,"x":1e3,"x":2}'

    made = continued(OpenAIChat(), sent, CHAT, [ToolResultPart("c1", "x", "get")])

    head, tail = sent.split(b"]")
    assert made.startswith(head)
    assert made.endswith(b"]" + tail)


def test_a_request_that_holds_no_conversation_has_no_next_one() -> None:
    with pytest.raises(NotRenderable):
        continued(OpenAIChat(), b'{"model": "m", "prompt": "Once"}', CHAT, [])

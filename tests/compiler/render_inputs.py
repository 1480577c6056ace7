"""Contexts that provider tests render: a conversation with every kind of part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hansard_compiler.calls import (
    Json,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.providers.base import Boundary, RenderInput, Sampling, WireFormat
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.openai_chat import OpenAIChat
from hansard_compiler.providers.formats.openai_responses import OpenAIResponses
from hansard_compiler.providers.scripted import ScriptedFormat

FORMATS: list[WireFormat] = [OpenAIResponses(), AnthropicMessages(), OpenAIChat(), ScriptedFormat()]
PATHS = {
    "openai": "/v1/responses",
    "anthropic": "/v1/messages",
    "openai_compatible": "/v1/chat/completions",
}

TOOL: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "Current weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def said(role: str, text: str) -> Message:
    return Message(role, (TextPart(text),))


def call(id: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(id, "get_weather", arguments)


def result(id: str, content: Any) -> Message:
    return Message("tool", (ToolResultPart(id, content),))


CONVERSATION = (
    said("user", "Profile: lives in Oslo."),
    said("user", "What is the weather?"),
    Message(
        "assistant",
        (
            ReasoningPart("I should look."),
            TextPart("Let me look."),
            call("call_1", city="Oslo"),
            call("call_2", city="Bergen"),
        ),
    ),
    result("call_1", {"rain": True, "degrees": 4}),
    result("call_2", "dry"),
    said("user", "Answer briefly."),
)
GIVEN = RenderInput(
    model="model-1",
    system=("You are careful.", "House rule: be brief."),
    messages=CONVERSATION,
    tools=(TOOL,),
    sampling=Sampling(max_output_tokens=500),
    boundary=Boundary(system=2, tools=1, messages=1),
    stable_prefix_hash="sha256:" + "ab" * 32,
    volatile_suffix_hash="sha256:" + "cd" * 32,
)
PLAIN = RenderInput(model="model-1", messages=(said("user", "Hello"),), system=("Be kind.",))


def with_messages(*messages: Message, **fields: Any) -> RenderInput:
    return replace(PLAIN, messages=messages, system=(), **fields)

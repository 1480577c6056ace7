"""Google ADK, telemetry schema 1: Gemini requests and responses as JSON; 2 is plain GenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import is_content
from hansard_compiler.calls import Json, Message

_NOT_CAPTURED = ("{}", "N/A")

SPAN_ROLES: Mapping[str, str] = {
    "span call_llm": "llm",
    "span invocation": "workflow",
    "span agent_run": "agent",
    "span execute_tool": "tool",
}


def agent_named(reading: Reading, _: str) -> str | None:
    """`agent_run [weather_agent]`"""
    _, bracket, rest = reading.view.name.partition("[")
    return rest.removesuffix("]") if bracket and rest.endswith("]") else None


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`{contents: […], config: {system_instruction, tools}}`."""
    return chat.request_messages(content(reading, key)) or None


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`{content: {role, parts}}`."""
    sent = content(reading, key)
    said = sent.get("content") if isinstance(sent, dict) else None
    return chat.response_messages(said) or None


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    sent = content(reading, key)
    config = sent.get("config") if isinstance(sent, dict) else None
    return tool_lists.tools_of(config.get("tools")) if isinstance(config, dict) else None


def content(reading: Reading, key: str) -> Any:
    """Return what was captured; `{}` and `N/A` mean that nothing was."""
    value = reading.view.attributes[key]
    return reading.opened(key) if is_content(value) and value not in _NOT_CAPTURED else None

"""Haystack: model, tokens and documents stand inside a component's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hansard_collector.dialects.content import chat
from hansard_collector.dialects.engine.normal_form import Document
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import first, mapping, opened, printed, sequence, text
from hansard_collector.dialects.gen_ai import document
from hansard_compiler.calls import Message

_SPAN_ROLES: Mapping[str, str] = {
    "haystack.pipeline.run": "workflow",
    "haystack.async_pipeline.run": "workflow",
    "haystack.chat_generator.run": "llm",
    "haystack.agent.run": "agent",
    "haystack.agent.step": "task",
    "haystack.agent.step.llm": "task",
    "haystack.agent.step.tool": "tool",
    "haystack.agent.hook": "task",
    "haystack.component.run": "chain",
}
_COMPONENT_ROLES: tuple[tuple[str, str], ...] = (
    ("Generator", "llm"),
    ("Embedder", "embedding"),
    ("Retriever", "retriever"),
    ("Ranker", "rerank"),
    ("ToolInvoker", "chain"),
    ("Agent", "agent"),
)


def role(reading: Reading, _: str) -> str | None:
    return _SPAN_ROLES.get(reading.view.name)


def role_of_component(reading: Reading, key: str) -> str | None:
    kind = text(reading.view.attributes[key]) or ""
    return next((role for suffix, role in _COMPONENT_ROLES if kind.endswith(suffix)), None)


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return _messages(chat.request_messages, reading.mapping(key)) or None


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    replies = reading.mapping(key).get("replies")
    return _messages(chat.response_messages, replies) or None


def printed_replies(sent: Any) -> tuple[Message, ...]:
    """The answers of a component's output whose messages stand in it as Python prints them."""
    replies = [printed(reply) for reply in sequence(mapping(opened(sent)).get("replies"))]
    return chat.response_messages(_plain([reply for reply in replies if isinstance(reply, dict)]))


def _messages(read: Callable[[Any], tuple[Message, ...]], sent: Any) -> tuple[Message, ...]:
    return read(_plain(sent))


def _plain(value: Any) -> Any:
    """Haystack's ChatMessage as a dict: `{role, content: [{text}, {tool_call: {…}}, …]}`."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return opened(value)
    call = value.get("tool_call")
    if isinstance(call, dict) and len(value) == 1:
        return {
            "type": "tool_call",
            "id": call.get("id"),
            "name": first(call, ("tool_name", "name")),
            "arguments": call.get("arguments"),
        }
    result = value.get("tool_call_result")
    if isinstance(result, dict) and len(value) == 1:
        origin = mapping(result.get("origin"))
        return {
            "type": "tool_call_response",
            "id": origin.get("id"),
            "name": origin.get("tool_name"),
            "response": result.get("result"),
        }
    if "tool_name" in value and "arguments" in value:  # printed, without the class's name
        return _plain({"tool_call": value})
    if "_role" in value:  # serialised by versions before 2.9, or printed
        value = {"role": value["_role"], "content": value.get("_content")}
    return {
        key: _plain(child) if key in ("messages", "content", "replies") else child
        for key, child in value.items()
    }


def documents(reading: Reading, key: str) -> tuple[Document, ...] | None:
    listed = reading.mapping(key).get("documents")
    if not isinstance(listed, list):
        return None
    return tuple(document(item) for item in listed if isinstance(item, dict)) or None


def query(reading: Reading, key: str) -> str | None:
    return text(first(reading.mapping(key), ("query", "text")))


def embedded_texts(reading: Reading, key: str) -> tuple[Message, ...] | None:
    sent = reading.mapping(key)
    texts = sent.get("text")
    listed = sent.get("documents")
    if texts is None and isinstance(listed, list):
        texts = [item.get("content") for item in listed if isinstance(item, dict)]
    return chat.messages_of(texts, "user") or None

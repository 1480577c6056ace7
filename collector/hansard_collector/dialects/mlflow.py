"""MLflow tracing: every attribute value is JSON text, so a text comes quoted once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hansard_collector.dialects import chat, tool_lists, vocabulary
from hansard_collector.dialects.reading import Reading
from hansard_collector.dialects.sources import Source
from hansard_collector.dialects.values import (
    count,
    inside,
    is_content,
    mapping,
    opened,
    real,
    sequence,
    text,
)
from hansard_compiler.calls import Json, Message

_CHUNK = "mlflow.chunk.item."

ROLES: Mapping[str, str] = {
    "llm": "llm",
    "chat_model": "llm",
    "embedding": "embedding",
    "agent": "agent",
    "chain": "chain",
    "tool": "tool",
    "retriever": "retriever",
    "parser": "chain",
    "reranker": "rerank",
    "memory": "memory",
    "workflow": "workflow",
    "task": "task",
    "guardrail": "guardrail",
    "evaluator": "evaluator",
}


def decode(reading: Reading, key: str) -> Any:
    """The value with both layers of JSON taken off; None where it says nothing."""
    value = opened(reading.opened(key))
    return value if is_content(value) else None


def texts_of(*keys: str) -> tuple[Source, ...]:
    return tuple(Source(key, _read_text) for key in keys)


def _read_text(reading: Reading, key: str) -> str | None:
    return text(decode(reading, key))


def number(key: str, name: str, read: Callable[[Any], Any] = count) -> Source:
    """A number in one of MLflow's JSON objects."""

    def find(reading: Reading, evidence: str) -> Any:
        value = decode(reading, evidence)
        return read(value.get(name)) if isinstance(value, dict) else None

    return Source(key, find, label=f"{key}{{{name}}}")


def role(reading: Reading, key: str) -> str | None:
    kind = text(decode(reading, key))
    return ROLES.get(kind.lower()) if kind else None


def provider(reading: Reading, key: str) -> str | None:
    name = text(decode(reading, key))
    return None if name is None else vocabulary.provider(name)


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return chat.request_messages(decode(reading, key)) or None


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return chat.response_messages(decode(reading, key)) or _streamed_calls(reading) or None


def _streamed_calls(reading: Reading) -> tuple[Message, ...]:
    """The tool calls of OpenAI's streams, which MLflow puts together nowhere: from its chunks."""
    calls: dict[int, dict[str, str]] = {}
    for event in reading.view.events:
        if event.name.startswith(_CHUNK):
            for delta in _deltas(event.attributes.get("mlflow.chunk.value")):
                call = calls.setdefault(count(delta.get("index")) or 0, {})
                _extend(call, delta)
    told = [{"type": "function", **call} for _, call in sorted(calls.items())]
    return chat.messages_of({"role": "assistant", "tool_calls": told}, "assistant")


def _extend(call: dict[str, str], delta: Mapping[str, Any]) -> None:
    """Add a piece to a call: its id and name come once, its arguments bit by bit."""
    function = mapping(delta.get("function"))
    for name, value in (("id", delta.get("id")), ("name", function.get("name"))):
        if (said := text(value)) is not None:
            call[name] = said
    call["arguments"] = call.get("arguments", "") + (text(function.get("arguments")) or "")


def _deltas(chunk: Any) -> Iterator[Mapping[str, Any]]:
    for choice in sequence(mapping(chunk).get("choices")):
        for delta in sequence(inside(choice, "delta", "tool_calls")):
            if isinstance(delta, dict):
                yield delta


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    return tool_lists.tools_of(decode(reading, key)) or None


def cost_lines(reading: Reading, key: str) -> Mapping[str, float] | None:
    sent = decode(reading, key)
    if not isinstance(sent, dict):
        return None
    parts = {"input": real(sent.get("input_cost")), "output": real(sent.get("output_cost"))}
    return {name: usd for name, usd in parts.items() if usd is not None} or None

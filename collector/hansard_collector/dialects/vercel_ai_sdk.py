"""Vercel AI SDK 4 to 6, and 7 with LegacyOpenTelemetry: `ai.*`. Version 7's own form is GenAI.

The outer span of an operation repeats the tokens and texts of the inner `doGenerate`/`doStream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.content import chat
from hansard_collector.dialects.content.parts import parts_of
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import count, is_content, opened, sequence, text
from hansard_compiler.calls import MediaPart, Message, Part, ReasoningPart, TextPart

_ROLES: Mapping[str, str] = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.workflowAgent.stream": "agent",
    "ai.embed": "chain",
    "ai.embedMany": "chain",
    "ai.toolCall": "tool",
    "ai.rerank": "rerank",
    "ai.transcribe": "task",
    "ai.streamTranscribe": "task",
    "ai.generateSpeech": "task",
}
_INNER_ROLES: Mapping[str, str] = {
    "doGenerate": "llm",
    "doStream": "llm",
    "doEmbed": "embedding",
    "doRerank": "rerank",
}

ANSWER_KEYS = tuple(
    f"ai.{root}.{what}"
    for root in ("response", "result")  # `ai.result` before version 4
    for what in ("text", "object", "toolCalls", "reasoning", "files")
)


def role(reading: Reading, key: str) -> str | None:
    operation = text(reading.view.attributes[key]) or ""
    return _ROLES.get(operation) or _INNER_ROLES.get(operation.rpartition(".")[2])


def streamed(reading: Reading, key: str) -> bool | None:
    kind = (text(reading.view.attributes[key]) or "").rpartition(".")[2]
    return {"doStream": True, "doGenerate": False}.get(kind)


def prompt(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`ai.prompt`: `{system, prompt, messages}`."""
    if not is_content(reading.view.attributes[key]):
        return None
    sent = reading.opened(key)
    if not isinstance(sent, dict):
        return chat.messages_of(sent, "user") or None
    found = chat.system_messages(sent.get("system")) + chat.messages_of(
        sent.get("messages"), "user"
    )
    return found + chat.messages_of(sent.get("prompt"), "user") or None


def response(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """Text ⊕ reasoning ⊕ tool calls ⊕ files, or the object, as one message."""
    prefix = key.rpartition(".")[0]
    attributes = reading.view.attributes
    parts: list[Part] = []
    reasoning = attributes.get(f"{prefix}.reasoning")
    if isinstance(reasoning, str) and is_content(reasoning):
        parts.append(ReasoningPart(reasoning))
    content = attributes.get(f"{prefix}.text")
    if not is_content(content):
        content = attributes.get(f"{prefix}.object")
    if isinstance(content, str) and is_content(content) and content.strip():
        parts.append(TextPart(content))
    for call in sequence(attributes.get(f"{prefix}.toolCalls")):
        if isinstance(call, dict):
            parts += parts_of({"type": "tool-call", **call})
    for file in sequence(attributes.get(f"{prefix}.files")):
        parts += _file(opened(file))
    return chat.one(chat.message("assistant", parts)) or None


def _file(file: Any) -> list[Part]:
    if not isinstance(file, dict):
        return []
    media_type = text(file.get("mediaType") or file.get("mimeType") or file.get("type"))
    data = text(file.get("data") or file.get("base64"))
    return [MediaPart(media_type, data=data)] if data else []


def embedded_texts(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`ai.value`, or `ai.values`: a list of texts, each quoted as JSON."""
    value = reading.opened(key)
    listed = value if isinstance(value, list) else [value]
    return tuple(m for item in listed for m in chat.messages_of(opened(item), "user")) or None


def provider_count(*names: str) -> Any:
    """A reader of a number in `ai.response.providerMetadata`, whichever provider it is under."""

    def read(reading: Reading, key: str) -> int | None:
        for fields in reading.mapping(key).values():
            if isinstance(fields, dict):
                usage = fields.get("usage")
                for source in (fields, usage if isinstance(usage, dict) else {}):
                    for name in names:
                        if (found := count(source.get(name))) is not None:
                            return found
        return None

    return read


def settings(reading: Reading, prefix: str) -> Mapping[str, Any] | None:
    """`ai.settings.*` without what version 7 puts there of the application's context."""
    sent = reading.rest(prefix)
    return {name: value for name, value in sent.items() if not name.startswith("context.")} or None


def display_name(reading: Reading, key: str) -> str | None:
    """The function's id, on the outermost span only: all inner spans repeat it."""
    if reading.role not in ("agent", "chain"):
        return None
    return text(reading.view.attributes[key])


def langfuse_prompt(reading: Reading, key: str) -> Mapping[str, Any] | None:
    sent = reading.mapping(key)
    selected = {name: sent[name] for name in ("name", "version") if is_content(sent.get(name))}
    return selected or None

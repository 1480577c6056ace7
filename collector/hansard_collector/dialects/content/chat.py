"""Messages and whole conversations, in any shape that chat APIs and frameworks write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hansard_collector.dialects.content.parts import part_of, parts_of, result_of, tool_call
from hansard_collector.dialects.engine.values import (
    first,
    is_content,
    mapping,
    opened,
    text,
    without_surrogates,
)
from hansard_collector.dialects.engine.vocabulary import message_role
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
from hansard_compiler.providers.formats import openai_chat
from hansard_store.content.json_chunks import MOST_PIECES

_NO_MESSAGES: tuple[Message, ...] = ()
_CHUNK = "chat.completion.chunk"

# Items of OpenAI's Responses API that stand in the list beside messages, and who says them.
_ITEMS: Mapping[str, str] = {
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "reasoning": "assistant",
}
# Where models leave their thoughts beside the content; Ollama's word, and Cohere's, among them.
_REASONING = ("reasoning_content", "reasoning", "thinking", "tool_plan")
# LangChain's names of its message classes, where there is no `role`.
_LANGCHAIN_TYPES = frozenset(
    {
        "human", "ai", "system", "tool", "function", "developer", "AIMessageChunk",
        "HumanMessageChunk", "SystemMessageChunk", "ToolMessageChunk",
    }
)  # fmt: skip
# Keys that tell a message, a choice or a generation from a block.
_SPEAKERS = frozenset({"role", "message", "lc", "data", "parts", "tool_calls"})
_CUT_ROLE = re.compile(r'"role"\s*:\s*"(\w+)"')
_decode_one = json.JSONDecoder().raw_decode


def message(role: str, parts: Sequence[Part], name: str | None = None) -> Message | None:
    """Return a message of the normal form, or None when it is empty.

    Only tool results make it a tool's message whatever the wire said; bare text from a tool is
    its result.
    """
    if not parts:
        return None
    role = message_role(role)
    if type(parts[0]) is TextPart and role != "tool":
        return Message(role, tuple(parts), name)
    if role == "tool":
        parts = [
            ToolResultPart(None, part.text, name) if isinstance(part, TextPart) else part
            for part in parts
        ]
    elif all(isinstance(part, ToolResultPart) for part in parts):
        role = "tool"
    return Message(role, tuple(parts), name if role != "tool" else None)


def one(message: Message | None) -> tuple[Message, ...]:
    return _NO_MESSAGES if message is None else (message,)


def messages_of(value: Any, role: str) -> tuple[Message, ...]:
    """Return the messages of one element: a message, an item, a list of them, or a text.

    `role` is who speaks where the value does not say.
    """
    if isinstance(value, dict):
        return _of_mapping(value, role)
    if isinstance(value, list):
        return tuple(found for item in value for found in messages_of(item, role))
    if isinstance(value, str):
        return one(message(role, parts_of(value)))
    return _NO_MESSAGES if value is None else one(message(role, [OtherPart(value)]))


def _of_mapping(value: Mapping[str, Any], role: str) -> tuple[Message, ...]:
    speaker = value.get("role")
    if isinstance(speaker, str) and speaker:
        return one(_spoken(value, speaker))
    if isinstance(value.get("kwargs"), dict) and "lc" in value:
        path = value.get("id")
        known = isinstance(path, list) and path and isinstance(path[-1], str)
        return one(_spoken(value["kwargs"], path[-1] if known and path else role))
    kind = value.get("type")
    if isinstance(kind, str):
        if speaker_of_kind := _ITEMS.get(kind) or _speaker_of_item(kind):
            part = part_of(value)
            return _NO_MESSAGES if part is None else one(message(speaker_of_kind, [part]))
        if kind in _LANGCHAIN_TYPES:
            inner = value.get("data")
            return one(_spoken(inner if isinstance(inner, dict) else value, kind))
    inner = value.get("message")
    if isinstance(inner, dict):  # a choice, or a generation
        return _of_mapping(inner, role)
    if any(key in value for key in ("content", "parts", "tool_calls")) and kind is None:
        return one(_spoken(value, role))
    part = part_of(value)
    return _NO_MESSAGES if part is None else one(message(role, [part]))


def _speaker_of_item(kind: str) -> str | None:
    """Of tools that OpenAI defines (`web_search_call`, `local_shell_call_output`) by the ending."""
    if kind.endswith("_call"):
        return "assistant" if kind != "tool_call" else None
    return "tool" if kind.endswith("_call_output") else None


def _spoken(value: Mapping[str, Any], role: str) -> Message | None:
    name = text(value.get("name"))
    if message_role(role) == "tool":
        found = _tool_message_parts(value, name)
        return message(role, found, name)
    parts = parts_of(value.get("parts")) + parts_of(_content(value))
    reasoning = first(value, _REASONING)
    if isinstance(reasoning, str) and is_content(reasoning):
        parts.insert(0, ReasoningPart(reasoning))
    refusal = value.get("refusal")
    if isinstance(refusal, str) and is_content(refusal):
        parts.append(TextPart(refusal))
    parts = [*(_untold_reasoning(part) for part in parts), *_spoken_aloud(value.get("audio"))]
    parts += _further_calls(value, parts)
    return message(role, _without_repeats(parts), name)


def _spoken_aloud(audio: Any) -> list[Part]:
    """A response that OpenAI's model speaks: its transcript, and the sound."""
    if not isinstance(audio, dict):
        return []
    transcript, sound = text(audio.get("transcript")), text(audio.get("data"))
    return [
        *([TextPart(transcript)] if transcript else ()),
        *([MediaPart("audio", data=sound)] if sound else ()),
    ]


def _untold_reasoning(part: Part) -> Part:
    """A text that is the JSON of a Responses item of reasoning (MLflow) is reasoning."""
    if not isinstance(part, TextPart) or part.text[:1] != "{" or '"rs_' not in part.text[:64]:
        return part
    item = opened(part.text)
    if not isinstance(item, dict) or item.get("type") != "reasoning":
        return part
    return part_of(item) or ReasoningPart("")


def _without_repeats(parts: list[Part]) -> list[Part]:
    """Leave out a text that is the JSON of a call of this message (OpenLLMetry for LangChain)."""
    ids = {part.id for part in parts if isinstance(part, ToolCallPart) and part.id}
    if not ids:
        return parts
    return [part for part in parts if not (isinstance(part, TextPart) and _calls(part.text) & ids)]


def without_repeated_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out a tool's result that the message before already has, word for word.

    The AWS SDK's instrumentor sends it as a tool's message and within the user's that carried it.
    """
    seen: set[tuple[str, str]] = set()
    found: list[Message] = []
    for one in messages:
        if one.role == "tool":
            parts = tuple(part for part in one.parts if _result_key(part) not in seen)
            seen = {key for part in one.parts if (key := _result_key(part)) is not None}
            if parts:
                found.append(one if len(parts) == len(one.parts) else Message("tool", parts))
        else:
            seen = set()
            found.append(one)
    return tuple(found)


def _result_key(part: Part) -> tuple[str, str] | None:
    if not isinstance(part, ToolResultPart) or part.id is None:
        return None
    return part.id, str(part.content)


def _calls(content: str) -> set[str]:
    if content[:1] not in ("{", "["):
        return set()
    blocks = open_blocks(content)
    found = parts_of(blocks) if not isinstance(blocks, str) else []
    return {part.id for part in found if isinstance(part, ToolCallPart) and part.id}


def _content(value: Mapping[str, Any]) -> Any:
    """A content that is JSON text of blocks (Anthropic in old OpenLLMetry, Strands) is opened."""
    content = value.get("content")
    if content is None:
        return value.get("text") if "parts" not in value else None
    return open_blocks(content)


def open_blocks(content: Any) -> Any:
    """Return the blocks that a JSON text holds; any other content, JSON or not, as it is."""
    if not isinstance(content, str) or content[:1] not in ("[", "{"):
        return content
    blocks = opened(content)
    items = blocks if isinstance(blocks, list) else [blocks]
    if items and all(isinstance(item, dict) and _is_block(item) for item in items):
        return blocks
    return content


def _is_block(value: Mapping[str, Any]) -> bool:
    return not isinstance(part_of(value), OtherPart)


def _tool_message_parts(value: Mapping[str, Any], name: str | None) -> list[Part]:
    call_id = text(first(value, ("tool_call_id", "toolCallId", "id")))
    content = _content(value) if "parts" not in value else value["parts"]
    parts = parts_of(content) if isinstance(content, list | dict) else []
    if parts and any(isinstance(part, ToolResultPart) for part in parts):
        return parts
    if content is None:
        return []
    return [ToolResultPart(call_id, result_of(content), name)]


def _further_calls(value: Mapping[str, Any], known: Iterable[Part]) -> list[Part]:
    """Calls that stand beside the content; one that a block there already has is left out."""
    extra = value.get("additional_kwargs")
    listed = first(value, ("tool_calls", "toolCalls")) or (
        extra.get("tool_calls") if isinstance(extra, dict) else None
    )
    listed = opened(listed)
    single = value.get("function_call")
    calls = listed if isinstance(listed, list) else [single] if isinstance(single, dict) else []
    ids = {part.id for part in known if isinstance(part, ToolCallPart) and part.id}
    found = (tool_call(call) for call in calls if isinstance(call, dict))
    return [part for part in found if isinstance(part, ToolCallPart) and part.id not in ids]


def request_messages(value: Any) -> tuple[Message, ...]:
    """Return the content of a whole request: its system text and its messages, of any API."""
    value = opened(value)
    if not isinstance(value, dict) or "role" in value:
        return messages_of(value, "user")
    config = value.get("config")
    system = first(value, ("system", "instructions", "system_instruction", "systemInstruction"))
    if system is None and isinstance(config, dict):
        system = first(config, ("system_instruction", "systemInstruction"))
    body = first(value, ("messages", "contents", "input", "prompt", "chat_history"))
    if body is None and system is None:
        inner = value.get("kwargs")
        return request_messages(inner) if _is_request(inner) else messages_of(value, "user")
    return system_messages(system) + messages_of(opened(body), "user")


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value for key in ("messages", "input", "prompt"))


def system_messages(value: Any) -> tuple[Message, ...]:
    """Return system instructions, a text or parts, as one message."""
    value = opened(value)
    if isinstance(value, dict):
        value = first(value, ("parts", "content")) or value
    return one(message("system", parts_of(value)))


def response_messages(value: Any) -> tuple[Message, ...]:
    """Return the content of a whole response of any API; each choice is a message."""
    value = opened(value)
    if isinstance(value, list):
        return role_messages(value, "assistant")
    if not isinstance(value, dict) or "role" in value:
        return messages_of(value, "assistant")
    body = first(
        value, ("choices", "candidates", "generations", "replies", "output", "messages", "message")
    )
    if body is None:
        return messages_of(value, "assistant")
    if isinstance(body, dict):  # Bedrock: {"output": {"message": …}}
        return response_messages(body) if "role" not in body else messages_of(body, "assistant")
    if isinstance(body, list) and "candidates" in value:
        body = [first(item, ("content", "message")) for item in body if isinstance(item, dict)]
    return role_messages(body, "assistant")


def role_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Return the messages of one role: a list of bare blocks is one message, not many."""
    if isinstance(value, list) and value and all(_is_bare(item) for item in value):
        return one(message(role, parts_of(value)))
    return messages_of(value, role)


def _is_bare(item: Any) -> bool:
    if not isinstance(item, dict) or not item.keys().isdisjoint(_SPEAKERS):
        return False
    kind = item.get("type")
    named = isinstance(kind, str) and kind in _LANGCHAIN_TYPES
    return not named and not isinstance(part_of(item), OtherPart)


def is_stream(value: Any) -> bool:
    """Whether a list holds chunks of OpenAI's chat API, as objects or as JSON text."""
    return isinstance(value, list) and bool(value) and mapping(value[0]).get("object") == _CHUNK


def streamed_messages(chunks: Iterable[Any]) -> tuple[Message, ...]:
    """Return the response that such chunks add up to; of several choices, all in one."""
    choices = openai_chat.assemble(map(mapping, chunks)).body["choices"]
    messages = [choice["message"] for choice in choices]
    content = "".join(message.get("content", "") for message in messages)
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return messages_of({"role": "assistant", "content": content, "tool_calls": calls}, "assistant")


def joined(chunks: Sequence[Message]) -> tuple[Message, ...]:
    """Return the chunks of one streamed response as one message, adjacent texts as one."""
    parts: list[Part] = []
    for part in (part for chunk in chunks for part in chunk.parts):
        if parts and isinstance(part, TextPart) and isinstance(parts[-1], TextPart):
            parts[-1] = TextPart(parts[-1].text + part.text)
        else:
            parts.append(part)
    return one(message(chunks[0].role, parts))


def cut_messages(source: str, role: str) -> tuple[Message, ...]:
    """Return the whole messages of a JSON array that was cut off, and the rest as text."""
    found: list[Message] = []
    at = 1
    while len(found) < MOST_PIECES:
        while at < len(source) and source[at] in " \t\r\n,":
            at += 1
        try:
            element, at = _decode_one(source, at)
        except (ValueError, RecursionError):
            break
        found.extend(messages_of(without_surrogates(element), role))
    rest = source[at:]
    speaker = _CUT_ROLE.search(rest)
    found.extend(one(message(speaker[1] if speaker else role, parts_of(rest))))
    return tuple(found)

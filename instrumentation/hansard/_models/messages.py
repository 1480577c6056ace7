"""Messages in the normal form, as the GenAI conventions write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard._clients.formats.call_attributes import (
    blob_part,
    call_part,
    media_part,
    reasoning_part,
    result_part,
    text_part,
)
from hansard_compiler.calls import (
    MediaPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

Plain = dict[str, Any]


def plain_messages(messages: Sequence[Message], *, finish_reason: str | None = None) -> list[Plain]:
    """Return messages as `gen_ai.input.messages` and `gen_ai.output.messages` hold them."""
    more = {} if finish_reason is None else {"finish_reason": finish_reason}
    return [
        {"role": message.role, "parts": _parts(message.parts)}
        | ({"name": message.name} if message.name else {})
        | more
        for message in messages
    ]


def instructions(texts: Sequence[str]) -> list[Plain]:
    """Return texts as `gen_ai.system_instructions` holds them."""
    return [part for text in texts for part in text_part(text)]


def definitions(tools: Sequence[Plain]) -> list[Plain]:
    """Return tools as `gen_ai.tool.definitions` holds them; a built-in one stays as it is."""
    return [tool if "type" in tool else {"type": "function", **tool} for tool in tools]


def _parts(parts: Sequence[Part]) -> list[Plain]:
    return [plain for part in parts for plain in _part(part)]


def _part(part: Part) -> list[Plain]:
    if isinstance(part, TextPart):
        return text_part(part.text)
    if isinstance(part, ReasoningPart):
        return reasoning_part(part.text)
    if isinstance(part, ToolCallPart):
        return [call_part(call_id=part.id, name=part.name, arguments=part.arguments)]
    if isinstance(part, ToolResultPart):
        return [result_part(call_id=part.id, response=part.content)]
    if isinstance(part, MediaPart):
        return [_media(part)]
    return [part.value if isinstance(part.value, dict) else {"type": "other", "value": part.value}]


def _media(part: MediaPart) -> Plain:
    modality = (part.media_type or "image/").partition("/")[0]
    if part.data is not None:
        return blob_part(modality, mime_type=part.media_type, content=part.data)
    return media_part(modality, part.uri or part.payload, mime_type=part.media_type)

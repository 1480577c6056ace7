"""Puts the chunks of a streamed chat completion together into the completion itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.calls import Json

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def join_chunks(chunks: Sequence[Mapping[str, Any]]) -> Json | None:
    """Return the completion a stream amounts to; None where no chunk said why it ended.

    Usage comes in a chunk of its own after the last choice, where it was asked for.
    """
    whole: Json = {}
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    reason = None
    for chunk in chunks:
        whole |= {key: chunk[key] for key in ("id", "created", "model") if chunk.get(key)}
        if chunk.get("usage"):
            whole["usage"] = chunk["usage"]
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                _add(message, choice.get("delta") or {}, calls)
                reason = choice.get("finish_reason") or reason
    if reason is None:
        return None
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"object": "chat.completion", **whole, "choices": [choice]}


def _add(message: Json, delta: Mapping[str, Any], calls: dict[int, Json]) -> None:
    for key in _TEXTS:
        if isinstance(delta.get(key), str):
            message[key] = (message.get(key) or "") + delta[key]
    for call in delta.get("tool_calls") or ():
        empty: Json = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        kept = calls.setdefault(call.get("index", len(calls)), empty)
        kept["id"] = call.get("id") or kept["id"]
        function = call.get("function") or {}
        kept["function"]["name"] += function.get("name") or ""
        kept["function"]["arguments"] += function.get("arguments") or ""

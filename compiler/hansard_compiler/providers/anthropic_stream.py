"""Puts the events of a streamed Messages API answer together into the answer itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.calls import Json

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def join_events(events: Sequence[Mapping[str, Any]]) -> Json | None:
    """Return the message a stream amounts to; None where `message_stop` is missing.

    Usage in `message_delta` is cumulative and replaces what `message_start` said.
    """
    message: Json | None = None
    inputs: dict[int, str] = {}
    is_ended = False
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = json.loads(json.dumps(event["message"]))
        elif message is None:
            continue
        elif kind == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            _add(message["content"][event["index"]], event["delta"], inputs, event["index"])
        elif kind == "content_block_stop" and event["index"] in inputs:
            message["content"][event["index"]]["input"] = _arguments(inputs.pop(event["index"]))
        elif kind == "message_delta":
            message.update(event.get("delta") or {})
            told = {
                key: value for key, value in (event.get("usage") or {}).items() if value is not None
            }
            message["usage"] = {**(message.get("usage") or {}), **told}
        elif kind == "message_stop":
            is_ended = True
    return message if is_ended else None


def _add(block: Json, delta: Mapping[str, Any], inputs: dict[int, str], index: int) -> None:
    kind = delta.get("type")
    if kind in _APPENDED:
        key = _APPENDED[kind]
        block[key] = (block.get(key) or "") + delta.get(key, "")
    elif kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + delta.get("partial_json", "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text

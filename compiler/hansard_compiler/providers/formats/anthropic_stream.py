"""Puts the events of a streamed Messages API answer together into the answer itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.json_access import Body, append, integer, mapping, parsed
from hansard_compiler.providers.formats.streamed import Streamed

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_PIECES = "partial_json"


def assemble(events: Iterable[Body]) -> Streamed:
    """Add up the events of a streamed message.

    Usage in `message_delta` is cumulative and replaces what `message_start` said.
    """
    body: Json = {}
    blocks: dict[int, Json] = {}
    error: Body | None = None
    is_finished = False
    for event in events:
        match event.get("type"):
            case "message_start":
                body |= mapping(event.get("message"))
            case "content_block_start":
                blocks[_index(event)] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                _add(blocks.setdefault(_index(event), {}), mapping(event.get("delta")))
            case "message_delta":
                body |= _told(event.get("delta"))
                body["usage"] = {**mapping(body.get("usage")), **_told(event.get("usage"))}
            case "message_stop":
                is_finished = bool(body)
            case "error":
                error = mapping(event.get("error"))
    content = [_closed(blocks[index]) for index in sorted(blocks)]
    return Streamed({**body, "content": content}, is_finished, error)


def _index(event: Body) -> int:
    return integer(event.get("index")) or 0


def _told(value: object) -> Json:
    return {key: one for key, one in mapping(value).items() if one is not None}


def _add(block: Json, delta: Body) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        append(block, _PIECES, delta.get(_PIECES))
    elif kind == "citations_delta":
        before: Any = block.get("citations")
        kept = before if isinstance(before, list) else []
        block["citations"] = [*kept, delta.get("citation")]
    elif isinstance(kind, str) and kind in _APPENDED:
        append(block, _APPENDED[kind], delta.get(_APPENDED[kind]))


def _closed(block: Json) -> Json:
    """Put the pieces of a tool's input together; of a cut-off one the text stays."""
    pieces = block.pop(_PIECES, None)
    if pieces:
        opened = parsed(pieces)
        block["input"] = pieces if opened is None else opened
    return block

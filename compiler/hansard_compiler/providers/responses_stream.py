"""Puts the events of a streamed Responses API answer together into the response itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.providers.loose import Body, append, integer, mapping
from hansard_compiler.providers.streamed import Streamed

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def assemble(events: Iterable[Body]) -> Streamed:
    """Return the response that the last event holds, or what had come of it until then."""
    body: Json = {}
    items: dict[int, Any] = {}
    said: dict[int, Json] = {}
    error: Body | None = None
    for event in events:
        kind = event.get("type")
        if isinstance(kind, str) and kind in _LAST:
            found = dict(mapping(event.get("response")))
            return Streamed(found, bool(found), error)
        index = integer(event.get("output_index")) or 0
        if kind == "error":
            told = mapping(event.get("error"))
            error = told or {**event, "type": event.get("code")}
        elif kind == "response.output_item.done":
            items[index] = event.get("item")
        elif kind == "response.output_text.delta":
            append(said.setdefault(index, {}), "text", event.get("delta"))
        else:
            body |= mapping(event.get("response"))
    return Streamed({**body, "output": _so_far(items, said)}, False, error)


def _so_far(items: dict[int, Any], said: dict[int, Json]) -> list[Any]:
    """Whole items, and the text of those that were cut off."""
    cut = {
        index: {"type": "message", "role": "assistant", "content": pieces.get("text", "")}
        for index, pieces in said.items()
        if index not in items
    }
    every = {**items, **cut}
    return [every[index] for index in sorted(every)]

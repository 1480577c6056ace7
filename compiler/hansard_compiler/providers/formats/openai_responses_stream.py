"""Puts the events of a streamed Responses API answer together into the response itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.json_access import (
    Body,
    append,
    integer,
    mapping,
    mappings,
    text,
    within,
)
from hansard_compiler.providers.formats.streamed import Streamed

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


# Why a response of OpenAI's Responses API ended; the API has a status, and no such field.

# Calls that the caller is to answer; those of the provider's own tools are part of the answer.
_CALLS = frozenset(
    {
        "apply_patch_call", "computer_call", "custom_tool_call", "function_call",
        "local_shell_call", "shell_call",
    }
)  # fmt: skip


def finish_reason_of(response: Mapping[str, Any]) -> str | None:
    """Return the reason as OpenTelemetry's instrumentor of `openai` names it; None while it runs.

    A response that is complete asks for tools or stopped. Of one that is cut short the API names
    the reason, which is returned as it is.
    """
    reason = text(within(response, "incomplete_details", "reason"))
    if reason is not None:
        return reason
    match response.get("status"):
        case "completed":
            asks = any(
                text(item.get("type")) in _CALLS for item in mappings(response.get("output"))
            )
            return "tool_calls" if asks else "stop"
        case "failed":
            return "error"
    return None

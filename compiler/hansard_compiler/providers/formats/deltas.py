"""What an event of a stream adds to an answer, in one form for every provider's API.

The whole answer is read from all events together (`*_stream.py`); these pieces are for whoever
shows it while it comes. Events that add nothing, or that a later API brings, add nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.fields import Body, integer, mapping, mappings, text

_Reader: TypeAlias = Callable[[Body], Iterator[Json]]


def deltas_of(event: Body) -> list[Json]:
    """Return the pieces of one event, in order.

    `{"type", "text"}` of type text, reasoning or refusal; `{"type": "tool_call", "index",
    "call_id", "name", "arguments"}`, where `index` tells which pieces are of one call, `call_id`
    and `name` come with the first of them and `arguments` is a stretch of JSON text.
    """
    if "choices" in event:
        return list(_of_chunk(event))
    kind = event.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    return [] if read is None else list(read(event))


def _said(kind: str, words: object) -> Iterator[Json]:
    told = text(words)
    if told is not None:
        yield {"type": kind, "text": told}


def _call(index: object, *, call_id: object, name: object, arguments: object) -> Iterator[Json]:
    told = {
        "call_id": text(call_id),
        "name": text(name),
        "arguments": text(arguments) or "",
    }
    if any(told.values()):
        yield {"type": "tool_call", "index": integer(index) or 0, **told}


# ---- chat completions


def _of_chunk(event: Body) -> Iterator[Json]:
    for choice in mappings(event.get("choices")):
        delta = mapping(choice.get("delta"))
        yield from _said("reasoning", delta.get("reasoning_content") or delta.get("reasoning"))
        yield from _said("text", delta.get("content"))
        yield from _said("refusal", delta.get("refusal"))
        for call in mappings(delta.get("tool_calls")):
            told = mapping(call.get("function")) or mapping(call.get("custom"))
            yield from _call(
                call.get("index"),
                call_id=call.get("id"),
                name=told.get("name"),
                arguments=told.get("arguments") or told.get("input"),
            )


# ---- the Messages API


def _of_block_start(event: Body) -> Iterator[Json]:
    block = mapping(event.get("content_block"))
    if block.get("type") == "tool_use":
        yield from _call(
            event.get("index"), call_id=block.get("id"), name=block.get("name"), arguments=None
        )
    elif block.get("type") == "text":
        yield from _said("text", block.get("text"))


def _of_block_delta(event: Body) -> Iterator[Json]:
    delta = mapping(event.get("delta"))
    match delta.get("type"):
        case "text_delta":
            yield from _said("text", delta.get("text"))
        case "thinking_delta":
            yield from _said("reasoning", delta.get("thinking"))
        case "input_json_delta":
            yield from _call(
                event.get("index"), call_id=None, name=None, arguments=delta.get("partial_json")
            )


# ---- the Responses API


def _of_item(event: Body) -> Iterator[Json]:
    item = mapping(event.get("item"))
    if item.get("type") in ("function_call", "custom_tool_call"):
        yield from _call(
            event.get("output_index"),
            call_id=item.get("call_id"),
            name=item.get("name"),
            arguments=None,
        )


def _of_arguments(event: Body) -> Iterator[Json]:
    yield from _call(
        event.get("output_index"), call_id=None, name=None, arguments=event.get("delta")
    )


def _words(kind: str, key: str = "delta") -> _Reader:
    return lambda event: _said(kind, event.get(key))


_READERS: Final[Mapping[str, _Reader]] = {
    "content_block_start": _of_block_start,
    "content_block_delta": _of_block_delta,
    "response.output_item.added": _of_item,
    "response.function_call_arguments.delta": _of_arguments,
    "response.custom_tool_call_input.delta": _of_arguments,
    "response.output_text.delta": _words("text"),
    "response.refusal.delta": _words("refusal"),
    "response.reasoning_text.delta": _words("reasoning"),
    "response.reasoning_summary_text.delta": _words("reasoning"),
    "text": _words("text", "text"),  # the scripted model's
}

"""Puts the chunks of a streamed chat completion together into the completion itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.json_access import Body, append, integer, mapping, mappings
from hansard_compiler.providers.formats.streamed import Streamed

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def assemble(chunks: Iterable[Body]) -> Streamed:
    """Add up the chunks; it is finished when every choice said why it ended.

    Usage comes in a chunk of its own after the last choice, where it was asked for.
    """
    body: Json = {}
    choices: dict[int, Json] = {}
    error: Body | None = None
    for chunk in chunks:
        error = mapping(chunk.get("error")) or error
        body |= {key: value for key, value in chunk.items() if value is not None}
        for delta in mappings(chunk.get("choices")):
            _add(choices.setdefault(integer(delta.get("index")) or 0, {"message": {}}), delta)
    whole = [_closed(choices[index]) for index in sorted(choices)]
    is_finished = bool(whole) and all(choice.get("finish_reason") for choice in whole)
    return Streamed({**body, "object": "chat.completion", "choices": whole}, is_finished, error)


def _closed(choice: Json) -> Json:
    """Put the calls of a choice into their order."""
    calls: Mapping[int, Json] = choice["message"].get("tool_calls")
    if calls:
        choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
    return choice


def _add(choice: Json, chunk: Body) -> None:
    """Add one chunk of a choice to what came before it."""
    reason = chunk.get("finish_reason")
    if isinstance(reason, str) and reason:
        choice["finish_reason"] = reason
    append(choice, "text", chunk.get("text"))
    message, delta = choice["message"], mapping(chunk.get("delta"))
    role = delta.get("role")
    if isinstance(role, str) and role:
        message["role"] = role
    for key in _TEXTS:
        append(message, key, delta.get(key))
    for call in mappings(delta.get("tool_calls")):
        known = message.setdefault("tool_calls", {})
        index = integer(call.get("index"))
        _add_call(known.setdefault(len(known) if index is None else index, {}), call)


def _add_call(call: Json, delta: Body) -> None:
    for key in ("id", "type"):
        if isinstance(delta.get(key), str) and delta[key]:
            call[key] = delta[key]
    for kind in ("function", "custom"):
        told = mapping(delta.get(kind))
        if told:
            inner = call.setdefault(kind, {})
            for key in ("name", "arguments", "input"):
                append(inner, key, told.get(key))

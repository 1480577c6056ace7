"""The chunks of a stream of OpenAI's chat API, put together where an instrumentor did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hansard_collector.dialects.content import chat
from hansard_collector.dialects.engine.values import count, mapping, sequence, text
from hansard_compiler.calls import Message

CHUNK: Final = "chat.completion.chunk"


def is_stream(value: Any) -> bool:
    """Whether a list holds chunks, as objects or as JSON text."""
    return isinstance(value, list) and bool(value) and mapping(value[0]).get("object") == CHUNK


def put_together(chunks: Iterable[Any]) -> tuple[Message, ...]:
    """Return the answer that the chunks say bit by bit; of several choices, all in one."""
    said: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    for delta in _deltas(chunks):
        said.append(text(delta.get("content")) or "")
        for piece in map(mapping, sequence(delta.get("tool_calls"))):
            _extend(calls.setdefault(count(piece.get("index")) or 0, {}), piece)
    told = [{"type": "function", **call} for _, call in sorted(calls.items())]
    answer = {"role": "assistant", "content": "".join(said), "tool_calls": told}
    return chat.messages_of(answer, "assistant")


def _deltas(chunks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        for choice in sequence(mapping(chunk).get("choices")):
            yield mapping(mapping(choice).get("delta"))


def _extend(call: dict[str, str], piece: Mapping[str, Any]) -> None:
    """Add a piece to a call: its id and name come once, its arguments bit by bit."""
    function = mapping(piece.get("function"))
    for name, value in (("id", piece.get("id")), ("name", function.get("name"))):
        if (said := text(value)) is not None:
            call[name] = said
    call["arguments"] = call.get("arguments", "") + (text(function.get("arguments")) or "")

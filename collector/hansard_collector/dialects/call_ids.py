"""Ids of tool calls that flat messages leave out.

Some instrumentors flatten a request and lose the ids that join a result to its call, but record the
request or response whole beside it. What is not told there either follows from the order: results
answer the calls before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from hansard_collector.dialects import chat, wire
from hansard_collector.dialects.reading import Reading
from hansard_compiler.calls import Message, Part, ToolCallPart, ToolResultPart

_LARGEST_RECORD = 64 * 1024  # characters; a longer conversation is not opened for ids alone

_Joined: TypeAlias = ToolCallPart | ToolResultPart


def complete_input(reading: Reading, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages of a request with the ids that can be told."""
    if not _lacks_ids(messages):
        return messages
    ids = _recorded_ids(reading, messages, wire.REQUESTS, chat.request_messages)
    return _with_ids(messages, _of_answers(_joined(messages), ids))


def complete_output(reading: Reading, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages of an answer with the ids that can be told."""
    if not _lacks_ids(messages):
        return messages
    ids = _recorded_ids(reading, messages, wire.RESPONSES, chat.response_messages)
    return _with_ids(messages, ids)


def _lacks_ids(messages: Iterable[Message]) -> bool:
    return any(part.id is None for part in _joined(messages))


def _joined(messages: Iterable[Message]) -> list[_Joined]:
    return [
        part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]


def _recorded_ids(
    reading: Reading,
    messages: Sequence[Message],
    keys: Iterable[str],
    read: Callable[[Any], tuple[Message, ...]],
) -> list[str | None]:
    """The ids of all calls and results, also from a record that holds the same in this order."""
    told = _joined(messages)
    for key in keys:
        value = reading.view.attributes.get(key)
        if not isinstance(value, str) or len(value) > _LARGEST_RECORD:
            continue
        recorded = _joined(read(reading.opened(key)))
        if [_known_by(part) for part in recorded] == [_known_by(part) for part in told]:
            return [part.id or other.id for part, other in zip(told, recorded, strict=True)]
    return [part.id for part in told]


def _known_by(part: _Joined) -> tuple[str, str | None]:
    return ("call", part.name) if isinstance(part, ToolCallPart) else ("result", None)


def _of_answers(parts: Sequence[_Joined], ids: Sequence[str | None]) -> list[str | None]:
    """Give each result without an id that of the first call before it that waits for one."""
    found: list[str | None] = []
    waiting: list[tuple[str | None, str]] = []
    for part, told in zip(parts, ids, strict=True):
        call_id = told
        if isinstance(part, ToolCallPart):
            waiting.append((call_id, part.name))
        else:
            asked = next((call for call in waiting if _answers(part, told, call)), None)
            if asked is not None:
                waiting.remove(asked)
                call_id = told or asked[0]
        found.append(call_id)
    return found


def _answers(result: ToolResultPart, told: str | None, call: tuple[str | None, str]) -> bool:
    call_id, name = call
    return told == call_id if told else result.name in (None, name)


def _with_ids(messages: tuple[Message, ...], ids: Iterable[str | None]) -> tuple[Message, ...]:
    rest = iter(ids)

    def with_id(part: Part) -> Part:
        if not isinstance(part, ToolCallPart | ToolResultPart):
            return part
        call_id = next(rest)
        return part if part.id == call_id else replace(part, id=call_id)

    completed = [tuple(with_id(part) for part in message.parts) for message in messages]
    return tuple(
        message if parts == message.parts else Message(message.role, parts, message.name)
        for message, parts in zip(messages, completed, strict=True)
    )

"""Ids of tool calls that flat messages leave out.

Some instrumentors flatten a request and lose the ids that join a result to its call, but record the
request or response whole beside it. What is missing there too follows from the order: results
answer the calls before them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from hansard_collector.dialects import haystack
from hansard_collector.dialects.content import chat, wire
from hansard_collector.dialects.content.parts import arguments_of
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import first, opened, printed, text
from hansard_compiler.calls import Message, Part, TextPart, ToolCallPart, ToolResultPart

# Responses items have an id of their own beside the call's: some instrumentors write the wrong one.
_ITEM = "fc_"

_Joined: TypeAlias = ToolCallPart | ToolResultPart


def complete_input(reading: Reading, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages of a request with the ids that are known."""
    if not _lacks_ids(messages):
        return messages
    messages = _with_results(reading, messages)
    ids = _recorded_ids(reading, messages, wire.REQUESTS, chat.request_messages)
    parts = _joined(messages)
    return _with_ids(messages, _of_answers(parts, _of_questions(parts, ids)))


def complete_output(reading: Reading, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages of a response with the ids that are known.

    A response without a call gets those that the span lists beside it.
    """
    if "gen_ai.tool.name" in reading.view.attributes and not _asks(messages):
        messages = (*messages, *_attribute_calls(reading))
    if not _lacks_ids(messages):
        return messages
    ids = _recorded_ids(reading, messages, wire.RESPONSES, _answers_in)
    if ids == [None]:  # OpenLIT writes a single call's id on the span
        ids = [text(reading.view.attributes.get("gen_ai.tool.call.id"))]
    return _with_ids(messages, ids)


def _answers_in(response: Any) -> tuple[Message, ...]:
    return haystack.printed_replies(response) or chat.response_messages(response)


def _asks(messages: Iterable[Message]) -> bool:
    return any(isinstance(part, ToolCallPart) for part in _joined(messages))


def _attribute_calls(reading: Reading) -> tuple[Message, ...]:
    """Calls that a response requests, as attributes of the call's own span (OpenLIT before 1.35).

    Names and ids stand with commas between, arguments as one JSON object after the other.
    """
    attributes = reading.view.attributes
    called = text(attributes.get("gen_ai.tool.name"))
    value = text(first(attributes, _ARGUMENTS))
    if not called or value is None or reading.role != "llm":
        return ()
    names, ids = called.split(", "), (text(attributes.get("gen_ai.tool.call.id")) or "").split(", ")
    arguments = [value] if len(names) == 1 else _one_by_one(value)
    if len(arguments) != len(names):
        return ()
    ids = ids if len(ids) == len(names) else [""] * len(names)
    parts = (
        ToolCallPart(call_id or None, name, arguments_of(printed(opened(sent))))
        for call_id, name, sent in zip(ids, names, arguments, strict=True)
    )
    return (Message("assistant", tuple(parts)),)


_ARGUMENTS = ("gen_ai.tool.args", "gen_ai.tool.call.arguments")
_decode_one = json.JSONDecoder().raw_decode


def _one_by_one(source: str) -> list[Any]:
    """The JSON values of a text that has commas between them; none where it is cut off."""
    found: list[Any] = []
    at = 0
    try:
        while at < len(source):
            value, end = _decode_one(source, at)
            found.append(value)
            at = end + len(source[end:]) - len(source[end:].lstrip(", "))
    except (ValueError, RecursionError):
        return []
    return found


def _lacks_ids(messages: Iterable[Message]) -> bool:
    return any(_own_id(part) is None for part in _joined(messages))


def _own_id(part: _Joined) -> str | None:
    is_of_item = isinstance(part, ToolCallPart) and part.id is not None and part.id[:3] == _ITEM
    return None if is_of_item else part.id


def _joined(messages: Iterable[Message]) -> list[_Joined]:
    return [
        part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]


def _with_results(reading: Reading, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Take the recorded request where it says the same, but knows a text for a tool's result.

    OpenInference for Anthropic wrote results as what the user said, before 0.1.18.
    """
    spoken = [message for message in messages if message.role != "system"]
    for recorded in _recorded(reading, wire.REQUESTS, chat.request_messages):
        whole = [message for message in recorded if message.role != "system"]
        if any(message.role == "tool" for message in whole) and _words(whole) == _words(spoken):
            return (*(message for message in messages if message.role == "system"), *whole)
    return messages


def _words(messages: Iterable[Message]) -> list[list[str]]:
    return [[_word(part) for part in message.parts] for message in messages]


def _word(part: Part) -> str:
    """The content of a part, be it called a text or a result."""
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ToolResultPart):
        return str(part.content)
    return f"call {part.name}" if isinstance(part, ToolCallPart) else "other"


def _recorded(
    reading: Reading, keys: Iterable[str], read: Callable[[Any], tuple[Message, ...]]
) -> Iterator[tuple[Message, ...]]:
    for key in keys:
        value = reading.view.attributes.get(key)
        if isinstance(value, str) and len(value) <= wire.LARGEST_CONVERSATION:
            yield read(reading.opened(key))


def _recorded_ids(
    reading: Reading,
    messages: Sequence[Message],
    keys: Iterable[str],
    read: Callable[[Any], tuple[Message, ...]],
) -> list[str | None]:
    """The ids of all calls and results, also from a record that holds the same in this order."""
    parts = _joined(messages)
    for conversation in _recorded(reading, keys, read):
        recorded = _joined(conversation)
        if [_known_by(part) for part in recorded] == [_known_by(part) for part in parts]:
            pairs = zip(parts, recorded, strict=True)
            return [_own_id(part) or _own_id(other) for part, other in pairs]
    return [_own_id(part) for part in parts]


def _known_by(part: _Joined) -> tuple[str, str | None]:
    return ("call", part.name) if isinstance(part, ToolCallPart) else ("result", None)


def _of_questions(parts: Sequence[_Joined], ids: Sequence[str | None]) -> list[str | None]:
    """Give each call without an id that of the first result after it that answers no other."""
    pairs = list(zip(parts, ids, strict=True))
    call_ids = {call_id for part, call_id in pairs if isinstance(part, ToolCallPart)}
    found = list(ids)
    for at, (part, call_id) in enumerate(pairs):
        if isinstance(part, ToolCallPart) and call_id is None:
            found[at] = next(
                (
                    result_id
                    for result, result_id in pairs[at + 1 :]
                    if isinstance(result, ToolResultPart)
                    and result_id not in call_ids
                    and result.name in (None, part.name)
                ),
                None,
            )
            call_ids.add(found[at])
    return found


def _of_answers(parts: Sequence[_Joined], ids: Sequence[str | None]) -> list[str | None]:
    """Give each result without an id that of the first call before it that waits for one."""
    found: list[str | None] = []
    waiting: list[tuple[str | None, str]] = []
    for part, result_id in zip(parts, ids, strict=True):
        call_id = result_id
        if isinstance(part, ToolCallPart):
            waiting.append((call_id, part.name))
        else:
            asking = next((call for call in waiting if _answers(part, result_id, call)), None)
            if asking is not None:
                waiting.remove(asking)
                call_id = result_id or asking[0]
        found.append(call_id)
    return found


def _answers(result: ToolResultPart, result_id: str | None, call: tuple[str | None, str]) -> bool:
    call_id, name = call
    return result_id == call_id if result_id else result.name in (None, name)


def _with_ids(messages: tuple[Message, ...], ids: Iterable[str | None]) -> tuple[Message, ...]:
    rest = iter(ids)

    def with_id(part: Part) -> Part:
        if not isinstance(part, ToolCallPart | ToolResultPart):
            return part
        call_id = next(rest) or part.id
        return part if part.id == call_id else replace(part, id=call_id)

    completed = [tuple(with_id(part) for part in message.parts) for message in messages]
    return tuple(
        message if parts == message.parts else Message(message.role, parts, message.name)
        for message, parts in zip(messages, completed, strict=True)
    )

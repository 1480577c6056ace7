"""Pydantic AI and Logfire, beyond the GenAI attributes they write by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from hansard_collector.dialects import gen_ai
from hansard_collector.dialects.content import chat
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import count, first, inside, real, text
from hansard_compiler.calls import Message, ToolCallPart

_CHOICE = "gen_ai.choice"
_LOGFIRE_ANTHROPIC = "logfire.anthropic"


def history(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`pydantic_ai.all_messages` up to the agent's first response in this run.

    `pydantic_ai.new_message_index` is where this run began.
    """
    found = gen_ai.message_list(reading, key, role="user")
    start = count(reading.view.attributes.get("pydantic_ai.new_message_index")) or 0
    questions = takewhile(lambda message: message.role != "assistant", found[start:])
    return (*found[:start], *questions) or None


def event_input(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """Version 1: the message events of conventions 1.28, as one JSON list in an attribute."""
    events = _events(reading, key)
    return _messages_of(events[: _first_answer(events)]) or None


def event_output(reading: Reading, key: str) -> tuple[Message, ...] | None:
    events = _events(reading, key)
    found = _messages_of(events[_first_answer(events) :])
    return chat.joined(found) if found else None


def _first_answer(events: Sequence[Mapping[str, Any]]) -> int:
    """Where the response begins: at the choice, else after all that is not the assistant's.

    Logfire for the OpenAI Agents SDK writes no choices.
    """
    for at, event in enumerate(events):
        if event.get("event.name") == _CHOICE:
            return at
    questions = [at for at, event in enumerate(events) if event.get("role") != "assistant"]
    return questions[-1] + 1 if questions else 0


def _messages_of(events: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    found: list[Message] = []
    for event in events:
        # What Logfire could not translate stands beside a text that says so.
        untold = event.get("data") if event.get("event.name") == "gen_ai.unknown" else None
        found += chat.messages_of(untold or event, _role(event))
    return tuple(found)


def _events(reading: Reading, key: str) -> list[dict[str, Any]]:
    listed = reading.opened(key)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _role(event: Mapping[str, Any]) -> str:
    name = text(event.get("event.name")) or ""
    if name == _CHOICE:
        return "assistant"
    return name.removeprefix("gen_ai.").removesuffix(".message") or "user"


def request(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`request_data`: the provider's request as JSON."""
    if "messages" not in (sent := reading.mapping(key)) and "input" not in sent:
        return None
    found = chat.request_messages(sent)
    return found[: len(found) - _answers(reading, found)] or None


def role_of_request(reading: Reading, key: str) -> str | None:
    """Logfire before 5 names only in its message what it requested."""
    if "model" not in reading.mapping(key):
        return None
    template = text(reading.view.attributes.get("logfire.msg_template")) or reading.view.name
    return "embedding" if template.startswith("Embedding") else "llm"


def appended_answer(reading: Reading, key: str) -> tuple[Message, ...] | None:
    found = chat.request_messages(reading.mapping(key))
    return found[len(found) - _answers(reading, found) :] or None


def _answers(reading: Reading, found: Sequence[Message]) -> int:
    """How many messages at the end are the response.

    Logfire for the OpenAI Agents SDK appends it to the request; those spans tell a `usage`.
    """
    attributes = reading.view.attributes
    if "usage" not in attributes or "response_data" in attributes:
        return 0
    return sum(1 for _ in takewhile(lambda message: message.role == "assistant", reversed(found)))


def response(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`response_data`: `{message, usage}`, or what a stream brought together."""
    sent = reading.mapping(key)
    streamed = sent.get("combined_chunk_content")
    found = chat.response_messages(first(sent, ("message", "text")) or streamed)
    if reading.view.scope_name.startswith(_LOGFIRE_ANTHROPIC):
        found = tuple(map(_with_bare_arguments, found))
    return found or None


def _with_bare_arguments(message: Message) -> Message:
    """Logfire writes a block's `{"input": {…}}` where the arguments belong."""
    parts = tuple(
        replace(part, arguments=part.arguments["input"])
        if isinstance(part, ToolCallPart)
        and isinstance(part.arguments, dict)
        and set(part.arguments) == {"input"}
        else part
        for part in message.parts
    )
    return message if parts == message.parts else Message(message.role, parts, message.name)


def combined_chunks(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return chat.messages_of(reading.view.attributes[key], "assistant") or None


def repeats_call(reading: Reading, key: str) -> bool | None:
    """Logfire logs a streamed response in a record of its own, when the stream has ended.

    It repeats the call, unless it alone has the usage: then it is the call.
    """
    is_log = reading.view.attributes[key] == "log"
    if not is_log or "response_data" not in reading.view.attributes:
        return None
    return None if _requests_usage(reading.view) else True


def answers_later(view: SpanView) -> bool:
    """Logfire 5 writes the response of a stream, usage included, in a record of its own.

    Earlier ones do where the request included the usage of the stream.
    """
    attributes = view.attributes
    if attributes.get("logfire.span_type") != "span":
        return False
    return "gen_ai.input.messages" in attributes or _requests_usage(view)


def is_request(view: SpanView) -> bool:
    """Logfire opens such a span around each request that it sends on, and around nothing else."""
    is_integration = view.scope_name in ("logfire.openai", _LOGFIRE_ANTHROPIC)
    return is_integration and view.attributes.get("logfire.span_type") == "span"


def _requests_usage(view: SpanView) -> bool:
    return inside(view.attributes.get("request_data"), "stream_options", "include_usage") is True


def pending_of(reading: Reading, key: str) -> bytes | None:
    """A pending record is the child of the span it announces."""
    if reading.view.attributes[key] != "pending_span":
        return None
    return reading.view.parent_span_id or None


def confidence(reading: Reading, key: str) -> tuple[Mapping[str, Any], ...] | None:
    """`pydantic_ai.decision.confidence`."""
    score = real(reading.view.attributes[key])
    return None if score is None else ({"name": "confidence", "score": score},)

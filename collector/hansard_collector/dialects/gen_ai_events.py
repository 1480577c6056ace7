"""OpenTelemetry GenAI content in events: span events and log records, old and new forms.

Newest: one `gen_ai.client.inference.operation.details` event with everything. Conventions 1.28 to
1.36: an event a message. 1.26 to 1.28: `gen_ai.content.prompt` and `.completion`. Events are put in
order by time, then position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.span_reader import Reading, ReadRecord
from hansard_collector.dialects.engine.values import first, is_content, opened, sequence, text
from hansard_compiler.calls import Message

DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
INPUT_EVENTS: Mapping[str, str] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
INPUT_EVIDENCE = tuple(f"event {name}" for name in INPUT_EVENTS)
_SPEAKER = re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE)
_NONE = "None"  # as Python prints it
CHUNK_EVIDENCE = (
    "event ai.stream.firstChunk",
    "event gen_ai.content.completion.chunk",
    "event llm.content.completion.chunk",
    "event First Token Stream Event",
)


def details_input(reading: Reading, _: str) -> tuple[Message, ...] | None:
    sent = _of_details(reading, "gen_ai.input.messages", "input")
    return tuple(found for value in sent for found in chat.request_messages(value)) or None


def details_output(reading: Reading, _: str) -> tuple[Message, ...] | None:
    sent = map(_listed, _of_details(reading, "gen_ai.output.messages", "output"))
    return tuple(found for value in sent for found in chat.messages_of(value, "assistant")) or None


def details_system(reading: Reading, _: str) -> tuple[Message, ...] | None:
    found = _of_details(reading, "gen_ai.system_instructions", "system_instructions")
    return next((chat.system_messages(value) or None for value in found), None)


def details_tools(reading: Reading, _: str) -> tuple[Any, ...] | None:
    found = _of_details(reading, "gen_ai.tool.definitions", "tool_definitions")
    return next((tool_lists.tools_of(value) or None for value in found), None)


def details_finish_reason(reading: Reading, _: str) -> str | None:
    for value in _of_details(reading, "gen_ai.response.finish_reasons", "finish_reasons"):
        listed = value if isinstance(value, list) else [value]
        if reason := next((reason_text for item in listed if (reason_text := text(item))), None):
            return reason
    for value in _of_details(reading, "gen_ai.output.messages", "output"):
        choices = (item for item in sequence(_listed(value)) if isinstance(item, dict))
        if reason := next((r for item in choices if (r := text(item.get("finish_reason")))), None):
            return reason
    return None


def _of_details(reading: Reading, key: str, body_key: str) -> Iterator[Any]:
    """What the details events have under a key; AWS puts it in the body (`{input: {messages}}`)."""
    seen: list[Any] = []
    for record in reading.records(DETAILS):
        body = opened(record.body)
        value = record.attributes.get(key)
        if value is None and isinstance(body, dict):
            value = first(body, (key, body_key))
        if is_content(value) and value not in seen:
            seen.append(value)
            yield opened(value)


def _listed(value: Any) -> Any:
    return first(value, ("messages",)) or value if isinstance(value, dict) else value


def input_messages(reading: Reading, _: str) -> tuple[Message, ...] | None:
    """Everything but the choices, in the order it was said."""
    found: list[Message] = []
    for record in reading.records(*INPUT_EVENTS):
        found += chat.messages_of(_spoken(record), INPUT_EVENTS[record.name])
    return chat.without_repeated_results(found) or None


def output_messages(reading: Reading, _: str) -> tuple[Message, ...] | None:
    found: list[Message] = []
    for record in reading.records(CHOICE):
        choice = _body(record)
        inner = opened(choice.get("message"))
        if isinstance(inner, dict | list | str):
            found += chat.role_messages(inner, "assistant")
        else:
            found += chat.messages_of({"role": "assistant", **choice}, "assistant")
    return tuple(found) or None


def finish_reason(reading: Reading, _: str) -> str | None:
    reasons = (text(_body(record).get("finish_reason")) for record in reading.records(CHOICE))
    return next((reason for reason in reasons if reason), None)


def _spoken(record: ReadRecord) -> Mapping[str, Any]:
    """The event as a message; its name says who speaks where nothing else does."""
    body = _body(record)
    role = text(body.get("role")) or INPUT_EVENTS[record.name]
    return {**body, "role": role}


def _body(record: ReadRecord) -> Mapping[str, Any]:
    body = opened(record.body)
    if isinstance(body, dict):
        content = body.get("content")
        if isinstance(content, dict) and "parts" in content:  # Gemini's, role and all
            return {**body, "content": None, **content}
        return body
    if is_content(body):
        return {"content": body}
    inner = opened(record.attributes.get("gen_ai.event.content"))  # Azure
    return inner if isinstance(inner, dict) else record.attributes


def prompt_content(reading: Reading, _: str) -> tuple[Message, ...] | None:
    """`gen_ai.content.prompt` {gen_ai.prompt: JSON}."""
    found: list[Message] = []
    for record in reading.records("gen_ai.content.prompt"):
        sent = _content(record, "gen_ai.prompt")
        if "openlit" in reading.marks and isinstance(sent, str) and _SPEAKER.match(sent):
            found += _of_lines(sent)
        else:
            found += chat.request_messages(sent)
    if "langtrace" in reading.marks:
        found = _system_first(found)
    return tuple(found) or None


def _of_lines(sent: str) -> list[Message]:
    """OpenLIT before 1.35: `role: text`, a line or more a message; a text of `None` is none."""
    starts = [*_SPEAKER.finditer(sent)]
    ends = [*(start.start() for start in starts[1:]), len(sent)]
    found: list[Message] = []
    for start, end in zip(starts, ends, strict=True):
        text_of_line = sent[start.end() : end].removesuffix("\n")
        if text_of_line != _NONE:
            found += chat.messages_of({"role": start[1], "content": text_of_line}, "user")
    return found


def _system_first(found: list[Message]) -> list[Message]:
    """Langtrace puts Anthropic's system prompt behind the messages of the time, at each call."""
    system: list[Message] = []
    for message in found:
        if message.role == "system" and message not in system:
            system.append(message)
    return [*system, *(message for message in found if message.role != "system")]


def completion_content(reading: Reading, _: str) -> tuple[Message, ...] | None:
    found: list[Message] = []
    for record in reading.records("gen_ai.content.completion"):
        content = _content(record, "gen_ai.completion")
        if content != _NONE or "openlit" not in reading.marks:
            found += chat.response_messages(content)
    return tuple(found) or None


def _content(record: ReadRecord, key: str) -> Any:
    value = record.attributes.get(key)
    return value if is_content(value) else opened(record.body)


def first_chunk_ms(reading: Reading, evidence: str) -> float | None:
    """The time from the span's start to the first event of a name."""
    records = reading.records(evidence.removeprefix("event "))
    start_ns = reading.view.start_ns
    if not records or not start_ns or records[0].time_ns < start_ns:
        return None
    return (records[0].time_ns - start_ns) / 1_000_000

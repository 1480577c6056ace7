"""What a request asked and a response answered, in the words of the GenAI conventions.

Bodies come from the network, and nothing here raises whatever stands in them: see
`hansard_compiler.providers.formats.json_access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hansard_compiler.providers.formats.json_access import Body, mapping, parsed, text
from hansard_compiler.providers.formats.sse import Event
from hansard_compiler.providers.formats.streamed import Streamed

Attribute = str | bool | int | float | list[str]
Attributes = dict[str, Attribute]
Message = dict[str, Any]  # {"role": …, "parts": […]} of the GenAI conventions
Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for."""

    model: str | None
    attributes: Attributes
    input: list[Message] = field(default_factory=list)
    system: list[Part] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the provider told in a body or an event of a stream."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a response says."""

    attributes: Attributes
    output: list[Message] = field(default_factory=list)
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Assembled:
    """The body that the events of a stream add up to, in the form of one that was not streamed."""

    body: Body
    is_finished: bool  # the provider said that nothing more comes
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """How one path of an API is read."""

    operation: str  # gen_ai.operation.name, and the first word of the span's name
    asked: Callable[[Body], Asked]
    answered: Callable[[Body], Answer]
    assembled: Callable[[Iterable[Event]], Assembled] | None = None  # None: never streamed


def body_of(data: bytes) -> Body:
    return mapping(parsed(data))


def known(values: Mapping[str, Attribute | None]) -> Attributes:
    """Leave out what is not known: an attribute is absent rather than empty."""
    return {key: value for key, value in values.items() if value is not None}


def failure_of(error: object, *, kind: str = "error") -> Failure | None:
    """Read the error object that both providers put into bodies and events."""
    told = mapping(error)
    if not told:
        return None
    found = text(told.get("type")) or text(told.get("code")) or kind
    return Failure(found, text(told.get("message")) or "")


# ---- streams


def objects_of(events: Iterable[Event]) -> Iterator[Body]:
    """Yield the JSON object of each event; its type is the event's name where it tells none."""
    for event in events:
        found = mapping(parsed(event.data))
        yield found if found.get("type") or not event.name else {**found, "type": event.name}


def assembled_from(found: Streamed, *, kind: str = "error") -> Assembled:
    """Return what a stream added up to; an error in it is its end, `kind` where it names none."""
    failure = None if found.error is None else failure_of(found.error, kind=kind)
    return Assembled(found.body, found.is_finished or found.error is not None, failure)


# ---- parts


def text_part(content: object) -> list[Part]:
    said = text(content)
    return [] if said is None else [{"type": "text", "content": said}]


def reasoning_part(content: object) -> list[Part]:
    said = text(content)
    return [] if said is None else [{"type": "reasoning", "content": said}]


def call_part(*, call_id: object, name: object, arguments: object) -> Part:
    """A tool call; arguments that are JSON in a text are opened."""
    if isinstance(arguments, str):
        opened = parsed(arguments) if arguments else {}
        arguments = arguments if opened is None else opened
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def result_part(*, call_id: object, response: object) -> Part:
    return {"type": "tool_call_response", "id": call_id, "response": response}


def media_part(modality: str, where: object, *, mime_type: object = None) -> Part:
    """An image, sound or file by address; one that is inside a `data:` address, by its bytes."""
    address = text(where) or ""
    if address.startswith("data:"):
        head, _, content = address.partition(",")
        sent_type = head.removeprefix("data:").partition(";")[0]
        return _part("blob", modality=modality, mime_type=sent_type or mime_type, content=content)
    return _part("uri", modality=modality, mime_type=mime_type, uri=address)


def file_part(modality: str, file_id: object) -> Part:
    return _part("file", modality=modality, file_id=file_id)


def blob_part(modality: str, *, mime_type: object, content: object) -> Part:
    return _part("blob", modality=modality, mime_type=mime_type, content=content)


def _part(kind: str, **fields: object) -> Part:
    return {"type": kind, **{key: value for key, value in fields.items() if value is not None}}

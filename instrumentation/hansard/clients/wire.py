"""What a request asked and a response answered, in the words of the GenAI conventions.

Bodies come from the network: anything may stand anywhere in them. The readers below take what has
the type it should have and leave out the rest; none of them raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hansard.clients.sse import Event

Attribute = str | bool | int | float | list[str]
Attributes = dict[str, Attribute]
Body = Mapping[str, Any]
Message = dict[str, Any]  # {"role": …, "parts": […]} of the GenAI conventions
Part = dict[str, Any]

_INT64 = 1 << 63
_ABSENT: Body = {}


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


def parsed(data: bytes | str) -> Any:
    """Return the JSON value of some bytes; None where they are none, however deep or hostile."""
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def body_of(data: bytes) -> Body:
    return mapping(parsed(data))


def mapping(value: object) -> Body:
    return value if isinstance(value, Mapping) else _ABSENT


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Body]:
    return [item for item in sequence(value) if isinstance(item, Mapping)]


def text(value: object) -> str | None:
    """Return a text that can be encoded; None for anything else and for an empty one."""
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode()  # a lone surrogate would break the export


def integer(value: object) -> int | None:
    """Return an integer that an attribute can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INT64 <= value < _INT64 else None


def number(value: object) -> int | float | None:
    return value if isinstance(value, float) else integer(value)


def texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        value = [value]
    found = [item for item in map(text, sequence(value)) if item is not None]
    return found or None


def within(body: object, *path: str) -> Any:
    """Return what stands at a path of keys; None where a step is missing."""
    for key in path:
        body = mapping(body).get(key)
    return body


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

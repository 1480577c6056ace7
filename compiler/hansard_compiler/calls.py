"""The normal form of a model call: what every dialect is translated into (DESIGN §7).

A `Message` is a role and its parts. Two hashes identify it: `hash` over the whole normal form,
used for prefix chains and cache breaks, and `match_hash` over what was *said* (role, text, tool
name, canonical arguments or result; no ids, reasoning, signatures or white space), used to
recognise one message across calls and dialects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from hansard_compiler.canonical import canonical_json

Json: TypeAlias = dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]

_ASCII_SPACE = b" \t\n\r\v\f"


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A tool call as the model requested it."""

    id: str | None
    name: str
    arguments: Any  # parsed JSON where the text is JSON, else the text as sent


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    id: str | None
    content: Any  # text or JSON as sent
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    text: str


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image, sound or file: by payload reference, by URI, or by inline data."""

    media_type: str | None
    payload: str | None = None  # sha256:<hex>
    uri: str | None = None
    data: str | None = None  # base64 as sent, until it is moved to a payload


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part no dialect table knows: stored whole."""

    value: Any


Part: TypeAlias = TextPart | ToolCallPart | ToolResultPart | ReasoningPart | MediaPart | OtherPart


# No slots: the two hashes are computed once, on first use, and cached. (`cached_property` takes a
# lock each time before Python 3.12.)
@dataclass(frozen=True)
class Message:
    role: str
    parts: tuple[Part, ...]
    name: str | None = None

    @property
    def hash(self) -> bytes:
        """sha256 over role, name and every field of every part, each with its length before it."""
        known: bytes | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = _hash_of(self)
        return known

    @property
    def match_hash(self) -> bytes:
        """sha256 of what was said, equal across dialects."""
        known: bytes | None = self.__dict__.get("_match_hash")
        if known is None:
            known = self.__dict__["_match_hash"] = _match_hash_of(self)
        return known

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


def _hash_of(message: Message) -> bytes:
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is TextPart:  # most messages: half the price
        fields: Iterable[str | None] = (message.role, message.name, "text", parts[0].text)
    else:
        fields = (message.role, message.name, *_fields(parts))
    return hashlib.sha256(b"".join(map(_framed, fields))).digest()


def _match_hash_of(message: Message) -> bytes:
    pieces = [b"system" if message.role == "developer" else message.role.encode()]
    for kind, text in _hashed_parts(message.parts):
        # Deleting bytes runs in C: 8 µs for 8 KB, a regular expression takes 250.
        data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII_SPACE)
        pieces += (b"\0", kind, b"\0", data)
    return hashlib.sha256(b"".join(pieces)).digest()


def _framed(field_: str | None) -> bytes:
    """A field with its length before it; -1 for one that is not there."""
    if field_ is None:
        return b"-1:"
    data = field_.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)


def _fields(parts: Sequence[Part]) -> Iterator[str | None]:
    for part in parts:
        if isinstance(part, TextPart):
            yield from ("text", part.text)
        elif isinstance(part, ToolCallPart):
            yield from ("call", part.id, part.name, canonical_json(part.arguments))
        elif isinstance(part, ToolResultPart):
            yield from ("result", part.id, part.name, canonical_json(part.content))
        elif isinstance(part, ReasoningPart):
            yield from ("reasoning", part.text)
        elif isinstance(part, MediaPart):
            yield from ("media", part.media_type, part.payload, part.uri, part.data)
        else:
            yield from ("other", canonical_json(part.value))


def _hashed_parts(parts: Sequence[Part]) -> Iterator[tuple[bytes, str]]:
    # Adjacent texts count as one: dialects cut a text into parts freely.
    texts = "".join(part.text for part in parts if isinstance(part, TextPart))
    if texts and not texts.isspace():
        yield b"text", texts
    for part in parts:
        if isinstance(part, ToolCallPart):
            yield b"call", f"{part.name}\0{canonical_json(part.arguments)}"
        elif isinstance(part, ToolResultPart):
            yield b"result", _result_text(part.content)
        elif isinstance(part, MediaPart):
            yield b"media", f"{part.media_type}\0{part.payload or part.uri or part.data}"
        elif isinstance(part, OtherPart):
            yield b"other", canonical_json(part.value)


def _result_text(content: Any) -> str:
    """A result's text; an object or array is the same said as JSON text or as a value."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return canonical_json(json.loads(content))
        except (ValueError, RecursionError):
            return content
    return content if isinstance(content, str) else canonical_json(content)


def part_json(part: Part) -> Json:
    """Return a part in the API's shape; absent optional fields are left out."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolCallPart):
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
    if isinstance(part, ToolResultPart):
        named = {"name": part.name} if part.name else {}
        return {"type": "tool_result", "id": part.id, "content": part.content, **named}
    if isinstance(part, ReasoningPart):
        return {"type": "reasoning", "text": part.text}
    if isinstance(part, MediaPart):
        fields = {"payload": part.payload, "uri": part.uri, "data": part.data}
        known = {key: value for key, value in fields.items() if value is not None}
        return {"type": "media", "media_type": part.media_type, **known}
    return {"type": "other", "value": part.value}


def message_json(message: Message) -> Json:
    """Return a message in the API's shape, without its hash."""
    named = {"name": message.name} if message.name else {}
    return {"role": message.role, "parts": [part_json(part) for part in message.parts], **named}


def message_from_json(value: Mapping[str, Any]) -> Message:
    """Rebuild a message from `message_json`; raises KeyError on another shape."""
    return Message(
        role=value["role"],
        parts=tuple(_part_from_json(part) for part in value["parts"]),
        name=value.get("name"),
    )


_PART_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "text": ("text",),
        "tool_call": ("id", "name", "arguments"),
        "tool_result": ("id", "content"),
        "reasoning": ("text",),
        "media": ("media_type",),
        "other": ("value",),
    }
)
_TEXTS = frozenset({"text", "name", "media_type"})  # fields of parts that are texts


def message_problem(value: object) -> str | None:
    """Return what keeps a value from being a message, with its place: `.parts[0].text is missing`.

    None for a message that `message_from_json` reads.
    """
    if not isinstance(value, Mapping):
        return f" is {_kind_of(value)}; expected an object with role and parts"
    for name, kind in (("role", str), ("parts", list)):
        if name not in value:
            return f".{name} is missing"
        if not isinstance(value[name], kind):
            expected = "a text" if kind is str else "a list"
            return f".{name} is {_kind_of(value[name])}; expected {expected}"
    for at, part in enumerate(value["parts"]):
        problem = _part_problem(part)
        if problem is not None:
            return f".parts[{at}]{problem}"
    return None


def _part_problem(part: object) -> str | None:
    if not isinstance(part, Mapping):
        return f" is {_kind_of(part)}; expected an object with a type"
    if "type" not in part:
        return ".type is missing"
    needed = _PART_FIELDS.get(part["type"]) if isinstance(part["type"], str) else None
    if needed is None and "value" in part:
        return None  # read as another kind of part
    if needed is None:
        return f".type is {part['type']!r:.60}; expected one of {', '.join(_PART_FIELDS)}"
    for name in needed:
        if name not in part:
            return f".{name} is missing: a part of the type {part['type']!r} needs it"
        if name in _TEXTS and not isinstance(part[name], str):
            return f".{name} is {_kind_of(part[name])}; expected a text"
    return None


def _kind_of(value: object) -> str:
    """Return what JSON calls a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"


def _part_from_json(value: Mapping[str, Any]) -> Part:
    kind = value["type"]
    if kind == "text":
        return TextPart(value["text"])
    if kind == "tool_call":
        return ToolCallPart(value["id"], value["name"], value["arguments"])
    if kind == "tool_result":
        return ToolResultPart(value["id"], value["content"], value.get("name"))
    if kind == "reasoning":
        return ReasoningPart(value["text"])
    if kind == "media":
        return MediaPart(
            value["media_type"], value.get("payload"), value.get("uri"), value.get("data")
        )
    return OtherPart(value["value"])


@dataclass(frozen=True, slots=True)
class Tokens:
    """Billed tokens. `input` includes cached ones, `output` includes reasoning; None = unknown."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None

    def any_known(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class Cost:
    """Money in US dollars, as reported by the sender or computed from a price list."""

    usd: float
    source: str  # "reported: <attribute>" or "genai-prices <version>"
    lines: tuple[tuple[str, float], ...] = ()  # (what, usd)
    reported_usd: float | None = None  # the sender's own figure, shown beside a computed one


@dataclass(frozen=True, slots=True)
class CallError:
    type: str | None
    message: str | None
    http_status: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The normalised model call of an `llm` or `embedding` step."""

    operation: str | None = None
    provider: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    stream: bool | None = None
    input: tuple[Message, ...] = ()
    output: tuple[Message, ...] = ()
    tools: tuple[Json, ...] = ()  # tool definitions as sent, normalised to {type, name, …}
    parameters: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None  # stop length tool_call content_filter error compaction other
    finish_reason_raw: str | None = None
    tokens: Tokens = Tokens()
    cost: Cost | None = None
    error: CallError | None = None
    response_id: str | None = None
    time_to_first_token_ms: float | None = None
    input_is_delta: bool = False  # the sender gives only what is new since its previous call
    sources: Mapping[str, str] = field(default_factory=dict)  # field -> attribute it came from


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool call as it ran."""

    name: str | None
    call_id: str | None = None
    type: str | None = None
    description: str | None = None
    arguments: Any = None
    result: Any = None

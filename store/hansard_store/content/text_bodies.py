"""The bodies of texts: short ones inline, long strings by the content that holds them already.

What a message says usually stands in its span's record too, as a content of its own. A body names
that content in the place of the string, so a long text is compressed and stored once.

A body is packed JSON: of a message its normal form, else a string; a long string in either is
`{"$content": id}`, and an object that looks like that by itself is wrapped in `{"$value": …}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw
import orjson

from hansard_compiler.calls import (
    Message,
    TextPart,
    ToolResultPart,
    message_from_json,
    message_json,
)
from hansard_compiler.canonical import canonical_bytes
from hansard_store.content.contents import ContentWriter, read_content
from hansard_store.database.compression import unpack
from hansard_store.errors import StoreCorruptError

_REFERENCE = "$content"
_ESCAPED = "$value"
LONG_CHARS = 512
# The fields of parts whose strings may be long.
_LONG_FIELDS = ("text", "content", "data")


def strings_of(message: Message) -> Iterator[str]:
    """Yield the strings of a message that are kept as contents of their own when they are long."""
    for part in message.parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ToolResultPart) and isinstance(part.content, str):
            yield part.content


class BodyWriter:
    """Encodes bodies, inside the ingest transaction."""

    def __init__(self, contents: ContentWriter) -> None:
        self._contents = contents

    def of_text(self, text: str) -> tuple[bytes, list[int]]:
        """Return the body of a text, not packed yet, and the contents that it names."""
        named: list[int] = []
        return _encoded(self._short(text, named)), named

    def of_message(self, message: Message) -> tuple[bytes, list[int]]:
        """Return the body of a message, not packed yet, and the contents that it names."""
        named: list[int] = []
        value = message_json(message)
        for part in value["parts"]:
            for name in _LONG_FIELDS:
                if name in part:
                    part[name] = self._short(part[name], named)
        return _encoded(value), named

    def _short(self, value: Any, named: list[int]) -> Any:
        if _is_reference(value) or _is_escaped(value):
            return {_ESCAPED: value}  # a tool's own answer that looks like one of ours
        if not isinstance(value, str) or len(value) <= LONG_CHARS:
            return value
        try:
            named.append(self._contents.keep(value))
        except UnicodeEncodeError:  # a lone surrogate from a JSON escape: only canonical JSON can
            return value
        return {_REFERENCE: named[-1]}


def read_text(connection: apsw.Connection, body: bytes) -> str:
    """Return the text of a body that is no message's; raises StoreCorruptError."""
    value = _resolved(connection, _decoded(body))
    if not isinstance(value, str):
        raise StoreCorruptError("the body of a text is no text")
    return value


def read_message(connection: apsw.Connection, body: bytes) -> Message:
    """Return the message of a body, whole; raises StoreCorruptError."""
    value = _decoded(body)
    try:
        for part in value["parts"]:
            for name in _LONG_FIELDS:
                if name in part:
                    part[name] = _resolved(connection, part[name])
        return message_from_json(value)
    except (KeyError, TypeError) as error:
        raise StoreCorruptError(f"the body of a message is none: {error!r}") from error


def contents_of(body: bytes) -> list[int]:
    """Return the contents that a body names: for gc and verify."""
    value = _decoded(body)
    parts = value.get("parts") if isinstance(value, dict) else None
    found = [part.get(name) for part in parts for name in _LONG_FIELDS] if parts else [value]
    return [one[_REFERENCE] for one in found if _is_reference(one)]


def _resolved(connection: apsw.Connection, value: Any) -> Any:
    if _is_escaped(value):
        return value[_ESCAPED]
    if not _is_reference(value):
        return value
    return read_content(connection, value[_REFERENCE]).decode("utf-8")


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == [_REFERENCE]


def _is_escaped(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == [_ESCAPED]


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # integers past 64 bits, lone surrogates
        return canonical_bytes(value)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(unpack(body))
    except ValueError as error:
        raise StoreCorruptError(f"the body of a text is no JSON: {error}") from error

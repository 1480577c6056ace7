"""Distinct texts, indexed once for search, and the tree of message prefixes."""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import orjson

from hansard_compiler.calls import (
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    message_from_json,
    message_json,
)
from hansard_compiler.canonical import canonical_bytes, canonical_json
from hansard_store.content.large_values import ContentWriter, read_content
from hansard_store.database.compression import pack_all, unpack
from hansard_store.database.id_allocator import DigestNumbering, Numbering
from hansard_store.database.stored_json import as_json, joined
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.derived_rows import CallProjection, SpanProjection, TextProjection
from hansard_store.search.indexes import IndexWriter

# The bodies of texts: short ones inline, long strings by the content that holds them already.
#
# What a message says usually stands in its span's record too, as a content of its own. A body names
# that content in the place of the string, so a long text is compressed and stored once.
#
# A body is packed JSON: of a message its normal form, else a string; a long string in either is
# `{"$content": id}`, and an object that looks like that by itself is wrapped in `{"$value": …}`.

_REFERENCE = "$content"
_ESCAPED = "$value"
LONG_CHARS = 512
# The fields of parts whose strings may be long.
_LONG_FIELDS = ("text", "content", "data")


def strings_of(message: Message) -> Iterator[str]:
    """Yield the strings of a message that are stored as their own contents when they are long."""
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
        body = orjson.dumps(value)
    except TypeError:  # integers past 64 bits, lone surrogates
        return canonical_bytes(value)
    if b"null" in body and not _is_finite(value):  # orjson writes null for NaN and infinities
        return canonical_bytes(value)
    return body


def _is_finite(value: Any) -> bool:
    """Return whether a value made of JSON types holds neither NaN nor an infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return True


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(unpack(body))
    except ValueError as error:
        raise StoreCorruptError(f"the body of a text is no JSON: {error}") from error


_KNOWN = 40_000
_KNOWN_NAMES, _NAME_CHARS = 20_000, 64
# What one text adds to the index at most; the rest stays readable, and is said to be unindexed.
INDEXED_CHARS = 1_000_000

_ADD = """
INSERT INTO text (id, hash, field, role, match_hash, first_span, body)
SELECT :first + key, substr(:hashes, value ->> 0, 32), value ->> 2, value ->> 3,
  CASE WHEN value ->> 1 THEN substr(:hashes, (value ->> 0) + 32, 32) END, value ->> 4,
  substr(:bodies, value ->> 5, value ->> 6)
FROM json_each(:rows)
"""
_USE = """
INSERT OR IGNORE INTO text_use (text, run) SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""
_FIND_NODE = "SELECT id FROM message_prefix WHERE parent = ? AND text = ?"
_LAST_NODE = "SELECT coalesce(max(id), 0) FROM message_prefix"
_ADD_NODE = """
INSERT INTO message_prefix (id, parent, text, depth, hash)
SELECT :first + key, value ->> 0, value ->> 1, value ->> 2, substr(:hashes, key * 16 + 1, 16)
FROM json_each(:rows)
"""


class _Text(NamedTuple):
    """A row of `text` that is not written yet."""

    hash: bytes
    match_hash: bytes | None
    field: str
    role: str | None
    first_span: int
    body: bytes  # not packed


class TextWriter:
    """Gives texts and prefix nodes their ids, inside the ingest transaction.

    Their rows wait until `write_held`, as those of contents do.
    """

    def __init__(
        self, connection: apsw.Connection, contents: ContentWriter, index: IndexWriter
    ) -> None:
        self._execute = connection.execute
        self._contents = contents
        self._bodies = BodyWriter(contents)
        self._index = index
        self._ids = DigestNumbering(connection, table="text", column="hash", most=_KNOWN)
        self._names: dict[TextProjection, int] = {}  # short texts that most spans repeat
        self._node_ids: Numbering[tuple[int, int]] = Numbering(
            connection, find=_FIND_NODE, last=_LAST_NODE, most=0
        )
        # What a conversation sends again and again: node and hash of its message -> the next
        # node, and the hash of all messages up to it.
        self._nodes: OrderedDict[tuple[int, bytes], tuple[int, bytes]] = OrderedDict()
        # Of this transaction: rows that are not written yet, and which runs use what.
        self._held: list[_Text] = []
        self._held_nodes: list[tuple[int, int, int, bytes]] = []  # parent, text, depth, hash
        self._first = self._first_node = 0  # the id of the first that waits; the others follow
        self._expected: dict[TextProjection, bytes] = {}  # and their digests
        self._uses: set[tuple[int, int]] = set()

    def begin(self) -> None:
        """A transaction begins."""
        self._ids.begin()
        self._node_ids.begin()
        self._expected.clear()

    def expect(self, made: Sequence[SpanProjection]) -> list[str]:
        """Look up the texts of some spans; return the long strings that they will store."""
        for text in (text for one in made for text in one.texts):
            if text not in self._names and text not in self._expected:
                self._expected[text] = _digest_of(text)
        messages = [message for one in made if one.call for message in self._new_ones(one.call)]
        self._ids.expect([*self._expected.values(), *(message.hash for message in messages)])
        found = [text.text for text, digest in self._expected.items() if self._is_new(digest)]
        for message in messages:
            if self._is_new(message.hash):
                found += strings_of(message)
        return [text for text in found if len(text) > LONG_CHARS]

    def _new_ones(self, call: CallProjection) -> Iterator[Message]:
        """Yield the last messages of a call, down to those that are known already."""
        for messages in (call.input, call.output):
            for message in reversed(messages):
                if self._ids.known((message.hash,)) is not None:
                    break
                yield message

    def _is_new(self, digest: bytes) -> bool:
        return self._ids.find((digest,)) is None

    def add(self, text: TextProjection, *, span: int, run: int) -> None:
        """Store and index a text that is no message, the first time it is seen."""
        known = self._names.get(text)
        if known is not None:
            self._uses.add((known, run))
            return
        digest = self._expected.get(text) or _digest_of(text)
        found = self._ids.find((digest,))
        if found is None:
            unpacked, named = self._bodies.of_text(_storable(text.text))
            row = _Text(digest, None, text.field, None, span, unpacked)
            found = self._add(row, text.text, named)
        self._uses.add((found, run))
        if len(text.text) <= _NAME_CHARS:
            self._names[text] = found
            if len(self._names) > _KNOWN_NAMES:
                self._names.clear()

    def prefix(self, messages: Sequence[Message], *, span: int) -> int | None:
        """Return the node of the last message, adding the nodes that are new; None for none."""
        node, chain = 0, b""
        for depth, message in enumerate(messages, start=1):
            slot = (node, message.hash)
            known = self._nodes.get(slot)
            if known is None:
                known = self._node(node, chain, message, depth=depth, span=span)
                self._nodes[slot] = known
                if len(self._nodes) > _KNOWN:
                    self._nodes.popitem(last=False)
            node, chain = known
        return node or None

    def _node(
        self, parent: int, chain: bytes, message: Message, *, depth: int, span: int
    ) -> tuple[int, bytes]:
        text = self._message(message, span=span)
        digest = hashlib.sha256(chain + message.hash).digest()[:16]
        node = (parent, text)
        is_new = self._ids.is_new(text) or self._node_ids.is_new(parent)
        found = self._node_ids.known(node) if is_new else self._node_ids.find(node)
        if found is None:
            found = self._node_ids.add(node)
            self._first_node = self._first_node if self._held_nodes else found
            self._held_nodes.append((parent, text, depth, digest))
        return found, digest

    def _message(self, message: Message, *, span: int) -> int:
        found = self._ids.find((message.hash,))
        if found is None:
            unpacked, named = self._bodies.of_message(message)
            row = _Text(message.hash, message.match_hash, "message", message.role, span, unpacked)
            found = self._add(row, "\n".join(searched_words(message)), named)
        return found

    def _add(self, row: _Text, words: str, named: Sequence[int]) -> int:
        added = self._ids.add((row.hash,))
        self._first = self._first if self._held else added
        self._held.append(row)
        for content in named:
            self._contents.use_by_text(content, added)
        self._index.add_text(added, words[:INDEXED_CHARS])
        return added

    def write_held(self) -> None:
        """Write the rows that wait, in two statements that hold no lock of Python's."""
        if self._held:
            self._write_texts(self._held)
            self._held.clear()
        if self._held_nodes:
            hashes = b"".join([node[-1] for node in self._held_nodes])
            rows = as_json(node[:-1] for node in self._held_nodes)
            parameters = {"first": self._first_node, "hashes": hashes, "rows": rows}
            self._execute(_ADD_NODE, parameters)
            self._held_nodes.clear()

    def _write_texts(self, texts: Sequence[_Text]) -> None:
        packed = pack_all([text.body for text in texts])
        bodies, starts = joined(packed)
        hashes, at = joined([text.hash + (text.match_hash or b"") for text in texts])
        rows = as_json(
            (at, text.match_hash is not None, text.field, text.role, text.first_span, start, size)
            for text, at, start, size in zip(texts, at, starts, map(len, packed), strict=False)
        )
        parameters = {"first": self._first, "hashes": hashes, "bodies": bodies, "rows": rows}
        self._execute(_ADD, parameters)

    def flush(self) -> None:
        """Write what waits, and which runs use what; the last thing before the commit."""
        self.write_held()
        if self._uses:
            self._execute(_USE, (as_json(sorted(self._uses)),))
        self._uses.clear()

    def forget(self) -> None:
        """Drop what is known of ids: after a rollback, or when gc has removed texts."""
        self._ids.forget()
        self._node_ids.forget()
        self._nodes.clear()
        self._names.clear()
        self._held.clear()
        self._held_nodes.clear()
        self._expected.clear()
        self._uses.clear()


def _storable(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates, from escapes in JSON, become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _digest_of(text: TextProjection) -> bytes:
    body = text.text.encode("utf-8", "replace")
    return hashlib.sha256(text.field.encode() + b"\0" + body).digest()


def searched_words(message: Message) -> Iterator[str]:
    """Yield what a person would search a message by: texts, tool names, arguments, results."""
    for part in message.parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ToolCallPart):
            yield part.name
            yield _plain(part.arguments)
        elif isinstance(part, ToolResultPart):
            yield _plain(part.content)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)

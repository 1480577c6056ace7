"""Distinct texts, indexed once for search, and the tree of message prefixes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from hansard_compiler.calls import Message, TextPart, ToolCallPart, ToolResultPart
from hansard_compiler.canonical import canonical_json
from hansard_store.bulk import as_json
from hansard_store.contents import ContentWriter
from hansard_store.indexing import IndexWriter
from hansard_store.projections import TextProjection
from hansard_store.text_bodies import BodyWriter

_KNOWN = 200_000
_KNOWN_NAMES, _NAME_CHARS = 20_000, 64
# What one text adds to the index at most; the rest stays readable, and is said to be unindexed.
INDEXED_CHARS = 1_000_000

_FIND = "SELECT id FROM text WHERE hash = ?"
_ADD = """
INSERT INTO text (hash, field, role, match_hash, first_span, body)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_USE = """
INSERT OR IGNORE INTO text_use (text, run) SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""
_FIND_NODE = "SELECT id FROM message_prefix WHERE parent = ? AND text = ?"
_ADD_NODE = """
INSERT INTO message_prefix (parent, text, depth, hash) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""


class TextWriter:
    """Gives texts and prefix nodes their ids, inside the ingest transaction."""

    def __init__(
        self, connection: apsw.Connection, contents: ContentWriter, index: IndexWriter
    ) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._contents = contents
        self._bodies = BodyWriter(contents)
        self._index = index
        self._ids: OrderedDict[bytes, int] = OrderedDict()
        self._names: dict[TextProjection, int] = {}  # short texts that most spans repeat
        self._uses: set[tuple[int, int]] = set()  # of this transaction
        self._nodes: OrderedDict[tuple[int, bytes], tuple[int, bytes]] = OrderedDict()

    def add(self, text: TextProjection, *, span: int, run: int) -> None:
        """Store and index a text that is no message, the first time it is seen."""
        known = self._names.get(text)
        if known is not None:
            self._uses.add((known, run))
            return
        body = text.text.encode("utf-8", "replace")
        digest = hashlib.sha256(text.field.encode() + b"\0" + body).digest()
        found = self._ids.get(digest)
        if found is None:
            packed, named = self._bodies.of_text(body.decode("utf-8"))
            row = (digest, text.field, None, None, span, packed)
            found = self._add(digest, row, text.text, named)
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
        self,
        parent: int,
        chain: bytes,
        message: Message,
        *,
        depth: int,
        span: int,
    ) -> tuple[int, bytes]:
        text = self._message(message, span=span)
        digest = hashlib.sha256(chain + message.hash).digest()[:16]
        self._execute(_ADD_NODE, (parent, text, depth, digest))
        if self._connection.changes():
            return self._connection.last_insert_rowid(), digest
        known: int = self._execute(_FIND_NODE, (parent, text)).get
        return known, digest

    def _message(self, message: Message, *, span: int) -> int:
        found = self._ids.get(message.hash)
        if found is not None:
            return found
        packed, named = self._bodies.of_message(message)
        row = (message.hash, "message", message.role, message.match_hash, span, packed)
        return self._add(message.hash, row, "\n".join(searched_words(message)), named)

    def _add(self, digest: bytes, row: tuple[Any, ...], words: str, named: Iterable[int]) -> int:
        # Most texts that this process does not know are new: one statement for those. A text that
        # is stored already names contents that are stored already.
        self._execute(_ADD, row)
        if not self._connection.changes():
            return self._know(digest, self._execute(_FIND, (digest,)).get)
        added = self._connection.last_insert_rowid()
        for content in named:
            self._contents.use_by_text(content, added)
        self._index.add_text(added, words[:INDEXED_CHARS])
        return self._know(digest, added)

    def _know(self, digest: bytes, text: int) -> int:
        self._ids[digest] = text
        if len(self._ids) > _KNOWN:
            self._ids.popitem(last=False)
        return text

    def flush(self) -> None:
        """Write which runs use what; the last thing before the commit."""
        if self._uses:
            self._execute(_USE, (as_json(sorted(self._uses)),))
        self._uses.clear()

    def forget(self) -> None:
        """Drop what is known of ids: after a rollback, or when gc has removed texts."""
        self._ids.clear()
        self._names.clear()
        self._nodes.clear()
        self._uses.clear()


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

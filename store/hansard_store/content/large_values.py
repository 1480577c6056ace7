"""Large values stored once: contents by digest, and cut arrays as lists that share prefixes.

`ContentCutter` is pure and runs before the transaction; `ContentWriter` gives ids inside it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple

import apsw

from hansard_store.audit.seal_tables import last_id
from hansard_store.content.json_chunks import MOST_PIECES, cut, cut_after, element_of, is_crowded
from hansard_store.database.compression import pack_all, unpack
from hansard_store.database.id_allocator import DigestNumbering, Numbering
from hansard_store.database.stored_json import as_json, joined
from hansard_store.errors import StoreCorruptError

_REUSE_BYTES = 24 * 1024 * 1024  # texts kept to be compared with the next of their conversation
_MIN_CUT_CHARS = 256  # below, a whole content is cheaper than its pieces
_KNOWN_DIGESTS = 40_000
_KNOWN_NODES = 0  # pieces remember theirs
_HELD_BYTES = 8 * 1024 * 1024  # of contents that wait; more are written at once
# Of all writers of this process: the pieces of a lost connection's writer are not the next one's.
_GENERATIONS = count(1)
_KEPT_PER_KEY = 3  # interleaved sub-agents share a trace and a key


class _Piece:
    """A piece of a cut text; remembers its list node once a transaction has given it one."""

    __slots__ = ("element", "generation", "node", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.element: str | None = None
        self.node = 0  # content_list.id, good while `generation` is the writer's
        self.generation = 0


class CutValue(NamedTuple):
    """A value as pieces and a tail, in the order in which they join to the text."""

    pieces: tuple[_Piece, ...]
    tail: str
    whole: bool
    chars: int

    def elements(self) -> list[str] | None:
        """Return the texts of the array's elements, or None when the array is inside an object."""
        if not self.whole:
            return None
        found = []
        for at, piece in enumerate(self.pieces):
            if piece.element is None:
                piece.element = element_of(piece.text, first=not at)
            found.append(piece.element)
        return found


class ContentCutter:
    """Cuts texts, reusing the pieces of the previous text under the same trace and key.

    Used by one thread. Keeps at most `reuse_bytes` of text.
    """

    def __init__(self, reuse_bytes: int = _REUSE_BYTES) -> None:
        self._reuse_bytes = reuse_bytes
        self._previous: OrderedDict[tuple[bytes, str], list[CutValue]] = OrderedDict()
        self._held_chars = 0

    def cut(self, trace_id: bytes, key: str, text: str) -> CutValue | None:
        """Return the text in pieces, or None when it is to be stored whole."""
        if len(text) < _MIN_CUT_CHARS or text[0] not in "[{ \n\t\r" or is_crowded(text):
            return None
        slot = (trace_id, key)
        known = self._previous.get(slot, [])
        value = self._continued(text, known)
        if value is None:
            fresh = cut(text)
            if fresh is None or not fresh.pieces:
                return None
            value = CutValue(tuple(map(_Piece, fresh.pieces)), fresh.tail, fresh.whole, len(text))
            known = [*known[-(_KEPT_PER_KEY - 1) :]]
        else:
            known = [*(entry for entry in known if entry.pieces[0] is not value.pieces[0])]
        self._remember(slot, [*known, value])
        return value

    def _continued(self, text: str, known: Sequence[CutValue]) -> CutValue | None:
        for previous in reversed(known):
            found = cut_after(text, [piece.text for piece in previous.pieces])
            if found is not None:
                shared, rest = found
                if shared + len(rest.pieces) > MOST_PIECES:
                    return None
                pieces = (*previous.pieces[:shared], *map(_Piece, rest.pieces))
                whole = previous.whole and rest.tail.strip() == "]"
                return CutValue(pieces, rest.tail, whole, len(text))
        return None

    def _remember(self, slot: tuple[bytes, str], values: list[CutValue]) -> None:
        before = self._previous.pop(slot, [])
        self._held_chars += _chars(values) - _chars(before)
        self._previous[slot] = values
        while self._held_chars > self._reuse_bytes:
            _, dropped = self._previous.popitem(last=False)
            self._held_chars -= _chars(dropped)


def _chars(values: Iterable[CutValue]) -> int:
    # More than is held: values under one key share the pieces of their prefix.
    return sum(value.chars for value in values)


_ADD = """
INSERT INTO content (id, digest, size, body)
SELECT :first + key, substr(:digests, key * 32 + 1, 32), value ->> 0,
  substr(:bodies, value ->> 1, value ->> 2)
FROM json_each(:rows)
"""
_FIND_NODE = "SELECT id FROM content_list WHERE parent = ? AND content = ?"
_LAST_NODE = last_id("content_list")
_ADD_NODE = """
INSERT INTO content_list (id, parent, content)
SELECT :first + key, value ->> 0, value ->> 1 FROM json_each(:rows)
"""
_USE = """
INSERT OR IGNORE INTO content_use (content, run) SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""
_USE_LIST = """
INSERT OR IGNORE INTO content_list_use (list, run)
SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""


# Who uses a content, beside runs, as numbers below zero.
def text_user(text: int) -> int:
    """Return the number under which a row of `text` uses contents."""
    return -2 * text


def log_user(log: int) -> int:
    """Return the number under which a log record uses contents."""
    return -2 * log - 1


class _Encoded(NamedTuple):
    data: bytes
    digest: bytes


class ContentWriter:
    """Gives contents and lists their ids, inside the ingest transaction.

    Their rows wait until `write_held`: who reads contents in the same transaction calls it before.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._ids = DigestNumbering(
            connection, table="content", column="digest", most=_KNOWN_DIGESTS
        )
        self._nodes: Numbering[tuple[int, int]] = Numbering(
            connection, find=_FIND_NODE, last=_LAST_NODE, most=_KNOWN_NODES
        )
        self._generation = next(_GENERATIONS)
        # Of this transaction: rows that are not written yet, with the ids of the first of them
        # (the others follow), and who uses what.
        self._held: list[tuple[bytes, bytes]] = []  # digest and bytes
        self._held_nodes: list[tuple[int, int]] = []  # parent and content
        self._first = self._first_node = 0
        self._held_bytes = 0
        self._expected: dict[str, _Encoded] = {}
        self._uses: set[tuple[int, int]] = set()
        self._list_uses: set[tuple[int, int]] = set()

    def begin(self) -> None:
        """A transaction begins."""
        self._ids.begin()
        self._nodes.begin()
        self._expected.clear()

    def expect(self, cuts: Iterable[CutValue], texts: Iterable[str]) -> None:
        """Look up contents that are about to be named: the new pieces of texts, and whole texts."""
        expected = [piece.text for cut in cuts for piece in self._new_pieces(cut)]
        for text in dict.fromkeys((*expected, *texts)):
            with suppress(UnicodeEncodeError):  # it will not be named: no content can hold it
                data = text.encode("utf-8")
                self._expected[text] = _Encoded(data, hashlib.sha256(data).digest())
        self._ids.expect([encoded.digest for encoded in self._expected.values()])

    def _new_pieces(self, cut: CutValue) -> Iterator[_Piece]:
        """Yield the last pieces of a value, down to those that have their node already."""
        for piece in reversed(cut.pieces):
            if piece.generation == self._generation:
                return
            yield piece

    def add(self, data: bytes, *, run: int) -> int:
        """Return the id of these bytes, storing them the first time, and note the run's use."""
        content = self._content(data)
        self._uses.add((content, run))
        return content

    def keep(self, text: str) -> int:
        """Return the id of a text's bytes, storing them the first time; the caller notes the use.

        Raises UnicodeEncodeError for a text that has no bytes.
        """
        return self._text(text)

    def use_by_text(self, content: int, text: int) -> None:
        """Note that a text's body names a content."""
        self._uses.add((content, text_user(text)))

    def add_list(self, pieces: Sequence[_Piece], *, run: int) -> int:
        """Return the node of the last piece, adding the nodes that are new."""
        start = len(pieces)
        while start and pieces[start - 1].generation != self._generation:
            start -= 1
        node = pieces[start - 1].node if start else 0
        for piece in pieces[start:]:
            node = piece.node = self._node(node, self._text(piece.text))
            piece.generation = self._generation
        self._list_uses.add((node, run))
        return node

    def _text(self, text: str) -> int:
        encoded = self._expected.get(text)
        if encoded is None:
            return self._content(text.encode("utf-8"))
        return self._encoded(encoded.data, encoded.digest)

    def _content(self, data: bytes) -> int:
        return self._encoded(data, hashlib.sha256(data).digest())

    def _encoded(self, data: bytes, digest: bytes) -> int:
        found = self._ids.find((digest,))
        if found is None:
            found = self._ids.add((digest,))
            self._first = self._first if self._held else found
            self._held.append((digest, data))
            self._held_bytes += len(data)
            if self._held_bytes > _HELD_BYTES:
                self.write_held()
        return found

    def _node(self, parent: int, content: int) -> int:
        node = (parent, content)
        is_new = self._ids.is_new(content) or self._nodes.is_new(parent)
        found = self._nodes.known(node) if is_new else self._nodes.find(node)
        if found is None:
            found = self._nodes.add(node)
            self._first_node = self._first_node if self._held_nodes else found
            self._held_nodes.append(node)
        return found

    def write_held(self) -> None:
        """Write the rows that wait, in two statements that hold no lock of Python's."""
        if self._held:
            digests, values = zip(*self._held, strict=True)
            packed = pack_all(values)
            bodies, places = joined(packed)
            rows = as_json(zip(map(len, values), places, map(len, packed), strict=False))
            parameters = {"first": self._first, "digests": b"".join(digests)}
            self._execute(_ADD, parameters | {"bodies": bodies, "rows": rows})
            self._held.clear()
            self._held_bytes = 0
        if self._held_nodes:
            rows = as_json(self._held_nodes)
            self._execute(_ADD_NODE, {"first": self._first_node, "rows": rows})
            self._held_nodes.clear()

    def flush(self) -> None:
        """Write what waits, and which runs use what; the last thing before the commit."""
        self.write_held()
        for sql, uses in ((_USE, self._uses), (_USE_LIST, self._list_uses)):
            if uses:
                self._execute(sql, (as_json(sorted(uses)),))
        self._uses.clear()
        self._list_uses.clear()

    def forget(self) -> None:
        """Drop what is known of ids: after a rollback, or when gc has removed contents.

        Pieces keep nodes of an older generation, which are then looked up again.
        """
        self._ids.forget()
        self._nodes.forget()
        self._held.clear()
        self._held_bytes = 0
        self._held_nodes.clear()
        self._expected.clear()
        self._uses.clear()
        self._list_uses.clear()
        self._generation = next(_GENERATIONS)


_READ = "SELECT body FROM content WHERE id = ?"
_READ_LIST = """
WITH RECURSIVE node (id, parent, content, place) AS (
  SELECT id, parent, content, 0 FROM content_list WHERE id = :list
  UNION ALL
  SELECT up.id, up.parent, up.content, node.place + 1
  FROM node JOIN content_list AS up ON up.id = node.parent
)
SELECT content.body FROM node JOIN content ON content.id = node.content ORDER BY node.place DESC
"""


def read_content(connection: apsw.Connection, content: int) -> bytes:
    """Return the bytes of a content; raises StoreCorruptError when there is no such row."""
    body = connection.execute(_READ, (content,)).get
    if body is None:
        raise StoreCorruptError(f"content {content} is named by a record but is not stored")
    return unpack(body)


def read_list(connection: apsw.Connection, node: int) -> bytes:
    """Return the joined pieces of a list, first to last."""
    pieces = [unpack(body) for (body,) in connection.execute(_READ_LIST, {"list": node})]
    if not pieces:
        raise StoreCorruptError(f"list {node} is named by a record but is not stored")
    return b"".join(pieces)

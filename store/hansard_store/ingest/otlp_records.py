"""The lossless form of a span, a log record or a metric: protobuf with its large values apart.

A record is the message's own serialisation with large text and byte values emptied, behind a list
that says for each emptied value where its bytes are. Values are numbered in the order of a walk
over all AnyValues that hold text or bytes, so the list needs no paths. Serialising again is exact
for every field the protocol knows and for those it does not (upb keeps unknown fields).

Layout before packing: varint n, then n times (varint slot gap, varint kind, varint id[, varint
length, tail]), then the protobuf bytes. Kinds: 0 text content, 1 list with its tail inline,
2 list whose tail is a further content, 3 bytes content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import apsw
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_compiler.redaction.otlp import WITHOUT_TEXT
from hansard_store.content.large_values import ContentWriter, CutValue, read_content, read_list
from hansard_store.database.compression import pack, unpack
from hansard_store.errors import StoreCorruptError

_LARGE_CHARS = 1024  # other values: below, a row of their own costs more than it saves
_LARGE_MESSAGE_CHARS = 64  # texts of messages, which a conversation sends again and again
_INLINE_TAIL_BYTES = 96
_MESSAGE_KEYS = (
    "llm.input_messages.",
    "llm.output_messages.",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "llm.prompts.",
)
_TEXT, _LIST, _LIST_AND_TAIL, _BYTES = range(4)

# A value that holds text or bytes, with its key and the text; reading it anew would copy it.
Leaf: TypeAlias = tuple[str, AnyValue, str]

Message = TypeVar("Message", Span, LogRecord, Metric)


class LargeValue(NamedTuple):
    """A value to be stored apart: where it stands in the walk, and what it holds."""

    slot: int
    value: AnyValue  # emptied while the record is packed
    cut: CutValue | None


def large_values(
    message: Span | LogRecord,
    cut: Callable[[str, str], CutValue | None],
    *,
    attribute_leaves: Sequence[Leaf] | None = None,
) -> list[LargeValue]:
    """Return the values of a message that are worth a row of their own, in walk order.

    `cut(key, text)` may answer with the text's pieces; it is called for large texts only. Who has
    walked over the attributes already gives their leaves: the walk is most of the cost.
    """
    found = []
    for slot, (key, value, text) in enumerate(_values(message, attribute_leaves)):
        if len(text) <= _LARGE_MESSAGE_CHARS:
            if not text and len(value.bytes_value) > _LARGE_CHARS:
                found.append(LargeValue(slot, value, None))
        elif len(text) > _LARGE_CHARS or key.startswith(_MESSAGE_KEYS):
            found.append(LargeValue(slot, value, cut(key, text)))
    return found


def pack_record(
    message: Message, large: Iterable[LargeValue], contents: ContentWriter, *, run: int
) -> bytes:
    """Return the packed record of a message; see `record_of`."""
    return pack(record_of(message, large, contents, run=run))


def record_of(
    message: Message, large: Iterable[LargeValue], contents: ContentWriter, *, run: int
) -> bytes:
    """Return the record of a message, not packed yet, moving its large values to contents.

    The message is whole again afterwards: should its transaction fail, it can be packed once more.
    """
    head = bytearray()
    emptied: list[tuple[AnyValue, str | bytes]] = []
    last = 0
    for one in large:
        _write_varint(head, one.slot - last)
        last = one.slot
        emptied.append((one.value, _store_value(head, one, contents, run=run)))
    start = bytearray()
    _write_varint(start, len(emptied))
    record: bytes = bytes(start + head) + message.SerializeToString()
    for value, content in emptied:
        _set_value(value, content)
    return record


def _store_value(
    head: bytearray, one: LargeValue, contents: ContentWriter, *, run: int
) -> str | bytes:
    """Store and empty one value; returns what it held."""
    value = one.value
    if value.HasField("bytes_value"):
        data = value.bytes_value
        _write_varint(head, _BYTES)
        _write_varint(head, contents.add(data, run=run))
        value.bytes_value = b""
        return data
    text = value.string_value
    if one.cut is None:
        _write_varint(head, _TEXT)
        _write_varint(head, contents.add(text.encode("utf-8"), run=run))
    else:
        _store_list(head, one.cut, contents, run=run)
    value.string_value = ""
    return text


def _set_value(value: AnyValue, content: str | bytes) -> None:
    if isinstance(content, bytes):
        value.bytes_value = content
    else:
        value.string_value = content


def _store_list(head: bytearray, cut: CutValue, contents: ContentWriter, *, run: int) -> None:
    node = contents.add_list(cut.pieces, run=run)
    tail = cut.tail.encode("utf-8")
    inline = len(tail) <= _INLINE_TAIL_BYTES
    _write_varint(head, _LIST if inline else _LIST_AND_TAIL)
    _write_varint(head, node)
    if inline:
        _write_varint(head, len(tail))
        head += tail
    else:
        _write_varint(head, contents.add(tail, run=run))


def restore_span(connection: apsw.Connection, packed: bytes) -> Span:
    """Return the span of a record, whole; raises StoreCorruptError when a part is missing."""
    return _restore(connection, packed, Span())


def restore_shell(packed: bytes) -> Span:
    """Return the span of a record with its large values empty: times, names and small values."""
    data = unpack(packed)
    _, position = _read_references(data)
    span: Span = Span.FromString(data[position:])
    return span


def restore_log(connection: apsw.Connection, packed: bytes) -> LogRecord:
    """Return the log record of a record, whole; raises StoreCorruptError."""
    return _restore(connection, packed, LogRecord())


def restore_metric(connection: apsw.Connection, packed: bytes) -> Metric:
    """Return the metric of a record, with its one data point; raises StoreCorruptError."""
    return _restore(connection, packed, Metric())


def _restore(connection: apsw.Connection, packed: bytes, message: Message) -> Message:
    data = unpack(packed)
    try:
        references, position = _read_references(data)
        message.MergeFromString(data[position:])
    except (IndexError, DecodeError) as error:
        raise StoreCorruptError(f"a record cannot be read: {error}") from error
    if references and not isinstance(message, Metric):
        _fill(connection, message, references)
    return message


@dataclass(frozen=True, slots=True)
class Reference:
    """Where the bytes of an emptied value are."""

    kind: int
    id: int
    tail: bytes = b""
    tail_content: int = 0

    @property
    def is_list(self) -> bool:
        """Whether `id` is a node of `content_list`, and not a content."""
        return self.kind in (_LIST, _LIST_AND_TAIL)


def references_of(packed: bytes) -> list[Reference]:
    """Return what a record refers to, without reading it: for verify and gc."""
    references, _ = _read_references(unpack(packed))
    return list(references.values())


def _read_references(data: bytes) -> tuple[dict[int, Reference], int]:
    count, position = _read_varint(data, 0)
    found: dict[int, Reference] = {}
    slot = 0
    for _ in range(count):
        gap, position = _read_varint(data, position)
        kind, position = _read_varint(data, position)
        number, position = _read_varint(data, position)
        slot += gap
        tail, tail_content = b"", 0
        if kind == _LIST:
            length, position = _read_varint(data, position)
            tail = data[position : position + length]
            position += length
        elif kind == _LIST_AND_TAIL:
            tail_content, position = _read_varint(data, position)
        found[slot] = Reference(kind, number, tail, tail_content)
    return found, position


def _fill(
    connection: apsw.Connection, message: Span | LogRecord, references: Mapping[int, Reference]
) -> None:
    for slot, (_, value, _) in enumerate(_values(message)):
        reference = references.get(slot)
        if reference is None:
            continue
        data = _bytes_of(connection, reference)
        _set_value(value, data if reference.kind == _BYTES else data.decode("utf-8"))


def _bytes_of(connection: apsw.Connection, reference: Reference) -> bytes:
    if reference.kind in (_TEXT, _BYTES):
        return read_content(connection, reference.id)
    tail = reference.tail
    if reference.kind == _LIST_AND_TAIL:
        tail = read_content(connection, reference.tail_content)
    return read_list(connection, reference.id) + tail


# ---- the walk: one order for packing and restoring, whatever the values hold


def _values(
    message: Span | LogRecord, attribute_leaves: Sequence[Leaf] | None = None
) -> list[Leaf]:
    """Return every AnyValue that holds text or bytes, with its attribute's key."""
    found: list[Leaf] = []
    if isinstance(message, LogRecord):
        add_leaves("body", message.body, found)
    if attribute_leaves is None:
        _add_pairs("", message.attributes, found)
    else:
        found += attribute_leaves
    if isinstance(message, Span):
        for event in message.events:
            # Old conventions put messages into events; their texts repeat like any message's.
            prefix = "gen_ai.prompt." if event.name.startswith("gen_ai.") else ""
            _add_pairs(prefix, event.attributes, found)
        for link in message.links:
            _add_pairs("", link.attributes, found)
    return found


def _add_pairs(prefix: str, pairs: Iterable[KeyValue], found: list[Leaf]) -> None:
    add = found.append
    for pair in pairs:
        value = pair.value
        text = value.string_value
        if text:  # nearly all are; asking which field is set costs more
            add((prefix + pair.key, value, text))
        else:
            add_leaves(prefix + pair.key, value, found)


def add_leaves(key: str, value: AnyValue, found: list[Leaf]) -> None:
    """Add the values in a value that hold text or bytes, in the order of the walk."""
    kind = value.WhichOneof("value")
    if kind in ("string_value", "bytes_value"):
        found.append((key, value, value.string_value))
    elif kind == "array_value":
        for inner in value.array_value.values:
            if inner.WhichOneof("value") not in WITHOUT_TEXT:
                add_leaves(key, inner, found)
    elif kind == "kvlist_value":
        for pair in value.kvlist_value.values:
            add_leaves(key, pair.value, found)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7

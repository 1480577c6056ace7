"""One protobuf request whatever the encoding was, if it takes no more memory than it may.

Wire format of protobuf: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from hansard_collector.errors import MalformedRequest, RequestTooDense
from hansard_collector.otlp.json_codec import MAX_DEPTH, decode_json
from hansard_collector.otlp.signals import CONTRACTS, ExportRequest
from hansard_collector.pipeline.requests import Encoding, IngestRequest, Signal

_VARINT: Final = 0  # wire types
_LENGTH_DELIMITED: Final = 2
_WIDTHS: Final = {1: 8, 5: 4}
_FIRST_TAG = 1 << 3  # of field 1; there is no field 0
_JSON_SPACE = b" \t\r\n"
_JSON_STARTS = (b"", b"{", b"\xef")  # nothing but space so far, an object, a byte order mark


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as protobuf, and what of it could not be read, in sentences for the sender."""

    message: ExportRequest
    warnings: Sequence[str] = ()


def decode_request(request: IngestRequest) -> DecodedRequest:
    """Return the message in a request's body.

    Raises MalformedRequest when there is none, RequestTooDense where it would take too much memory.
    Protobuf is parsed whole by the library, in C. JSON costs thirty times as much or more.
    """
    if request.encoding is Encoding.JSON:
        check_json_size(request.body)
        warnings: list[str] = []
        message = decode_json(request.signal, request.body, warnings)
        return DecodedRequest(message, warnings)
    return DecodedRequest(_parse_protobuf(request.signal, request.body))


def judge_start(encoding: Encoding, start: bytes) -> MalformedRequest | None:
    """Return why the first bytes of a body, at least one, begin no message; None if they may.

    Asked before the rest is inflated: 64 MiB of zeros come in 64 KiB of gzip.
    """
    if encoding is Encoding.PROTOBUF and start[0] < _FIRST_TAG:
        return MalformedRequest("the body is not protobuf: it begins with a field number 0")
    if encoding is Encoding.JSON and start.lstrip(_JSON_SPACE)[:1] not in _JSON_STARTS:
        return MalformedRequest("the body is no JSON object")
    return None


def _parse_protobuf(signal: Signal, body: bytes) -> ExportRequest:
    message_type = CONTRACTS[signal].request
    check_parsed_size(message_type.DESCRIPTOR, body)
    try:
        message: ExportRequest = message_type.FromString(body)
    except DecodeError:
        raise MalformedRequest(
            f"no {message_type.DESCRIPTOR.name}: {_explain_fault(message_type, body)}"
        ) from None
    return message


# Why protobuf's parser refused a body: read again along the schema, when it failed and only then.
#
# The parser's own words differ between versions of protobuf, and before version 7 it gives no
# reason.

# About 0.1 s of reading; a fault behind more fields than these is not named.
_MAX_FIELDS: Final = 50_000

_DAMAGED: Final = "the body is not protobuf, or was damaged on its way"


def _explain_fault(message_type: type[Message], body: bytes) -> str:
    """Return why `body` is no message of the type, as the end of a sentence for its sender."""
    missing = _missing_bytes(body)
    if missing:
        return f"the body was cut off: {missing:,} bytes or more are missing at its end"
    levels = [_Level(message_type.DESCRIPTOR, 0, len(body))]
    for _ in range(_MAX_FIELDS):
        while levels and levels[-1].position >= levels[-1].end:
            levels.pop()
        if not levels:
            break
        try:
            inner = levels[-1].read_field(body)
        except UnicodeDecodeError:
            return "a string in it is not UTF-8; bytes that are no text belong into bytes_value"
        except ValueError:
            break
        if inner is not None:
            levels.append(inner)
        if len(levels) - 1 > MAX_DEPTH:
            return (
                f"values are nested deeper than {MAX_DEPTH} messages, which is 31 maps or 47"
                " arrays in a span attribute"
            )
    return _DAMAGED


@dataclass(slots=True)
class _Level:
    """A message within the body, and how far it has been read."""

    descriptor: Descriptor
    position: int
    end: int

    def read_field(self, body: bytes) -> _Level | None:
        """Step over the next field; returns it as a level of its own where it is a message.

        Raises UnicodeDecodeError for a string that is not UTF-8, ValueError where the bytes are no
        field.
        """
        tag, position = _read_cut_varint(body, self.position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            _, self.position = _read_cut_varint(body, position)
        elif wire_type == _LENGTH_DELIMITED:
            length, position = _read_cut_varint(body, position)
            self.position = position + length
        elif wire_type in _WIDTHS:
            self.position = position + _WIDTHS[wire_type]
        else:
            raise ValueError(f"wire type {wire_type}")
        if self.position > self.end:
            raise ValueError("a field reaches beyond its message")
        field = self.descriptor.fields_by_number.get(number)
        if wire_type != _LENGTH_DELIMITED or field is None:
            return None
        if field.type == FieldDescriptor.TYPE_STRING:
            body[position : self.position].decode("utf-8")
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return _Level(field.message_type, position, self.position)
        return None


def _missing_bytes(body: bytes) -> int:
    """How far the last envelope reaches beyond the body; 0 if the body is no list of envelopes.

    An export request has one field, number 1 and repeated, so its outermost level is read by
    stepping over lengths.
    """
    position = 0
    while position < len(body):
        if body[position] != 1 << 3 | _LENGTH_DELIMITED:
            return 0
        length, position = _read_cut_varint(body, position + 1)
        position += length
    return position - len(body)


def _read_cut_varint(body: bytes, position: int) -> tuple[int, int]:
    """Return what `_read_varint` does; a number that is cut off counts as one byte more."""
    number = shift = 0
    while position < len(body) and shift < 64:
        byte = body[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
    return number, position + 1


# How much memory a request will take once it is parsed, found before it is.
#
# Two bytes stand for an empty message, which takes 50 to 180 bytes parsed: a body of the largest
# size would take gigabytes, and as gzip it is 60 KB. What is counted is the fixed part of each
# message; texts take what they take in the body.

# A body of 64 MiB with 200,000 spans of ten short attributes takes 220 MiB.
MAX_PARSED_BYTES: Final = 256 * 2**20
MAX_JSON_BYTES: Final = 768 * 2**20  # the same request as Python's objects takes three times that

# By upb's layout: a header, the message's place in a list that doubles, and its fields.
_HEADER_BYTES: Final = 24
_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_TEXT_BYTES: Final = 16
_OTHER_BYTES: Final = 8

# By CPython's: a dict with an entry, an empty list, an element that is a short text.
_JSON_WEIGHTS: Final = {b"{": 184, b"[": 56, b",": 72}
_JSON_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# One character beyond the first plane makes each character of its text take four bytes; the text is
# there twice, as a part of the whole and by itself, and once more as UTF-8 and as protobuf.
_WIDE: Final = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")
_WIDE_WEIGHT: Final = 12


def check_parsed_size(kind: Descriptor, body: bytes, limit: int = MAX_PARSED_BYTES) -> None:
    """Raise RequestTooDense if a message of this kind would take more than `limit` bytes.

    A body that is no such message passes: the parser says so. Linear in the body, and two reads in
    C for those that are not dense: 64 MiB take 0.6 s, and 5 s
    where every message has to be visited.
    """
    weights = _weights(kind)
    if len(body) // 2 * max(weights.values()) <= limit or _most_bytes(weights, body) <= limit:
        return
    taken = 0
    for size in _message_sizes(kind, body):
        taken += size
        if taken > limit:
            raise RequestTooDense(limit)


def check_json_size(body: bytes, limit: int = MAX_JSON_BYTES) -> None:
    """Raise RequestTooDense if JSON would take more than `limit` bytes as Python's objects."""
    if json_size(body, limit) > limit:
        raise RequestTooDense(limit)


def json_size(body: bytes, limit: int, *, entry_bytes: int = 0) -> int:
    """Return about how many bytes JSON takes as Python's objects, exactly counted above `limit`.

    `entry_bytes` is what an entry of an object takes beside its value, where its keys are looked
    at while it is parsed.
    """
    size = _json_bytes(body, entry_bytes)
    if size > limit:  # what stands in texts was counted as well
        size = _json_bytes(_JSON_TEXT.sub(b"", body), entry_bytes)
    if len(body) * _WIDE_WEIGHT > limit and _WIDE.search(body):
        size += len(body) * _WIDE_WEIGHT
    return size


def _json_bytes(body: bytes, entry_bytes: int) -> int:
    signs = sum(body.count(sign) * weight for sign, weight in _JSON_WEIGHTS.items())
    return signs + (body.count(b":") * entry_bytes if entry_bytes else 0)


# ------------------------------------------------------------------------------------ by the schema
class _Kind:
    """A message type: by number those of its fields that are messages, with their fixed size."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: dict[int, tuple[int, _Kind]] = {}


_Open: TypeAlias = tuple[int, int, dict[int, tuple[int, _Kind]]]  # from, to, its kind's fields


@cache
def _kind(descriptor: Descriptor) -> _Kind:
    """Return a message type with all below it; types hold themselves (a value in a list)."""
    kinds: dict[str, _Kind] = {}

    def of(one: Descriptor) -> _Kind:
        found = kinds.get(one.full_name)
        if found is None:
            found = kinds[one.full_name] = _Kind()
            for field in one.fields:
                if field.message_type is not None:
                    inner = field.message_type
                    found.fields[field.number] = _fixed_bytes(inner), of(inner)
        return found

    return of(descriptor)


def _fixed_bytes(descriptor: Descriptor) -> int:
    single = [field for field in descriptor.fields if field.containing_oneof is None]
    one_ofs = [max(map(_field_bytes, each.fields)) for each in descriptor.oneofs]
    return _HEADER_BYTES + sum(map(_field_bytes, single)) + sum(one_ofs)


def _field_bytes(field: FieldDescriptor) -> int:
    return _TEXT_BYTES if field.type in _TEXTS and not field.is_repeated else _OTHER_BYTES


@cache
def _weights(descriptor: Descriptor) -> Mapping[int, int]:
    """Return by the first byte of a field's tag the most bytes that its message may take."""
    weights: dict[int, int] = {}
    pending, seen = [_kind(descriptor)], set[int]()
    while pending:
        kind = pending.pop()
        if id(kind) in seen:
            continue
        seen.add(id(kind))
        for number, (size, inner) in kind.fields.items():
            tag = (number << 3 | _LENGTH_DELIMITED) & 0x7F
            for first in (tag, tag | 0x80):  # a number may be written longer than it has to be
                weights[first] = max(weights.get(first, 0), size)
            pending.append(inner)
    return weights


def _most_bytes(weights: Mapping[int, int], body: bytes) -> int:
    """Return more than the messages in a body can take: each byte that may begin one is counted."""
    return sum(body.count(first) * size for first, size in weights.items())


# -------------------------------------------------------------------------------------- by the body
def _message_sizes(descriptor: Descriptor, body: bytes) -> Iterator[int]:
    """Yield the fixed size of each message in a body; ends where the body is no such message.

    What lies deeper than the parser goes is left out: it is refused there.
    """
    levels = [(0, len(body), _kind(descriptor).fields)]
    try:
        while levels:
            yield from _sizes_at(levels, body)
    except IndexError:  # cut off within a field
        return


def _sizes_at(levels: list[_Open], body: bytes) -> Iterator[int]:
    """Yield the sizes from the last level on, until that level ends; others are added meanwhile."""
    position, end, fields = levels.pop()
    while position < end:
        tag = body[position]
        position += 1
        if tag >= 0x80:
            tag, position = _read_varint(body, position - 1)
        wire_type = tag & 7
        if wire_type == _LENGTH_DELIMITED:
            length = body[position]
            position += 1
            if length >= 0x80:
                length, position = _read_varint(body, position - 1)
            after = position + length
            found = fields.get(tag >> 3)
            if found is not None:
                yield found[0]
                if length and len(levels) < MAX_DEPTH:
                    levels.append((after, end, fields))
                    end, fields = min(after, end), found[1].fields
                    continue
            position = after
        elif wire_type == _VARINT:
            _, position = _read_varint(body, position)
        else:
            # Fields of a group count as if they were the message's own.
            position += _WIDTHS.get(wire_type, 0)


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position behind it; raises IndexError at the end."""
    number = shift = 0
    while True:
        byte = body[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position

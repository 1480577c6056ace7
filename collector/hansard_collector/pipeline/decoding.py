"""One protobuf request whatever the encoding was: the first stage of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from hansard_collector.errors import MalformedRequest
from hansard_collector.otlp.json_codec import MAX_DEPTH, decode_json
from hansard_collector.otlp.signals import CONTRACTS, ExportRequest
from hansard_collector.pipeline.parsed_size import check_json_size, check_parsed_size
from hansard_collector.pipeline.submission import Encoding, IngestRequest, Signal

# Why protobuf's parser refused a body: read again along the schema, when it failed and only then.
#
# The parser's own words differ between versions of protobuf, and before version 7 it gives no
# reason. Wire format: protobuf.dev/programming-guides/encoding.

# About 0.1 s of reading; a fault behind more fields than these is not named.
MAX_FIELDS: Final = 50_000

_VARINT: Final = 0  # wire types
_LENGTH_DELIMITED: Final = 2
_WIDTHS: Final = {1: 8, 5: 4}
_DAMAGED: Final = "the body is not protobuf, or was damaged on its way"


def explain_fault(message_type: type[Message], body: bytes) -> str:
    """Return why `body` is no message of the type, as the end of a sentence for its sender."""
    missing = _missing_bytes(body)
    if missing:
        return f"the body was cut off: {missing:,} bytes or more are missing at its end"
    levels = [_Level(message_type.DESCRIPTOR, 0, len(body))]
    for _ in range(MAX_FIELDS):
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
        tag, position = _read_varint(body, self.position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            _, self.position = _read_varint(body, position)
        elif wire_type == _LENGTH_DELIMITED:
            length, position = _read_varint(body, position)
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
        length, position = _read_varint(body, position + 1)
        position += length
    return position - len(body)


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    """The number at `position` and the position behind it; a number cut off counts as one more."""
    number = shift = 0
    while position < len(body) and shift < 64:
        byte = body[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
    return number, position + 1


_FIRST_TAG = 1 << 3  # of field 1; there is no field 0
_JSON_SPACE = b" \t\r\n"
_JSON_STARTS = (b"", b"{", b"\xef")  # nothing but space so far, an object, a byte order mark


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as protobuf, and what of it could not be read, in sentences for the sender."""

    message: ExportRequest
    warnings: Sequence[str] = ()


def decode(request: IngestRequest) -> DecodedRequest:
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
            f"no {message_type.DESCRIPTOR.name}: {explain_fault(message_type, body)}"
        ) from None
    return message

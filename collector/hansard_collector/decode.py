"""One protobuf request whatever the encoding was: the first stage of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from hansard_collector.errors import MalformedRequest
from hansard_collector.ingest import Encoding, IngestRequest, Signal
from hansard_collector.json_codec import MAX_DEPTH, decode_json
from hansard_collector.signals import CONTRACTS, ExportRequest

# The words with which upb, protobuf's parser, gives its reasons (protobuf 7.36).
_TOO_DEEP = "MaxDepth"
_BAD_UTF8 = "UTF-8"

_LENGTH_DELIMITED = 2  # protobuf wire type
_FIRST_TAG = 1 << 3  # of field 1; there is no field 0
_JSON_SPACE = b" \t\r\n"
_JSON_STARTS = (b"", b"{", b"\xef")  # nothing but space so far, an object, a byte order mark


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as protobuf, and what of it could not be read, in sentences for the sender."""

    message: ExportRequest
    warnings: Sequence[str] = ()


def decode(request: IngestRequest) -> DecodedRequest:
    """Return the message in a request's body; raises MalformedRequest when there is none.

    Protobuf is parsed whole by the library, in C. JSON costs thirty times as much or more.
    """
    if request.encoding is Encoding.JSON:
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
    try:
        message: ExportRequest = message_type.FromString(body)
    except DecodeError as error:
        raise MalformedRequest(
            f"no {message_type.DESCRIPTOR.name}: {_explain(str(error), body)}"
        ) from None
    return message


def _explain(reason: str, body: bytes) -> str:
    if _TOO_DEEP in reason:
        return (
            f"values are nested deeper than {MAX_DEPTH} messages, which is 31 maps or 47 arrays"
            " in a span attribute"
        )
    if _BAD_UTF8 in reason:
        return "a string in it is not UTF-8; bytes that are no text belong into bytes_value"
    missing = _missing_bytes(body)
    if missing:
        return f"the body was cut off: {missing:,} bytes or more are missing at its end"
    return "the body is not protobuf, or was damaged on its way"


def _missing_bytes(body: bytes) -> int:
    """How far the last envelope reaches beyond the body; 0 if the body is no list of envelopes.

    An export request has one field, number 1 and repeated, so its outermost level is read by
    stepping over lengths.
    """
    position = 0
    while position < len(body):
        tag, length_at = body[position], position + 1
        if tag != 1 << 3 | _LENGTH_DELIMITED:
            return 0
        length, position = _read_varint(body, length_at)
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

"""One protobuf request whatever the encoding was: the first stage of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from hansard_collector.errors import MalformedRequest
from hansard_collector.otlp.json_codec import decode_json
from hansard_collector.otlp.signals import CONTRACTS, ExportRequest
from hansard_collector.pipeline.parsed_size import check_json_size, check_parsed_size
from hansard_collector.pipeline.protobuf_faults import explain_fault
from hansard_collector.pipeline.submission import Encoding, IngestRequest, Signal

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

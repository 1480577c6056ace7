"""Why a request was refused, and the google.rpc.Status for the sender.

OTLP demands a Status on every 4xx and 5xx, in the request's encoding (specification.md, Failures),
and on gRPC carries one in the trailing metadata. Both receivers build theirs here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from enum import Enum
from http import HTTPStatus

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from hansard_collector.errors import MalformedRequest, RequestTooLarge, StoreBusy
from hansard_collector.otlp.signals import CONTRACTS, ExportResponse
from hansard_collector.pipeline.requests import (
    LATE_S,
    Ingest,
    IngestRequest,
    IngestResult,
    RefusedRequest,
    RequestSender,
    Signal,
)

MAX_BODY_BYTES = 64 << 20  # OTLP 1.11 recommends it for both transports, compressed and not
STORE_WAIT_S = LATE_S
_MOST_REASON_BYTES = 64 * 1024  # of a sentence to the ledger
MAX_MESSAGE_BYTES = 4096  # of a sentence to the sender; a response may have 4 MiB in all
_log = logging.getLogger(__name__)
_INTERNAL_MESSAGE = "the receiver failed in a way it should not; its log says how"


class RejectReason(Enum):
    """Every way to be refused: a short name for the ledger, the HTTP and the gRPC code."""

    def __init__(self, code: str, http: HTTPStatus, grpc: int) -> None:
        self.code = code
        self.http = http
        self.grpc = grpc

    MALFORMED = ("malformed", HTTPStatus.BAD_REQUEST, code_pb2.INVALID_ARGUMENT)
    UNAUTHENTICATED = ("unauthenticated", HTTPStatus.UNAUTHORIZED, code_pb2.UNAUTHENTICATED)
    FORBIDDEN = ("forbidden", HTTPStatus.FORBIDDEN, code_pb2.PERMISSION_DENIED)
    UNKNOWN_PATH = ("unknown_path", HTTPStatus.NOT_FOUND, code_pb2.UNIMPLEMENTED)
    WRONG_METHOD = ("wrong_method", HTTPStatus.METHOD_NOT_ALLOWED, code_pb2.UNIMPLEMENTED)
    SENDER_GONE = ("sender_gone", HTTPStatus.BAD_REQUEST, code_pb2.CANCELLED)  # reads no answer
    SENDER_STALLED = ("sender_stalled", HTTPStatus.REQUEST_TIMEOUT, code_pb2.DEADLINE_EXCEEDED)
    # Never with RetryInfo: the same batch would be as large again.
    TOO_LARGE = ("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, code_pb2.RESOURCE_EXHAUSTED)
    UNSUPPORTED_TYPE = (
        "unsupported_type",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        code_pb2.INVALID_ARGUMENT,
    )
    UNSUPPORTED_ENCODING = (
        "unsupported_encoding",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        code_pb2.INVALID_ARGUMENT,
    )
    INTERNAL = ("internal", HTTPStatus.INTERNAL_SERVER_ERROR, code_pb2.INTERNAL)
    BUSY = ("busy", HTTPStatus.SERVICE_UNAVAILABLE, code_pb2.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class ExportRefusal:
    """A request that was not stored, and the sentence for its sender."""

    reason: RejectReason
    message: str
    bad_field: str = ""  # of a malformed request, where it is known
    retry_after_s: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # more for an HTTP answer
    is_counted: bool = False  # by the pipeline, which had the request in its hands


STORE_TOO_SLOW = ExportRefusal(
    RejectReason.BUSY,
    "the store did not answer in time; the request stays queued and may be sent again",
    retry_after_s=StoreBusy.retry_after_s,
)
SHUTTING_DOWN = ExportRefusal(
    RejectReason.BUSY,
    "the receiver is shutting down; send the request again",
    retry_after_s=StoreBusy.retry_after_s,
)


def outcome_of(future: Future[IngestResult]) -> IngestResult | ExportRefusal:
    """The outcome of a request whose future is done; a bug of the pipeline is logged."""
    if future.cancelled():
        return SHUTTING_DOWN
    error = future.exception()
    return future.result() if error is None else _refused(error)


def _refused(error: BaseException) -> ExportRefusal:
    refusal = refusal_of(error)
    if refusal.reason is RejectReason.INTERNAL:
        _log.error("a request failed in the pipeline", exc_info=error)
    return replace(refusal, is_counted=refusal.reason is not RejectReason.BUSY)


def refusal_of(error: BaseException) -> ExportRefusal:
    """The response to an error of the pipeline; one it should not raise is INTERNAL."""
    match error:
        case MalformedRequest():
            return ExportRefusal(RejectReason.MALFORMED, str(error), bad_field=error.field)
        case RequestTooLarge():
            return ExportRefusal(RejectReason.TOO_LARGE, str(error))
        case StoreBusy():
            return ExportRefusal(
                RejectReason.BUSY, str(error), retry_after_s=StoreBusy.retry_after_s
            )
        case _:
            return ExportRefusal(RejectReason.INTERNAL, _INTERNAL_MESSAGE)


def status_message(refusal: ExportRefusal) -> Status:
    """The google.rpc.Status of a refusal, with BadRequest or RetryInfo where they apply."""
    status = Status(code=refusal.reason.grpc, message=capped(refusal.message))
    detail: BadRequest | RetryInfo | None = None
    if refusal.reason is RejectReason.MALFORMED:
        violation = BadRequest.FieldViolation(field=refusal.bad_field, description=status.message)
        detail = BadRequest(field_violations=[violation])
    elif refusal.retry_after_s is not None:
        detail = retry_info(refusal.retry_after_s)
    if detail is not None:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def retry_info(delay_s: int) -> RetryInfo:
    return RetryInfo(retry_delay=Duration(seconds=delay_s))


def export_response(signal: Signal, result: IngestResult) -> ExportResponse:
    """The response to a stored request: empty on full success, as OTLP demands."""
    contract = CONTRACTS[signal]
    response = contract.response()
    if result.rejected or result.message:
        setattr(response.partial_success, contract.rejected_field, result.rejected)
        response.partial_success.error_message = capped(result.message)
    return response


def capped(text: str, limit_bytes: int = MAX_MESSAGE_BYTES) -> str:
    """Cut a sentence to so many bytes of UTF-8, never within a character."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return encoded.decode()
    return encoded[: limit_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"


def submit(ingest: Ingest, request: IngestRequest) -> Future[IngestResult] | ExportRefusal:
    """Queue a request with the pipeline; a Refusal, and no reference to it, where it is not queued.

    A future that held the error here would be held by the error's own frame, and the request with
    it: a server that refused requests under load held each of them.
    """
    try:
        return ingest.submit(request)
    except Exception as error:  # the pipeline's border: every failure becomes a response
        return _refused(error)


def report(
    ingest: Ingest,
    refusal: ExportRefusal,
    *,
    signal: Signal | None,
    sender: RequestSender,
    size_bytes: int,
) -> None:
    """Enter a refusal in the ledger, so that a sender that only gets errors is seen."""
    if refusal.is_counted:
        return
    ingest.refuse(
        RefusedRequest(
            signal=signal.value if signal else "",
            sender=sender,
            code=refusal.reason.code,
            # The ledger looks for secrets in it before it keeps the beginning.
            message=capped(refusal.message, _MOST_REASON_BYTES),
            size_bytes=size_bytes,
            received_ns=time.time_ns(),
        )
    )

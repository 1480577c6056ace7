"""Taking batches to the collector: whole, or without what it will never take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hansard._config.setting import GRPC
from hansard._export.otlp.exporter import (
    ExportOutcome,
    ExportResponse,
    ExportSender,
    is_hansard,
    make_sender,
)
from hansard._export.otlp.spans import logs_of, spans_of
from hansard._export.spool import RECORD_BYTES, SpooledPayload, SpoolFile, SpoolKind
from hansard._runtime.forks import apart_from_forks

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings
    from hansard._export.otlp.payload_upload import Uploader

_MOST_PARTS: Final = 32  # requests spent on finding what of a batch is refused
_MOST_DOUBTS: Final = 3  # failures of one batch that may be its own fault
_MOST_AT_HANSARD: Final = 60 << 20  # of the 64 MiB that it takes in one request
# What the OpenTelemetry Collector takes by default is 4 MiB over gRPC and 20 MiB over HTTP.
_MOST_OVER_GRPC: Final = 7 << 19
_MOST_OVER_HTTP: Final = 16 << 20
_UPLOAD_AGAIN_S: Final = 60.0  # after an endpoint took no uploads
_CLOSED: Final = ExportResponse(ExportOutcome.LATER, "the program ends")


@dataclass(frozen=True, slots=True)
class Delivered:
    """The outcome of a batch. `refused` are items that will never be taken."""

    response: ExportResponse
    refused: Sequence[Any] = field(default=())


class Courier:
    """One way to the collector; made on first use, on the thread that uses it."""

    def __init__(self, settings: Settings, resource: Resource) -> None:
        self._settings = settings
        self._resource = resource  # of the process that sends payloads, of any process
        self._sender: ExportSender | None = None
        self._doubts: dict[object, int] = {}
        self._is_hansard: bool | None = None
        self._uploader: Uploader | None = None
        self._no_uploads_until_s = 0.0
        self._is_closed = False

    def deliver(self, kind: SpoolKind, items: Sequence[Any], *, name: object = None) -> Delivered:
        """Send items once. What is refused is found by halving, and returned apart.

        `name` is what a batch that is tried again is known by: after some failures that may be its
        own, an empty request shows whether they are.
        """
        response = self._send(kind, items)
        if response.outcome is ExportOutcome.DOUBTFUL and self._is_own_fault(kind, name):
            response = ExportResponse(ExportOutcome.REFUSED, response.reason)
        if response.outcome is not ExportOutcome.REFUSED:
            return Delivered(response)
        self._doubts.pop(name, None)
        return self._narrow(kind, items, response)

    def _narrow(self, kind: SpoolKind, items: Sequence[Any], response: ExportResponse) -> Delivered:
        refused: list[Any] = []
        parts: deque[Sequence[Any]] = deque(_halves(items) if len(items) > 1 else ())
        if len(items) <= 1:
            refused.extend(items)
        budget = _MOST_PARTS
        while parts:
            part = parts.popleft()
            of_part = self._send(kind, part) if budget > 0 else response
            budget -= 1
            if of_part.outcome in (ExportOutcome.REFUSED, ExportOutcome.DOUBTFUL):
                if len(part) > 1 and budget > 0:
                    parts.extend(_halves(part))
                else:
                    refused.extend(part)
            elif of_part.outcome is not ExportOutcome.ACCEPTED:
                # It went away meanwhile: all of it is tried again, what arrived is known there.
                return Delivered(of_part)
        return Delivered(ExportResponse(ExportOutcome.REFUSED, response.reason), refused)

    def _is_own_fault(self, kind: SpoolKind, name: object) -> bool:
        if name is None:
            return False
        self._doubts[name] = self._doubts.get(name, 0) + 1
        if self._doubts[name] < _MOST_DOUBTS:
            return False
        return self._send(kind, ()).outcome is ExportOutcome.ACCEPTED

    def _send(self, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        if self._is_closed:
            return _CLOSED
        if self._sender is None:
            with apart_from_forks():
                for each in (SpoolKind.TRACES, SpoolKind.LOGS):
                    encode(each, ())  # imports the encoders
                self._sender = make_sender(self._settings)
        if kind is SpoolKind.PAYLOADS and items:
            return self._send_payloads(self._sender, items)
        is_logs = kind in (SpoolKind.LOGS, SpoolKind.PAYLOADS)
        return self._sender.send(SpoolKind.LOGS if is_logs else SpoolKind.TRACES, items)

    def _send_payloads(
        self, sender: ExportSender, payloads: Sequence[SpooledPayload]
    ) -> ExportResponse:
        """Send payloads as log records, which pass any collector in between, or upload a large one.

        A large one is a log record only where no upload is possible and the other end is known to
        take as much.
        """
        size_bytes = len(payloads[0].data)
        if len(payloads) == 1 and size_bytes > RECORD_BYTES and not self._settings.embedded:
            response = self._upload(payloads[0])
            if response.outcome is not ExportOutcome.NOT_RECEIVED:
                return response
            most = _MOST_OVER_GRPC if self._settings.protocol == GRPC else _MOST_OVER_HTTP
            if size_bytes > (_MOST_AT_HANSARD if self.is_hansard() else most):
                return ExportResponse(
                    ExportOutcome.NOT_RECEIVED,
                    f"{response.reason}; it is too large for a log record there. Set http_endpoint "
                    "(HANSARD_HTTP_ENDPOINT) to the HTTP address of Hansard",
                )
        return sender.send_payloads(payloads, self._resource)

    def _upload(self, payload: SpooledPayload) -> ExportResponse:
        base = self._settings.http_endpoint
        if base is None and self._settings.protocol != GRPC:
            base = self._settings.endpoint
        if base is None or time.monotonic() < self._no_uploads_until_s:
            return ExportResponse(ExportOutcome.NOT_RECEIVED, "no HTTP endpoint is known")
        if self._uploader is None:
            with apart_from_forks():
                from hansard._export.otlp.payload_upload import Uploader

            self._uploader = Uploader(base, self._settings)
        response = self._uploader.put(payload.ref, payload.data, media_type=payload.media_type)
        if response.outcome is ExportOutcome.NOT_RECEIVED:
            self._no_uploads_until_s = time.monotonic() + _UPLOAD_AGAIN_S
        return response

    def is_hansard(self) -> bool:
        """Return whether the collector is Hansard; checked once for each time it is reached."""
        if self._is_hansard is None:
            self._is_hansard = is_hansard(self._settings)
        return self._is_hansard

    def lost_touch(self) -> None:
        """The connection to the collector ended: another one may answer next time."""
        self._is_hansard = None

    def close(self) -> None:
        """Close connections; a request that is under way ends with an error."""
        self._is_closed = True
        for connections in (self._sender, self._uploader):
            if connections is not None:
                connections.close()


def _halves(items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def items_of(file: SpoolFile) -> Sequence[Any]:
    """Return what is in a spool file. Raises SpoolError, or ValueError when it is torn."""
    if file.kind is SpoolKind.PAYLOADS:
        return file.read_payloads()
    data = file.read()
    if not data:
        raise ValueError("it is empty")
    with apart_from_forks():
        return logs_of(data) if file.kind is SpoolKind.LOGS else spans_of(data)


def encode(kind: SpoolKind, items: Sequence[Any]) -> bytes:
    """Return items as the bytes of a spool file, by the stock encoder; raises what it raises."""
    data: bytes
    if kind is SpoolKind.LOGS:
        from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

        data = encode_logs(items).SerializeToString()
        return data
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    data = encode_spans(items).SerializeToString()
    return data

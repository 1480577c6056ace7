"""Sending through the stock OTLP exporters, one attempt at a time, with an answer in words."""

from __future__ import annotations

import contextlib
import gzip
import inspect
import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from hansard._config.values import GRPC
from hansard._export.otlp.exporter_logs import listening
from hansard._export.otlp.log_records import PayloadRecords
from hansard._export.otlp.results import ACCEPTED, BROKEN, Answer, Outcome, of_code
from hansard._export.spool.files import Kind
from hansard._runtime.forks import call_apart_from_forks

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.trace import ReadableSpan

    from hansard._config.settings import Settings
    from hansard._export.otlp.http_session import WatchedSession

_CLOSE_S: Final = 0.2  # at the end, for connections to be closed in good order
_COMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "none": bytes,  # as they are
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}
_INTERRUPTED: Final = Answer(Outcome.LATER, "it did not answer while the program forked")
_CLOSED: Final = Answer(Outcome.LATER, "the program ended before it was sent")


class Sender(Protocol):
    """One way to a collector. Used by one thread; `close` may be called by another."""

    def send_spans(self, spans: Sequence[ReadableSpan]) -> Answer: ...

    def send_logs(self, records: Sequence[ReadableLogRecord]) -> Answer: ...

    def close(self) -> None: ...


def make_sender(settings: Settings) -> Sender:
    """Return the sender of the mode or protocol; imports what it needs, up to 0.5 s."""
    if settings.embedded:
        from hansard._export.embedded import EmbeddedSender

        return EmbeddedSender(settings)
    return GrpcSender(settings) if settings.protocol == GRPC else HttpSender(settings)


class HttpSender:
    """OTLP over HTTP with protobuf bodies."""

    def __init__(self, settings: Settings) -> None:
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        from hansard._export.otlp.http_session import WatchedSession

        self._compress = _COMPRESS[settings.compression]
        self._span_session, self._log_session = WatchedSession(), WatchedSession()
        options: dict[str, Any] = {
            "headers": dict(settings.headers),
            "timeout": settings.timeout_s,
            "compression": Compression(settings.compression),
        }
        # Written by the thread that closes, read by the one that sends.
        self._is_closed = False
        self._spans = OTLPSpanExporter(
            endpoint=settings.traces_endpoint, session=self._span_session, **options
        )
        self._logs = OTLPLogExporter(
            endpoint=settings.logs_endpoint, session=self._log_session, **options
        )

    def send_spans(self, spans: Sequence[ReadableSpan]) -> Answer:
        return self._send(self._spans, self._span_session, spans)

    def send_logs(self, records: Sequence[ReadableLogRecord]) -> Answer:
        if not isinstance(records, PayloadRecords):
            return self._send(self._logs, self._log_session, records)
        # The stock exporter makes the request, of no records, and what is encoded here fills it.
        with self._log_session.carrying(self._compress(records.encode())):
            return self._send(self._logs, self._log_session, ())

    def _send(self, exporter: Any, session: WatchedSession, batch: Sequence[Any]) -> Answer:
        session.answer = None
        with listening():
            try:
                exporter.export(batch)
            except Exception as error:  # exporting must never end the sender's thread
                return Answer(Outcome.REFUSED, f"{type(error).__name__}: {error}")
        # A closed exporter sends nothing and does not say why.
        return session.answer or (_CLOSED if self._is_closed else BROKEN)

    def close(self) -> None:
        self._is_closed = True
        _close_all(self._spans, self._logs)


class GrpcSender:
    """OTLP over gRPC."""

    def __init__(self, settings: Settings) -> None:
        import grpc
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        compression = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
        options: dict[str, Any] = {
            "headers": tuple((name.lower(), text) for name, text in settings.headers.items()),
            "timeout": settings.timeout_s,
            "compression": compression.get(settings.compression, grpc.Compression.NoCompression),
        }
        if "retryable_error_codes" in inspect.signature(OTLPSpanExporter).parameters:
            # None that fails: what fails goes to disk before it is tried again.
            options["retryable_error_codes"] = (grpc.StatusCode.OK,)
        spans, logs = settings.traces_endpoint, settings.logs_endpoint
        self._make: dict[Kind, Callable[[], Any]] = {
            Kind.TRACES: partial(
                OTLPSpanExporter, endpoint=spans, insecure=_is_plain(spans), **options
            ),
            Kind.LOGS: partial(OTLPLogExporter, endpoint=logs, insecure=_is_plain(logs), **options),
        }
        self._made: dict[Kind, Any] = {}
        self._is_closed = False  # written by the thread that closes, read by the one that sends

    def send_spans(self, spans: Sequence[ReadableSpan]) -> Answer:
        return self._send(Kind.TRACES, spans)

    def send_logs(self, records: Sequence[ReadableLogRecord]) -> Answer:
        return self._send(Kind.LOGS, records)

    def _send(self, kind: Kind, batch: Sequence[Any]) -> Answer:
        with call_apart_from_forks(self._hang_up), listening() as lines:
            try:
                if kind not in self._made:
                    self._made[kind] = self._make[kind]()
                result = self._made[kind].export(batch)
            except Exception as error:  # exporting must never end the sender's thread
                if type(error).__module__.partition(".")[0] == "grpc" or _is_closed(error):
                    return Answer(Outcome.LATER, f"{type(error).__name__}: {error}"[:200])
                return Answer(Outcome.REFUSED, f"{type(error).__name__}: {error}"[:200])
        if result.name == "SUCCESS":
            return ACCEPTED
        if self._is_closed:
            return _CLOSED
        return _told(lines) if kind in self._made else _INTERRUPTED

    def _hang_up(self) -> None:
        """Somebody forks and the collector does not answer: end the call, try again later."""
        made, self._made = self._made, {}
        _close_all(*made.values())

    def close(self) -> None:
        self._is_closed = True
        _close_all(*self._made.values())


def _is_plain(endpoint: str) -> bool:
    return urlsplit(endpoint).scheme == "http"


def _is_closed(error: Exception) -> bool:
    """A channel that was closed while it was used, at the end of the program."""
    return isinstance(error, ValueError) and "closed" in str(error)


def _told(lines: Sequence[logging.LogRecord]) -> Answer:
    """Return the answer that the gRPC exporter logged; doubtful when nobody may log."""
    for line in reversed(lines):
        arguments = line.args if isinstance(line.args, tuple) else ()
        for position, argument in enumerate(arguments):
            code = getattr(argument, "name", None)
            if type(argument).__name__ == "StatusCode" and code is not None:
                details = arguments[position + 1] if position + 1 < len(arguments) else ""
                return of_code(code, str(details or ""))
    return Answer(Outcome.DOUBTFUL, "it did not take the batch")


def _close_all(*exporters: Any) -> None:
    """Close connections, beside: one that hangs must not hold up the end of the program."""

    def close() -> None:
        with listening():
            for exporter in exporters:
                exporter.shutdown()

    thread = threading.Thread(target=close, name="hansard-close", daemon=True)
    # Python 3.12 starts no thread while it ends: then the process gives the connections back.
    with contextlib.suppress(RuntimeError):
        thread.start()
        thread.join(_CLOSE_S)

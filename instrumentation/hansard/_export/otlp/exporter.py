"""Sending through the stock OTLP exporters: one attempt at a time, and what its response means."""

from __future__ import annotations

import contextlib
import gzip
import inspect
import logging
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from hansard._config.setting import GRPC
from hansard._export.otlp.log_records import encode_payloads, payload_records
from hansard._export.spool import SpooledPayload, SpoolKind
from hansard._runtime.forks import call_apart_from_forks

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings

_CLOSE_S: Final = 0.2  # at the end, for connections to be closed in good order
_COMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "none": bytes,  # as they are
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


class ExportOutcome(Enum):
    ACCEPTED = "accepted"
    LATER = "later"  # the collector's problem, or the network's: the same batch may succeed later
    DOUBTFUL = "doubtful"  # it may be either: sending it shows which
    REFUSED = "refused"  # the batch's own fault: it will never be taken
    NOT_RECEIVED = "not received"  # this endpoint takes no such signal


@dataclass(frozen=True, slots=True)
class ExportResponse:
    """The outcome of a batch, with words for the log."""

    outcome: ExportOutcome
    reason: str = ""
    retry_after_s: float | None = None  # as the collector requested


ACCEPTED: Final = ExportResponse(ExportOutcome.ACCEPTED)
BROKEN: Final = ExportResponse(
    ExportOutcome.REFUSED, "the batch could not be encoded, or is over 64 MiB"
)

# OTLP: these say that the request itself is wrong. All else a working collector may cure.
_REFUSED_STATUSES: Final = frozenset({400, 413, 422})
_ELSEWHERE_STATUSES: Final = frozenset({404, 405, 410, 501})
_DOUBTFUL_CODES: Final = frozenset({"INTERNAL", "UNKNOWN", "OUT_OF_RANGE", "FAILED_PRECONDITION"})
# A server out of means answers with the same code as one that was sent too much at once.
_TOO_LARGE: Final = re.compile(r"larger than|size limit|too large", re.IGNORECASE)


def of_status(status: int, reason: str, *, retry_after: str | None = None) -> ExportResponse:
    """Return what an HTTP status means; `retry_after` is the header's value."""
    if 200 <= status < 300:
        return ACCEPTED
    message = f"it answered {status} {reason}".rstrip()
    if status in _REFUSED_STATUSES:
        return ExportResponse(ExportOutcome.REFUSED, message)
    if status in _ELSEWHERE_STATUSES:
        return ExportResponse(ExportOutcome.NOT_RECEIVED, message)
    if status == 500:
        return ExportResponse(ExportOutcome.DOUBTFUL, message)
    if 300 <= status < 400:
        message += ", which OTLP does not follow; give the address it leads to"
    return ExportResponse(ExportOutcome.LATER, message, _seconds(retry_after))


def of_code(code: str, details: str) -> ExportResponse:
    """Return what a gRPC status code means, by its name."""
    message = f"it answered {code}" + (f" ({details[:200]})" if details else "")
    if code == "INVALID_ARGUMENT" or (code == "RESOURCE_EXHAUSTED" and _TOO_LARGE.search(details)):
        return ExportResponse(ExportOutcome.REFUSED, message)
    if code == "UNIMPLEMENTED":
        return ExportResponse(ExportOutcome.NOT_RECEIVED, message)
    return ExportResponse(
        ExportOutcome.DOUBTFUL if code in _DOUBTFUL_CODES else ExportOutcome.LATER, message
    )


def _seconds(retry_after: str | None) -> float | None:
    """Read the header; a date is not worth a clock that may differ."""
    try:
        return max(float(retry_after), 0.0) if retry_after else None
    except ValueError:
        return None


# ---- what the exporters log

# What the stock exporters log while we send through them is read, and not passed on: they log each
# failed attempt, with no end, and the program is warned once. Of the gRPC exporter its log line is
# also the one public place with the status code of a failure. Lines of other threads, of the
# application's own exporters, pass untouched.
_LOGGERS = (
    "hansard.pipeline",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.common._internal",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "urllib3.connectionpool",
)
_heard = threading.local()


class _Listener(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        lines: list[logging.LogRecord] | None = getattr(_heard, "lines", None)
        if lines is None:
            return True
        lines.append(record)
        return False


_listener = _Listener()


def _listen() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _listener not in logger.filters:
            # Before the exporters' own filter, which swallows a line that it has seen.
            logger.filters.insert(0, _listener)


@contextlib.contextmanager
def listening() -> Iterator[list[logging.LogRecord]]:
    """Yield the list that gets every line this thread's exporters log in the block."""
    _listen()
    lines: list[logging.LogRecord] = []
    _heard.lines = lines
    try:
        yield lines
    finally:
        _heard.lines = None


# ---- the exporters

_INTERRUPTED: Final = ExportResponse(
    ExportOutcome.LATER, "it did not answer while the program forked"
)
_CLOSED: Final = ExportResponse(ExportOutcome.LATER, "the program ended before it was sent")


class ExportSender(Protocol):
    """One way to a collector. Used by one thread; `close` may be called by another."""

    def send(self, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        """Send spans, ended or not, or log records: the kind is TRACES or LOGS."""

    def send_payloads(
        self, payloads: Sequence[SpooledPayload], resource: Resource
    ) -> ExportResponse: ...

    def close(self) -> None: ...


def make_sender(settings: Settings) -> ExportSender:
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
        options: dict[str, Any] = {
            "headers": dict(settings.headers),
            "timeout": settings.timeout_s,
            "compression": Compression(settings.compression),
        }
        # Written by the thread that closes, read by the one that sends.
        self._is_closed = False
        self._sessions = {kind: WatchedSession() for kind in (SpoolKind.TRACES, SpoolKind.LOGS)}
        spans, logs = self._sessions.values()
        self._exporters: dict[SpoolKind, Any] = {
            SpoolKind.TRACES: OTLPSpanExporter(
                endpoint=settings.traces_endpoint, session=spans, **options
            ),
            SpoolKind.LOGS: OTLPLogExporter(
                endpoint=settings.logs_endpoint, session=logs, **options
            ),
        }

    def send_payloads(
        self, payloads: Sequence[SpooledPayload], resource: Resource
    ) -> ExportResponse:
        # The stock exporter makes the request, of no records, and what is encoded here fills it.
        encoded = self._compress(encode_payloads(payloads, resource))
        with self._sessions[SpoolKind.LOGS].carrying(encoded):
            return self.send(SpoolKind.LOGS, ())

    def send(self, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        session = self._sessions[kind]
        session.response = None
        with listening():
            try:
                self._exporters[kind].export(items)
            except Exception as error:  # exporting must never end the sender's thread
                return ExportResponse(ExportOutcome.REFUSED, f"{type(error).__name__}: {error}")
        # A closed exporter sends nothing and does not say why.
        return session.response or (_CLOSED if self._is_closed else BROKEN)

    def close(self) -> None:
        self._is_closed = True
        _close_all(*self._exporters.values())


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
        self._make: dict[SpoolKind, Callable[[], Any]] = {
            SpoolKind.TRACES: partial(
                OTLPSpanExporter, endpoint=spans, insecure=_is_plain(spans), **options
            ),
            SpoolKind.LOGS: partial(
                OTLPLogExporter, endpoint=logs, insecure=_is_plain(logs), **options
            ),
        }
        self._made: dict[SpoolKind, Any] = {}
        self._is_closed = False  # written by the thread that closes, read by the one that sends

    def send_payloads(
        self, payloads: Sequence[SpooledPayload], resource: Resource
    ) -> ExportResponse:
        return self.send(SpoolKind.LOGS, payload_records(payloads, resource))

    def send(self, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        with call_apart_from_forks(self._hang_up), listening() as lines:
            try:
                if kind not in self._made:
                    self._made[kind] = self._make[kind]()
                result = self._made[kind].export(items)
            except Exception as error:  # exporting must never end the sender's thread
                if type(error).__module__.partition(".")[0] == "grpc" or _is_closed(error):
                    return ExportResponse(
                        ExportOutcome.LATER, f"{type(error).__name__}: {error}"[:200]
                    )
                return ExportResponse(
                    ExportOutcome.REFUSED, f"{type(error).__name__}: {error}"[:200]
                )
        if result.name == "SUCCESS":
            return ACCEPTED
        if self._is_closed:
            return _CLOSED
        return _failure_of(lines) if kind in self._made else _INTERRUPTED

    def _hang_up(self) -> None:
        """A fork waits and the collector does not respond: end the call, retry later."""
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


def _failure_of(lines: Sequence[logging.LogRecord]) -> ExportResponse:
    """Return the response that the gRPC exporter logged; doubtful when logging is off."""
    for line in reversed(lines):
        arguments = line.args if isinstance(line.args, tuple) else ()
        for position, argument in enumerate(arguments):
            code = getattr(argument, "name", None)
            if type(argument).__name__ == "StatusCode" and code is not None:
                details = arguments[position + 1] if position + 1 < len(arguments) else ""
                return of_code(code, str(details or ""))
    return ExportResponse(ExportOutcome.DOUBTFUL, "it did not take the batch")


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


# ---- whether the collector is Hansard: only it is sent start records and keepalives

# Another back end would show a span without an end as broken, and store pulses as logs. It is
# tried on the sender's thread after something arrived there, so it costs the program nothing; a
# collector in between answers for itself, and is not Hansard.
PRODUCT: Final = "hansard"  # what /healthz and Hello name themselves
HELLO: Final = "/hansard.v1.Presence/Hello"  # empty request, PRODUCT as the answer's bytes
_ANSWER_S: Final = 2.0
_ROOTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")


def is_hansard(settings: Settings) -> bool:
    """Ask the collector for its product; False without a response within two seconds."""
    if settings.embedded:
        return True
    with listening():
        try:
            return _says_grpc(settings) if settings.protocol == GRPC else _says_http(settings)
        except Exception:  # whatever it does, it does not respond as Hansard does
            return False


def _says_http(settings: Settings) -> bool:
    import requests

    response = requests.get(
        f"{settings.endpoint.rstrip('/')}/healthz",
        headers=dict(settings.headers),
        timeout=_ANSWER_S,
        allow_redirects=False,
        verify=_roots() or True,
    )
    body: Any = response.json()
    return isinstance(body, dict) and body.get("product") == PRODUCT


def _says_grpc(settings: Settings) -> bool:
    import grpc

    address = urlsplit(settings.traces_endpoint)
    target = address.netloc or settings.traces_endpoint
    if address.scheme == "http":
        channel = grpc.insecure_channel(target)
    else:
        roots = _roots()
        pem = None
        if roots is not None:
            with open(roots, "rb") as file:
                pem = file.read()
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(pem))
    with call_apart_from_forks(channel.close), channel:
        metadata = tuple((name.lower(), text) for name, text in settings.headers.items())
        response = channel.unary_unary(HELLO)(b"", timeout=_ANSWER_S, metadata=metadata)
    return bool(response == PRODUCT.encode())


def _roots() -> str | None:
    """Return the certificate file that the stock exporters trust, None for the system's."""
    return next((os.environ[name] for name in _ROOTS if os.environ.get(name)), None)

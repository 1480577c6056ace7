"""The two sides of a door: a pipeline that keeps what it commits, and a plain HTTP client."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.otlp.signals import ExportRequest
from hansard_collector.pipeline.decoding import decode_request
from hansard_collector.pipeline.requests import IngestRequest, IngestResult, RefusedRequest
from hansard_collector.receivers.export_response import ExportRefusal
from hansard_collector.receivers.grpc import NO_TOKEN, Authorise, GrpcReceiver


@dataclass
class MemoryPipeline:
    """The other side of `Ingest`: one thread that decodes, rejects spans with bad ids, keeps."""

    kept: list[tuple[IngestRequest, ExportRequest]] = field(default_factory=list)
    refused: list[RefusedRequest] = field(default_factory=list)
    # What becomes of a request in place of being stored, if set; raised before it is queued, too.
    failure: Exception | None = None
    fails_at_once: bool = False
    failures_left: int = 1_000_000
    may_commit: threading.Event = field(default_factory=threading.Event)
    submitted: int = 0
    one_more: threading.Event = field(default_factory=threading.Event)
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    # Guards the count: every worker of a gRPC receiver submits.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.may_commit.set()

    def submit(self, request: IngestRequest) -> Future[IngestResult]:
        if self.failure is not None and self.fails_at_once and self.failures_left:
            self.failures_left -= 1
            raise self.failure
        with self._lock:
            self.submitted += 1
        self.one_more.set()
        return self._worker.submit(self._store, request)

    def refuse(self, request: RefusedRequest) -> None:
        self.refused.append(request)

    def _store(self, request: IngestRequest) -> IngestResult:
        assert self.may_commit.wait(60)
        if self.failure is not None and self.failures_left:
            self.failures_left -= 1
            raise self.failure
        decoded = decode_request(request)
        self.kept.append((request, decoded.message))
        bad = sum(1 for span in spans_of(decoded.message) if not has_sound_ids(span))
        reasons = [*decoded.warnings, *([f"{bad} spans have bad ids"] if bad else [])]
        return IngestResult(accepted=1, rejected=bad, message="; ".join(reasons))

    def finish(self) -> None:
        """Let everything queued be committed, and wait for it."""
        self.may_commit.set()
        self._worker.submit(int).result()

    def forget(self) -> None:
        self.finish()
        self.kept.clear()
        self.refused.clear()
        self.failure, self.fails_at_once, self.submitted = None, False, 0
        self.failures_left = 1_000_000
        self.one_more.clear()

    def close(self) -> None:
        self.may_commit.set()
        self._worker.shutdown()

    @property
    def messages(self) -> list[ExportRequest]:
        return [message for _, message in self.kept]


def spans_of(message: ExportRequest) -> list[Span]:
    if not isinstance(message, ExportTraceServiceRequest):
        return []
    return [
        span
        for envelope in message.resource_spans
        for scoped in envelope.scope_spans
        for span in scoped.spans
    ]


def has_sound_ids(span: Span) -> bool:
    whole = len(span.trace_id) == 16 and len(span.span_id) == 8
    return whole and any(span.trace_id) and any(span.span_id)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers["content-type"]


@dataclass
class HttpDoor:
    """A served application and a client that follows no redirect and sends what it is told."""

    port: int
    pipeline: MemoryPipeline

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            chunked = (headers or {}).get("transfer-encoding") == "chunked"
            connection.request(method, path, body, headers or {}, encode_chunked=chunked)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def post(
        self, path: str, body: Any, content_type: str = "application/x-protobuf", **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, body, {"content-type": content_type} | named)


OpenHttp = Callable[..., HttpDoor]  # takes the fields of HttpSettings
OpenGrpc = Callable[..., GrpcReceiver]  # takes those of GrpcSettings, and authorise


def require_bearer(token: str) -> Authorise:
    """Let in only `Bearer <token>`."""

    def authorise(authorization: str) -> ExportRefusal | None:
        scheme, _, sent = authorization.partition(" ")
        is_right = scheme.lower() == "bearer" and sent.strip() == token
        return None if is_right else NO_TOKEN

    return authorise

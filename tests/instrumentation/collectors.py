"""A collector in this process, on a real socket, whose answers a test decides."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.instrumentation.faulty import ANSWERS, answer, listening, read_request

_OK = answer("200 OK", "Content-Type: application/x-protobuf")
_HEALTH = answer("200 OK", body=b'{"product": "hansard"}')


@dataclass
class Collector:
    """What arrived, in its order; `decide` may answer a request otherwise than 200."""

    decide: Callable[[str, bytes], str] = lambda _path, _body: "200"
    is_hansard: bool = False
    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    port: int = 0
    news: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def names(self) -> list[str]:
        """Return the names of the spans that ended, in the order they came."""
        return [span.name for span in self.spans if span.end_time_unix_nano]

    def wait_for(self, is_so: Callable[[], object], *, timeout_s: float = 100) -> None:
        """Wait until something holds of what arrived."""
        with self.news:
            assert self.news.wait_for(lambda: bool(is_so()), timeout_s), (self.names, self.requests)

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while request := read_request(connection):
                connection.sendall(self._answer(request))

    def _answer(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        if b"content-encoding: gzip" in head.lower():
            body = gzip.decompress(body)
        with self.news:
            self.requests.append(path)
            try:
                if path == "/healthz":
                    return _HEALTH if self.is_hansard else ANSWERS["404"]
                decided = self.decide(path, body)
                if decided != "200":
                    return ANSWERS[decided]
                self._keep(path, body)
                return _OK
            finally:
                self.news.notify_all()

    def _keep(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for outer in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for inner in outer.scope_spans for span in inner.spans]
        else:
            for level in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.logs += [one for scope in level.scope_logs for one in scope.log_records]


@contextlib.contextmanager
def collecting(
    decide: Callable[[str, bytes], str] = lambda _path, _body: "200", *, is_hansard: bool = False
) -> Iterator[Collector]:
    """Run a collector until the block ends."""
    collector = Collector(decide, is_hansard)
    with listening(collector.serve) as port:
        collector.port = port
        yield collector

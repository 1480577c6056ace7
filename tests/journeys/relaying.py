"""What an upstream Collector does to telemetry, in this process and between real sockets.

It takes requests over both transports, acknowledges them at once, and passes them on later: grouped
anew, in batches of its own, in another order, some of them twice because the answer got lost.
"""

from __future__ import annotations

import gzip
import http.client
import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.journeys.processes import Serving

_HEADERS = {"Content-Type": "application/x-protobuf"}


class Kind(NamedTuple):
    """A signal: its messages, and the names of the repeated fields in them."""

    path: str
    request: Any
    response: Any
    groups: str
    scopes: str
    records: str
    stub: Any


TRACES = Kind(
    "/v1/traces", trace_service_pb2.ExportTraceServiceRequest,
    trace_service_pb2.ExportTraceServiceResponse, "resource_spans", "scope_spans", "spans",
    trace_service_pb2_grpc.TraceServiceStub,
)  # fmt: skip
LOGS = Kind(
    "/v1/logs", logs_service_pb2.ExportLogsServiceRequest,
    logs_service_pb2.ExportLogsServiceResponse, "resource_logs", "scope_logs", "log_records",
    logs_service_pb2_grpc.LogsServiceStub,
)  # fmt: skip
KINDS = (TRACES, LOGS)


class Item(NamedTuple):
    """One span or log record with what it stood in."""

    group: Any
    scope: Any
    record: Any


def items_of(kind: Kind, request: Any) -> list[Item]:
    return [
        Item(group, scope, record)
        for group in getattr(request, kind.groups)
        for scope in getattr(group, kind.scopes)
        for record in getattr(scope, kind.records)
    ]


def request_of(kind: Kind, items: Sequence[Item], *, grouped: bool) -> Any:
    """Return a request; each record has a resource of its own unless they are grouped."""
    request = kind.request()
    groups: dict[bytes, Any] = {}
    scopes: dict[bytes, Any] = {}
    for number, item in enumerate(items):
        own = b"" if grouped else number.to_bytes(4, "big")
        group_key = own + item.group.resource.SerializeToString(deterministic=True)
        scope_key = group_key + item.scope.scope.SerializeToString(deterministic=True)
        if group_key not in groups:
            groups[group_key] = group = getattr(request, kind.groups).add()
            group.resource.CopyFrom(item.group.resource)
            group.schema_url = item.group.schema_url
        if scope_key not in scopes:
            scopes[scope_key] = scope = getattr(groups[group_key], kind.scopes).add()
            scope.scope.CopyFrom(item.scope.scope)
            scope.schema_url = item.scope.schema_url
        getattr(scopes[scope_key], kind.records).add().CopyFrom(item.record)
    return request


@dataclass
class Relay:
    """Between exporters and a server."""

    http: str = ""
    grpc: str = ""
    received: dict[str, list[Item]] = field(
        default_factory=lambda: {kind.path: [] for kind in KINDS}
    )
    requests: int = 0
    sent_twice: int = 0  # spans and log records whose first answer was read, and sent again
    maybe_twice: int = 0  # those whose first answer was not: they may not have arrived
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, kind: Kind, request: Any) -> Any:
        """Keep what a request holds, and acknowledge it."""
        with self._lock:
            self.received[kind.path] += items_of(kind, request)
            self.requests += 1
        return kind.response()

    def pass_on(self, server: Serving, *, seed: int) -> None:
        """Send everything on: shuffled, in small batches, over either transport, some twice."""
        chance = random.Random(seed)
        with grpc.insecure_channel(server.grpc) as channel:
            for kind in KINDS:
                items = list(self.received[kind.path])
                chance.shuffle(items)
                while items:
                    size = chance.randint(1, 7)
                    batch, items = items[:size], items[size:]
                    over = _by_grpc(channel) if chance.random() < 0.5 else _by_http(server)
                    self._send(over, kind, batch, chance)

    def _send(self, over: Over, kind: Kind, batch: Sequence[Item], chance: random.Random) -> None:
        grouped = chance.random() < 0.5
        for lost, probability in ((True, 0.3), (False, 0.3)):
            if chance.random() < probability:
                over(kind, request_of(kind, batch, grouped=not grouped), not lost)
                self.maybe_twice += lost * len(batch)
                self.sent_twice += (not lost) * len(batch)
        over(kind, request_of(kind, batch, grouped=grouped), True)


# The last argument says whether the answer is waited for; if not, it is lost on its way.
Over = Callable[[Kind, Any, bool], None]


def _by_grpc(channel: grpc.Channel) -> Over:
    def send(kind: Kind, request: Any, waits: bool) -> None:
        answer = kind.stub(channel).Export.future(request, timeout=30)
        if waits:
            answer.result()
        else:
            answer.cancel()

    return send


def _by_http(server: Serving) -> Over:
    address = urlsplit(server.http)

    def send(kind: Kind, request: Any, waits: bool) -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        try:
            connection.request("POST", kind.path, request.SerializeToString(), _HEADERS)
            if waits:
                assert connection.getresponse().status == 200
            else:
                # Everything has been sent, and nobody reads what is said to it.
                connection.sock.shutdown(socket.SHUT_RD)
        finally:
            connection.close()

    return send


@contextmanager
def relaying() -> Iterator[Relay]:
    """Listen on both transports until the block ends."""
    relay = Relay()
    http_door = ThreadingHTTPServer(("127.0.0.1", 0), _handler(relay))
    grpc_door = _grpc_door(relay)
    relay.http = f"http://127.0.0.1:{http_door.server_address[1]}"
    relay.grpc = f"127.0.0.1:{grpc_door.add_insecure_port('127.0.0.1:0')}"
    grpc_door.start()
    listening = threading.Thread(target=http_door.serve_forever, kwargs={"poll_interval": 0.02})
    listening.start()
    try:
        yield relay
    finally:
        http_door.shutdown()
        listening.join()
        http_door.server_close()
        grpc_door.stop(0).wait(10)


def _handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            kind = next((one for one in KINDS if one.path == self.path), None)
            if kind is None:
                self._answer(404, b"")
            else:
                answer = relay.take(kind, kind.request.FromString(body))
                self._answer(200, answer.SerializeToString())

        def do_GET(self) -> None:
            self._answer(404, b"")

        do_PUT = do_GET
        do_HEAD = do_GET

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", _HEADERS["Content-Type"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _grpc_door(relay: Relay) -> grpc.Server:
    class Traces(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            return relay.take(TRACES, request)

    class Logs(logs_service_pb2_grpc.LogsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            return relay.take(LOGS, request)

    door = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), door)  # type: ignore[no-untyped-call]
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(Logs(), door)  # type: ignore[no-untyped-call]
    return door

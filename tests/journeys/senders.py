"""Senders that know which of their spans were acknowledged, over both transports."""

from __future__ import annotations

import http.client
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from tests.collector.ingesting import conversation, span, traces
from tests.journeys.processes import Serving

_HEADERS = {"Content-Type": "application/x-protobuf"}


@dataclass(frozen=True)
class Answer:
    """What a request over HTTP was answered."""

    status: int
    retry_after: str | None
    body: bytes


def post(server: Serving, request: ExportTraceServiceRequest, *, timeout_s: float = 30) -> Answer:
    """Send one request over HTTP."""
    address = urlsplit(server.http)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
    try:
        connection.request("POST", "/v1/traces", request.SerializeToString(), _HEADERS)
        response = connection.getresponse()
        return Answer(response.status, response.headers["Retry-After"], response.read())
    finally:
        connection.close()


class Acknowledged:
    """The identities of spans that a server said it has; several senders add to it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.spans: set[tuple[bytes, bytes]] = set()
        self.requests = 0

    def add(self, request: ExportTraceServiceRequest) -> None:
        with self._condition:
            self.spans |= identities(request)
            self.requests += 1
            self._condition.notify_all()

    def wait_for(self, requests: int) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: self.requests >= requests, timeout=240)


def identities(request: ExportTraceServiceRequest) -> set[tuple[bytes, bytes]]:
    return {
        (one.trace_id, one.span_id)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    }


def agent_requests() -> Iterator[ExportTraceServiceRequest]:
    """Yield requests without end: a conversation that grows, a trace after another."""
    while True:
        trace_id = secrets.token_bytes(16)
        for turn in range(1, 6):
            talk = {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": turn,
                "gen_ai.input.messages": conversation(turn),
            }
            call = span(2 * turn, 1, trace_id=trace_id, attributes=talk)
            tool = span(2 * turn + 1, 2 * turn, trace_id=trace_id)
            yield traces([call, tool])


def _over_http(server: Serving, acknowledged: Acknowledged, stop: threading.Event) -> None:
    for request in agent_requests():
        try:
            if post(server, request).status == 200:
                acknowledged.add(request)
        except (OSError, http.client.HTTPException):
            return  # the server is gone
        if stop.is_set():
            return


def _over_grpc(server: Serving, acknowledged: Acknowledged, stop: threading.Event) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        export = TraceServiceStub(channel).Export  # type: ignore[no-untyped-call]
        for request in agent_requests():
            try:
                export(request, timeout=30)
            except grpc.RpcError:
                return
            acknowledged.add(request)
            if stop.is_set():
                return


_SENDERS: Sequence[Callable[[Serving, Acknowledged, threading.Event], None]] = (
    _over_http,
    _over_grpc,
)


@contextmanager
def under_load(server: Serving, *, senders: int = 4) -> Iterator[Acknowledged]:
    """Send over both transports until the block ends, or the server does."""
    acknowledged, stop = Acknowledged(), threading.Event()
    choice = itertools.cycle(_SENDERS)
    threads = [
        threading.Thread(target=next(choice), args=(server, acknowledged, stop))
        for _ in range(senders)
    ]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        for thread in threads:
            thread.join()

"""How long an honest sender waits for the answer to one span while another sends what is heavy."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench import processes
from bench.figures import Figure, below, percentile

BAR_MS = 1_000
_PROTOBUF = "application/x-protobuf"
_PAUSE_S = 0.02  # of the honest sender between two requests
_ATTRIBUTES = 16_000
_LOG_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """A body to send and where."""

    path: str
    body: bytes
    encoding: str = ""


@dataclass(slots=True)
class Waits:
    """What the honest sender met."""

    waits_s: list[float]
    refused: int = 0


def run(*, only: str = "") -> list[Figure]:
    """Send each load once to a server of its own, beside a sender of single spans."""
    return [_measure(name, make) for name, make in LOADS.items() if not only or name == only]


def _measure(name: str, make: Callable[[], Iterator[Request]]) -> Figure:
    requests = list(make())
    with processes.folder() as data, processes.hansard(data) as server:
        for _ in range(20):
            _post(server.http, _traces([_span()]))
        waits, end = Waits([]), threading.Event()
        honest = threading.Thread(target=_send_spans, args=(server.http, waits, end))
        honest.start()
        time.sleep(0.3)
        before_s, began_s = server.cpu_s(), time.perf_counter()
        answers = [_post(server.http, request) for request in requests]
        took_s = time.perf_counter() - began_s
        time.sleep(0.5)
        end.set()
        honest.join()
        used_s = server.cpu_s() - before_s
    note = (
        f"p95 {percentile(waits.waits_s, 0.95) * 1000:,.0f} ms of {len(waits.waits_s)},"
        f" {waits.refused} refused; {len(requests)} heavy requests answered"
        f" {sorted(set(answers))} in {took_s:.1f} s, {used_s:.1f} s of processor time,"
        f" load {os.getloadavg()[0]:.1f}"
    )
    return below(
        f"beside {name}: longest wait", max(waits.waits_s) * 1000, "ms", bar=BAR_MS, note=note
    )


def _send_spans(address: str, waits: Waits, end: threading.Event) -> None:
    while not end.wait(_PAUSE_S):
        request = _traces([_span()])
        began_s = time.perf_counter()
        waits.refused += _post(address, request) != 200
        waits.waits_s.append(time.perf_counter() - began_s)


def _post(address: str, request: Request) -> int:
    target = urlsplit(address)
    headers = {"content-type": _PROTOBUF}
    if request.encoding:
        headers["content-encoding"] = request.encoding
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
    try:
        connection.request("POST", request.path, request.body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def _span(**attributes: str) -> Span:
    now_ns = time.time_ns()
    span = Span(
        trace_id=os.urandom(16),
        span_id=os.urandom(8),
        name="step",
        start_time_unix_nano=now_ns - 1_000_000,
        end_time_unix_nano=now_ns,
    )
    for key, value in attributes.items():
        span.attributes.add(key=key.replace("__", ".")).value.string_value = value
    return span


def _traces(spans: list[Span]) -> Request:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    return Request("/v1/traces", request.SerializeToString())


def _logs(records: list[LogRecord]) -> Request:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.extend(records)
    return Request("/v1/logs", request.SerializeToString())


def _wide() -> Iterator[Request]:
    spans = []
    for _ in range(20):
        span = _span()
        for number in range(_ATTRIBUTES):
            span.attributes.add(key=f"key.{number}").value.string_value = f"value {number}"
        spans.append(span)
    yield _traces(spans)


def _messages(count: int, *, key: str) -> Iterator[Request]:
    made = [
        {"role": "user", "parts": [{"type": "text", "content": f"message number {n}"}]}
        for n in range(count)
    ]
    operation = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
    yield _traces([_span(**operation, **{key: json.dumps(made)})])


def _lists() -> Iterator[Request]:
    lists = {
        f"list__{key}": json.dumps([f"{key} {number}" for number in range(8_000)])
        for key in range(30)
    }
    yield _traces([_span(**lists)])


def _flat_messages() -> Iterator[Request]:
    span = _span(openinference__span__kind="LLM")
    for number in range(_ATTRIBUTES // 2):
        prefix = f"llm.input_messages.{number}.message."
        span.attributes.add(key=f"{prefix}role").value.string_value = "user"
        span.attributes.add(key=f"{prefix}content").value.string_value = f"message {number} " * 6
    yield _traces([span])


def _deep() -> Iterator[Request]:
    deep = '{"a":[' * 20_000 + "1" + "]}" * 20_000
    yield _traces([_span(input__value=deep, output__value=deep) for _ in range(20)])


def _secrets(size: int) -> Iterator[Request]:
    rng = random.Random(3)
    made = []
    for _ in range(size // 100):
        word = "".join(
            rng.choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=48)
        )
        made.append(rng.choice((
            f"sk-{word} ", f"password={word[:12]} ", f'"api_key": "{word}" ',
            f"Authorization: Bearer {word} ", f"ghp_{word[:36]} ", f"mail {word[:9]}@example.com ",
        )))  # fmt: skip
    yield _traces([_span(input__value="".join(made))])


def _linked() -> Iterator[Request]:
    spans = []
    for _ in range(50):
        span = _span()
        for number in range(1_000):
            span.links.add(trace_id=os.urandom(16), span_id=os.urandom(8))
            span.events.add(name=f"event {number}", time_unix_nano=time.time_ns()).attributes.add(
                key="k"
            ).value.string_value = f"v{number}"
        spans.append(span)
    yield _traces(spans)


def _large_logs() -> Iterator[Request]:
    record = LogRecord(time_unix_nano=time.time_ns())
    record.body.string_value = "a line of a log that goes on and on\n" * 550_000
    yield _logs([record])


def _bombs() -> Iterator[Request]:
    for body in (bytes(60 << 20), _traces([_span(input__value="word " * 12_000_000)]).body):
        yield Request("/v1/traces", gzip.compress(body, 1), "gzip")


def _logs_of_one_span() -> Iterator[Request]:
    span = _span()
    yield _traces([span])
    for first in range(0, _LOG_RECORDS, 100):
        records = []
        for number in range(first, first + 100):
            record = LogRecord(
                trace_id=span.trace_id, span_id=span.span_id, time_unix_nano=time.time_ns()
            )
            record.body.string_value = f"line {number}"
            records.append(record)
        yield _logs(records)


LOADS: dict[str, Callable[[], Iterator[Request]]] = {
    "20 spans of 16,000 attributes": _wide,
    "a value of 8,000 messages": lambda: _messages(8_000, key="gen_ai__input__messages"),
    "a value of 16,000 messages": lambda: _messages(16_000, key="gen_ai__input__messages"),
    "30 values of 8,000 elements": _lists,
    "a span of 8,000 flat messages": _flat_messages,
    "values 40,000 levels deep": _deep,
    "20 MB of secrets in one value": lambda: _secrets(20_000_000),
    "50 spans of 1,000 links and events": _linked,
    "a log record of 20 MB": _large_logs,
    "two gzip bodies of 60 MB": _bombs,
    "10,000 log records of one span": _logs_of_one_span,
}

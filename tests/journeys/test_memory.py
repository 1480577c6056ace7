"""Memory of a server in a process of its own: it stays bounded, whatever is refused."""

from __future__ import annotations

import gzip
import http.client
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest

from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import Signal
from tests.collector.ingesting import span, traces
from tests.journeys.processes import ServingProcess, serving

MIB = 1 << 20
EXPORT = f"/{CONTRACTS[Signal.TRACES].service}/Export"
PROTOBUF = "application/x-protobuf"
GROWTH = 300 * MIB  # over what the server took before
DEADLINE_S = 240.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingProcess]:
    with serving(tmp_path_factory.mktemp("memory")) as running:
        assert post(running, traces([span(1)]).SerializeToString()) == 200
        yield running


def resident(server: ServingProcess) -> int:
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until
        pause.wait(0.05)


def post(server: ServingProcess, body: bytes, path: str = "/v1/traces", **headers: str) -> int:
    address = urlsplit(server.http)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=240)
    try:
        connection.request("POST", path, body, {"content-type": PROTOBUF} | named)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def storm(send: Callable[[], int], *, senders: int, rounds: int) -> Counter[int]:
    """Send from many threads at once, and return the answers."""
    with ThreadPoolExecutor(senders) as threads:
        return Counter(threads.map(lambda _: send(), range(senders * rounds)))


_numbers = count(2)


def large(size: int) -> bytes:
    """Return a request that is like no other: one that is sent again is answered with the first."""
    attributes = {"text": "word " * (size // 5)}
    body: bytes = traces([span(next(_numbers), attributes=attributes)]).SerializeToString()
    return body


def test_gzip_bodies_that_are_refused_leave_no_memory_behind(server: ServingProcess) -> None:
    before = resident(server)
    bodies = iter([gzip.compress(large(60_000_000), 1) for _ in range(32)])

    def send() -> int:
        return post(server, next(bodies), content_encoding="gzip")

    answers = storm(send, senders=16, rounds=2)

    assert answers.keys() <= {200, 503}
    assert answers[503]
    wait_until(lambda: resident(server) < before + GROWTH // 2)


def test_plain_bodies_that_are_refused_leave_no_memory_behind(server: ServingProcess) -> None:
    before = resident(server)

    answers = storm(lambda: post(server, large(60_000_000)), senders=8, rounds=2)

    assert answers.keys() <= {200, 503}
    wait_until(lambda: resident(server) < before + GROWTH // 2)


def test_honest_senders_that_try_again_leave_no_memory_behind(server: ServingProcess) -> None:
    before = resident(server)
    body = large(2_000_000)

    answers = storm(lambda: post(server, body), senders=60, rounds=3)

    assert answers.keys() <= {200, 503}
    wait_until(lambda: resident(server) < before + GROWTH // 2)


def test_large_grpc_messages_that_are_refused_leave_no_memory_behind(
    server: ServingProcess,
) -> None:
    before = resident(server)

    def send() -> int:
        body = large(60_000_000)
        options = [
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        with grpc.insecure_channel(urlsplit(server.grpc).netloc, options=options) as channel:
            try:
                channel.unary_unary(EXPORT)(body, timeout=240)
            except grpc.RpcError as error:
                return int(error.code().value[0])
            return 0

    storm(send, senders=16, rounds=2)

    assert resident(server) < before + GROWTH  # at once: nobody waits for a quiet second
    wait_until(lambda: resident(server) < before + GROWTH // 2)


def framed(tag: int, content: bytes) -> bytes:
    """Return a field of protobuf that holds a message."""
    length, size = b"", len(content)
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([tag]) + length + bytes([size]) + content


EMPTY_ENVELOPES = b"\x0a\x00" * 30_000_000
DENSE = {
    "envelopes": EMPTY_ENVELOPES,
    "spans": framed(0x0A, framed(0x12, b"\x12\x00" * 30_000_000)),
    "values": framed(0x0A, framed(0x12, framed(0x12, b"\x4a\x00" * 30_000_000))),
    "json": b'{"resourceSpans":[' + b"{}," * 20_000_000 + b"{}]}",
}


def highest(server: ServingProcess) -> int:
    """Return the most memory that the server ever took, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("content", DENSE)
def test_a_small_request_that_would_take_gigabytes_is_refused(tmp_path: Path, content: str) -> None:
    body = gzip.compress(DENSE[content])
    assert len(body) < 100_000
    kind = {"content_type": "application/json"} if content == "json" else {}
    with serving(tmp_path) as server:
        before = resident(server)

        answer = post(server, body, content_encoding="gzip", **kind)

        assert answer in {413, 503}  # what takes too long to look at may be sent again
        assert highest(server) < before + GROWTH
        wait_until(lambda: resident(server) < before + GROWTH // 2)


def test_poison_leaves_no_memory_behind(server: ServingProcess) -> None:
    before = resident(server)
    wide = span(3, attributes={f"k{number}": "v" for number in range(200_000)})
    bodies = [
        traces([wide]).SerializeToString(),
        traces(
            [span(4, attributes={"gen_ai.input.messages": "[" * 1_000_000})]
        ).SerializeToString(),
        gzip.compress(bytes(60 * MIB)),
    ]

    answers = [
        post(server, body, **({"content_encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}))
        for body in bodies
    ]

    assert answers == [200, 200, 400]
    wait_until(lambda: resident(server) < before + GROWTH // 2)


JSON_BODIES = {
    "objects": b"{}," * 5_000_000,
    "lists of objects": b"[{}]," * 3_000_000,
    "just as many objects as are taken": b"{}," * 700_000,
}


@pytest.mark.parametrize("route", ["approvals", "events", "memory/read", "compile"])
@pytest.mark.parametrize("body", JSON_BODIES)
def test_bodies_of_programs_take_bounded_memory(tmp_path: Path, body: str, route: str) -> None:
    content = b'{"tool": "w", "arguments": {"a": [' + JSON_BODIES[body] + b"1]}}"
    with serving(tmp_path) as server:
        assert post(server, b"{}", f"/v1/{route}", content_type="application/json") == 400
        before = resident(server)

        answers = storm(
            lambda: post(server, content, f"/v1/{route}", content_type="application/json"),
            senders=6,
            rounds=1,
        )

        assert answers.keys() <= {400, 413, 503}
        assert highest(server) < before + GROWTH


WIDE = "a" * 66_000_000 + "\U0001f600"
ATTRIBUTES = {"gen_ai.operation.name": "chat", "gen_ai.request.model": WIDE}


@pytest.mark.parametrize("where", ["name", "key", "model"])
def test_a_text_of_wide_characters_takes_bounded_memory(tmp_path: Path, where: str) -> None:
    request = traces([span(5, attributes=ATTRIBUTES if where == "model" else {})])
    [sent] = request.resource_spans[0].scope_spans[0].spans
    if where == "name":
        sent.name = WIDE
    elif where == "key":
        sent.attributes.add(key=WIDE).value.int_value = 1
    body = gzip.compress(request.SerializeToString(), 1)
    with serving(tmp_path) as server:
        before = resident(server)

        answer = post(server, body, content_encoding="gzip")

        assert answer in {200, 503}
        assert highest(server) < before + 2 * GROWTH  # the body, and its text at four times that
        wait_until(lambda: resident(server) < before + GROWTH // 2)

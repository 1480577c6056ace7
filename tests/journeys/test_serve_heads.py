"""The HTTP door against what comes before a body: endless heads, silence, HEAD, upgrades."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_web.app.connections import MAX_HEAD_BYTES
from tests.journeys.processes import Serving, export, http_exporter, serving, spans

BEGIN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data")) as running:
        assert export(http_exporter(running), spans(3))
        yield running


def address(server: Serving) -> tuple[str, int]:
    host, _, port = server.http.removeprefix("http://").partition(":")
    return host, int(port)


def connect(server: Serving) -> socket.socket:
    return socket.create_connection(address(server), timeout=20)


def memory_kib(server: Serving) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def send_until_closed(service: socket.socket, piece: bytes, most: int) -> int:
    """Send again and again; return how many bytes the server took before it closed."""
    sent = 0
    try:
        while sent < most:
            service.sendall(piece)
            sent += len(piece)
    except OSError:
        pass  # reset: the server no longer reads
    return sent


@pytest.mark.parametrize(
    "piece",
    [b"a" * 65_536, b"X-Header: value\r\n" * 4096],
    ids=["one endless header", "endless headers"],
)
def test_an_endless_head_is_cut_off_and_costs_no_memory(server: Serving, piece: bytes) -> None:
    before = memory_kib(server)
    with connect(server) as service:
        service.sendall(BEGIN + b"X-Long: ")

        taken = send_until_closed(service, piece, 64 * 1024 * 1024)

    assert taken < 64 * 1024 * 1024
    assert memory_kib(server) - before < 16 * 1024
    assert server.get("/healthz")


def test_a_head_of_ordinary_length_is_answered_and_a_longer_one_named(server: Serving) -> None:
    with connect(server) as service:
        service.sendall(BEGIN + b"Cookie: " + b"c" * 60_000 + b"\r\n\r\n")
        assert service.recv(64).startswith(b"HTTP/1.1 200 ")
    with connect(server) as service:
        service.sendall(BEGIN + b"Cookie: " + b"c" * MAX_HEAD_BYTES)
        assert service.recv(64).startswith(b"HTTP/1.1 431 ")


def test_a_long_body_is_no_long_head(server: Serving) -> None:
    body = b'{"resourceSpans": [' + b" " * (2 * MAX_HEAD_BYTES) + b"]}"
    connection = http.client.HTTPConnection(*address(server), timeout=20)
    for _ in range(2):  # the second on the same connection
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"{}")
    connection.close()


@pytest.mark.parametrize("path", ["/", "/health", "/v1/runs", "/v1/ledger", "/healthz"])
def test_head_answers_as_get_does_without_the_body(server: Serving, path: str) -> None:
    asked = []
    for method in ("GET", "HEAD"):
        connection = http.client.HTTPConnection(*address(server), timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        asked.append((answer.status, answer.getheader("content-type")))
        assert bool(answer.read()) is (method == "GET")
        connection.close()

    assert asked[0] == asked[1]
    assert asked[0][0] == 200


def test_head_of_a_stream_ends_at_once(server: Serving) -> None:
    connection = http.client.HTTPConnection(*address(server), timeout=20)
    connection.request("HEAD", "/live/runs")

    assert connection.getresponse().status == 405
    connection.close()


def test_an_upgrade_nobody_offers_is_answered_in_the_old_protocol(server: Serving) -> None:
    with connect(server) as service:
        service.sendall(BEGIN + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n")
        assert service.recv(64).startswith(b"HTTP/1.1 200 ")

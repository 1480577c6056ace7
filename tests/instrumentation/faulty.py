"""Collectors that do everything wrong, on real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

_PAGE = b"<!doctype html><title>Not what you think</title>"


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


ANSWERS = {
    "503": answer("503 Service Unavailable", "Retry-After: 30"),
    "502": answer("502 Bad Gateway"),
    "429": answer("429 Too Many Requests", "Retry-After: 30"),
    "500": answer("500 Internal Server Error"),
    "400": answer("400 Bad Request"),
    "401": answer("401 Unauthorized"),
    "404": answer("404 Not Found"),
    "redirect": answer("302 Found", "Location: http://127.0.0.1:9/elsewhere"),
    "page": answer("200 OK", "Content-Type: text/html", body=_PAGE),
    "garbage": b"\x00\xff garbage \r\n\r\n" * 8,
    "nothing": b"",  # closes at once
    "escapes": answer("503 \x1b[2J\x07gone"),
}


@contextlib.contextmanager
def faulty(kind: str) -> Iterator[int]:
    """Run a collector that answers everything in one way; its port. `hanging` never answers."""
    with listening(lambda connection: _serve(connection, kind)) as port:
        yield port


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run a server that gives each connection to `serve`, on a thread of its own."""
    server = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            open_ones.append(connection)
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    def handle(connection: socket.socket) -> None:
        with connection:
            serve(connection)

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
        accepting.join()
        for connection in open_ones:
            connection.close()


def _serve(connection: socket.socket, kind: str) -> None:
    with contextlib.suppress(OSError):
        while read_request(connection):
            if kind != "hanging":
                connection.sendall(ANSWERS[kind])
            if kind in ("garbage", "nothing"):
                connection.close()
                return


def read_request(connection: socket.socket) -> bytes:
    """Read a request whole, of HTTP as far as it is that; b"" at the end."""
    data = connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            missing = int(line.partition(b":")[2]) - len(body)
            while missing > 0:
                more = connection.recv(65536)
                if not more:
                    return b""
                data += more
                missing -= len(more)
    return data


def closed_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port

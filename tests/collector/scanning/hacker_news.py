"""A local server that answers as Hacker News' public API does, and as it never should."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO

Answer = bytes | Callable[[BinaryIO], None]  # a body, or what writes a whole response by itself
_DRIP_S = 0.02


class HackerNewsServer:
    """Stories by id, in their order; `answers` says what stands in place of any path."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.items: dict[int, dict[str, Any]] = {}
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []

    def add(self, number: int, title: str, **more: Any) -> None:
        """Put a story behind those that are there."""
        told = {"id": number, "type": "story", "by": "noor", "title": title, "score": 10 * number}
        self.items[number] = {**told, "url": f"https://example.com/{number}", **more}

    def raw(self, number: int, answer: Answer) -> None:
        """Put a story behind the others that is answered like this."""
        self.items[number] = {}
        self.answers[f"/item/{number}.json"] = answer

    def answer(self, path: str) -> Answer | None:
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        if path == "/topstories.json":
            return json.dumps(list(self.items)).encode()
        number = path.removeprefix("/item/").removesuffix(".json")
        return json.dumps(self.items[int(number)]).encode() if number.isdecimal() else None

    @property
    def items_asked(self) -> list[str]:
        return [path for path in self.asked if path.startswith("/item/")]


@contextmanager
def hacker_news() -> Iterator[HackerNewsServer]:
    """Serve on a free port of the loopback until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = served.answer(self.path)
            if callable(answer):
                answer(self.wfile)
                return
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = HackerNewsServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(code: int, *headers: str) -> Answer:
    """Return an answer without a body."""
    head = "\r\n".join((f"HTTP/1.1 {code} so", *headers, "Content-Length: 0", "", ""))
    return lambda out: _write(out, head.encode())


def dripping(head: bytes) -> Answer:
    """Return an answer that comes a byte at a time, often enough that no read of it is slow."""

    def answer(out: BinaryIO) -> None:
        never = threading.Event()
        for byte in head + b" " * 10_000:
            if not _write(out, bytes([byte])):
                return
            never.wait(_DRIP_S)

    return answer


def _write(out: BinaryIO, data: bytes) -> bool:
    """Write; whoever asked may have left."""
    try:
        out.write(data)
        out.flush()
    except OSError:
        return False
    return True

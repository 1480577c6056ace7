"""An HTTP service with Hansard in it: goes on with the trace of its callers. Run as a program."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import hansard


@hansard.tool
def answer() -> bytes:
    return b"hello"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with hansard.extract(self.headers), hansard.span("GET /hop"):
            body = answer()
        hansard.flush()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    hansard.init(service_name="hop")
    server = HTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/\n")
    sys.stdout.flush()
    server.handle_request()

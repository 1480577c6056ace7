"""An OTLP back end that takes everything and keeps nothing; tells its port on stdout."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take what is sent, and answer as OTLP/HTTP does."""
        left = int(self.headers.get("content-length", 0))
        while left > 0:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        self._answer(200, "application/x-protobuf")

    def do_GET(self) -> None:
        """Be nobody in particular."""
        self._answer(404, "text/plain")

    def _answer(self, status: int, media_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def main() -> None:
    """Serve until the process is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

"""A provider of models on this machine, for examples that speak a real API without a key.

    with local_models.serving({"/v1/responses": answer}) as base_url: …

`answer` gets the body of a request and returns the body of the answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Answers = Mapping[str, Callable[[Json], Json]]


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """Answer on a free port of this machine while the block runs; yields the base address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers.get("content-length", 0)))
            answer = answers.get(self.path.partition("?")[0])
            body = json.dumps(answer(json.loads(asked)) if answer else {}).encode()
            self.send_response(200 if answer else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

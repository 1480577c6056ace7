"""A service that answers over HTTP: each request is a run, in the trace of whoever asked.

    hansard serve &
    python examples/http_service.py

It starts itself on a free port, asks itself one question as a client with a trace of its own, and
ends. The client's step and the service's run are one tree.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import hansard


@hansard.tool
def translate(word: str) -> str:
    """Look a word up."""
    return {"lamp": "lampe", "chair": "stol"}[word]


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        word = self.path.strip("/")
        with (
            hansard.extract(self.headers),
            hansard.start_run("translator", "language", f"Translate {word!r}.", nest=True) as run,
        ):
            answer = translate(word)
        self._answer({"answer": answer, "run_id": run.run_id})

    def _answer(self, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@hansard.agent(name="reader")
def ask(address: str, word: str) -> str:
    """Ask the service, and send along where this is asked from."""
    request = urllib.request.Request(f"{address}/{word}", headers=dict(hansard.inject()))
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(json.loads(answer.read())["answer"])


if __name__ == "__main__":
    hansard.init(service_name="translator")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(ask(f"http://127.0.0.1:{server.server_port}", "lamp") + "\n")
    server.shutdown()

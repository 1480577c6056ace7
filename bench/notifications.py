"""Notifications lost or sent under a second id when the server is killed while it sends them."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench import processes
from bench.figures import Figure, at_least, below

_SEND, _DECIDE = "bench-sends", "bench-decides"
_PATIENCE_S = 180.0  # for what is left when nobody kills any more
_State = tuple[str, str]  # type, id of the approval


class Receiver:
    """A webhook that fails every second time, in one of three ways, and knows ids it has seen."""

    def __init__(self, seed: int) -> None:
        self.seen: dict[str, _State] = {}
        self.attempts = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def takes(self, event_id: str, body: bytes) -> str:
        """Return how a request ends: well, "refused", "cut off" or, though it is known, "lost"."""
        with self._lock:
            self.attempts += 1
            if self._random.random() < 0.5:
                outcome = self._random.choice(("refused", "cut off", "lost"))
                if outcome != "lost":
                    return outcome
            else:
                outcome = ""
            message = json.loads(body)
            self.seen[event_id] = message["type"], message["data"]["approval_id"]
            return outcome

    def states(self) -> Counter[_State]:
        """Return how many ids each state came under."""
        with self._lock:
            return Counter(self.seen.values())


def run(*, kills: int = 200, seed: int = 7) -> list[Figure]:
    """Kill the server while it notifies of approvals, and count what a receiver got."""
    wanted: set[_State] = set()
    began_s = time.monotonic()
    with processes.folder() as data, _serving(Receiver(seed)) as (receiver, address):
        arguments = _arguments(address)
        rng = random.Random(seed)
        for _ in range(kills):
            with processes.hansard(data, *arguments) as server:
                _propose(server.http, 0)  # once all routes are loaded
                killer = threading.Timer(rng.uniform(0.01, 1.0), server.process.kill)
                killer.start()
                wanted |= _approve_until_killed(server.http)
                killer.join()
                server.process.wait()
        with processes.hansard(data, *arguments):
            took_s = _wait(receiver, wanted)
    states = receiver.states()
    lost = len(wanted - set(states))
    twice = sum(count - 1 for count in states.values())
    note = (
        f"of {len(wanted):,} states, {receiver.attempts:,} attempts, {kills} kills in "
        f"{time.monotonic() - began_s:.0f} s"
    )
    return [
        at_least("approvals notified of", len(wanted), "states", bar=kills),
        below("notifications lost on kill -9", lost, "notifications", bar=1, note=note),
        below("states notified of under two ids", twice, "notifications", bar=1),
        below("all delivered after the last kill", took_s, "s", bar=_PATIENCE_S),
    ]


def _arguments(address: str) -> tuple[str, ...]:
    return (
        "--outbound", "on", "--notify", f"approval={address}", "--token", f"ingest:{_SEND}",
        "--token", f"read+decide:{_DECIDE}",
    )  # fmt: skip


def _approve_until_killed(http: str) -> set[_State]:
    """Propose and approve actions until the server is gone; return what it acknowledged."""
    acknowledged: set[_State] = set()
    number = 0
    while True:
        number += 1
        try:
            approval_id = _propose(http, number)
            acknowledged.add(("approval.waiting", approval_id))
            _post(f"{http}/v1/approvals/{approval_id}/approve", _DECIDE, {})
            acknowledged.add(("approval.decided", approval_id))
        except urllib.error.HTTPError:
            raise
        except (OSError, ValueError):  # killed, perhaps within an answer
            return acknowledged


def _propose(http: str, number: int) -> str:
    """Propose an action and return the id of its approval."""
    body = {"tool": "send_mail", "arguments": {"number": number}, "agent": "bench"}
    return str(_post(f"{http}/v1/approvals", _SEND, body)["approval_id"])


def _post(url: str, token: str, body: Any) -> Any:
    request = urllib.request.Request(
        url,
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def _wait(receiver: Receiver, wanted: set[_State]) -> float:
    """Wait until everything wanted was received; return the seconds it took."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < _PATIENCE_S and wanted - set(receiver.states()):
        time.sleep(0.2)
    return time.monotonic() - began_s


@contextmanager
def _serving(receiver: Receiver) -> Iterator[tuple[Receiver, str]]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            outcome = receiver.takes(self.headers["webhook-id"], body)
            if outcome == "cut off":
                self.close_connection = True
                return
            self.send_response(204 if not outcome else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver, f"http://127.0.0.1:{server.server_port}/hook"
        finally:
            server.shutdown()
            thread.join()

"""A server whose descriptors are used up, whose store is held, or that is asked for other hosts."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from tests.collector.ingesting import span, traces
from tests.journeys.processes import ServingProcess, serving
from tests.journeys.senders import post

DEADLINE_S = 240.0
LIMIT = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingProcess]:
    with serving(tmp_path_factory.mktemp("exhausted")) as running:
        yield running


def place(server: ServingProcess) -> tuple[str, int]:
    address = urlsplit(server.http)
    return address.hostname or "", address.port or 0


def answer_to(server: ServingProcess, head: str) -> bytes:
    with socket.create_connection(place(server), 10) as connection:
        connection.sendall(head.encode())
        return connection.recv(200).partition(b"\r\n")[0]


def test_used_up_descriptors_are_counted_and_the_server_lives_on(server: ServingProcess) -> None:
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (LIMIT, hard))
    pause, until = threading.Event(), time.monotonic() + DEADLINE_S
    open_files = Path(f"/proc/{server.process.pid}/fd")
    page = ""
    with contextlib.ExitStack() as held:
        first = [socket.create_connection(place(server), 10) for _ in range(8)]
        for _ in range(2 * LIMIT):
            held.enter_context(socket.create_connection(place(server), 10))
        while len(list(open_files.iterdir())) < LIMIT:
            assert time.monotonic() < until
            pause.wait(0.05)
        for connection in first:  # as many as a page needs, while nearly all are in use
            connection.close()
        while "used up 1 times" not in page:
            assert time.monotonic() < until
            with contextlib.suppress(OSError):
                page = server.get("/health").decode()
            pause.wait(0.05)

    assert f"of {LIMIT:,} open" in page
    assert post(server, traces([span(1)])).status == 200
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (hard, hard))


def test_health_answers_while_somebody_holds_the_store(server: ServingProcess) -> None:
    with contextlib.closing(open_for_accountability(DataFolder(server.data))) as blocker:
        blocker.execute("BEGIN IMMEDIATE")

        page = server.get("/health").decode()
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.get("/healthz")

        blocker.execute("ROLLBACK")
    assert "database is locked" in page
    assert "database is locked" in json.loads(refused.value.read())["reason"]
    assert server.get("/healthz")


def test_the_host_of_an_absolute_target_is_the_one_that_counts(server: ServingProcess) -> None:
    host, port = place(server)
    foreign = f"GET http://evil.example/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
    own = f"GET http://{host}:{port}/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"

    assert answer_to(server, foreign).startswith(b"HTTP/1.1 403")
    assert answer_to(server, own).startswith(b"HTTP/1.1 200")

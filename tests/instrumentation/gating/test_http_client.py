"""What a gate makes of servers that are away, broken, or not what they should be."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hansard._backend.http import HttpDecisions
from hansard._backend.http_client import HttpClient
from hansard._config.settings import load_settings
from hansard.errors import (
    DecisionConflict,
    GateUnavailable,
    InvalidArguments,
    PolicyDenied,
)


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Serve raw answers, one a request; after the last one connections are closed at once."""
    heard: list[bytes] = []
    left = list(answers)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while left and (request := _request(connection)):
                    heard.append(request)
                    connection.sendall(left.pop(0))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [one for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")]
    length = int(lines[0].split(b":")[1]) if lines else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(status: int, body: object) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(raw), raw)


@contextmanager
def decisions(base: str, tmp_path: Path) -> Iterator[HttpDecisions]:
    settings = load_settings({"endpoint": base, "data": tmp_path, "token": "t0ken"}, {})
    made = HttpDecisions(replace(settings, timeout_s=0.5))
    try:
        yield made
    finally:
        made.close()


def approval(**more: object) -> dict[str, object]:
    return {"approval_id": "a" * 32, "status": "awaiting", "arguments": {}, **more}


BROKEN: dict[str, Callable[[], bytes]] = {
    "no JSON": lambda: answer(200, b"<html>"),
    "a list": lambda: answer(200, []),
    "no length, then closed": lambda: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
    "no HTTP": lambda: b"220 mail.example.org ESMTP\r\n",
    "an error": lambda: answer(500, {"error": {"code": "x", "message": "y"}}),
    "busy": lambda: answer(503, {"error": {"code": "busy", "message": "locked"}}),
    "elsewhere": lambda: answer(302, {}),
    "no permission": lambda: answer(403, {"error": {"code": "forbidden", "message": "no"}}),
    "another thing": lambda: answer(200, {"ok": True}),
    "a status of its own": lambda: answer(200, approval(status="Approved")),
    "a status that is no text": lambda: answer(200, approval(status=True)),
    "no status": lambda: answer(200, approval(status=None)),
    "no id": lambda: answer(200, approval(approval_id="")),
    "no arguments": lambda: answer(200, approval(arguments=None)),
}


@pytest.mark.covers("CG-21")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_is_no_decision_is_none(broken: Callable[[], bytes], tmp_path: Path) -> None:
    with (
        answering(broken()) as (base, _),
        decisions(base, tmp_path) as asked,
        pytest.raises(GateUnavailable),
    ):
        asked.approval("a" * 32)


def test_a_server_that_is_away_or_silent_is_no_decision(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with decisions(base, tmp_path) as asked, pytest.raises(GateUnavailable, match="TimeoutErr"):
            asked.approval("a" * 32)
    with decisions(base, tmp_path) as asked, pytest.raises(GateUnavailable, match="Refused"):
        asked.propose({"tool": "x", "arguments": {}})


def test_the_token_goes_along_and_connections_are_kept(tmp_path: Path) -> None:
    answers = [answer(200, approval())] * 3
    with answering(*answers) as (base, heard), decisions(base, tmp_path) as kept:
        for _ in range(3):
            kept.approval("a" * 32, key="k")

    assert len(heard) == 3
    assert all(b"authorization: Bearer t0ken" in one for one in heard)
    assert all(b"Hansard-Proposal-Key: k" in one for one in heard)


def test_a_kept_connection_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    closing = answer(200, approval()).replace(b"x\r\n", b"x\r\nConnection: close\r\n")
    with answering(closing, closing) as (base, heard), decisions(base, tmp_path) as kept:
        assert kept.approval("a" * 32) == kept.approval("a" * 32)

    assert len(heard) == 2


def test_a_proposal_says_its_own_key_so_that_sent_twice_it_is_one(tmp_path: Path) -> None:
    with answering(answer(201, approval())) as (base, heard), decisions(base, tmp_path) as asked:
        asked.propose({"tool": "x", "arguments": {}})

    assert json.loads(heard[0].partition(b"\r\n\r\n")[2])["proposal_key"].startswith("hpk_")


def test_a_refusal_has_the_type_of_what_to_do_about_it(tmp_path: Path) -> None:
    first = {"decision": {"status": "rejected", "decided_by": "ana"}}
    refusals = [
        (409, "already_decided", first, DecisionConflict),
        (403, "blocked", {"rule_ids": ["no-mail"]}, PolicyDenied),
        (400, "invalid_proposal", {}, InvalidArguments),
    ]
    for status, code, details, kind in refusals:
        told = {"error": {"code": code, "message": "it says why", "details": details}}
        with (
            answering(answer(status, told)) as (base, _),
            decisions(base, tmp_path) as asked,
            pytest.raises(kind, match="it says why") as caught,
        ):
            asked.propose({"tool": "x", "arguments": {}})
        if isinstance(caught.value, DecisionConflict):
            assert (caught.value.code, caught.value.details) == (code, details)


def test_a_gate_says_that_it_needs_http(tmp_path: Path) -> None:
    settings = load_settings({"protocol": "grpc", "data": tmp_path}, {})

    with pytest.raises(GateUnavailable, match="http_endpoint"):
        HttpClient.of(settings)

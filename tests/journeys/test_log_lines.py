"""What a server or a command logs: nothing that was recorded or sent begins a line of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx2
import pytest

from hansard_store.database.data_folder import DataFolder
from tests.collector.ingesting import span, traces
from tests.journeys.processes import HANSARD, environment
from tests.signing import add_token, bearer
from tests.store.empty import empty_store

FORGED = "WARNING forged"
BREAKS = ("\n", "\r", "\x0b", "\x0c", "\x1b[2J\x1b[H", "\x85", "\u2028", "\u202e", "\x00")
HOSTILE = "".join(f"a{one}{FORGED}" for one in BREAKS)

# Everything that writes to stderr in a process of Hansard's, told a hostile text.
LOGS = """
import logging, sys, threading, warnings
from hansard_web.cli.base import log_to_stderr

HOSTILE = sys.argv[1].encode().decode("unicode_escape")
log_to_stderr()

def fail():
    raise ValueError(HOSTILE)

logging.getLogger("hansard.approvals").warning("%s and %s", HOSTILE, ValueError(HOSTILE))
try:
    fail()
except ValueError:
    logging.getLogger("hansard.pipeline").exception("failed: %s", HOSTILE, stack_info=True)
warnings.warn(HOSTILE)
thread = threading.Thread(target=fail, name=HOSTILE)
thread.start()
thread.join()
fail()
"""


def forged(told: str) -> list[str]:
    """Return lines that a text began, or in which it drives a terminal."""
    lines = [one for one in told.split("\n") if one]
    return [one for one in lines if one.startswith(FORGED) or not one.isprintable()]


def test_one_mechanism_escapes_whatever_is_logged() -> None:
    given = HOSTILE.encode("unicode_escape").decode("ascii")

    ended = subprocess.run(
        [sys.executable, "-c", LOGS, given], capture_output=True, env=environment(), timeout=240
    )

    told = ended.stderr.decode()
    assert ended.returncode == 1
    assert forged(told) == []
    assert told.count("a\\nWARNING forged") >= 4
    starts = [one.partition(":")[0] for one in told.splitlines() if not one.startswith("  │ ")]
    assert starts == [
        "WARNING hansard.approvals", "ERROR hansard.pipeline", "WARNING py.warnings",
        "ERROR hansard", "CRITICAL hansard",
    ]  # fmt: skip


def test_a_server_logs_no_line_that_was_sent_to_it(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / f"da\n{FORGED}\x1b[2Jta")
    secret = add_token(folder, "ana")
    log = tmp_path / "stderr"
    ports = ["--http-port", "0", "--grpc-port", "0"]
    with log.open("wb") as stderr, subprocess.Popen(
        [HANSARD, "serve", "--data", str(folder.path), *ports],
        stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = {}
        for line in process.stdout:
            said[line[:10].strip()] = line[11:].strip()
            if line.startswith("Data"):
                break
        _send(said["OTLP/HTTP"], said["OTLP/gRPC"], secret)
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        process.wait(30)

    assert forged(log.read_text(errors="backslashreplace")) == []
    assert forged("\n".join([*said.values(), rest])) == []
    assert "\\n" in said["Data"]


def _send(http: str, rpc: str, secret: str) -> None:
    """Send hostile texts wherever a sender can put some."""
    address = urlsplit(http)
    raw = HOSTILE.encode()
    for head in (
        b"GET /v1/runs/" + raw + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nuser-agent: " + raw + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: " + raw + b"\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer "
        + raw
        + b"\r\n\r\n",
        raw,
    ):
        with socket.create_connection((address.hostname, address.port), timeout=10) as made:
            made.sendall(head)
            made.settimeout(1)
            try:
                made.recv(1000)
            except OSError:
                continue
    with httpx2.Client(base_url=http, timeout=20) as client:
        body = traces(
            [span(1, name=HOSTILE, attributes={"gen_ai.tool.name": HOSTILE, HOSTILE: HOSTILE})]
        )
        client.post(
            "/v1/traces", content=body.SerializeToString(),
            headers={"content-type": "application/x-protobuf", "user-agent": "x"},
        )  # fmt: skip
        client.post("/v1/traces", content=raw, headers={"content-type": "application/json"})
        client.get("/v1/runs", params={"q": HOSTILE, "model": HOSTILE})
        proposal: dict[str, Any] = {"tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
        client.post("/v1/approvals", json=proposal)
        made_ = client.post(
            "/v1/approvals", json={**proposal, "tool": "send", "description": HOSTILE}
        )
        path = f"/v1/approvals/{made_.json()['approval_id']}/reject"
        client.post(path, json={"reason": HOSTILE}, headers=bearer(secret))
        client.post("/v1/events", json={"type": "failure", "action": "pay", "error": HOSTILE})
        call = {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
        told = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        client.post("/mcp", json=told, headers={"accept": "application/json, text/event-stream"})
        client.post("/signin", data={"token": HOSTILE})
    with grpc.insecure_channel(rpc) as channel:
        export = channel.unary_unary(
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            request_serializer=None, response_deserializer=None,
        )  # fmt: skip
        for data in (raw, json.dumps(HOSTILE).encode()):
            with pytest.raises(grpc.RpcError):
                export(data, timeout=10)


def test_tokens_of_hostile_names_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    ended = subprocess.run(
        [
            HANSARD, "tokens", "add", HOSTILE.replace("\0", ""), "--scope", "decide", "--data",
            str(folder.path),
        ],
        capture_output=True, text=True, env=environment(), timeout=240,
    )  # fmt: skip

    assert ended.returncode == 2
    assert forged(ended.stderr + ended.stdout) == []

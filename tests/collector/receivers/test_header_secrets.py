"""What a sender says in headers is searched for secrets before it is stored or shown."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import grpc
import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.journeys.processes import Serving, hosting

pytestmark = pytest.mark.slow

KEY = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8rS"
FAR = "x" * 190 + " " + KEY  # what is kept of a user agent ends within the key
LONG = "x" * 4_060 + " " + KEY
JSON = {"content-type": "application/json"}


def _send(server: Serving, where: str) -> None:
    """Send a request that holds the key at one place; some are stored, others refused."""
    if where == "grpc user agent":
        options = [("grpc.primary_user_agent", f"agent/{KEY}")]
        with grpc.insecure_channel(server.endpoints["grpc"], options=options) as channel:
            send = channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
            )
            send(ExportTraceServiceRequest().SerializeToString())
        return
    name, _, value = where.partition(": ")
    httpx2.post(f"{server.http}/v1/traces", content="{}", headers={**JSON, name: value})


@pytest.mark.parametrize(
    "where",
    [
        f"user-agent: agent/1.0 key={KEY}", f"user-agent: {KEY}", f"user-agent: {FAR}",
        f"content-type: text/{KEY}", f"content-encoding: {KEY}", "grpc user agent",
        f"content-type: text/{LONG}",
    ],
    ids=["agent", "alone", "long agent", "type", "encoding", "grpc", "long type"],
)  # fmt: skip
def test_no_secret_of_a_header_is_stored_or_shown(where: str, tmp_path: Path) -> None:
    with hosting(tmp_path / "data") as server:
        _send(server, where)
        httpx2.post(f"{server.http}/v1/traces", content="{}", headers=JSON)
        shown = server.get("/v1/ledger") + server.get("/health")
    with closing(sqlite3.connect(tmp_path / "data" / "hansard.db")) as store:
        rows = [*store.execute("SELECT user_agent FROM sender")]
        rows += store.execute("SELECT message FROM refusal")

    assert KEY.encode()[:10].lower() not in shown.lower()
    assert KEY[:10].lower() not in str(rows).lower()
    is_cut = where.endswith((FAR, LONG))  # within the mark
    assert "‹redacted:openai:" in str(rows) or is_cut

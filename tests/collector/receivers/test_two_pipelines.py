"""`Ingest` is all that receivers know of the store: another one behind it makes no difference.

The tests of this folder run against one that keeps everything in memory; here the store's own and
that one are asked the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.applications import Starlette
from starlette.testclient import TestClient

from hansard_collector.pipeline.requests import Ingest
from hansard_collector.receivers.http import HttpSettings, otlp_routes
from tests.collector.ingesting import Ingesting, span, traces
from tests.collector.receivers.maker import MemoryPipeline

PROTOBUF = {"Content-Type": "application/x-protobuf"}
BAD_ID = span(0, name="its id is all zeros")
GOOD = traces([span(1), span(2, 1)]).SerializeToString()
HALF = traces([span(3), BAD_ID]).SerializeToString()
BROKEN = b"\x0a\xff\xff\xff"


@contextmanager
def in_memory(_: Path) -> Iterator[Ingest]:
    kept = MemoryPipeline()
    yield kept
    kept.close()


@contextmanager
def in_sqlite(path: Path) -> Iterator[Ingest]:
    stored = Ingesting(path)
    yield stored.pipeline
    stored.close()


def answers(ingest: Ingest) -> list[tuple[int, int]]:
    """Return status and rejected spans of every request."""
    told = []
    with TestClient(Starlette(routes=otlp_routes(ingest, HttpSettings()))) as client:
        for body in (GOOD, HALF, BROKEN, GOOD):
            answer = client.post("/v1/traces", content=body, headers=PROTOBUF)
            rejected = _rejected(answer.content) if answer.status_code == 200 else 0
            told.append((answer.status_code, rejected))
    return told


def _rejected(body: bytes) -> int:
    return ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans


@pytest.mark.covers("ST-06")
def test_receivers_answer_alike_whatever_store_is_behind_them(tmp_path: Path) -> None:
    told = []
    for store in (in_memory, in_sqlite):
        with store(tmp_path / "data") as ingest:
            told.append(answers(ingest))

    by_memory, by_sqlite = told
    assert by_memory == by_sqlite == [(200, 0), (200, 1), (400, 0), (200, 0)]

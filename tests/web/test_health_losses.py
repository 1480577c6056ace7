"""What senders lost before it got here is told on the page of the collector's health."""

from __future__ import annotations

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard import semconv
from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.collector.ingesting import logs, pairs
from tests.web.conftest import MakeClient
from tests.web.html import parse


def _loss(items: int, reason: str) -> LogRecord:
    told = {
        semconv.DROPPED_SIGNAL: "spans",
        semconv.DROPPED_REASON: reason,
        semconv.DROPPED_ITEMS: items,
    }
    return LogRecord(time_unix_nano=1, event_name=semconv.EVENT_DROPPED, attributes=pairs(told))


@pytest.mark.covers("OT-12")
def test_health_says_what_was_lost_by_whom_and_why(
    make_client: MakeClient, pipeline: Pipeline
) -> None:
    client = make_client(ingest=pipeline)
    hostile = "<script>alert(1)</script>"
    for records in ([_loss(1204, "spool full")], [_loss(1, hostile)]):
        body = logs(records, service="billing").SerializeToString()
        client.post("/v1/logs", content=body, headers={"Content-Type": "application/x-protobuf"})

    answer = client.get("/health")

    notes = [note.text for note in parse(answer.text).all("div", class_="note")]
    told = "1,204 spans were lost by service billing before they reached Hansard: spool full"
    assert any(told in note for note in notes)
    assert any("1 span was lost by service billing before it reached" in note for note in notes)
    assert hostile not in answer.text

"""Log records of a known agent that make no run are named, where somebody looks for the run."""

from __future__ import annotations

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.collector.ingesting import logs, pairs
from tests.collector.sessions.maker import codex
from tests.web.conftest import MakeClient
from tests.web.html import parse

PROTOBUF = {"Content-Type": "application/x-protobuf"}


def unknown(number: int) -> LogRecord:
    told = {"event.name": f"codex.new_{number}", "conversation.id": "c"}
    return LogRecord(time_unix_nano=number, attributes=pairs(told))


@pytest.mark.parametrize("path", ["/", "/health"])
def test_an_agents_records_without_a_run_are_told(
    make_client: MakeClient, pipeline: Pipeline, path: str
) -> None:
    client = make_client(ingest=pipeline)
    body = logs([unknown(1), unknown(2)], service="codex_exec").SerializeToString()
    client.post("/v1/logs", content=body, headers=PROTOBUF)

    notes = [note.text for note in parse(client.get(path).text).all("div", class_="note")]

    assert any("2 log records of codex_exec arrived and made no run" in note for note in notes)


def test_an_agent_with_a_run_and_an_unknown_service_are_not_told(
    make_client: MakeClient, pipeline: Pipeline
) -> None:
    client = make_client(ingest=pipeline)
    prompt = codex("user_prompt", 0, prompt="hi")
    for records, service in (([unknown(1), prompt], "codex_exec"), ([unknown(2)], "shop")):
        body = logs(records, service=service).SerializeToString()
        client.post("/v1/logs", content=body, headers=PROTOBUF)

    assert "made no run" not in client.get("/health").text

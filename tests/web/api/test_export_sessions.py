"""Runs made of log records, as the API gives them: their export is what came in, and no more."""

from __future__ import annotations

import json

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from hansard_collector.otlp.json_codec import decode_json
from hansard_collector.pipeline.requests import Signal
from tests.collector.sessions.maker import claude, request
from tests.collector.sessions.scenes import claude_turn
from tests.web.api.conftest import Api

JSON = {"content-type": "application/json"}


def only_run_id(api: Api) -> str:
    (run,) = api.items("/v1/runs")
    found: str = run["run_id"]
    return found


def test_an_export_of_log_records_is_the_log_records_as_sent(api: Api) -> None:
    sent = request(claude_turn())
    api.send(sent)
    path = f"/v1/runs/{only_run_id(api)}/export"

    document = api.http.get(path, params={"format": "otlp-json"}).json()
    spans = api.http.get(path, params={"format": "otlp-proto"}).content

    assert document["resourceSpans"] == []
    body = json.dumps({"resourceLogs": document["resourceLogs"]}).encode()
    again = decode_json(Signal.LOGS, body, [])
    assert isinstance(again, ExportLogsServiceRequest)
    assert [one for r in again.resource_logs for s in r.scope_logs for one in s.log_records] == [
        one for r in sent.resource_logs for s in r.scope_logs for one in s.log_records
    ]
    assert TracesData.FromString(spans) == TracesData()


def test_an_export_sent_to_another_store_is_the_same_run_there(api: Api, other_api: Api) -> None:
    api.send(request(claude_turn()))
    run_id = only_run_id(api)
    document = api.http.get(f"/v1/runs/{run_id}/export").json()
    for signal, key in (("traces", "resourceSpans"), ("logs", "resourceLogs")):
        body = json.dumps({key: document[key]})
        assert other_api.http.post(f"/v1/{signal}", content=body, headers=JSON).status_code == 200

    here, there = (one.get(f"/v1/runs/{run_id}") for one in (api, other_api))
    assert {**here, "version": 0} == {**there, "version": 0}
    steps = (one.items(f"/v1/runs/{run_id}/steps", cursor="after") for one in (api, other_api))
    assert next(steps) == next(steps)


def test_a_step_made_of_log_records_is_raw_as_these(api: Api) -> None:
    api.send(request(claude_turn()))
    run_id = only_run_id(api)
    call = next(
        step
        for step in api.items(f"/v1/runs/{run_id}/steps", cursor="after")
        if step["role"] == "llm"
    )

    raw = api.http.get(f"/v1/steps/{call['step_id']}/raw").json()
    step = api.get(f"/v1/steps/{call['step_id']}")

    assert raw["resourceSpans"] == []
    bodies = [
        record["body"]["stringValue"]
        for envelope in raw["resourceLogs"]
        for scope in envelope["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert bodies == ["claude_code.api_request", "claude_code.assistant_response"]
    assert [log["event_name"] for log in step["logs"]] == ["api_request", "assistant_response"]


def test_a_run_made_of_log_records_says_so(api: Api) -> None:
    api.send(request([claude("user_prompt", 0, prompt="hi")]))

    run = api.get(f"/v1/runs/{only_run_id(api)}")
    assert run["synthetic"] is True
    assert (run["first_input"], run["status"], run["span_count"]) == ("hi", "ok", 1)

"""Exports: what came in goes out, and sent elsewhere is the same run there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.otlp.json_codec import decode_json
from hansard_collector.pipeline.requests import Signal
from tests.strategies import log_records, spans
from tests.web.api.conftest import Api, make_api
from tests.web.api.otlp import chat, log, logs, run_id, span, traces

TRACES = itertools.count(1)  # an example that is tried again is another trace
JSON = {"content-type": "application/json"}


def exported(api: Api, run: str, format: str) -> bytes:
    answer = api.http.get(f"/v1/runs/{run}/export", params={"format": format})
    assert answer.status_code == 200
    return answer.content


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    return [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]


@pytest.mark.covers("CO-17")
def test_an_export_sent_to_another_store_is_the_same_run_there(api: Api, other_api: Api) -> None:
    api.send(traces(span("root"), service="one"))
    api.send(traces(chat(parent="root"), span("b", "root"), service="two"))
    api.send(logs(log("said", "b")))
    whole = exported(api, run_id(), "otlp-json")

    document = json.loads(whole)
    for signal, key in (("traces", "resourceSpans"), ("logs", "resourceLogs")):
        body = json.dumps({key: document[key]})
        assert other_api.http.post(f"/v1/{signal}", content=body, headers=JSON).status_code == 200

    assert exported(other_api, run_id(), "otlp-json") == whole
    here, there = (one.get(f"/v1/runs/{run_id()}") for one in (api, other_api))
    assert {**here, "version": 0} == {**there, "version": 0}


def test_a_line_of_an_export_is_a_request_of_its_own(api: Api, other_api: Api) -> None:
    api.send(traces(*(span(f"s{number}") for number in range(450))))
    api.send(logs(log("said", "s7")))

    lines = exported(api, run_id(), "jsonl").splitlines()

    assert len(lines) == 4
    for line in lines:
        signal = "logs" if b"resourceLogs" in line else "traces"
        assert other_api.http.post(f"/v1/{signal}", content=line, headers=JSON).status_code == 200
    assert exported(other_api, run_id(), "jsonl").splitlines() == lines


def test_protobuf_holds_the_spans(api: Api) -> None:
    sent = [span(f"s{number}", attributes={"n": number}) for number in range(450)]
    api.send(traces(*sent))
    api.send(logs(log("said", "s7")))

    request = ExportTraceServiceRequest.FromString(exported(api, run_id(), "otlp-proto"))

    assert spans_of(request) == sent


def test_a_run_without_logs_has_an_empty_list_of_them(api: Api) -> None:
    api.send(traces(span("s")))

    assert json.loads(exported(api, run_id(), "otlp-json"))["resourceLogs"] == []


def test_unknown_formats_and_runs_are_refused_before_anything_is_sent(api: Api) -> None:
    api.send(traces(span("s")))

    assert api.refused(400, f"/v1/runs/{run_id()}/export", format="csv")["code"] == "invalid_query"
    assert api.refused(404, f"/v1/runs/{run_id('other')}/export")["code"] == "not_found"


@pytest.fixture(scope="module")
def lossless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One store for all examples: each has a trace of its own."""
    yield from make_api(tmp_path_factory.mktemp("lossless") / "data")


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(spans(), min_size=1, max_size=4), st.lists(log_records(), max_size=3))
def test_whatever_came_in_comes_out_field_by_field(
    lossless: Api, made: Sequence[Span], logged: Sequence[LogRecord]
) -> None:
    run = next(TRACES).to_bytes(16, "big")
    for number, one in enumerate(made, start=1):
        one.trace_id, one.span_id = run, number.to_bytes(8, "big")
    for record in logged:
        record.trace_id = run
    lossless.send(traces(*made))
    lossless.send(logs(*logged))

    body = exported(lossless, run.hex(), "otlp-json")

    document = json.loads(body)
    back = decode_json(
        Signal.TRACES, json.dumps({"resourceSpans": document["resourceSpans"]}).encode(), []
    )
    assert isinstance(back, ExportTraceServiceRequest)
    assert [one.SerializeToString(deterministic=True) for one in spans_of(back)] == [
        one.SerializeToString(deterministic=True) for one in made
    ]
    protobuf = ExportTraceServiceRequest.FromString(exported(lossless, run.hex(), "otlp-proto"))
    assert [one.SerializeToString(deterministic=True) for one in spans_of(protobuf)] == [
        one.SerializeToString(deterministic=True) for one in made
    ]
    told = decode_json(
        Signal.LOGS, json.dumps({"resourceLogs": document["resourceLogs"]}).encode(), []
    )
    assert isinstance(told, ExportLogsServiceRequest)
    found = [
        record.SerializeToString(deterministic=True)
        for resource in told.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert sorted(found) == sorted(
        record.SerializeToString(deterministic=True) for record in logged
    )

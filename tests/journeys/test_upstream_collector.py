"""A Collector between programs and the server: nothing of what it was given is lost or doubled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import get_current
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from hansard_collector.otlp.json_codec import decode_json
from hansard_collector.pipeline.requests import Signal
from tests.instrumentation.programs import run, settings
from tests.journeys.processes import Serving, hosting
from tests.journeys.relaying import KINDS, LOGS, TRACES, Item, Relay, items_of, relaying

SPANS, RECORDS = 40, 9
PROTOCOLS = ["http/protobuf", "grpc"]

PROGRAM = """
import json
import hansard
from hansard._tracing.observation import put_content

recorder = hansard.init()
tracer = recorder.tracer
with tracer.start_as_current_span("invoke_agent reader") as agent:
    for turn in range(6):
        with tracer.start_as_current_span("chat m-1") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.usage.input_tokens", 10)
            text = f"page {turn} of the almanac: " * 2000
            messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
            put_content(recorder, span, "gen_ai.input.messages", json.dumps(messages))
print("%032x" % agent.get_span_context().trace_id)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def relay() -> Iterator[Relay]:
    with relaying() as one:
        yield one


def ask(server: Serving, path: str) -> Any:
    return json.loads(server.get(path))


def tell(relay: Relay, protocol: str) -> str:
    """Send spans and logs of two services with the stock SDK; the trace's id."""
    shared: Any = None
    for service in ("planner", "reader"):
        resource = Resource({"service.name": service, "deployment.environment": "test"})
        spans, logs = TracerProvider(resource=resource), LoggerProvider(resource)
        spans.add_span_processor(BatchSpanProcessor(_spans(relay, protocol)))
        logs.add_log_record_processor(BatchLogRecordProcessor(_logs(relay, protocol)))
        tracer = spans.get_tracer("upstream", "1.0")
        with tracer.start_as_current_span(f"invoke_agent {service}", context=shared):
            for number in range(SPANS // 2 - 1):
                tracer.start_span(f"{service} {number}", attributes={"number": number}).end()
            for number in range(RECORDS):
                logs.get_logger("upstream").emit(body=f"{service} says {number}")
            shared = shared or get_current()
        spans.shutdown()
        logs.shutdown()
    return str(next(iter(relay.received[TRACES.path])).record.trace_id.hex())


def _spans(relay: Relay, protocol: str) -> Any:
    if protocol == "grpc":
        return GrpcSpans(endpoint=relay.grpc, insecure=True)
    return HttpSpans(endpoint=f"{relay.http}/v1/traces")


def _logs(relay: Relay, protocol: str) -> Any:
    if protocol == "grpc":
        return GrpcLogs(endpoint=relay.grpc, insecure=True)
    return HttpLogs(endpoint=f"{relay.http}/v1/logs")


def counted(server: Serving) -> dict[str, int]:
    """Sum what the ledger says of spans and log records."""
    ledger = ask(server, "/v1/ledger")
    names = ("received", "stored", "duplicate", "rejected")
    return {name: ledger["spans"][name] + ledger["logs"][name] for name in names}


def whole(items: list[Item]) -> dict[bytes, tuple[bytes, ...]]:
    """Return each span with the scope and the resource it stood in, as bytes."""
    return {
        item.record.span_id: tuple(
            part.SerializeToString(deterministic=True)
            for part in (item.group.resource, item.scope.scope, item.record)
        )
        for item in items
    }


@pytest.mark.covers("CO-04")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_stock_exporter_told_a_collector_arrives_whole_and_once(
    server: Serving, relay: Relay, protocol: str
) -> None:
    trace_id = tell(relay, protocol)
    before = counted(server)
    relay.pass_on(server, seed=7)
    after = counted(server)

    exported = server.get(f"/v1/runs/{trace_id}/export?format=otlp-json")
    found = items_of(TRACES, decode_json(Signal.TRACES, exported, []))
    sent = relay.received[TRACES.path]
    assert (len(sent), len(relay.received[LOGS.path])) == (SPANS, 2 * RECORDS)
    assert len(found) == SPANS
    assert whole(found) == whole(sent)
    more = {name: after[name] - before[name] for name in after}
    assert more["stored"] == sum(len(relay.received[kind.path]) for kind in KINDS)
    assert relay.sent_twice > 0
    assert relay.sent_twice <= more["duplicate"] <= relay.sent_twice + relay.maybe_twice
    assert more["rejected"] == 0
    run_ = ask(server, f"/v1/runs/{trace_id}")
    assert sorted(run_["service_names"]) == ["planner", "reader"]
    assert run_["span_count"] == SPANS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_payloads_of_the_sdk_pass_a_collector_that_does_not_know_them(
    server: Serving, relay: Relay, tmp_path: Path, protocol: str
) -> None:
    endpoint = f"http://{relay.grpc}" if protocol == "grpc" else relay.http
    ended = run(PROGRAM, settings(tmp_path, endpoint, protocol))
    assert (ended.status, ended.errors) == (0, [])
    trace_id = ended.output.strip()
    relay.pass_on(server, seed=11)

    run_ = ask(server, f"/v1/runs/{trace_id}")
    steps = ask(server, f"/v1/runs/{trace_id}/steps")["items"]
    calls = [step for step in steps if step["role"] == "llm"]
    assert (len(steps), len(calls)) == (7, 6)
    assert run_["tokens"]["input"] == 60
    for turn, step in enumerate(calls):
        shown = ask(server, f"/v1/steps/{step['step_id']}")
        [payload] = shown["payloads"]
        data = server.get(payload["url"])
        assert payload["state"] == "stored"
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == payload["ref"]
        text = f"page {turn} of the almanac: " * 2000
        assert shown["call"]["input"][0]["parts"][0]["text"] == text

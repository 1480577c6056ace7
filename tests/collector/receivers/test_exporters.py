"""The stock exporters of OpenTelemetry against both doors, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util.types import AttributeValue

from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.pipeline.requests import Signal
from tests.collector.receivers.maker import (
    HttpDoor,
    MemoryPipeline,
    OpenGrpc,
    require_bearer,
    spans_of,
)


@pytest.fixture(params=["http", "http gzip", "http deflate", "grpc", "grpc gzip"])
def span_exporter(
    request: pytest.FixtureRequest, http_door: HttpDoor, open_grpc: OpenGrpc
) -> Iterator[SpanExporter]:
    """A stock exporter of each kind, configured with nothing but the endpoint and compression."""
    transport, _, compression = request.param.partition(" ")
    exporter: SpanExporter
    if transport == "http":
        exporter = http_traces.OTLPSpanExporter(
            endpoint=f"http://127.0.0.1:{http_door.port}/v1/traces",
            compression=Compression(compression or "none"),
        )
    else:
        exporter = grpc_traces.OTLPSpanExporter(
            endpoint=f"http://127.0.0.1:{open_grpc().port}",
            compression=grpc.Compression.Gzip if compression else None,
        )
    yield exporter
    exporter.shutdown()


@contextmanager
def tracing(exporter: SpanExporter) -> Iterator[trace.Tracer]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("test")
    provider.force_flush()


def names(pipeline: MemoryPipeline) -> list[str]:
    return [span.name for message in pipeline.messages for span in spans_of(message)]


@pytest.mark.covers("TS-24")
def test_spans_of_the_stock_exporter_arrive_whole(
    span_exporter: SpanExporter, pipeline: MemoryPipeline
) -> None:
    with tracing(span_exporter) as tracer, tracer.start_as_current_span("outer"):
        attributes: dict[str, AttributeValue] = {
            "text": "ünïcode ☀",
            "numbers": [1, 2],
            "yes": True,
        }
        with tracer.start_as_current_span("inner", attributes=attributes) as span:
            span.add_event("said", {"what": "hi"})

    inner, outer = (span for message in pipeline.messages for span in spans_of(message))
    assert (inner.name, outer.name) == ("inner", "outer")
    assert (inner.parent_span_id, inner.trace_id) == (outer.span_id, outer.trace_id)
    assert [pair.key for pair in inner.attributes] == list(attributes)
    assert inner.events[0].name == "said"
    request, _ = pipeline.kept[0]
    assert "OTel-OTLP-Exporter-Python" in request.sender.user_agent


def test_the_stock_exporter_tells_success_and_failure_apart(
    span_exporter: SpanExporter, pipeline: MemoryPipeline
) -> None:
    memory = InMemorySpanExporter()
    with tracing(memory) as tracer, tracer.start_as_current_span("x"):
        pass
    spans = memory.get_finished_spans()

    stored = span_exporter.export(spans)
    pipeline.failure = MalformedRequest("no")
    refused = span_exporter.export(spans)

    assert (stored, refused) == (SpanExportResult.SUCCESS, SpanExportResult.FAILURE)
    assert names(pipeline) == ["x"]


@pytest.mark.covers("CO-10")
def test_the_stock_exporter_sends_again_what_found_the_store_busy(
    span_exporter: SpanExporter, pipeline: MemoryPipeline
) -> None:
    pipeline.failure, pipeline.fails_at_once, pipeline.failures_left = StoreBusy("full"), True, 1

    with tracing(span_exporter) as tracer, tracer.start_as_current_span("kept in the end"):
        pass

    assert names(pipeline) == ["kept in the end"]
    assert [refused.code for refused in pipeline.refused] == ["busy"]


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_logs_and_metrics_of_the_stock_exporters_arrive(
    http_door: HttpDoor, open_grpc: OpenGrpc, transport: str
) -> None:
    if transport == "http":
        base = f"http://127.0.0.1:{http_door.port}/v1"
        log_exporter: Any = http_logs.OTLPLogExporter(endpoint=f"{base}/logs")
        metric_exporter: Any = http_metrics.OTLPMetricExporter(endpoint=f"{base}/metrics")
    else:
        endpoint = f"http://127.0.0.1:{open_grpc().port}"
        log_exporter = grpc_logs.OTLPLogExporter(endpoint=endpoint)
        metric_exporter = grpc_metrics.OTLPMetricExporter(endpoint=endpoint)
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(log_exporter))
    reader = PeriodicExportingMetricReader(metric_exporter)
    metrics = MeterProvider([reader], shutdown_on_exit=False)

    logs.get_logger("test").emit(event_name="gen_ai.choice", body={"content": "hi"})
    metrics.get_meter("test").create_counter("gen_ai.client.calls").add(1)
    metrics.shutdown()
    logs.shutdown()

    by_signal: dict[Signal, Any] = {
        request.signal: message for request, message in http_door.pipeline.kept
    }
    record = by_signal[Signal.LOGS].resource_logs[0].scope_logs[0].log_records[0]
    metric = by_signal[Signal.METRICS].resource_metrics[0].scope_metrics[0].metrics[0]
    assert (record.event_name, metric.name) == ("gen_ai.choice", "gen_ai.client.calls")


def test_the_stock_grpc_exporter_is_let_in_by_its_headers(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(authorise=require_bearer("s3cret"))
    exporter = grpc_traces.OTLPSpanExporter(
        endpoint=f"http://127.0.0.1:{receiver.port}", headers="authorization=Bearer s3cret"
    )

    with tracing(exporter) as tracer, tracer.start_as_current_span("let in"):
        pass
    exporter.shutdown()

    assert names(pipeline) == ["let in"]

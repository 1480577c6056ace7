"""One span to one endpoint, with the stock exporter and OpenTelemetry's own settings."""

from __future__ import annotations

import logging

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_trace_id

from hansard_web.app.server_file import Endpoints

_TIMEOUT_S = 5


def send_test_span(endpoints: Endpoints, *, protocol: str, token: str | None) -> str | None:
    """Send a span and return its trace id, None when it was not accepted."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource.create({"service.name": "hansard-doctor"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(memory))
    provider.get_tracer("hansard.doctor").start_span(f"test span over {protocol}").end()
    spans = memory.get_finished_spans()
    exporter = _exporter(endpoints, protocol=protocol, token=token)
    log = logging.getLogger("opentelemetry")
    level = log.level
    log.setLevel(logging.CRITICAL)  # the finding says it
    try:
        sent = exporter.export(spans) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()
        log.setLevel(level)
    return format_trace_id(spans[0].context.trace_id) if sent else None


def _exporter(endpoints: Endpoints, *, protocol: str, token: str | None) -> SpanExporter:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if protocol == "grpc":
        is_plain = endpoints.http.startswith("http://")
        return GrpcExporter(
            endpoint=endpoints.grpc, insecure=is_plain, headers=headers, timeout=_TIMEOUT_S
        )
    return HttpExporter(f"{endpoints.http}/v1/traces", headers=headers, timeout=_TIMEOUT_S)

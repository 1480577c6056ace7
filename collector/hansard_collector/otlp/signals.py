"""The three OTLP signals: their messages, paths and services (opentelemetry-proto 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.otlp import LOG_LEVELS, METRIC_LEVELS, SPAN_LEVELS

ExportRequest = ExportTraceServiceRequest | ExportLogsServiceRequest | ExportMetricsServiceRequest
ExportResponse = (
    ExportTraceServiceResponse | ExportLogsServiceResponse | ExportMetricsServiceResponse
)


@dataclass(frozen=True, slots=True)
class SignalContract:
    """What a sender and a receiver of one signal agree on."""

    request: type[ExportRequest]
    response: type[ExportResponse]
    rejected_field: str  # of the response's partial_success
    path: str
    service: str  # its one method is Export
    levels: tuple[str, str, str]  # fields of the request, a resource's and a scope's part of it
    item: str  # what one of the last of them is, in sentences


CONTRACTS: Mapping[Signal, SignalContract] = MappingProxyType(
    {
        Signal.TRACES: SignalContract(
            request=ExportTraceServiceRequest,
            response=ExportTraceServiceResponse,
            rejected_field="rejected_spans",
            path="/v1/traces",
            service="opentelemetry.proto.collector.trace.v1.TraceService",
            levels=SPAN_LEVELS,
            item="a span",
        ),
        Signal.LOGS: SignalContract(
            request=ExportLogsServiceRequest,
            response=ExportLogsServiceResponse,
            rejected_field="rejected_log_records",
            path="/v1/logs",
            service="opentelemetry.proto.collector.logs.v1.LogsService",
            levels=LOG_LEVELS,
            item="a log record",
        ),
        Signal.METRICS: SignalContract(
            request=ExportMetricsServiceRequest,
            response=ExportMetricsServiceResponse,
            rejected_field="rejected_data_points",
            path="/v1/metrics",
            service="opentelemetry.proto.collector.metrics.v1.MetricsService",
            levels=METRIC_LEVELS,
            item="a metric",
        ),
    }
)

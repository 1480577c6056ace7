"""The spans of a recording, a folder of requests as they came, as dialects read them."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hansard_collector.dialects.engine.item_views import LogView, SpanView
from hansard_collector.otlp.any_value import attributes_dict, log_view, span_view


def _logs(folder: Path) -> dict[tuple[bytes, bytes], list[LogView]]:
    found: dict[tuple[bytes, bytes], list[LogView]] = {}
    for path in sorted(folder.glob("*.logs.binpb")):
        for group in ExportLogsServiceRequest.FromString(path.read_bytes()).resource_logs:
            resource = attributes_dict(group.resource.attributes)
            for scope in group.scope_logs:
                for record in scope.log_records:
                    view = log_view(record, resource, scope_name=scope.scope.name)
                    found.setdefault((record.trace_id, record.span_id), []).append(view)
    return found


def views_of(folder: Path) -> list[SpanView]:
    """The spans in order of start, each with its logs."""
    logs = _logs(folder)
    views = []
    for path in sorted(folder.glob("*.traces.binpb")):
        for group in ExportTraceServiceRequest.FromString(path.read_bytes()).resource_spans:
            resource = attributes_dict(group.resource.attributes)
            for scope in group.scope_spans:
                views += [
                    span_view(
                        span,
                        resource,
                        scope_name=scope.scope.name,
                        scope_version=scope.scope.version,
                        logs=logs.get((span.trace_id, span.span_id), ()),
                    )
                    for span in scope.spans
                ]
    return sorted(views, key=lambda view: (view.start_ns, view.end_ns))

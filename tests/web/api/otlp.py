"""Small makers of OTLP requests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

SECOND = 1_000_000_000
START = 1_780_000_000 * SECOND  # 2026-05-28T20:26:40Z


def trace_id(name: str) -> bytes:
    if len(name) == 32:
        return bytes.fromhex(name)
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()


def span_id(name: str) -> bytes:
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()[:8]


def run_id(name: str = "run") -> str:
    return trace_id(name).hex()


def step_id(name: str, run: str = "run") -> str:
    return f"{trace_id(run).hex()}-{span_id(name).hex()}"


def any_value(value: Any) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case str():
            return AnyValue(string_value=value)
        case Mapping():
            made = AnyValue()
            made.kvlist_value.SetInParent()
            made.kvlist_value.values.extend(pairs(value))
            return made
    made = AnyValue()
    made.array_value.SetInParent()
    made.array_value.values.extend(map(any_value, value))
    return made


def pairs(values: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in values.items()]


def span(
    name: str,
    parent: str | None = None,
    *,
    run: str = "run",
    start_s: float = 0,
    duration_s: float | None = 1,
    kind: int = 1,
    status: int = 0,
    message: str = "",
    attributes: Mapping[str, Any] = {},
    events: Sequence[tuple[str, Mapping[str, Any]]] = (),
    links: Sequence[tuple[str, str]] = (),
) -> Span:
    """Make a span that starts `start_s` seconds after START; no duration = still open."""
    start_ns = START + round(start_s * SECOND)
    return Span(
        trace_id=trace_id(run),
        span_id=span_id(name),
        parent_span_id=b"" if parent is None else span_id(parent),
        name=name,
        kind=kind,  # type: ignore[arg-type]  # an enum's number
        start_time_unix_nano=start_ns,
        end_time_unix_nano=0 if duration_s is None else start_ns + round(duration_s * SECOND),
        status=Status(code=status, message=message),  # type: ignore[arg-type]
        attributes=pairs(attributes),
        events=[
            Span.Event(name=event, time_unix_nano=start_ns, attributes=pairs(values))
            for event, values in events
        ],
        links=[Span.Link(trace_id=trace_id(to_run), span_id=span_id(to)) for to_run, to in links],
    )


def chat(
    name: str = "chat",
    parent: str | None = None,
    *,
    run: str = "run",
    words: str = "What is the time?",
    answer: str = "It is noon.",
    tokens: tuple[int, int] | None = (101, 23),
    **more: Any,
) -> Span:
    """Make a model call as the OTel GenAI conventions tell it."""
    said = '[{{"role":"{}","parts":[{{"type":"text","content":"{}"}}],"finish_reason":"stop"}}]'
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.input.messages": said.format("user", words),
        "gen_ai.output.messages": said.format("assistant", answer),
    }
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"] = tokens
    return span(name, parent, run=run, attributes=attributes | more.pop("attributes", {}), **more)


def traces(*spans: Span, service: str = "svc") -> ExportTraceServiceRequest:
    scope = InstrumentationScope(name="test.scope", version="1.2")
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=pairs({"service.name": service})),
                scope_spans=[ScopeSpans(scope=scope, spans=spans, schema_url="https://s/1.37.0")],
            )
        ]
    )


def logs(*records: LogRecord, service: str = "svc") -> ExportLogsServiceRequest:
    return ExportLogsServiceRequest(
        resource_logs=[
            ResourceLogs(
                resource=Resource(attributes=pairs({"service.name": service})),
                scope_logs=[ScopeLogs(log_records=records)],
            )
        ]
    )


def log(text: str, span: str, *, run: str = "run", name: str = "", at_s: float = 0) -> LogRecord:
    return LogRecord(
        time_unix_nano=START + round(at_s * SECOND),
        severity_number=9,  # type: ignore[arg-type]  # INFO
        severity_text="INFO",
        event_name=name,
        body=any_value(text),
        trace_id=trace_id(run),
        span_id=span_id(span),
    )

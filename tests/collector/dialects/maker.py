"""Small makers of spans, span events and log records as dialects read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_collector.dialects.engine.item_views import EventView, LogView, SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_compiler.calls import Call

START_NS = 1_764_000_000_000_000_000
MS = 1_000_000


def span(
    attributes: Mapping[str, Any],
    *,
    name: str = "span",
    scope: str = "",
    service: str = "app",
    status: int = 0,
    message: str = "",
    events: Sequence[EventView] = (),
    logs: Sequence[LogView] = (),
    parent: bytes = b"",
    elements: Mapping[str, Sequence[str]] | None = None,
    dropped: int = 0,
) -> SpanView:
    return SpanView(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        parent_span_id=parent,
        name=name,
        kind=1,
        start_ns=START_NS,
        end_ns=START_NS + 1000 * MS,
        status_code=status,
        status_message=message,
        attributes=attributes,
        events=events,
        scope_name=scope,
        resource={"service.name": service},
        logs=logs,
        elements=elements or {},
        dropped_attributes_count=dropped,
    )


def event(name: str, attributes: Mapping[str, Any] | None = None, *, at_ms: float = 1) -> EventView:
    return EventView(name, START_NS + int(at_ms * MS), attributes or {})


def log(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    body: Any = None,
    at_ms: float = 1,
) -> LogView:
    return LogView(
        event_name=name,
        time_ns=START_NS + int(at_ms * MS),
        severity_number=9,
        body=body,
        attributes=attributes or {},
    )


def read(attributes: Mapping[str, Any], **more: Any) -> Normalised:
    return normalise(span(attributes, **more), MessageCache())


def call_of(attributes: Mapping[str, Any], **more: Any) -> Call:
    call = read(attributes, **more).call
    assert call is not None
    return call

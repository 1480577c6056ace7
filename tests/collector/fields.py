"""Every text and bytes field of a request, found by walking the protobuf descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hansard_collector.pipeline.requests import Signal

REQUESTS: dict[Signal, type[Message]] = {
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}
_LEAVES = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_ANY_VALUE_DEPTH = 3  # a value in an array in a map


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a signal's request, by the names on the way to it."""

    signal: Signal
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.signal}:{'.'.join(self.names)}"

    def request_with(self, text: str) -> Any:
        """Return a request that holds `text` in this field and nothing else that says anything."""
        request = REQUESTS[self.signal]()
        message: Any = request
        for name in self.names[:-1]:
            child = getattr(message, name)
            if message.DESCRIPTOR.fields_by_name[name].is_repeated:
                child = child.add()
            else:
                child.SetInParent()
            message = child
        field = message.DESCRIPTOR.fields_by_name[self.names[-1]]
        value = text if field.type == FieldDescriptor.TYPE_STRING else text.encode()
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
        return request


def places(signal: Signal) -> list[Place]:
    """Return every field that can hold text or bytes, AnyValues to a depth of three."""
    return [Place(signal, names) for names in _walk(REQUESTS[signal].DESCRIPTOR, (), any_values=0)]


def _walk(
    message: Descriptor, names: tuple[str, ...], *, any_values: int
) -> Iterator[tuple[str, ...]]:
    any_values += message.name == "AnyValue"
    if any_values > _ANY_VALUE_DEPTH:
        return
    for field in message.fields:
        if field.type in _LEAVES:
            yield (*names, field.name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            yield from _walk(field.message_type, (*names, field.name), any_values=any_values)

"""What a dialect reads: a span or log record as plain Python values.

AnyValue becomes str, bool, int, float, bytes, None, list or dict. Keys sent twice: the last wins.
What every span goes through is a NamedTuple here and below: made in a fifth of the time of a frozen
dataclass, and a span takes a dozen of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

NOTHING: Mapping[str, Any] = MappingProxyType({})

Value = Any  # str | bool | int | float | bytes | None | list[Value] | dict[str, Value]


@dataclass(frozen=True, slots=True)
class EventView:
    """A span event."""

    name: str
    time_ns: int
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LogView:
    """A log record; `event_name` is resolved from all the places senders put it (otlp.md §10)."""

    event_name: str
    time_ns: int
    severity_number: int
    body: Value
    attributes: Mapping[str, Value]
    scope_name: str = ""
    resource: Mapping[str, Value] = field(default_factory=dict)
    trace_id: bytes = b""
    span_id: bytes = b""
    severity_text: str = ""


class SpanView(NamedTuple):
    """A span with its resource, its scope and the log records that carry its ids."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes  # empty for a root
    name: str
    kind: int  # 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer
    start_ns: int
    end_ns: int  # 0 while open
    status_code: int  # 0 unset, 1 ok, 2 error
    status_message: str
    attributes: Mapping[str, Value]
    events: Sequence[EventView] = ()
    scope_name: str = ""
    scope_version: str = ""
    resource: Mapping[str, Value] = NOTHING
    logs: Sequence[LogView] = ()
    dropped_attributes_count: int = 0
    # Attributes that hold a JSON array, already cut into the texts of their elements by the
    # content store; a dialect that finds its key here need not parse the whole array again.
    elements: Mapping[str, Sequence[str]] = NOTHING

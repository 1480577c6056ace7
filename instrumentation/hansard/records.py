"""The SDK's own log records: payloads, pulses and losses, as the stock log exporter takes them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from hansard import semconv
from hansard.losses import Loss

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord


def make_record(
    resource: Resource,
    event_name: str,
    body: bytes | str | Mapping[str, object] | None,
    attributes: Mapping[str, Any],
) -> ReadableLogRecord:
    """Return a log record of the SDK's scope, outside of any trace."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import ReadableLogRecord

    from hansard import __version__

    now_ns = time.time_ns()
    record = LogRecord(
        timestamp=now_ns,
        observed_timestamp=now_ns,
        context=Context(),
        severity_number=SeverityNumber.INFO,
        severity_text="INFO",
        body=body,  # type: ignore[arg-type]  # AnyValue: narrower than any mapping
        attributes=dict(attributes),
        event_name=event_name,
    )
    scope = InstrumentationScope(semconv.SCOPE_NAME, __version__, semconv.SCHEMA_URL)
    return ReadableLogRecord(record, resource, scope)


def pulse_records(
    resource: Resource, pulses: Sequence[Mapping[str, Any]]
) -> list[ReadableLogRecord]:
    """Return pulses as records; the resource says whose they are."""
    return [make_record(resource, semconv.EVENT_PULSE, None, pulse) for pulse in pulses]


def loss_records(losses: Sequence[Loss]) -> list[ReadableLogRecord]:
    """Return counts of what was lost as records of the sender that lost it."""
    return [
        make_record(
            Resource(
                {
                    semconv.SERVICE_NAME: loss.sender.service,
                    semconv.SERVICE_INSTANCE_ID: loss.sender.instance,
                }
            ),
            semconv.EVENT_LOSS,
            f"{loss.items} {loss.signal} were lost: {loss.reason}",
            {
                semconv.LOSS_SIGNAL: loss.signal,
                semconv.LOSS_REASON: loss.reason,
                semconv.LOSS_ITEMS: loss.items,
            },
        )
        for loss in losses
    ]

"""The SDK's own log records: payloads, pulses and losses, as the stock log exporter takes them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from hansard import semconv
from hansard._export.dropped import Loss

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord

    from hansard._payloads.packs import WaitingPayload

_NOWHERE: Final = Context()  # outside of any trace


def make_record(
    resource: Resource,
    event_name: str,
    body: bytes | str | Mapping[str, object] | None,
    attributes: Mapping[str, Any],
) -> ReadableLogRecord:
    """Return a log record of the SDK's scope, outside of any trace."""
    parts = _parts()
    now_ns = time.time_ns()
    record = parts.record(
        timestamp=now_ns,
        observed_timestamp=now_ns,
        context=_NOWHERE,
        severity_number=parts.severity,
        severity_text="INFO",
        body=body,
        attributes=dict(attributes),
        event_name=event_name,
    )
    made: ReadableLogRecord = parts.readable(record, resource, parts.scope)
    return made


class _Parts(NamedTuple):
    record: Any
    readable: Any
    severity: Any
    scope: InstrumentationScope


@cache
def _parts() -> _Parts:
    """Return what records are made of: imported with the first of them, 40 ms."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import ReadableLogRecord

    from hansard import __version__

    scope = InstrumentationScope(semconv.SCOPE_NAME, __version__, semconv.SCHEMA_URL)
    return _Parts(LogRecord, ReadableLogRecord, SeverityNumber.INFO, scope)


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


class PayloadRecords(Sequence["ReadableLogRecord"]):
    """Payloads with their bytes, as log records of one request.

    The stock encoder copies each body five times over: 27 µs a payload of 4 KiB, where filling in
    a record that it made once takes 3.
    """

    def __init__(self, loaded: Sequence[tuple[WaitingPayload, bytes]], resource: Resource) -> None:
        self._loaded = loaded
        self._resource = resource

    def __len__(self) -> int:
        return len(self._loaded)

    @overload
    def __getitem__(self, index: int) -> ReadableLogRecord: ...
    @overload
    def __getitem__(self, index: slice) -> PayloadRecords: ...
    def __getitem__(self, index: int | slice) -> ReadableLogRecord | PayloadRecords:
        if isinstance(index, slice):
            return PayloadRecords(self._loaded[index], self._resource)
        payload, data = self._loaded[index]
        return _payload_record(self._resource, payload.ref, payload.media_type, data)

    def encode(self) -> bytes:
        """Return an ExportLogsServiceRequest, as `encode_logs` makes it of these records."""
        from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

        request = encode_logs([_payload_record(self._resource, "", "", b"")])
        records = request.resource_logs[0].scope_logs[0].log_records
        pattern = records.pop()
        for payload, data in self._loaded:
            record = records.add()
            record.CopyFrom(pattern)
            record.body.bytes_value = data
            digest, media_type = record.attributes
            digest.value.string_value = payload.ref
            media_type.value.string_value = payload.media_type
        encoded: bytes = request.SerializeToString()
        return encoded


def ref_of(record: ReadableLogRecord) -> str:
    """Return the payload that a record carries."""
    return str((record.log_record.attributes or {})[semconv.PAYLOAD_DIGEST])


def _payload_record(
    resource: Resource, ref: str, media_type: str, data: bytes
) -> ReadableLogRecord:
    attributes = {semconv.PAYLOAD_DIGEST: ref, semconv.PAYLOAD_MEDIA_TYPE: media_type}
    return make_record(resource, semconv.EVENT_PAYLOAD, data, attributes)

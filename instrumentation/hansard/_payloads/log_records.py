"""Payloads as log records of one request, in the form that the stock encoder gives them.

It copies each body five times over on its way into a request: 27 µs a payload of 4 KiB, where
filling in a record that it made once takes 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from hansard import semconv
from hansard._export.otlp.log_records import make_record
from hansard._payloads.packs import WaitingPayload

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.resources import Resource


class PayloadRecords(Sequence["ReadableLogRecord"]):
    """Payloads with their bytes: log records for whoever looks at them, and quick to encode."""

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
        return _record(self._resource, payload.ref, payload.media_type, data)

    def encode(self) -> bytes:
        """Return an ExportLogsServiceRequest, as `encode_logs` makes it of these records."""
        from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

        request = encode_logs([_record(self._resource, "", "", b"")])
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


def _record(resource: Resource, ref: str, media_type: str, data: bytes) -> ReadableLogRecord:
    told = {semconv.PAYLOAD_DIGEST: ref, semconv.PAYLOAD_MEDIA_TYPE: media_type}
    return make_record(resource, semconv.EVENT_PAYLOAD, data, told)

"""Payloads that come as OTLP log records: `hansard.payload`, with the bytes as their body.

So they pass any collector in between. They are taken out of their request before anything else
looks at it, because redaction would change bytes that must first be held against their digest; and
they are stored as payloads, never as logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard import semconv
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.payloads.retention import media_type_of, retain_payload
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.content.payloads import (
    PreparedPayload,
    parse_payload_ref,
    prepare_payload,
    write_file,
)
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import BadDigestError, BadQueryError, StoreBusyError

NO_DIGEST = f"a payload without {semconv.PAYLOAD_DIGEST}=sha256:<64 hex digits>"
NO_BYTES = "a payload whose body is no bytes"
WRONG_DIGEST = "a payload whose bytes are not those of its digest"
NOT_KEPT = "a payload: in metadata_only no content is kept"


@dataclass(frozen=True, slots=True)
class SentPayload:
    """A payload as its record tells it; nothing is checked yet."""

    ref: object
    media_type: object
    body: bytes | None  # None: of another type than bytes or text


class PayloadStage:
    """Takes payloads out of requests and makes them ready to be written."""

    def __init__(self, folder: DataFolder, mode: RetentionMode) -> None:
        self._folder = folder
        self._mode = mode
        self._redactor = Redactor(folder.key())

    def take_out(self, request: ExportLogsServiceRequest) -> list[SentPayload]:
        """Remove the payloads from a request, and return them in their order."""
        sent: list[SentPayload] = []
        for resource_level in request.resource_logs:
            for scope_level in resource_level.scope_logs:
                records = scope_level.log_records
                at = [i for i, one in enumerate(records) if one.event_name == semconv.EVENT_PAYLOAD]
                sent += [_sent(records[i]) for i in at]
                for i in reversed(at):
                    del records[i]
        return sent

    def prepared(
        self, sent: Sequence[SentPayload], reasons: Counter[str], *, received_ns: int
    ) -> Iterator[PreparedPayload]:
        """Yield what may be stored; what is refused is counted under its reason."""
        for one in sent:
            made = self._prepare(one, reasons, received_ns=received_ns)
            if made is not None:
                # Tried again under the lock, where a full disk is the sender's to hear of.
                with suppress(StoreBusyError):
                    write_file(self._folder, made)
                yield made

    def _prepare(
        self, one: SentPayload, reasons: Counter[str], *, received_ns: int
    ) -> PreparedPayload | None:
        if one.body is None:
            reasons[NO_BYTES] += 1
            return None
        try:
            made = prepare_payload(
                one.body,
                wanted=parse_payload_ref(one.ref if isinstance(one.ref, str) else ""),
                media_type=media_type_of(one.media_type, self._redactor),
                received_ns=received_ns,
                retain=partial(retain_payload, mode=self._mode, redactor=self._redactor),
            )
        except BadQueryError:
            reasons[NO_DIGEST] += 1
        except BadDigestError:
            reasons[WRONG_DIGEST] += 1
        else:
            if made is None:
                reasons[NOT_KEPT] += 1
            return made
        return None


def _sent(record: LogRecord) -> SentPayload:
    attributes = attributes_dict(record.attributes)
    return SentPayload(
        attributes.get(semconv.PAYLOAD_DIGEST),
        attributes.get(semconv.PAYLOAD_MEDIA_TYPE),
        _body(record),
    )


def _body(record: LogRecord) -> bytes | None:
    kind = record.body.WhichOneof("value")
    if kind == "string_value":
        return record.body.string_value.encode()
    # An empty value may lose its type on the way; the digest says whether it was empty.
    return record.body.bytes_value if kind in ("bytes_value", None) else None

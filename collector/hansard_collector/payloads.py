"""Payloads that spans name: received, reduced by retention, and joined with their spans.

They come as OTLP log records, `hansard.payload`, with the bytes as their body, so that they pass
any collector in between. They are taken out of their request before anything else looks at it,
because redaction would change bytes that must first be held against their digest; and they are
stored as payloads, never as logs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

import apsw
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard import semconv
from hansard_collector.derivation.compilations import with_result
from hansard_collector.derivation.rederivation import read_span, rederive_span, rederive_stored
from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.references import (
    CONTENT_OF,
    WRITTEN_BYTES,
    add_contents,
    read_contents,
    references,
)
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.pipeline.preparation import PreparedSpan, project
from hansard_compiler.calls import MediaPart
from hansard_compiler.errors import NotFoundError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.compilations.queries import spans_awaiting
from hansard_store.content.payload_uses import spans_naming
from hansard_store.content.payloads import (
    Payload,
    PreparedPayload,
    add_payload,
    blob_path,
    folder_of,
    get_payload,
    parse_payload_ref,
    payload_ref,
    prepare_payload,
    write_file,
)
from hansard_store.content.retention import Retention
from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import DigestMismatchError, InvalidQueryError, StoreBusyError
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.writer import IngestWriter, WriteBatch

NO_DIGEST = f"a payload without {semconv.PAYLOAD_DIGEST}=sha256:<64 hex digits>"
NO_BYTES = "a payload whose body is no bytes"
WRONG_DIGEST = "a payload whose bytes are not those of its digest"
NO_CONTENT = "a payload: in metadata_only no content is kept"


@dataclass(frozen=True, slots=True)
class SentPayload:
    """A payload as its record states it; nothing is checked yet."""

    ref: object
    media_type: object
    body: bytes | None  # None: of another type than bytes or text


class PayloadStage:
    """Takes payloads out of requests and makes them ready to be written."""

    def __init__(self, folder: DataFolder, mode: RetentionMode) -> None:
        self._folder = folder
        self._retention = Retention.of(folder, mode)

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
                expected=parse_payload_ref(one.ref if isinstance(one.ref, str) else ""),
                media_type=self._retention.media_type(one.media_type),
                received_ns=received_ns,
                retain=self._retention.payload,
            )
        except InvalidQueryError:
            reasons[NO_DIGEST] += 1
        except DigestMismatchError:
            reasons[WRONG_DIGEST] += 1
        else:
            if made is None:
                reasons[NO_CONTENT] += 1
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


# The payloads that a step names, and the state of each.


MOST = 200  # of one step; a compile names one an item
OF_ITEMS = "hansard.item."  # how the attributes begin that are a compile's receipts
_KEYED = "hmac-sha256:"
_REF_CHARACTERS = frozenset({len("sha256:") + 64, len(_KEYED) + 64})
_REF_FORM = re.compile(f"(?:{_KEYED}|sha256:)[0-9a-f]{{64}}", re.ASCII)
# A digest under another key may be of anything: it is listed only when its bytes are here.
_REFERRING = ("_ref", ".ref", "_refs", ".refs")


class PayloadStanding(StrEnum):
    """Whether the bytes that a span names are here."""

    STORED = "stored"
    REDACTED = "redacted"  # stored, without what retention took out
    MISSING = "missing"  # not arrived yet, lost on the way, or deleted
    WITHHELD = "withheld"  # metadata_only: neither the bytes nor their digest were stored


@dataclass(frozen=True, slots=True)
class NamedPayload:
    """A payload as a step names it; `payload` is what is stored of it."""

    name: str  # of the content: "gen_ai.input.messages"
    attribute: str | None  # the key that names it; None: a part of a message does
    ref: str  # as sent
    standing: PayloadStanding
    size: int | None  # bytes: of what is stored, else as the sender states it
    payload: Payload | None = None


def named_payloads(
    connection: apsw.Connection, view: SpanView, normal: Normalised, *, with_items: bool = True
) -> list[NamedPayload]:
    """Return the payloads that a step's attributes and messages name, at most MOST.

    Not those of a compile's items, on request: of 5,000 items they are most of a page's time.
    """
    named = _named(view, normal, with_items=with_items)
    found = (_look_up(connection, view, *one) for one in islice(named, MOST * 2))
    return list(islice((one for one in found if one is not None), MOST))


_Naming = tuple[str, str | None, str]  # name, attribute, ref


def _named(view: SpanView, normal: Normalised, *, with_items: bool) -> Iterator[_Naming]:
    for key, value in view.attributes.items():
        if not with_items and key.startswith(OF_ITEMS):
            continue
        if isinstance(value, str):
            if _is_ref(value):
                yield _name_of(key), key, value
        elif isinstance(value, list):
            for at, one in enumerate(value):
                if isinstance(one, str) and _is_ref(one):
                    yield f"{_name_of(key)}[{at}]", key, one
    call = normal.call
    for number, message in enumerate((*call.input, *call.output) if call else (), 1):
        for part in message.parts:
            if isinstance(part, MediaPart) and part.payload and _is_ref(part.payload):
                yield f"media of message {number}", None, part.payload


def _is_ref(value: str) -> bool:
    return len(value) in _REF_CHARACTERS and _REF_FORM.fullmatch(value) is not None


def _name_of(key: str) -> str:
    known = CONTENT_OF.get(key)
    if known is not None:
        return known
    ending = next((one for one in _REFERRING if key.endswith(one)), "")
    return key.removesuffix(ending)


def _look_up(
    connection: apsw.Connection, view: SpanView, name: str, key: str | None, ref: str
) -> NamedPayload | None:
    refers = key is None or key.endswith(_REFERRING)
    standing, payload = standing_of(connection, ref)
    if payload is None:
        size = _stated_size(view.attributes, name)
        return NamedPayload(name, key, ref, standing, size) if refers else None
    return NamedPayload(name, key, ref, standing, payload.size, payload)


def standing_of(connection: apsw.Connection, ref: str) -> tuple[PayloadStanding, Payload | None]:
    """Return whether the bytes of a reference are here, and what is stored of them."""
    if ref.startswith(_KEYED):
        return PayloadStanding.WITHHELD, None
    payload = _stored(connection, ref)
    if payload is None:
        return PayloadStanding.MISSING, None
    return PayloadStanding.REDACTED if payload.redacted else PayloadStanding.STORED, payload


def _stored(connection: apsw.Connection, ref: str) -> Payload | None:
    try:
        payload = get_payload(connection, parse_payload_ref(ref))
    except (NotFoundError, InvalidQueryError):
        return None
    if payload.inline is None and not blob_path(folder_of(connection), payload.digest).exists():
        return None
    return payload


def _stated_size(attributes: Mapping[str, Any], name: str) -> int | None:
    size = attributes.get(f"{name}_size")
    return size if type(size) is int and size >= 0 else None


# Spans and the payloads they name, joined in whichever order they come.


# Of spans that were waiting for one payload; the rest finds it when it is read, or rebuilt.
MOST_WAITING = 200

_SpanKey = tuple[bytes, bytes]  # trace id, span id


class PayloadJoiner:
    """The payloads and the spans with references of one transaction."""

    def __init__(
        self, connection: apsw.Connection, batch: WriteBatch, messages: MessageCache
    ) -> None:
        self._connection = connection
        self._batch = batch
        self._messages = messages
        self._folder: DataFolder | None = None
        self._arrived: list[bytes] = []
        # What this transaction's spans name: the index does not know them before its end.
        self._named: dict[bytes, set[_SpanKey]] = defaultdict(set)

    def projection(self, item: PreparedSpan) -> SpanProjection:
        """Return the rows of a span as its payloads state them, as far as they are here."""
        if item.view is None:
            return item.projection
        named = references(item.view.attributes)
        contents = read_contents(self._connection, named, most_bytes=WRITTEN_BYTES)
        for key in named.keys() - contents.keys():
            self._named[named[key]].add((item.message.trace_id, item.message.span_id))
        made = item.projection
        if contents:
            tokens = item.envelope.resource_tokens
            meant = add_contents(item.view, contents)
            made = project(item.view, self._messages, resource_tokens=tokens, meant=meant)
        return with_result(self._connection, made)

    def add(self, made: PreparedPayload) -> str:
        """Store a payload and return its column of the ledger."""
        self._folder = self._folder or folder_of(self._connection)
        if not add_payload(self._folder, self._connection, made):
            return "duplicate"
        self._arrived.append(made.sent)
        return "stored"

    def join(self) -> None:
        """Derive again the spans that were stored before a payload they name."""
        if self._arrived:
            self._batch.write_held()
        for span in spans_awaiting(self._connection, list(map(payload_ref, self._arrived))):
            self._rederive(span)
        for digest in self._arrived:
            waiting = spans_naming(self._connection, digest, CONTENT_OF, most=MOST_WAITING)
            for span in waiting:
                self._rederive(span)
            for trace_id, span_id in sorted(self._named.get(digest, ())):
                rederive_span(
                    self._connection,
                    self._batch,
                    trace_id=trace_id,
                    span_id=span_id,
                    messages=self._messages,
                )
        self._arrived.clear()

    def _rederive(self, span: int) -> None:
        stored = read_span(self._connection, span)
        rederive_stored(self._connection, self._batch, stored, messages=self._messages)


def store_payload(folder: DataFolder, made: PreparedPayload) -> bool:
    """Store one payload by itself, whatever the pipeline does; False when it was known.

    In any process: it waits for the write lock like everybody. The commit survives a power cut.
    Raises StoreBusyError when it cannot be written now.
    """
    write_file(folder, made)
    with closing(open_for_accountability(folder)) as connection:
        writer = IngestWriter(connection, derived_version=DERIVED_VERSION)
        with writer.batch(now_ns=None) as batch:
            joiner = PayloadJoiner(connection, batch, MessageCache())
            outcome = joiner.add(made)
            joiner.join()
        return outcome == "stored"

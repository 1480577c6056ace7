"""Spans and the payloads they name, joined in whichever order they come."""

from __future__ import annotations

from collections import defaultdict

import apsw

from hansard_collector.derivation.compile_results import with_result
from hansard_collector.derivation.rederivation import read_span, rederive_span, rederive_stored
from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.references import (
    CONTENT_OF,
    WRITTEN_BYTES,
    add_contents,
    read_contents,
    references,
)
from hansard_collector.pipeline.preparation import PreparedSpan, project
from hansard_store.compilations.queries import spans_awaiting
from hansard_store.content.payload_uses import spans_naming
from hansard_store.content.payloads import (
    PreparedPayload,
    add_payload,
    folder_of,
    payload_ref,
    write_file,
)
from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.writer import Batch, IngestWriter

# Of spans that were waiting for one payload; the rest finds it when it is read, or rebuilt.
MOST_WAITING = 200

_SpanKey = tuple[bytes, bytes]  # trace id, span id


class PayloadJoiner:
    """The payloads and the spans with references of one transaction."""

    def __init__(self, connection: apsw.Connection, batch: Batch, messages: MessageCache) -> None:
        self._connection = connection
        self._batch = batch
        self._messages = messages
        self._folder: DataFolder | None = None
        self._arrived: list[bytes] = []
        # What this transaction's spans name: the index does not know them before its end.
        self._named: dict[bytes, set[_SpanKey]] = defaultdict(set)

    def projection(self, item: PreparedSpan) -> SpanProjection:
        """Return the rows of a span as its payloads tell them, as far as they are here."""
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
    connection = open_for_accountability(folder)
    try:
        writer = IngestWriter(connection, derived_version=DERIVED_VERSION)
        with writer.batch(now_ns=None) as batch:
            joiner = PayloadJoiner(connection, batch, MessageCache())
            outcome = joiner.add(made)
            joiner.join()
        return outcome == "stored"
    finally:
        connection.close()

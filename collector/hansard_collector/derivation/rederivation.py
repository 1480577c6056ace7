"""Stored spans read back whole, as a dialect reads them, and their derived rows made again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from hansard_collector.derivation.compilations import with_result
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import LogView, SpanView
from hansard_collector.dialects.engine.references import (
    CONTENT_OF,
    WRITTEN_BYTES,
    add_contents,
    read_contents,
    references,
)
from hansard_collector.log_sessions.steps import made_mac
from hansard_collector.otlp.any_value import attributes_dict, span_view
from hansard_collector.otlp.stored_records import Envelopes
from hansard_collector.pipeline.preparation import PreparedLog, annotations_with_results, project
from hansard_collector.pipeline.validation import repair_span, repaired_flags, span_times
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.otlp_records import restore_span
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.ingest.stored_spans import (
    SpanRow,
    get_span_row,
    iter_span_rows,
    list_log_rows,
    list_span_rows,
    spans_with_logs,
)
from hansard_store.ingest.writer import WriteBatch
from hansard_store.steps.flags import SpanFlag

# More events than that on one span say nothing new about its call.
MOST_LOGS = 2000


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """A span as it is stored, with all its parts."""

    id: int
    side: int
    resource_id: int
    scope_id: int
    flags: int
    mac: bytes
    received_ns: int
    attribute_count: int
    notes: tuple[str, ...]
    is_redacted: bool
    message: Span
    resource: ResourceSpans  # only resource and schema_url
    scope: ScopeSpans  # only scope and schema_url
    logs: tuple[LogView, ...]
    contents: Mapping[str, str]  # what stands in payloads, by the key it would stand under

    def view(self) -> SpanView:
        """Return the span as a dialect reads it."""
        return span_view(
            self.message,
            attributes_dict(self.resource.resource.attributes),
            scope_name=self.scope.scope.name,
            scope_version=self.scope.scope.version,
            logs=self.logs,
        )

    def meant(self) -> SpanView | None:
        """Return it with the content it only refers to; None where that is not at hand."""
        return add_contents(self.view(), self.contents) if self.contents else None


def read_span(connection: apsw.Connection, span: int) -> StoredSpan:
    """Return a stored span by its number; raises StoreCorruptError when a part is missing."""
    return stored_span(connection, get_span_row(connection, span), Envelopes(connection))


def iter_stored(
    connection: apsw.Connection, trace_id: bytes, spans: Sequence[int]
) -> Iterator[tuple[int, StoredSpan | None]]:
    """Yield stored spans of one trace by their numbers, with None for one that lacks a part.

    A third of the time of reading them one by one: what they share is read once, and log records
    are looked for only where there are some. A span that is gone is left out.
    """
    envelopes = Envelopes(connection)
    logged = spans_with_logs(connection, trace_id)
    for row in iter_span_rows(connection, spans):
        try:
            yield row.id, stored_span(connection, row, envelopes, logged=logged)
        except StoreCorruptError:
            yield row.id, None


def stored_span(
    connection: apsw.Connection,
    row: SpanRow,
    envelopes: Envelopes,
    *,
    logged: Collection[bytes] | None = None,
) -> StoredSpan:
    """Return what a row holds; `logged` are the spans that have log records, None: not known."""
    message = restore_span(connection, row.record)
    has_logs = logged is None or message.span_id in logged
    return StoredSpan(
        id=row.id,
        side=row.side,
        resource_id=row.resource,
        scope_id=row.scope,
        flags=row.flags,
        mac=row.mac,
        received_ns=row.received_ns,
        attribute_count=row.attribute_count,
        notes=tuple(row.notes.split("\n")) if row.notes else (),
        is_redacted=bool(row.is_redacted),
        message=message,
        resource=envelopes.resource(row.resource),
        scope=envelopes.scope(row.scope),
        logs=tuple(_logs(connection, message, envelopes)) if has_logs else (),
        contents=_contents(connection, message),
    )


def _contents(connection: apsw.Connection, span: Span) -> dict[str, str]:
    if not any(pair.key in CONTENT_OF for pair in span.attributes):
        return {}
    named = references(attributes_dict(span.attributes))
    return read_contents(connection, named, most_bytes=WRITTEN_BYTES)


def _logs(connection: apsw.Connection, span: Span, envelopes: Envelopes) -> Iterator[LogView]:
    for row in list_log_rows(connection, span.trace_id, span.span_id, most=MOST_LOGS):
        yield envelopes.log(row.record, resource=row.resource, scope=row.scope)


def rederive_span(
    connection: apsw.Connection,
    batch: WriteBatch,
    *,
    trace_id: bytes,
    span_id: bytes,
    messages: MessageCache,
) -> None:
    """Make the derived rows of a stored span again; nothing happens when there is no such span."""
    for row in list_span_rows(connection, trace_id, span_id):
        stored = stored_span(connection, row, Envelopes(connection))
        rederive_stored(connection, batch, stored, messages=messages)


def rederive_stored(
    connection: apsw.Connection, batch: WriteBatch, stored: StoredSpan, *, messages: MessageCache
) -> None:
    """Make the derived rows of a span that was read back again."""
    run = batch.runs.get(stored.message.trace_id, start_ns=0)
    if run is None:
        return
    received = received_again(stored)
    projection = with_result(connection, project(stored.view(), messages, meant=stored.meant()))
    batch.spans.rederive(stored.id, received, projection, run)


def received_again(stored: StoredSpan) -> ReceivedSpan:
    """Return a stored span in the form in which it was received and repaired."""
    span = stored.message
    flags, _ = repair_span(span)
    times = span_times(span, received_ns=stored.received_ns)
    is_made = stored.mac == made_mac(span)
    has_links = SpanFlag.HAS_LINKS if span.links else 0
    return ReceivedSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        side=stored.side,
        parent_span_id=span.parent_span_id or None,
        name=span.name,
        kind=span.kind,
        start_ns=times.start_ns,
        end_ns=times.end_ns,
        sort_ns=times.sort_ns,
        status=span.status.code,
        flags=flags | times.flags | _flags_of_notes(stored, is_made=is_made) | has_links,
        mac=stored.mac,
        received_ns=stored.received_ns,
        resource=stored.resource_id,
        scope=stored.scope_id,
        attribute_count=stored.attribute_count,
        message=span,
        large=(),
        links=[(link.trace_id, link.span_id) for link in span.links],
        notes=stored.notes,
        synthetic=is_made,
    )


def _flags_of_notes(stored: StoredSpan, *, is_made: bool) -> int:
    """Return the flags of what was emptied or removed before storing."""
    return (
        repaired_flags(stored.notes)
        | (SpanFlag.REDACTED if stored.is_redacted else 0)
        | (SpanFlag.SYNTHETIC if is_made else 0)
    )


# Results of evaluations that arrive as log records: scores of a span that stays as it is.
#
# Deriving a span again takes some forty statements; of many results, as a cycle of the heartbeat
# has them, that is most of the work. Nothing but the scores of a span changes where its dialect
# reads the same with its log records as without them, and only that is written then.


RESULT: Final = "gen_ai.evaluation.result"


def is_result_alone(item: PreparedLog) -> bool:
    """Return whether a log record is a result, and of no session and no prompt."""
    name = item.fields["event_name"]
    return name == RESULT and item.event is None and item.prompt is None


class Scorer:
    """Adds scores within one transaction; what spans share is read once."""

    def __init__(self, connection: apsw.Connection, messages: MessageCache) -> None:
        self._envelopes = Envelopes(connection)
        self._messages = messages

    def score(
        self, connection: apsw.Connection, batch: WriteBatch, trace_id: bytes, span_id: bytes
    ) -> bool:
        """Add the scores of a stored span; False where it has to be derived again.

        True where no such span is stored: its logs are read when it comes.
        """
        rows = list_span_rows(connection, trace_id, span_id)
        return all(self._add(batch, stored_span(connection, row, self._envelopes)) for row in rows)

    def _add(self, batch: WriteBatch, stored: StoredSpan) -> bool:
        run = batch.runs.get(stored.message.trace_id, start_ns=0)
        if run is None:
            return True  # it is being deleted
        logs = stored.logs
        if len(logs) >= MOST_LOGS or any(log.event_name != RESULT for log in logs):
            return False
        annotations = annotations_with_results(stored.view(), self._messages, meant=stored.meant())
        if annotations is None:
            return False
        return batch.spans.set_scores(stored.id, stored.message, stored.side, annotations, run)

"""Writing prepared items: ids are assigned, rows are written, outcomes are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rebuild import MOST_SPANS_AT_ONCE, derive_again, derive_later
from hansard_collector.derivation.rederivation import (
    MOST_LOGS,
    Scorer,
    is_result_alone,
    read_span,
    rederive_span,
)
from hansard_collector.keepalives import PreparedDrops, PreparedKeepalive
from hansard_collector.log_sessions.agents import AGENTS
from hansard_collector.log_sessions.marks import SessionEvent
from hansard_collector.log_sessions.writer import LogIds, SessionWriter
from hansard_collector.payloads import PayloadJoiner
from hansard_collector.pipeline.preparation import (
    Envelope,
    PreparedItem,
    PreparedLog,
    PreparedPoint,
    PreparedSpan,
    Preparer,
)
from hansard_collector.pipeline.stages import Prepared
from hansard_store.content.payloads import PreparedPayload
from hansard_store.ingest.liveness import Keepalive
from hansard_store.ingest.logs import ReceivedLog, ReceivedPoint
from hansard_store.ingest.span_input import ReceivedSpan, SpanOutcome
from hansard_store.ingest.stored_spans import (
    are_first_events_before,
    find_open_span,
    logged_among,
    not_marked_as_logged,
)
from hansard_store.ingest.writer import IngestWriter, WriteBatch
from hansard_store.ledger import add_drops

_SpanKey = tuple[bytes, bytes]  # trace id, span id


class ItemWriter:
    """Writes items in a transaction, and afterwards joins logs with the spans they are about."""

    def __init__(self, writer: IngestWriter, batch: WriteBatch, preparer: Preparer) -> None:
        self._writer = writer
        self._batch = batch
        self._preparer = preparer
        self._messages = messages = preparer.messages
        self._envelopes: dict[int, tuple[int, int, Envelope]] = {}
        # trace id -> span ids that came in this transaction, as spans or named by logs
        self._spans: dict[bytes, set[bytes]] = defaultdict(set)
        self._logged: dict[bytes, set[bytes]] = defaultdict(set)
        # The same, of log records that say nothing of their span, and the first of the others.
        self._marked: dict[bytes, set[bytes]] = defaultdict(set)
        self._events: dict[_SpanKey, tuple[int, int]] = {}  # time_ns and log_record.id
        # Of these the spans with events that may hold more than scores.
        self._telling: set[_SpanKey] = set()
        self._scored: dict[bytes, set[bytes]] = defaultdict(set)
        self._sessions = SessionWriter(writer.connection, batch, messages)
        self._payloads = PayloadJoiner(writer.connection, batch, messages)
        self._scorer = Scorer(writer.connection, messages)

    def expect(self, items: Iterable[Prepared | None]) -> None:
        """Look up at once what items that are about to be written may share with stored ones."""
        spans = [item for item in items if isinstance(item, PreparedSpan)]
        large = [value for span in spans for value in span.large]
        self._batch.expect(large, [span.projection for span in spans])

    def write(self, item: Prepared) -> str:
        """Store an item and return its column of the ledger."""
        return _WRITE[type(item)](self, item)

    def _write_payload(self, item: PreparedPayload) -> str:
        return self._payloads.add(item)

    def _write_drops(self, item: PreparedDrops) -> str:
        add_drops(self._writer.connection, item.count, now_ns=item.received_ns)
        return "stored"

    def _write_keepalive(self, item: PreparedKeepalive) -> str:
        resource, _ = self._ids_of(item.envelope)
        self._batch.keepalives.append(Keepalive(resource, item.traces, item.alive_until_ns))
        return "stored"

    def _ids_of(self, envelope: Envelope) -> tuple[int, int]:
        """Return the ids of an envelope's resource and scope; a request's items share envelopes."""
        known = self._envelopes.get(id(envelope))
        if known is None:
            resource = self._writer.resource(envelope.resource_record, envelope.service_name)
            scope = self._writer.scope(envelope.scope_record)
            # Stored with the ids, the envelope lives as long as its address is looked up.
            known = self._envelopes[id(envelope)] = (resource, scope, envelope)
        return known[0], known[1]

    def _write_span(self, item: PreparedSpan) -> str:
        resource, scope = self._ids_of(item.envelope)
        if not item.message.attributes:
            item = self._with_start(item)
        span = ReceivedSpan(
            **item.fields, resource=resource, scope=scope, message=item.message, large=item.large
        )
        projection = item.projection if item.view is None else self._payloads.projection(item)
        placed = self._batch.spans.add(span, projection)
        if placed.is_shown:
            self._spans[span.trace_id].add(span.span_id)
            self._sessions.saw_trace(span.trace_id)
            if item.projection.dialect in AGENTS:
                self._sessions.saw_span(
                    item.message, role=item.projection.role, dialect=item.projection.dialect
                )
            replaces = placed.outcome is not SpanOutcome.STORED
            self._batch.redactions.add("traces", placed.span, item.removed, replaces=replaces)
        return placed.outcome.value

    def _with_start(self, item: PreparedSpan) -> PreparedSpan:
        """Return a span that has only its end with what its start record has."""
        fields = item.fields
        number = find_open_span(
            self._writer.connection, fields["trace_id"], fields["span_id"], fields["side"]
        )
        if number is None:
            return item
        self._batch.write_held()
        known = read_span(self._writer.connection, number).message
        if not known.attributes:
            return item
        whole = Span()
        whole.CopyFrom(item.message)
        whole.attributes.extend(known.attributes)
        if not whole.events:
            whole.events.extend(known.events)
        return self._preparer.span(
            PreparedItem(whole, item.envelope, fields["received_ns"], fields["mac"], item.removed)
        )

    def _write_log(self, item: PreparedLog) -> str:
        resource, scope = self._ids_of(item.envelope)
        log = ReceivedLog(
            **item.fields, resource=resource, scope=scope, message=item.message, large=item.large
        )
        was_sent_with_ids = log.trace_id is not None
        if item.event is not None:
            sent = LogIds(log.trace_id, log.span_id)
            ids = (
                self._sessions.place_sent(item.event, sent)
                if was_sent_with_ids
                else self._sessions.place(item.event, log.time_ns)
            )
            log = replace(log, trace_id=ids.trace_id, span_id=ids.span_id)
        outcome, number = self._batch.logs.add(log)
        if outcome != "stored":
            return outcome
        self._batch.redactions.add("logs", number, item.removed)
        if was_sent_with_ids and log.trace_id is not None and log.span_id is not None:
            if item.is_read or self._has_prompt(item, log.trace_id):
                key, order = (log.trace_id, log.span_id), (log.time_ns, number)
                self._events[key] = min(self._events.get(key, order), order)
                if not is_result_alone(item):
                    self._telling.add(key)
            else:
                self._marked[log.trace_id].add(log.span_id)
        if item.event is not None:
            self._note(item.event, number, log, was_sent_with_ids=was_sent_with_ids)
        return outcome

    def _note(
        self, event: SessionEvent, number: int, log: ReceivedLog, *, was_sent_with_ids: bool
    ) -> None:
        """Keep the runs made of log records up to date."""
        if not was_sent_with_ids:
            self._sessions.note(event, number, log.time_ns, trace_id=log.trace_id)
        elif log.trace_id is not None:
            self._sessions.saw_ids(event, number, log.time_ns, trace_id=log.trace_id)

    def _has_prompt(self, item: PreparedLog, trace_id: bytes) -> bool:
        """Return whether a record names a prompt that its run is not known to be of."""
        if item.prompt is None:
            return False
        run = self._batch.runs.find(trace_id)
        return run is None or not run.prompt_id == run.last_prompt_id == item.prompt

    def _write_point(self, item: PreparedPoint) -> str:
        resource, scope = self._ids_of(item.envelope)
        point = ReceivedPoint(**item.fields, resource=resource, scope=scope, message=item.message)
        outcome, number = self._batch.logs.add_point(point)
        if outcome == "stored":
            self._batch.redactions.add("metrics", number, item.removed)
        return outcome

    def join_logs(self) -> None:
        """Derive again the spans that have log records or payloads, whichever came first.

        Not for each of very many records: those that no dialect reads, or that come after the
        first events, change nothing but that the span has logs.
        """
        self._payloads.join()
        connection = self._writer.connection
        for trace_id, joined in self._sessions.settle().items():
            self._logged[trace_id] |= joined
        for trace_id, arrived in self._spans.items():
            # One query a run; most runs have no logs at all.
            self._logged[trace_id] |= logged_among(connection, trace_id, arrived)
        for (trace_id, span_id), (time_ns, log) in self._events.items():
            if are_first_events_before(
                connection, trace_id, span_id, time_ns=time_ns, log=log, most=MOST_LOGS
            ):
                self._marked[trace_id].add(span_id)
            elif (trace_id, span_id) in self._telling:
                self._logged[trace_id].add(span_id)
            else:
                self._scored[trace_id].add(span_id)
        for trace_id, span_ids in self._marked.items():
            if span_ids:
                self._logged[trace_id] |= not_marked_as_logged(connection, trace_id, span_ids)
        for trace_id, span_ids in self._scored.items():
            self._score(connection, trace_id, sorted(span_ids - self._logged[trace_id]))
        for trace_id, span_ids in self._logged.items():
            self._rederive(connection, trace_id, sorted(span_ids))

    def derive_stale(self) -> None:
        """Derive runs again of which a report was replaced by one that holds less of the run.

        The first few hundred spans here; a larger run is left to the rebuild beside ingest.
        """
        left = MOST_SPANS_AT_ONCE
        for run in self._batch.runs.changed():
            if not run.is_stale:
                continue
            left -= run.span_count
            if left >= 0:
                self._batch.write_held()
                derive_again(self._writer.connection, self._batch, run, messages=self._messages)
            else:
                derive_later(self._writer.connection, run)

    def _score(
        self, connection: apsw.Connection, trace_id: bytes, span_ids: Sequence[bytes]
    ) -> None:
        """Add the scores of spans of which nothing but results of evaluations arrived."""
        if span_ids:
            self._batch.write_held()
        for span_id in span_ids:
            is_scored = self._scorer.score(connection, self._batch, trace_id, span_id)
            if not is_scored:
                self._logged[trace_id].add(span_id)

    def _rederive(
        self, connection: apsw.Connection, trace_id: bytes, span_ids: Sequence[bytes]
    ) -> None:
        if span_ids:
            self._batch.write_held()
        for span_id in span_ids:
            rederive_span(
                connection, self._batch, trace_id=trace_id, span_id=span_id, messages=self._messages
            )


_WRITE: Mapping[type, Callable[[ItemWriter, Any], str]] = {
    PreparedSpan: ItemWriter._write_span,
    PreparedLog: ItemWriter._write_log,
    PreparedPoint: ItemWriter._write_point,
    PreparedPayload: ItemWriter._write_payload,
    PreparedKeepalive: ItemWriter._write_keepalive,
    PreparedDrops: ItemWriter._write_drops,
}


def dialect_of(item: Prepared) -> str:
    """Return the dialect that an item speaks; empty for what has none."""
    return item.projection.dialect if isinstance(item, PreparedSpan) else ""

"""Steps made again of their log records, as they are in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import apsw
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import Value
from hansard_collector.log_sessions.marks import (
    LLM,
    EntryType,
    LogAgent,
    LogEntry,
    LogStep,
    root_id,
    step_id,
)
from hansard_collector.otlp.any_value import span_view
from hansard_collector.otlp.stored_records import Envelopes
from hansard_collector.pipeline.preparation import project
from hansard_collector.pipeline.validation import span_times
from hansard_store.content.large_values import ContentCutter, CutValue
from hansard_store.ingest.otlp_records import large_values
from hansard_store.ingest.session_logs import (
    PackedLog,
    bounds_of,
    earliest_log,
    last_key,
    logs_of_types,
    made_span,
    made_spans,
    record_of,
    records_of_step,
)
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.ingest.writer import WriteBatch
from hansard_store.runs.projection import NO_TIMES, RunState
from hansard_store.steps.flags import SpanFlag

# More records than that on one step say nothing new about it.
_MOST_LOGS = 2000
_TURN = "turn"


@dataclass(frozen=True, slots=True)
class _Records:
    """The log records of a step, with the envelope that its span gets: the first one's."""

    entries: Sequence[LogEntry]
    first: PackedLog


@dataclass(slots=True)
class News:
    """What a transaction brought of a run."""

    steps: dict[bytes, str] = field(default_factory=dict)  # span id -> kind
    start_ns: int | None = None
    end_ns: int | None = None
    is_whole: bool = False  # True: all that there is, what is known from before does not hold

    def tell(self, start_ns: int | None, end_ns: int) -> None:
        """Widen the time of the run; records before the prompt do not begin it."""
        if start_ns is not None:
            self.start_ns = start_ns if self.start_ns is None else min(self.start_ns, start_ns)
        self.end_ns = end_ns if self.end_ns is None else max(self.end_ns, end_ns)


class StepMaker:
    """Makes the spans of runs that have no others, inside one transaction."""

    def __init__(
        self, connection: apsw.Connection, batch: WriteBatch, messages: MessageCache
    ) -> None:
        self._connection = connection
        self._batch = batch
        self._messages = messages
        self._cutter = ContentCutter()
        self._envelopes = Envelopes(connection)

    def make(self, agent: LogAgent, trace_id: bytes, news: News) -> None:
        """Make the steps of a run that have news again, and its root of all that is known."""
        is_complete = self._make_steps(agent, trace_id, news.steps)
        is_complete &= self._make_root(agent, trace_id, news)
        if not is_complete:
            # What a step does not say any more may be said by any other one.
            self._make_steps(agent, trace_id, self._all_steps(trace_id))

    def _make_steps(self, agent: LogAgent, trace_id: bytes, steps: Mapping[bytes, str]) -> bool:
        """Make steps again; False when one no longer states what it stated of its run."""
        is_complete = True
        for span_id, kind in steps.items():
            records = self._records_of(trace_id, span_id)
            step = agent.build(kind, records.entries) if records else None
            if step is None or records is None:
                self._take_back(trace_id, [span_id])
            else:
                is_complete &= self._put(
                    step, records, trace_id=trace_id, span_id=span_id, kind=kind
                )
        return is_complete

    def _all_steps(self, trace_id: bytes) -> dict[bytes, str]:
        rows = logs_of_types(self._connection, trace_id, (EntryType.STEP,))
        return {step_id(trace_id, row.kind, row.key): row.kind for row in rows}

    def keep_only(self, trace_id: bytes, span_ids: Iterable[bytes]) -> None:
        """Take back all steps of a run but some, which are to be made again; maybe all of it."""
        stale = made_spans(self._connection, trace_id).keys() - set(span_ids)
        self._take_back(trace_id, stale)
        run = self._run(trace_id)
        if run is not None:
            run.times_rank = NO_TIMES  # the next step to be made again sets its times anew

    def _take_back(self, trace_id: bytes, span_ids: Iterable[bytes]) -> None:
        made = made_spans(self._connection, trace_id)
        stale = sorted(made[span_id] for span_id in span_ids if span_id in made)
        run = self._run(trace_id) if stale else None
        if run is None:
            return
        for number in stale:
            self._batch.spans.remove_made(number, run)
        if run.span_count == 0:
            self._batch.runs.drop(run)
        elif len(stale) == len(made):
            run.synthetic = 0

    def _run(self, trace_id: bytes) -> RunState | None:
        return self._batch.runs.find(trace_id)

    def _make_root(self, agent: LogAgent, trace_id: bytes, news: News) -> bool:
        """Make the turn itself, of its prompts, else of its first record; returns like `_put`."""
        root = root_id(trace_id)
        begins = (EntryType.PROMPT, EntryType.SESSION)
        has_prompt = bool(logs_of_types(self._connection, trace_id, begins))
        if not has_prompt and not made_spans(self._connection, trace_id).keys() - {root}:
            self._take_back(trace_id, [root])
            return True
        own = self._records_of(trace_id, root)
        records = own if has_prompt else self._first_record(trace_id)
        start_ns, end_ns = self._bounds(trace_id, root, news)
        if records is None or start_ns is None or end_ns is None:
            return True
        made = agent.root(records.entries)
        records = _Records(own.entries if own else (), records.first)
        step = LogStep(
            made.name,
            start_ns,
            max(end_ns, start_ns),
            attributes=made.attributes,
            error="its last model call failed" if self._has_failed(trace_id) else None,
        )
        return self._put(step, records, trace_id=trace_id, span_id=root, kind=_TURN)

    def _bounds(self, trace_id: bytes, root: bytes, news: News) -> tuple[int | None, int | None]:
        """Return the time of a turn, from what was known and what is new."""
        known = None if news.is_whole else made_span(self._connection, trace_id, root)
        is_open = bool(logs_of_types(self._connection, trace_id, (EntryType.SESSION,)))
        if is_open or known is None or known.start_ns is None or known.end_ns is None:
            return bounds_of(self._connection, trace_id)
        bounds = News(start_ns=news.start_ns, end_ns=news.end_ns)
        bounds.tell(known.start_ns, known.end_ns)
        return bounds.start_ns, bounds.end_ns

    def _has_failed(self, trace_id: bytes) -> bool:
        """Whether the last model call of a turn was a failure."""
        key = last_key(self._connection, trace_id, LLM)
        if key is None:
            return False
        call = made_span(self._connection, trace_id, step_id(trace_id, LLM, key))
        return call is not None and bool(call.flags & SpanFlag.ERROR)

    def _put(
        self, step: LogStep, records: _Records, *, trace_id: bytes, span_id: bytes, kind: str
    ) -> bool:
        """Store a step; False when it stated something of its run that it no longer does."""
        first = records.first
        span = span_of(
            step,
            trace_id=trace_id,
            span_id=span_id,
            parent=b"" if kind == _TURN else root_id(trace_id),
            kind=kind,
        )
        scope = self._envelopes.scope(first.scope).scope
        view = span_view(
            span,
            self._envelopes.attributes(first.resource),
            scope_name=scope.name,
            scope_version=scope.version,
            logs=[entry.log for entry in records.entries],
        )
        made = received(
            span,
            resource=first.resource,
            scope=first.scope,
            received_ns=first.received_ns,
            cut=lambda key, text: self._cutter.cut(trace_id, key, text),
        )
        run = self._run(trace_id)
        stated = run.reported_facts() if run is not None else set()
        self._batch.spans.put_made(made, project(view, self._messages))
        return run is None or stated <= run.reported_facts()

    def _records_of(self, trace_id: bytes, span_id: bytes) -> _Records | None:
        packed = records_of_step(self._connection, trace_id, span_id, limit=_MOST_LOGS)
        return _Records([self._entry(one) for one in packed], packed[0]) if packed else None

    def _first_record(self, trace_id: bytes) -> _Records | None:
        log = earliest_log(self._connection, trace_id)
        if log is None:
            return None
        packed = record_of(self._connection, log)
        return _Records([self._entry(packed)], packed)

    def _entry(self, packed: PackedLog) -> LogEntry:
        self._batch.write_held()
        log = self._envelopes.log(packed.record, resource=packed.resource, scope=packed.scope)
        return LogEntry(packed.time_ns, log)


# Steps made of log records, as spans like those that are sent.


_MAC_BYTES = 16
_INT_LIMIT = 1 << 63


def span_of(step: LogStep, *, trace_id: bytes, span_id: bytes, parent: bytes, kind: str) -> Span:
    """Return a step as the span that its agent might have sent."""
    span = Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=step.name,
        kind=Span.SPAN_KIND_CLIENT if kind == LLM else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=max(step.start_ns, 0),
        end_time_unix_nano=max(step.end_ns, 0),
        attributes=[
            KeyValue(key=key, value=any_value(value)) for key, value in step.attributes.items()
        ],
    )
    if step.error is not None:
        span.status.code = Status.STATUS_CODE_ERROR
        span.status.message = step.error
    return span


def received(
    span: Span,
    *,
    resource: int,
    scope: int,
    received_ns: int,
    cut: Callable[[str, str], CutValue | None],
) -> ReceivedSpan:
    """Return a made span in the form in which the store takes spans."""
    times = span_times(span, received_ns=received_ns)
    return ReceivedSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        side=0,
        parent_span_id=span.parent_span_id or None,
        name=span.name,
        kind=span.kind,
        start_ns=times.start_ns,
        end_ns=times.end_ns,
        sort_ns=times.sort_ns,
        status=span.status.code,
        flags=times.flags | SpanFlag.SYNTHETIC,
        mac=made_mac(span),
        received_ns=received_ns,
        resource=resource,
        scope=scope,
        attribute_count=len(span.attributes),
        message=span,
        large=large_values(span, cut),
        synthetic=True,
    )


def made_mac(span: Span) -> bytes:
    """Return the mac of a made span: no sender can give it to one that it sends."""
    return hashlib.sha256(span.trace_id + span.span_id).digest()[:_MAC_BYTES]


def any_value(value: Value) -> AnyValue:
    """Return a plain value as OTLP writes it; the reverse of `any_value.python_value`."""
    made = AnyValue()
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, str):
        made.string_value = value
    elif isinstance(value, int) and abs(value) < _INT_LIMIT:
        made.int_value = value
    elif isinstance(value, int):
        made.string_value = str(value)
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, bytes):
        made.bytes_value = value
    elif isinstance(value, list):
        made.array_value.values.extend(map(any_value, value))
    elif isinstance(value, dict):
        made.kvlist_value.values.extend(
            KeyValue(key=key, value=any_value(inner)) for key, inner in value.items()
        )
    return made

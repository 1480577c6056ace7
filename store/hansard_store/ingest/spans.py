"""Spans: identity, re-sent reports, and the rows derived from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store.annotations import rows as annotation_rows
from hansard_store.annotations.rows import SpanAnnotation, SpanPlace
from hansard_store.audit.seal_tables import last_id
from hansard_store.calls import tool_calls, usage_rollup
from hansard_store.calls.duplicate_resolution import (
    CallPlace,
    judge_again,
    place_of,
    settle,
    uncounted_near,
)
from hansard_store.compilations import queries as compilations
from hansard_store.content.large_values import ContentWriter
from hansard_store.content.texts import TextWriter
from hansard_store.error_groups.steps import ErrorStepWriter
from hansard_store.ingest.derived_rows import CallProjection, SpanProjection, Usage
from hansard_store.ingest.in_memory_runs import Kin
from hansard_store.ingest.otlp_records import pack_record, record_of
from hansard_store.ingest.span_input import Placed, ReceivedSpan, SpanOutcome
from hansard_store.ingest.stored_spans import SpanRecordWriter
from hansard_store.policy import checks as policy_checks
from hansard_store.runs.projection import NO_ROOT, Fact, RunState, RunWriter
from hansard_store.runs.status import take_root
from hansard_store.search.indexes import IndexWriter
from hansard_store.steps.flags import SpanFlag

# A stored report of a span that another one replaces, and what its run holds of it.
#
# Counts and sums of a run are taken back exactly. Its times, its root and its facts (agent,
# session, user, first input ...) are the best of what its spans report, and which span is second
# is not stored; nor is why a step is marked as one above a model call. Where the new report holds
# less of these than the old one, the run is stale: it has to be derived again.

_REPLACED_REPORTS_OLD = """
SELECT sort_ns, end_ns, flags, parent_span_id,
  coalesce(tokens_input, tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning)
    IS NOT NULL,
  agent_name, model, tool_name, resource.service_name
FROM span JOIN resource ON resource.id = span.resource WHERE span.id = ?
"""
_FACETS: Final = ("agent", "model", "tool", "service")  # the last columns of _OLD


@dataclass(frozen=True, slots=True)
class ReplacedReport:
    """What a run held of a span's report before another one replaced it."""

    span: int
    sort_ns: int
    end_ns: int
    times_rank: int
    parent_span_id: bytes | None
    has_usage: bool
    is_first: bool  # its run starts with it
    is_last: bool  # its run ends with it
    root: tuple[int, int] | None  # where its run is named after it: how good a root it was
    facts: Mapping[Fact, int]  # those that the run has of it, with the times they are ordered by
    facets: tuple[str | None, ...]

    def is_covered_by(self, span: ReceivedSpan, run: RunState, *, has_usage: bool) -> bool:
        """Return whether a new report, already derived, holds at least what this one held."""
        if span.parent_span_id != self.parent_span_id or has_usage < self.has_usage:
            return False
        end_ns = max(span.end_ns or 0, span.sort_ns)
        rank = rank_of_times(span.flags)
        if (self.is_first or self.is_last) and rank > self.times_rank:
            return False
        if (self.is_first and span.sort_ns > self.sort_ns) or (
            self.is_last and end_ns < self.end_ns
        ):
            return False
        if self.root is not None and (run.root_rank, run.root_sort_ns) > self.root:
            return False
        return all(run.holds(fact, self.span, at_ns=at_ns) for fact, at_ns in self.facts.items())


def read_replaced(connection: apsw.Connection, run: RunState, span: int) -> ReplacedReport:
    """Return what a run holds of a stored span that is about to be replaced."""
    sort_ns, ended_ns, flags, parent, has_usage, *facets = _read(connection, span)
    end_ns = max(ended_ns or 0, sort_ns)
    rank = rank_of_times(flags)
    is_of_run = rank == run.times_rank
    return ReplacedReport(
        span=span,
        sort_ns=sort_ns,
        end_ns=end_ns,
        times_rank=rank,
        parent_span_id=parent,
        has_usage=bool(has_usage),
        is_first=is_of_run and sort_ns == run.started_ns,
        is_last=is_of_run and end_ns == run.ended_ns,
        root=(run.root_rank, run.root_sort_ns) if run.root_span == span else None,
        facts=run.facts_of(span),
        facets=tuple(facets),
    )


def settle_replaced(
    connection: apsw.Connection,
    runs: RunWriter,
    run: RunState,
    *,
    old: ReplacedReport,
    new: ReceivedSpan,
) -> None:
    """Mark a run as stale, and values of it that may be gone, after a report was replaced."""
    _, _, _, _, has_usage, *facets = _read(connection, old.span)
    if not old.is_covered_by(new, run, has_usage=bool(has_usage)):
        run.is_stale = True
    for kind, was, is_now in zip(_FACETS, old.facets, facets, strict=True):
        if was and was != is_now:  # lists may be narrowed by it for nothing
            runs.may_lose_facet(run, kind, was)


def rank_of_times(flags: int) -> int:
    """Return how good a span's times are: odd ones count only while there are no others."""
    return 1 if flags & SpanFlag.TIME_ODD else 0


def _read(connection: apsw.Connection, span: int) -> tuple[Any, ...]:
    found: Any = connection.execute(_REPLACED_REPORTS_OLD, (span,)).fetchone()
    return tuple(found)


_HUGE = SpanFlag.TIME_HUGE

_FIND = """
SELECT span.id, mac,
  NOT (end_ns IS NULL AND flags & :huge = 0), attribute_count > 0, coalesce(end_ns, 0),
  attribute_count
FROM span JOIN span_record ON span_record.span = span.id
WHERE trace_id = :trace_id AND span_id = :span_id AND side = :side
"""
_SPAN_COLUMNS = (
    "trace_id, span_id, side, run, parent_span_id, name, label, kind, start_ns, end_ns, sort_ns, "
    "status, role, dialect, flags, resource, scope, agent_name, tool_name, tool_call_id, model, "
    "tokens_input, tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning, "
    "cost_usd_nano, summary, notes, likeness, derived_version"
)
_COUNT = _SPAN_COLUMNS.count(",") + 1
_ADD = f"""
INSERT INTO span (id, {_SPAN_COLUMNS}) VALUES (?, {", ".join("?" * _COUNT)})
ON CONFLICT DO NOTHING
"""
_LAST = last_id("span")
_REPLACE = f"""
UPDATE span SET ({_SPAN_COLUMNS}) = ({", ".join("?" * _COUNT)}) WHERE id = ?
"""
_KEEP_DUPLICATE = """
INSERT INTO span_duplicate (span, mac, received_ns, record)
SELECT span, mac, received_ns, record FROM span_record WHERE span = ?
"""
_NUMBER = "SELECT id FROM span WHERE trace_id = ? AND span_id = ? AND side = ?"
_DROP_SPAN = "DELETE FROM span WHERE id = ?"
_DROP_RECORD = "DELETE FROM span_record WHERE span = ?"
_ADD_DUPLICATE = "INSERT INTO span_duplicate (span, mac, received_ns, record) VALUES (?, ?, ?, ?)"
_IS_KNOWN_DUPLICATE = "SELECT 1 FROM span_duplicate WHERE span = ? AND mac = ?"
_ADD_LINK = """
INSERT OR IGNORE INTO span_link (span, ordinal, to_trace_id, to_span_id) VALUES (?, ?, ?, ?)
"""
_DROP_LINKS = "DELETE FROM span_link WHERE span = ?"
_CALL_COLUMNS = """
span, run, candidate, counted, operation, provider, request_model, response_model, response_id,
finish_reason, input_prefix, output_prefix, input_is_delta, tokens_input, tokens_output,
tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano, cost_source, first_token_ms
"""
_ADD_CALL = f"INSERT INTO call ({_CALL_COLUMNS}) VALUES ({', '.join('?' * 21)})"
_OLD = """
SELECT flags, end_ns, notes, derived_version, role, tool_name FROM span WHERE id = ?
"""
_HAS_LOGS = f"""
UPDATE span SET flags = flags | {int(SpanFlag.HAS_LOGS)} WHERE id = ? AND derived_version = ?
RETURNING coalesce(end_ns, sort_ns)
"""
_OF_NEIGHBOURS = (
    SpanFlag.DUPLICATE | SpanFlag.PENDING | SpanFlag.FOLDED | SpanFlag.REPORTED_ELSEWHERE
)
_INERT = f"""
UPDATE span SET derived_version = 0, role = 'other', tool_name = NULL, tool_call_id = NULL,
  flags = flags & ~{int(_OF_NEIGHBOURS)}
WHERE id = ?
"""
_PENDING, _FOLDED = int(SpanFlag.PENDING), int(SpanFlag.FOLDED)
_PENDING_BELOW = f"""
SELECT id FROM span
WHERE trace_id = ? AND parent_span_id = ? AND flags & {_PENDING | _FOLDED} = {_PENDING}
"""
_IS_STORED = "SELECT 1 FROM span WHERE trace_id = ? AND span_id = ?"


class SpanWriter:
    """Writes spans and everything derived from them, inside one transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        runs: RunWriter,
        contents: ContentWriter,
        records: SpanRecordWriter,
        texts: TextWriter,
        index: IndexWriter,
        derived_version: int,
        write_held: Callable[[], None],
        errors: ErrorStepWriter,
    ) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._runs = runs
        self._contents = contents
        self._records = records
        self._texts = texts
        self._index = index
        self._derived_version = derived_version
        self._errors = errors
        self._write_held = write_held  # before a record is read or removed
        self._last = 0  # id that this transaction gave last, or found; 0: not asked yet

    def add(self, span: ReceivedSpan, projection: SpanProjection) -> Placed:
        """Store a span and return what became of it.

        The same report again changes nothing. Another report of the same span: a real end beats
        none, then some attributes none, then the later end, then more attributes; the loser's
        record is kept. Of two reports of a span that is still open, the later one counts unless
        it tells less.
        """
        run = self._runs.get(span.trace_id, start_ns=span.sort_ns, synthetic=span.synthetic)
        if run is None:
            return Placed(SpanOutcome.DELETED, 0, is_shown=False)
        number = self._insert(span, projection, run)
        if number is None:
            return self._again(span, projection, run)
        return Placed(SpanOutcome.STORED, number, is_shown=True)

    def _insert(self, span: ReceivedSpan, made: SpanProjection, run: RunState) -> int | None:
        """Add a span and return its number; None when its identity is stored already."""
        self._last = self._last or int(self._execute(_LAST).get)
        self._execute(_ADD, (self._last + 1, *self._row(span, made, run)))
        if not self._connection.changes():
            return None
        self._last += 1
        run.span_count += 1
        self._add_record(self._last, span, run)
        self._derive(self._last, span, made, run)
        return self._last

    def _again(self, span: ReceivedSpan, projection: SpanProjection, run: RunState) -> Placed:
        self._write_held()
        identity = {"trace_id": span.trace_id, "span_id": span.span_id, "side": span.side}
        known: Any = self._execute(_FIND, identity | {"huge": _HUGE}).fetchone()
        number, mac, *richness = known
        if (
            mac == span.mac
            or self._execute(_IS_KNOWN_DUPLICATE, (number, span.mac)).get is not None
        ):
            return Placed(SpanOutcome.DUPLICATE, number, is_shown=False)
        was_open = not richness[0]
        if span.is_open and not was_open:
            return Placed(SpanOutcome.OPENED, number, is_shown=False)
        both_open = was_open and span.is_open
        stored = tuple(richness)
        if span.richness < stored or (span.richness == stored and not both_open):
            record = pack_record(span.message, span.large, self._contents, run=run.id)
            self._execute(_ADD_DUPLICATE, (number, span.mac, span.received_ns, record))
            run.changed = True
            return Placed(SpanOutcome.DUPLICATE, number, is_shown=False)
        if not was_open:
            self._execute(_KEEP_DUPLICATE, (number,))
        old = read_replaced(self._connection, run, number)
        self.replace(number, span, projection, run)
        settle_replaced(self._connection, self._runs, run, old=old, new=span)
        outcome = SpanOutcome.OPENED if was_open else SpanOutcome.DUPLICATE
        return Placed(outcome, number, is_shown=True)

    def replace(
        self, number: int, span: ReceivedSpan, projection: SpanProjection, run: RunState
    ) -> None:
        """Put a richer report in the place of a stored one, under the same id."""
        self._write_held()
        with self._retracted(number, run):
            self._execute(_DROP_RECORD, (number,))
            self._execute(_REPLACE, (*self._row(span, projection, run), number))
            self._add_record(number, span, run)
            self._derive(number, span, projection, run)

    def put_made(self, span: ReceivedSpan, projection: SpanProjection) -> bool:
        """Store a span made of log records, or put it in the place of an earlier make of it.

        Nothing is stored of the earlier one: what was sent are the log records. False when the
        run was deleted.
        """
        run = self._runs.get(span.trace_id, start_ns=span.sort_ns, synthetic=span.synthetic)
        if run is None:
            return False
        if self._insert(span, projection, run) is None:
            identity = (span.trace_id, span.span_id, span.side)
            self.replace(self._execute(_NUMBER, identity).get, span, projection, run)
        return True

    def remove_made(self, number: int, run: RunState) -> None:
        """Take a span back that was made of log records: they turned out to belong elsewhere.

        What it reported of the run is reported again when the run's other steps are made again.
        """
        self._write_held()
        with self._retracted(number, run):
            self._execute(_DROP_RECORD, (number,))
            self._execute(_DROP_SPAN, (number,))
            run.span_count -= 1
            run.changed = True
            if run.root_span == number:
                run.root_span, run.root_rank, run.root_sort_ns = None, NO_ROOT, 0

    def _row(self, span: ReceivedSpan, made: SpanProjection, run: RunState) -> tuple[Any, ...]:
        return (
            span.trace_id, span.span_id, span.side, run.id, span.parent_span_id, span.name,
            made.label, span.kind, span.start_ns, span.end_ns, span.sort_ns, span.status,
            made.role, made.dialect, int(span.flags | made.flags), span.resource, span.scope,
            made.agent_name, made.tool_name, _call_id(made), made.model, *made.usage,
            made.summary, "\n".join((*span.notes, *made.notes)) or None,
            made.likeness, self._derived_version,
        )  # fmt: skip

    def _add_record(self, number: int, span: ReceivedSpan, run: RunState) -> None:
        record = record_of(span.message, span.large, self._contents, run=run.id)
        self._records.add(number, span, record)

    # ---- what is derived

    def rederive(
        self, number: int, span: ReceivedSpan, projection: SpanProjection, run: RunState
    ) -> None:
        """Make the derived rows of a stored span again; its record stays as it is."""
        with self._retracted(number, run):
            self._execute(_REPLACE, (*self._row(span, projection, run), number))
            self._derive(number, span, projection, run)

    def set_scores(
        self,
        number: int,
        span: Span,
        side: int,
        annotations: Sequence[SpanAnnotation],
        run: RunState,
    ) -> bool:
        """Set the annotations of a stored span that has logs now; False where it is due a rebuild.

        All else that is derived of it stays.
        """
        run.read_tables(self._connection)
        row: Any = self._execute(_HAS_LOGS, (number, self._derived_version)).fetchone()
        if row is None:
            return False
        annotation_rows.drop_of_span(self._connection, number)
        position = SpanPlace(span.trace_id, span.span_id, side, at_ns=row[0])
        annotation_rows.add_of_span(self._connection, annotations, span=number, of=position)
        run.changed = True
        return True

    def retract(self, number: int, run: RunState) -> None:
        """Take back all that is derived of a span, until `rederive` makes it again.

        Meanwhile it is a step without a meaning: no rule about its neighbours finds it.
        """
        run.read_tables(self._connection)
        self._retract(number, run)
        self._execute(_INERT, (number,))
        run.changed = True

    def _derive(self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState) -> None:
        run.changed = True
        if run.fresh is not None and not run.fresh.add(_kin(number, span, made)):
            run.read_tables(self._connection)
        for ordinal, (trace_id, span_id) in enumerate(span.links):
            self._execute(_ADD_LINK, (number, ordinal, trace_id, span_id))
        self._index.add_attributes(number, made.attribute_tokens)
        for text in made.texts:
            self._texts.add(text, span=number, run=run.id)
        for kind, value in made.facets:
            self._runs.facet(run.id, kind, value)
        for digest in made.payloads:
            self._runs.uses_payload(run.id, digest)
        _update_run(run, number, span, made)
        if made.compilation is not None:
            compilations.add_compilation(self._connection, run, made.compilation, span=number)
        if made.checks:
            policy_checks.add_checks_of_span(self._connection, made.checks, span=number, of=span)
        if made.annotations:
            ended_ns = span.sort_ns if span.end_ns is None else span.end_ns
            told_by = SpanPlace(span.trace_id, span.span_id, span.side, ended_ns)
            annotation_rows.add_of_span(self._connection, made.annotations, span=number, of=told_by)
        if (span.flags | made.flags) & SpanFlag.ERROR:
            self._errors.add(number, span, made, run=run.id)
        if made.may_have_pending:
            self._fold_pending(number, span, made, run)
        for tool in made.requested:
            tool_calls.add_half(self._connection, run, "requested", tool, span=number)
        if made.ran is not None and not made.flags & SpanFlag.DUPLICATE:
            tool_calls.add_half(self._connection, run, "ran", made.ran, span=number)
        self._derive_usage(number, span, made, run)
        call = CallPlace(
            number, span.span_id, span.parent_span_id, made.role, made.tool_name, _call_id(made)
        )
        settle(self._connection, run, call)

    def _fold_pending(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        """Hide a record that announced a span once the span is there, whichever came first."""
        if made.flags & SpanFlag.PENDING:
            announced = (run.trace_id, span.parent_span_id)
            if self._execute(_IS_STORED, announced).get is not None:
                usage_rollup.set_flags(self._connection, run, number, folded=True)
            return
        rows: list[Any] = self._execute(_PENDING_BELOW, (run.trace_id, span.span_id)).fetchall()
        for (pending,) in rows:
            usage_rollup.set_flags(self._connection, run, pending, folded=True)

    def _derive_usage(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        marked = usage_rollup.is_marked(self._connection, run, span.span_id)
        if made.call is not None:
            run.add_call_scope(span.scope)
            if run.fresh is not None and made.flags & SpanFlag.USAGE_ALONE:
                run.fresh.has_usage_alone = True
            self._add_call(number, made.call, run, flags=span.flags | made.flags)
        if made.usage_sum is not None:
            usage_rollup.add_sum(
                self._connection, run, span=number, usage=made.usage_sum, counted=not marked
            )
        if marked or _has_usage(made):
            usage_rollup.mark_above(self._connection, run, span.parent_span_id)

    def _add_call(self, number: int, call: CallProjection, run: RunState, *, flags: int) -> None:
        counted = call.is_candidate and not flags & SpanFlag.DUPLICATE
        row = (
            number, run.id, int(counted), int(counted), call.operation, call.provider,
            call.request_model, call.response_model, call.response_id, call.finish_reason,
            self._texts.prefix(call.input, span=number),
            self._texts.prefix(call.output, span=number),
            int(call.input_is_delta), *call.usage, call.cost_source, call.first_token_ms,
        )  # fmt: skip
        self._execute(_ADD_CALL, row)
        run.reports(call.response_id)
        if run.fresh is not None and call.response_id is not None:
            run.fresh.add_response(call.response_id, number)
        if counted:
            run.model_calls += 1
            run.add_usage(call.usage)

    @contextmanager
    def _retracted(self, number: int, run: RunState) -> Iterator[None]:
        """Take back what is derived of a span; after the block, judge its neighbours again."""
        run.read_tables(self._connection)
        accused = uncounted_near(self._connection, run, place_of(self._connection, number))
        self._retract(number, run)
        yield
        judge_again(self._connection, run, accused)

    def _retract(self, number: int, run: RunState) -> None:
        """Take a span's derived rows, and its part of the run's totals, back."""
        old: Any = self._execute(_OLD, (number,)).fetchone()
        flags, end_ns, notes, version, role, tool_name = old
        if not version:
            return  # nothing is derived of it
        if role == "compile":
            compilations.remove_compilation(self._connection, run, span=number)
        if role == "policy":
            policy_checks.drop_checks_of_span(self._connection, number)
        annotation_rows.drop_of_span(self._connection, number)
        if flags & SpanFlag.ERROR:
            self._errors.drop(number)
        usage_rollup.remove_call(self._connection, run, number)
        usage_rollup.remove_sum(self._connection, run, number)
        tool_calls.remove(self._connection, run, number)
        self._execute(_DROP_LINKS, (number,))
        self._index.drop_attributes(number)
        run.forget_reported(number)
        run.note(notes.split("\n") if notes else (), -1)
        run.step_count -= usage_rollup.is_step(flags)
        run.work_count -= usage_rollup.is_work(role, tool_name)
        run.error_count -= 1 if flags & SpanFlag.ERROR else 0
        run.open_count -= 1 if end_ns is None and not flags & SpanFlag.TIME_HUGE else 0


def _kin(number: int, span: ReceivedSpan, made: SpanProjection) -> Kin:
    return Kin(
        span.sort_ns, number, span.span_id, span.parent_span_id, made.role, made.tool_name,
        _call_id(made),
    )  # fmt: skip


def _call_id(made: SpanProjection) -> str | None:
    return made.ran.call_id if made.ran is not None else None


def _has_usage(made: SpanProjection) -> bool:
    sums = made.usage_sum or Usage()
    return sums.has_tokens or (made.call is not None and made.call.usage.has_tokens)


_FIRST_FACTS: Final[tuple[Fact, ...]] = (  # of which the earliest report holds
    "agent_name", "domain", "user_goal", "conversation_id", "prompt_id", "user_id", "first_input",
)  # fmt: skip


def _update_run(run: RunState, number: int, span: ReceivedSpan, made: SpanProjection) -> None:
    """Bring the run's own columns up to date with one more span."""
    flags = span.flags | made.flags
    if flags & SpanFlag.SYNTHETIC:
        run.synthetic = 1
    run.step_count += usage_rollup.is_step(flags)
    run.work_count += usage_rollup.is_work(made.role, made.tool_name)
    run.error_count += 1 if flags & SpanFlag.ERROR else 0
    run.open_count += 1 if span.is_open else 0
    run.note((*span.notes, *made.notes), 1)
    _update_times(run, span)
    take_root(run, number, span, made)
    at_ns, output_ns = span.sort_ns, span.end_ns or span.sort_ns
    for fact in _FIRST_FACTS:
        run.tell(fact, getattr(made, fact), span=number, at_ns=at_ns)
    run.tell("last_prompt_id", made.prompt_id, span=number, at_ns=-at_ns)
    run.tell("last_output", made.last_output, span=number, at_ns=-output_ns)


def _update_times(run: RunState, span: ReceivedSpan) -> None:
    """Widen the run's time; odd times count only while there are no sane ones."""
    rank = rank_of_times(span.flags)
    end_ns = max(span.end_ns or 0, span.sort_ns)
    if rank < run.times_rank:
        run.times_rank, run.started_ns, run.ended_ns = rank, span.sort_ns, end_ns
    elif rank == run.times_rank:
        run.started_ns = min(run.started_ns, span.sort_ns)
        run.ended_ns = max(run.ended_ns, end_ns)

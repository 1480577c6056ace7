"""Spans: identity, re-sent reports, and the rows derived from each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store import counting, duplicates, tool_events
from hansard_store.contents import ContentWriter
from hansard_store.duplicates import Verdict
from hansard_store.flags import SpanFlag
from hansard_store.indexing import IndexWriter
from hansard_store.projections import CallProjection, SpanProjection, Usage
from hansard_store.records import LargeValue, pack_record
from hansard_store.runs import RunState, RunWriter
from hansard_store.texts import TextWriter

TOOL_ROLES = ("tool", "mcp")
_HUGE = int(SpanFlag.TIME_HUGE)


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it came in, after redaction, with what identifies it."""

    trace_id: bytes
    span_id: bytes
    side: int  # 1 = SERVER: may share its id with a CLIENT span
    parent_span_id: bytes | None
    name: str
    kind: int
    start_ns: int | None
    end_ns: int | None  # None while open
    sort_ns: int
    status: int
    flags: int
    mac: bytes  # of the span as received, before redaction
    received_ns: int
    resource: int
    scope: int
    attribute_count: int
    message: Span
    large: Sequence[LargeValue]
    links: Sequence[tuple[bytes, bytes]] = ()
    notes: Sequence[str] = ()
    synthetic: bool = False

    @property
    def is_open(self) -> bool:
        return self.end_ns is None and not self.flags & SpanFlag.TIME_HUGE

    @property
    def richness(self) -> tuple[bool, int, int]:
        """Of two reports of one span the richer is shown: ended, later end, more attributes."""
        return not self.is_open, self.end_ns or 0, self.attribute_count


class Outcome(Enum):
    """What became of a received span: its column of the ledger."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    OPENED = "opened"  # it replaced the start record of the same span
    DELETED = "deleted"


_FIND = """
SELECT span.id, mac,
  NOT (end_ns IS NULL AND flags & :huge = 0), coalesce(end_ns, 0), attribute_count
FROM span JOIN span_record ON span_record.span = span.id
WHERE trace_id = :trace_id AND span_id = :span_id AND side = :side
"""
_SPAN_COLUMNS = (
    "trace_id, span_id, side, run, parent_span_id, name, label, kind, start_ns, end_ns, sort_ns, "
    "status, role, dialect, flags, resource, scope, agent_name, tool_name, model, "
    "tokens_input, tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning, "
    "cost_usd_nano, summary"
)
_COUNT = _SPAN_COLUMNS.count(",") + 1
_ADD = f"""
INSERT INTO span ({_SPAN_COLUMNS}) VALUES ({", ".join("?" * _COUNT)})
ON CONFLICT DO NOTHING RETURNING id
"""
_REPLACE = f"""
UPDATE span SET ({_SPAN_COLUMNS}) = ({", ".join("?" * _COUNT)}) WHERE id = ?
"""
_ADD_RECORD = """
INSERT INTO span_record (span, mac, received_ns, derived_version, attribute_count, notes, record)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_KEEP_LOSER = """
INSERT INTO span_loser (span, mac, received_ns, record)
SELECT span, mac, received_ns, record FROM span_record WHERE span = ?
"""
_DROP_RECORD = "DELETE FROM span_record WHERE span = ?"
_ADD_LOSER = "INSERT INTO span_loser (span, mac, received_ns, record) VALUES (?, ?, ?, ?)"
_LOST_BEFORE = "SELECT 1 FROM span_loser WHERE span = ? AND mac = ?"
_ADD_LINK = """
INSERT OR IGNORE INTO span_link (span, ordinal, to_trace_id, to_span_id) VALUES (?, ?, ?, ?)
"""
_DROP_LINKS = "DELETE FROM span_link WHERE span = ?"
_CALL_COLUMNS = """
span, run, counted, operation, provider, request_model, response_model, response_id,
finish_reason, input_prefix, output_prefix, input_is_delta, tokens_input, tokens_output,
tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano, cost_source, first_token_ms
"""
_ADD_CALL = f"INSERT INTO call ({_CALL_COLUMNS}) VALUES ({', '.join('?' * 20)})"
_DROP_CALL = "DELETE FROM call WHERE span = ?"
_OLD = """
SELECT flags, end_ns, parent_span_id,
  (SELECT counted FROM call WHERE call.span = span.id) AS counted
FROM span WHERE id = ?
"""
_PENDING, _FOLDED = int(SpanFlag.PENDING), int(SpanFlag.FOLDED)
_FOLD_BELOW = f"""
UPDATE span SET flags = flags | {_FOLDED}
WHERE trace_id = ? AND parent_span_id = ? AND flags & {_PENDING | _FOLDED} = {_PENDING}
"""
_IS_STORED = "SELECT 1 FROM span WHERE trace_id = ? AND span_id = ?"
_FOLD = f"UPDATE span SET flags = flags | {_FOLDED} WHERE id = ?"
_SAME_RESPONSE = "SELECT span FROM call WHERE run = ? AND response_id = ? AND span <> ? LIMIT 8"


class SpanWriter:
    """Writes spans and everything derived from them, inside one transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        runs: RunWriter,
        contents: ContentWriter,
        texts: TextWriter,
        index: IndexWriter,
        derived_version: int,
    ) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._runs = runs
        self._contents = contents
        self._texts = texts
        self._index = index
        self._derived_version = derived_version

    def add(self, span: ReceivedSpan, projection: SpanProjection) -> tuple[Outcome, int]:
        """Store a span and return what became of it and its id (0 when its run was deleted).

        The same report again changes nothing. Another report of the same span: a real end beats
        none, then the later end, then more attributes; the loser's record is kept.
        """
        run = self._runs.get(span.trace_id, start_ns=span.sort_ns, synthetic=span.synthetic)
        if run is None:
            return Outcome.DELETED, 0
        number = self._execute(_ADD, self._row(span, projection, run)).get
        if number is None:
            return self._again(span, projection, run)
        self._add_record(number, span, run)
        run.span_count += 1
        self._derive(number, span, projection, run)
        for note in (*span.notes, *projection.notes):
            run.note(note)
        return Outcome.STORED, number

    def _again(
        self, span: ReceivedSpan, projection: SpanProjection, run: RunState
    ) -> tuple[Outcome, int]:
        identity = {"trace_id": span.trace_id, "span_id": span.span_id, "side": span.side}
        known: Any = self._execute(_FIND, identity | {"huge": _HUGE}).fetchone()
        number, mac, *richness = known
        if mac == span.mac or self._execute(_LOST_BEFORE, (number, span.mac)).get is not None:
            return Outcome.DUPLICATE, number
        was_open = not richness[0]
        if span.is_open and not was_open:
            return Outcome.OPENED, number
        if span.richness <= tuple(richness):
            record = pack_record(span.message, span.large, self._contents, run=run.id)
            self._execute(_ADD_LOSER, (number, span.mac, span.received_ns, record))
            return Outcome.DUPLICATE, number
        ends_it = was_open and not span.is_open
        if not ends_it:
            self._execute(_KEEP_LOSER, (number,))
        self.replace(number, span, projection, run)
        return (Outcome.OPENED if ends_it else Outcome.DUPLICATE), number

    def replace(
        self, number: int, span: ReceivedSpan, projection: SpanProjection, run: RunState
    ) -> None:
        """Put a richer report in the place of a stored one, under the same id."""
        self._retract(number, run)
        self._execute(_DROP_RECORD, (number,))
        self._execute(_REPLACE, (*self._row(span, projection, run), number))
        self._add_record(number, span, run)
        self._derive(number, span, projection, run)

    def _row(self, span: ReceivedSpan, made: SpanProjection, run: RunState) -> tuple[Any, ...]:
        return (
            span.trace_id, span.span_id, span.side, run.id, span.parent_span_id, span.name,
            made.label, span.kind, span.start_ns, span.end_ns, span.sort_ns, span.status,
            made.role, made.dialect, int(span.flags | made.flags), span.resource, span.scope,
            made.agent_name, made.tool_name, made.model, *made.usage.values(), made.summary,
        )  # fmt: skip

    def _add_record(self, number: int, span: ReceivedSpan, run: RunState) -> None:
        for ordinal, (trace_id, span_id) in enumerate(span.links):
            self._execute(_ADD_LINK, (number, ordinal, trace_id, span_id))
        record = pack_record(span.message, span.large, self._contents, run=run.id)
        notes = "\n".join(span.notes) or None
        row = (span.mac, span.received_ns, self._derived_version, span.attribute_count)
        self._execute(_ADD_RECORD, (number, *row, notes, record))

    # ---- what is derived

    def rederive(
        self, number: int, span: ReceivedSpan, projection: SpanProjection, run: RunState
    ) -> None:
        """Make the derived rows of a stored span again; its record stays as it is."""
        self._retract(number, run)
        self._execute(_REPLACE, (*self._row(span, projection, run), number))
        for ordinal, (trace_id, span_id) in enumerate(span.links):
            self._execute(_ADD_LINK, (number, ordinal, trace_id, span_id))
        self._derive(number, span, projection, run)

    def _derive(self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState) -> None:
        self._index.add_attributes(number, made.attribute_tokens)
        for text in made.texts:
            self._texts.add(text, span=number, run=run.id)
        for kind, value in made.facets:
            self._runs.facet(run.id, kind, value)
        _tell_run(run, number, span, made)
        if made.may_have_pending:
            self._fold_pending(number, span, made, run)
        self._derive_tools(number, span, made, run)
        self._derive_usage(number, span, made, run)

    def _fold_pending(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        """Hide a record that announced a span once the span is there, whichever came first."""
        if not made.flags & SpanFlag.PENDING:
            self._execute(_FOLD_BELOW, (run.trace_id, span.span_id))
            run.step_count -= self._connection.changes()
            return
        announced = (run.trace_id, span.parent_span_id)
        if self._execute(_IS_STORED, announced).get is not None:
            self._execute(_FOLD, (number,))
            run.step_count -= 1

    def _derive_usage(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        marked = counting.is_marked(self._connection, run, span.span_id)
        if made.call is not None:
            self._add_call(number, made.call, run, flags=span.flags | made.flags)
            if made.call.is_candidate:
                self._judge_call(number, span, made, run)
        if made.usage_sum is not None:
            counting.add_sum(
                self._connection, run, span=number, usage=made.usage_sum, counted=not marked
            )
        if marked or _has_usage(made):
            counting.mark_above(self._connection, run, span.parent_span_id)

    def _add_call(self, number: int, call: CallProjection, run: RunState, *, flags: int) -> None:
        counted = call.is_candidate and not flags & SpanFlag.DUPLICATE
        row = (
            number, run.id, int(counted), call.operation, call.provider, call.request_model,
            call.response_model, call.response_id, call.finish_reason,
            self._texts.prefix(call.input, span=number),
            self._texts.prefix(call.output, span=number),
            int(call.input_is_delta), *call.usage.values(), call.cost_source, call.first_token_ms,
        )  # fmt: skip
        self._execute(_ADD_CALL, row)
        if counted:
            run.model_calls += 1
            run.count_usage(call.usage, 1)

    def _judge_call(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        """Find spans near this one that describe the same call, above and below."""
        mine = duplicates.call_facts(self._connection, number)
        assert mine is not None  # its row was written just now
        for near in duplicates.near_above(self._connection, run.trace_id, span.parent_span_id):
            if near.role == made.role:
                self._settle(near.span, number, run)
                break
        below = duplicates.near_below(self._connection, run.trace_id, span.span_id)
        for near in list(below):
            if near.role == made.role:
                self._settle(number, near.span, run)
        if mine.response_id:
            self._settle_twins(mine, run)

    def _settle(self, outer: int, inner: int, run: RunState) -> None:
        above = duplicates.call_facts(self._connection, outer)
        below = duplicates.call_facts(self._connection, inner)
        if above is None or below is None:
            return
        verdict = duplicates.judge(above, below)
        if verdict is Verdict.INNER_REPEATS:
            self._count(inner, run, counted=False)
        elif verdict in (Verdict.OUTER_REPEATS, Verdict.OUTER_SUMS):
            self._count(outer, run, counted=False)

    def _settle_twins(self, mine: duplicates.CallFacts, run: RunState) -> None:
        """Side by side, with one response id, one time and one usage: the later span repeats."""
        same: list[Any] = self._execute(
            _SAME_RESPONSE, (run.id, mine.response_id, mine.span)
        ).fetchall()
        for (other,) in same:
            facts = duplicates.call_facts(self._connection, other)
            if facts is not None and duplicates.are_twins(mine, facts):
                later = max(mine, facts, key=lambda call: (call.start_ns, call.span))
                self._count(later.span, run, counted=False)

    def _count(self, span: int, run: RunState, *, counted: bool) -> None:
        counting.set_call_counted(
            self._connection, run, span, counted=counted, duplicate=not counted
        )

    def _derive_tools(
        self, number: int, span: ReceivedSpan, made: SpanProjection, run: RunState
    ) -> None:
        tool_events.add_requested(self._connection, run, made.requested, span=number)
        if made.ran is None:
            return
        if self._is_inner_tool(span, made, run):
            counting.flag_step(self._connection, run, number, duplicate=True)
            return
        for near in list(duplicates.near_below(self._connection, run.trace_id, span.span_id)):
            if near.role in TOOL_ROLES and near.tool_name == made.tool_name:
                tool_events.remove(self._connection, run, near.span)
                counting.flag_step(self._connection, run, near.span, duplicate=True)
        tool_events.add_ran(self._connection, run, made.ran, span=number)

    def _is_inner_tool(self, span: ReceivedSpan, made: SpanProjection, run: RunState) -> bool:
        above = duplicates.near_above(self._connection, run.trace_id, span.parent_span_id)
        return any(
            near.role in TOOL_ROLES and near.tool_name == made.tool_name and made.tool_name
            for near in above
        )

    def _retract(self, number: int, run: RunState) -> None:
        """Take a span's derived rows, and its part of the run's totals, back."""
        old: Any = self._execute(_OLD, (number,)).fetchone()
        flags, end_ns, _, counted = old
        if counted:
            counting.set_call_counted(self._connection, run, number, counted=False, duplicate=False)
        self._execute(_DROP_CALL, (number,))
        counting.remove_sum(self._connection, run, number)
        tool_events.remove(self._connection, run, number)
        self._execute(_DROP_LINKS, (number,))
        self._index.drop_attributes(number)
        run.step_count -= 0 if flags & (SpanFlag.DUPLICATE | SpanFlag.FOLDED) else 1
        run.error_count -= 1 if flags & SpanFlag.ERROR else 0
        run.open_count -= 1 if end_ns is None and not flags & SpanFlag.TIME_HUGE else 0


def _has_usage(made: SpanProjection) -> bool:
    sums = made.usage_sum or Usage()
    return sums.has_tokens or (made.call is not None and made.call.usage.has_tokens)


def _tell_run(run: RunState, number: int, span: ReceivedSpan, made: SpanProjection) -> None:
    """Bring the run's own columns up to date with one more span."""
    flags = span.flags | made.flags
    run.step_count += 0 if flags & (SpanFlag.DUPLICATE | SpanFlag.FOLDED) else 1
    run.error_count += 1 if flags & SpanFlag.ERROR else 0
    run.open_count += 1 if span.is_open else 0
    if not flags & SpanFlag.TIME_ODD:
        run.started_ns = min(run.started_ns, span.sort_ns)
    run.ended_ns = max(run.ended_ns, span.end_ns or span.sort_ns)
    _tell_root(run, number, span, made)
    if made.agent_name and (run.agent_sort_ns is None or span.sort_ns <= run.agent_sort_ns):
        run.agent_name, run.agent_sort_ns = made.agent_name, span.sort_ns
    run.conversation_id = run.conversation_id or made.conversation_id
    run.user_id = run.user_id or made.user_id
    run.domain = run.domain or made.domain
    if made.first_input and (run.first_input_ns is None or span.sort_ns <= run.first_input_ns):
        run.first_input, run.first_input_ns = made.first_input, span.sort_ns
    said_ns = span.end_ns or span.sort_ns
    if made.last_output and (run.last_output_ns is None or said_ns >= run.last_output_ns):
        run.last_output, run.last_output_ns = made.last_output, said_ns


def _tell_root(run: RunState, number: int, span: ReceivedSpan, made: SpanProjection) -> None:
    """Name and status come from the earliest root agent, else the earliest root.

    Until a root has come, the earliest span stands in: a parent starts before its children.
    """
    rank = 2 if span.parent_span_id is not None else (0 if made.role == "agent" else 1)
    better = (rank, span.sort_ns) < (run.root_rank, run.root_sort_ns)
    if not better and run.root_span != number:
        return
    run.root_span, run.root_rank, run.root_sort_ns = number, rank, span.sort_ns
    run.name = made.label or span.name
    failed = (span.flags | made.flags) & SpanFlag.ERROR
    run.status = "open" if span.is_open else "error" if failed else "ok"

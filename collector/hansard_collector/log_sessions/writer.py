"""Log records without trace ids, placed in runs made of them; inside one transaction.

A record is placed when it is stored. What it changes is settled at the end of the transaction: a
prompt takes over the records after it, parts are joined with their calls, and the steps that have
news are made again of all their records. The result is a function of the records that came,
whatever their order.

A turn that was traced too joins that trace, and no step is made of its records: they stand on
the spans that tell the same ids, and nothing is counted twice. So do records that were sent with
the ids of another span of the turn: Claude Code puts those of its requests on the turn itself.
Where a request has no id, the call of the session that ended then is it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.log_sessions import hooks
from hansard_collector.log_sessions.agents import AGENTS, recognise
from hansard_collector.log_sessions.marks import (
    LLM,
    TOOL,
    EntryType,
    SessionEvent,
    root_id,
    step_id,
    turn_id,
)
from hansard_collector.log_sessions.steps import News, StepMaker
from hansard_collector.otlp.any_value import log_view
from hansard_collector.otlp.stored_records import Envelopes
from hansard_collector.pipeline.validation import bad_trace_id
from hansard_store.ingest import session_logs
from hansard_store.ingest.otlp_records import restore_log
from hansard_store.ingest.session_logs import SessionLog, is_repeated, record_of
from hansard_store.ingest.writer import WriteBatch
from hansard_store.runs.projection import RunState

_END_OF_TIME = (1 << 63) - 1
_NEAR_NS = 2_000_000_000  # between the end of a call's span and the record of it
_PARTS = (EntryType.START, EntryType.END)
_SENT_KEYS = {
    kind: frozenset(key for agent in AGENTS.values() for key in agent.sent_as.get(kind, ()))
    for kind in (LLM, TOOL)
}


@dataclass(frozen=True, slots=True)
class LogIds:
    """Under which ids a record is stored."""

    trace_id: bytes | None
    span_id: bytes | None


@dataclass(frozen=True, slots=True)
class SentSpan:
    """A span that describes a step of an agent, and the texts of its attributes."""

    trace_id: bytes
    span_id: bytes
    texts: frozenset[str]


class SessionWriter:
    """Places log records and keeps the runs that are made of them up to date."""

    def __init__(
        self, connection: apsw.Connection, batch: WriteBatch, messages: MessageCache
    ) -> None:
        self._connection = connection
        self._batch = batch
        self._maker = StepMaker(connection, batch, messages)
        self._dialects: dict[bytes, str] = {}  # of runs with news
        self._news: dict[bytes, News] = defaultdict(News)  # by run
        self._unjoined: set[bytes] = set()  # runs with news of calls or of their parts
        self._prompts: list[SessionLog] = []
        self._keyed: dict[str, list[SessionLog]] = defaultdict(list)  # that a span may tell too
        self._left: dict[bytes, str] = {}  # runs that lost records, and their dialects
        self._claimed: list[tuple[bytes, bytes]] = []  # turns, and the traces that they joined
        # (kind, key) -> the spans that were sent now and tell it, with all texts that they tell.
        self._sent: dict[tuple[str, str], list[SentSpan]] = defaultdict(list)
        self._near_traces: dict[bytes, str] = {}  # sent now, by agents that name no request
        self._near_logs: set[int] = set()  # records of such requests that are to be placed
        self._own: set[str] = set()  # sessions with news of the agent's own records
        self._hooked: dict[str, str] = {}  # session ids with news of hooks, and their dialects
        self._sent_traces: set[bytes] = set()  # that got spans now, of whatever dialect
        self._rejoined: dict[bytes, set[bytes]] = defaultdict(set)  # sent spans that got records

    # ---- as items are written

    def place(self, event: SessionEvent, time_ns: int) -> LogIds:
        """Return the ids for a record that has none."""
        trace_id = self._home(event, time_ns)
        if trace_id is None:
            return LogIds(None, None)
        mark = event.mark
        span_id = self._span_for(
            trace_id, event.dialect, mark.entry_type, mark.kind, event.key(time_ns)
        )
        if span_id is not None and session_logs.is_sent_trace(self._connection, trace_id):
            self._rejoined[trace_id].add(span_id)
        return LogIds(trace_id, span_id)

    def place_sent(self, event: SessionEvent, ids: LogIds) -> LogIds:
        """Return the ids for a record that was sent with some: those of its step."""
        mark = event.mark
        if not mark.key or ids.trace_id is None:
            return ids
        sent = self._sent_span(
            event.dialect, mark.kind, mark.key, home=ids.trace_id, session=event.session
        )
        return ids if sent is None else LogIds(*sent)

    def note(
        self,
        event: SessionEvent,
        log: int,
        time_ns: int,
        *,
        trace_id: bytes | None,
        is_sent: bool = False,
    ) -> None:
        """Remember a record that was stored under the ids of `place`, or was sent with ids."""
        mark = event.mark
        row = _row_of(event, log, time_ns, trace_id, is_sent=is_sent)
        session_logs.add_session_log(self._connection, row)
        if row.sequence == hooks.SEQUENCE:
            self._hooked[event.session] = event.dialect
        else:
            self._own.add(row.session)
        if mark.entry_type is EntryType.PROMPT:
            self._prompts.append(row)
        self._look_near(row)
        if mark.key and mark.kind == next(iter(AGENTS[event.dialect].sent_as), None):
            self._keyed[event.dialect].append(row)
        self._tell(row)

    def saw_ids(self, event: SessionEvent, log: int, time_ns: int, *, trace_id: bytes) -> None:
        """Learn from a record that was sent with trace ids that its turn is traced."""
        mark = event.mark
        if mark.prompt or mark.entry_type is EntryType.PROMPT:
            self._claim(event.turn_id(_prompt_of(event, time_ns)), trace_id)
        is_keyed = bool(mark.key) and mark.kind in AGENTS[event.dialect].sent_as
        if is_keyed and not session_logs.is_sent_trace(self._connection, trace_id):
            self._claim(event.turn_id(f"of {trace_id.hex()}"), trace_id)
        if is_keyed or mark.entry_type is EntryType.PROMPT:
            self.note(event, log, time_ns, trace_id=trace_id, is_sent=True)

    def note_again(
        self, event: SessionEvent | None, log: int, time_ns: int, *, sent_trace_id: bytes | None
    ) -> None:
        """Note a stored record once more: its agent may be read better than when it came.

        Its steps are made again in any case.
        """
        known = session_logs.find_session_log(self._connection, log)
        is_sent = sent_trace_id is not None
        if (
            event is not None
            and known is not None
            and _row_of(event, log, known.time_ns, known.trace_id, is_sent=is_sent) == known
        ):
            home = known.trace_id if is_sent else self._home(event, time_ns)
            self._look_near(known)
            if home == known.trace_id or home is None:
                self._tell(known)
            else:
                self._move(known, home)
            return
        if known is not None:
            session_logs.drop_session_log(self._connection, log)
            if known.trace_id is not None:
                self._left[known.trace_id] = _dialect(known)
        if sent_trace_id is not None:
            if event is not None:
                self.saw_ids(event, log, time_ns, trace_id=sent_trace_id)
                self._place_again(event, log, home=sent_trace_id)
            return
        ids = LogIds(None, None) if event is None else self.place(event, time_ns)
        if event is not None:
            self.note(event, log, time_ns, trace_id=ids.trace_id)
        session_logs.place_log(self._connection, log, trace_id=ids.trace_id, span_id=ids.span_id)

    def _place_again(self, event: SessionEvent, log: int, *, home: bytes) -> None:
        """Bring a stored record that was sent with ids to the span of its step."""
        mark, row = event.mark, session_logs.find_session_log(self._connection, log)
        if not mark.key or row is None:
            return
        sent = self._sent_span(event.dialect, mark.kind, mark.key, home=home, session=event.session)
        if sent is not None:
            self._meet(row, *sent)

    def _look_near(self, row: SessionLog) -> None:
        if row.kind == LLM and AGENTS[_dialect(row)].is_sent_near:
            self._near_logs.add(row.log)

    def saw_trace(self, trace_id: bytes) -> None:
        """Learn that a trace got a span that was sent."""
        self._sent_traces.add(trace_id)

    def saw_span(self, span: Span, *, role: str, dialect: str) -> None:
        """Learn which step a sent span describes; spans inside a step may name its key too."""
        if AGENTS[dialect].is_sent_near:
            self._near_traces[span.trace_id] = dialect
        keys = _SENT_KEYS.get(role)
        if keys is None:
            return
        pairs = {pair.key: pair.value.string_value for pair in span.attributes}
        for key in keys & pairs.keys():
            if pairs[key]:
                texts = frozenset(pairs.values())
                self._sent[role, pairs[key]].append(SentSpan(span.trace_id, span.span_id, texts))

    def _home(self, event: SessionEvent, time_ns: int) -> bytes | None:
        """Return the trace of a record's turn; None for what is only about one, before any."""
        mark = event.mark
        if mark.prompt or mark.entry_type is EntryType.PROMPT:
            turn = event.turn_id(_prompt_of(event, time_ns))
            return session_logs.claimed_by(self._connection, turn) or turn
        found = session_logs.last_prompt(self._connection, event.full_session, time_ns)
        if found is None and mark.sequence == hooks.SEQUENCE:
            found = self._home_of_hook(
                event.full_session, mark.kind, event.key(time_ns), time_ns=time_ns
            )
        if found is not None or mark.entry_type in (EntryType.NOTE, EntryType.ABOUT):
            return found  # which make no run
        turn = event.turn_id("")  # the session's prompt came before anybody listened
        return session_logs.claimed_by(self._connection, turn) or turn

    def _home_of_hook(self, session: str, kind: str, key: str, *, time_ns: int) -> bytes | None:
        """Return the turn of the agent's own records that a hook's record belongs to, if any."""
        for row in session_logs.logs_with_key(self._connection, key, kind) if kind else ():
            is_own = row.session == session and row.sequence != hooks.SEQUENCE
            if is_own and row.trace_id is not None:
                return row.trace_id
        return session_logs.turn_near(
            self._connection, session, time_ns, but_sequence=hooks.SEQUENCE
        )

    def _span_for(
        self, trace_id: bytes, dialect: str, entry_type: str, kind: str, key: str
    ) -> bytes | None:
        if entry_type == EntryType.NOTE:
            return None
        if not session_logs.is_sent_trace(self._connection, trace_id):
            return step_id(trace_id, kind, key) if kind else root_id(trace_id)
        sent = self._sent_span(dialect, kind, key) if kind else None
        return sent[1] if sent is not None and sent[0] == trace_id else None

    def _sent_span(
        self, dialect: str, kind: str, key: str, *, home: bytes | None = None, session: str = ""
    ) -> tuple[bytes, bytes] | None:
        """Return the ids of a sent span of a step, from now or from before.

        With a `home`, one of that trace, else one of the same session.
        """
        keys = AGENTS[dialect].sent_as.get(kind)
        if not keys:
            return None
        now = self._sent.get((kind, key), ())
        before = session_logs.sent_spans_with(self._connection, keys, [key], role=kind)
        found = [(span.trace_id, span.span_id) for span in now] + before
        if home is None:
            return found[0] if found else None
        at_home = next((ids for ids in found if ids[0] == home), None)
        if at_home is not None or not session:
            return at_home
        away = next(((s.trace_id, s.span_id) for s in now if session in s.texts), None)
        return away or next(
            iter(
                session_logs.sent_spans_with(
                    self._connection, keys, [key], role=kind, session=session
                )
            ),
            None,
        )

    def _tell(self, row: SessionLog) -> None:
        """Note what has to be made again for a record."""
        trace_id = row.trace_id
        if trace_id is None:
            return
        self._dialects[trace_id] = _dialect(row)
        news = self._news[trace_id]
        news.tell(row.start_ns if row.entry_type != EntryType.NOTE else None, row.time_ns)
        if row.kind:
            news.steps[step_id(trace_id, row.kind, row.key)] = row.kind
        if row.kind == LLM or row.entry_type in _PARTS:
            self._unjoined.add(trace_id)

    # ---- at the end of the transaction

    def settle(self) -> Mapping[bytes, set[bytes]]:
        """Remake the changed turns; returns the sent spans that got records, by trace."""
        self._match_sent_spans()
        near = self._match_near()
        self._match_hooks()
        for turn, trace_id in self._claimed:
            self._give_turn(turn, trace_id)
        for prompt in self._prompts:
            self._gather(prompt)
        for session in sorted(self._own):
            self._gather_hooks(session)
        for trace_id, dialect in self._left.items():
            # A run of spans that were sent is not made of records: it has nothing to be made again.
            if not session_logs.is_sent_trace(self._connection, trace_id):
                self._make_anew(trace_id, dialect)
        for trace_id, news in self._news.items():
            if session_logs.is_sent_trace(self._connection, trace_id):
                continue
            if trace_id in self._unjoined:
                news.steps |= self._join(trace_id)
            self._maker.make(AGENTS[self._dialects[trace_id]], trace_id, news)
        for log, ids in near.items():
            row = session_logs.find_session_log(self._connection, log)
            if row is not None:
                self._meet(row, *ids)
        self._place_prompts({ids[0] for ids in near.values()})
        return self._rejoined

    def _place_prompts(self, traces: Collection[bytes]) -> None:
        """Bring the prompts of turns that were traced to the spans of those turns."""
        own = [session_logs.find_session_log(self._connection, row.log) for row in self._prompts]
        placed = {row.trace_id for row in own if row is not None and row.trace_id is not None}
        for trace_id in sorted({*traces, *self._near_traces, *placed}):
            rows = session_logs.logs_of_types(self._connection, trace_id, (EntryType.PROMPT,))
            rows = [row for row in rows if AGENTS[_dialect(row)].is_sent_near]
            turn = session_logs.agent_span(self._connection, trace_id) if rows else None
            if turn is None:
                continue
            for row in rows:
                self._meet(row, trace_id, turn)

    def _match_near(self) -> dict[int, tuple[bytes, bytes]]:
        """Find the spans of calls whose records name none, by session and time: ids by log record.

        Their turns join the traces of those spans, unless they did before.
        """
        of_now: dict[str, list[RunState]] = defaultdict(list)
        for trace_id, dialect in self._near_traces.items():
            run = self._batch.runs.find(trace_id)
            if run is not None and run.conversation_id is not None:
                session = f"{dialect} {run.conversation_id}"
                of_now[session].append(run)
                self._near_logs |= session_logs.calls_logged(
                    self._connection,
                    session,
                    from_ns=run.started_ns - _NEAR_NS,
                    to_ns=run.ended_ns + _NEAR_NS,
                )
        found: dict[int, tuple[bytes, bytes]] = {}
        for log in sorted(self._near_logs):
            row = session_logs.find_session_log(self._connection, log)
            ids = None if row is None else self._span_near(row, of_now[row.session])
            if row is None or ids is None:
                continue
            found[log] = ids
            turn = row.trace_id
            if turn is not None and not session_logs.is_sent_trace(self._connection, turn):
                self._claim(turn, ids[0])
        return found

    def _span_near(self, row: SessionLog, now: Sequence[RunState]) -> tuple[bytes, bytes] | None:
        """Return the call of the record's session that ended closest to it."""
        from_ns, to_ns = row.time_ns - _NEAR_NS, row.time_ns + _NEAR_NS
        dialect, _, session = row.session.partition(" ")
        calls = session_logs.calls_of_session(
            self._connection, session, dialect=dialect, from_ns=from_ns, to_ns=to_ns
        )
        for run in now:
            calls += session_logs.calls_of_run(
                self._connection, run.id, dialect=dialect, from_ns=from_ns, to_ns=to_ns
            )
        closest = min(
            calls, key=lambda call: (abs(call[2] - row.time_ns), call[0], call[1]), default=None
        )
        return None if closest is None else (closest[0], closest[1])

    def _match_sent_spans(self) -> None:
        """Find the turns that were traced by the ids that records and spans have in common."""
        for (kind, key), spans in self._sent.items():
            for row in session_logs.logs_with_key(self._connection, key, kind):
                self._meet_one_of(row, spans)
        for dialect, rows in self._keyed.items():
            # One look for all of them: mostly there is nothing to find.
            keys = AGENTS[dialect].sent_as[rows[0].kind]
            values = dict.fromkeys(row.key for row in rows)
            if not session_logs.sent_spans_with(self._connection, keys, values, role=rows[0].kind):
                continue
            for row in rows:
                is_placed = row.trace_id is not None and session_logs.is_sent_trace(
                    self._connection, row.trace_id
                )
                sent = self._sent_span(
                    dialect,
                    row.kind,
                    row.key,
                    home=row.trace_id if is_placed else None,
                    session=row.session.partition(" ")[2],
                )
                if sent is not None:
                    self._meet(row, *sent)

    def _meet_one_of(self, row: SessionLog, spans: Sequence[SentSpan]) -> None:
        """Bring a record to that of some spans of its step that is in its trace, or its session."""
        session = row.session.partition(" ")[2]
        best = next((span for span in spans if span.trace_id == row.trace_id), None)
        if best is None and row.trace_id is not None:
            was_sent = session_logs.is_sent_trace(self._connection, row.trace_id)
            best = next((span for span in spans if not was_sent or session in span.texts), None)
        if best is not None:
            self._meet(row, best.trace_id, best.span_id)

    def _meet(self, row: SessionLog, trace_id: bytes, span_id: bytes) -> None:
        """Bring a record to the span of the same step, and its turn to that trace."""
        if row.trace_id is None:
            return
        is_claimed = session_logs.is_sent_trace(self._connection, row.trace_id)
        if row.trace_id != trace_id and not is_claimed:
            self._claim(row.trace_id, trace_id)
            return
        before = session_logs.place_on_span(self._connection, row.log, span_id)
        if row.trace_id != trace_id:
            session_logs.place_log(self._connection, row.log, trace_id=trace_id, span_id=span_id)
        self._rejoined[trace_id].add(span_id)
        if before is not None and before != span_id:
            self._rejoined[row.trace_id].add(before)

    def _claim(self, turn: bytes, trace_id: bytes) -> None:
        if turn != trace_id and session_logs.claim_turn(self._connection, turn, trace_id):
            self._claimed.append((turn, trace_id))

    def _give_turn(self, turn: bytes, trace_id: bytes) -> None:
        """Give all records of a run to a trace that was sent; the run is no more."""
        for row in session_logs.logs_of_trace(self._connection, turn):
            self._move(row, trace_id)
        self._maker.keep_only(turn, ())
        self._left.pop(turn, None)
        self._news.pop(turn, None)
        self._prompts = [row for row in self._prompts if row.trace_id != turn]

    def _gather(self, prompt: SessionLog) -> None:
        """Bring the records that name no prompt to the last one before them."""
        connection, session, time_ns = self._connection, prompt.session, prompt.time_ns
        home = session_logs.last_prompt(connection, session, time_ns)
        if home is None:
            return
        before_ns = session_logs.next_prompt_ns(connection, session, time_ns) or _END_OF_TIME
        rows = session_logs.logs_without_prompt(
            connection, session, from_ns=time_ns, before_ns=before_ns
        )
        if session_logs.is_first_prompt(connection, session, time_ns):
            earlier = session_logs.logs_without_prompt(
                connection, session, from_ns=0, before_ns=time_ns
            )
            rows += [
                row for row in earlier if row.entry_type in (EntryType.NOTE, EntryType.SESSION)
            ]
        for row in rows:
            if row.trace_id != home:
                self._move(row, home)
        if session_logs.logs_of_types(connection, home, (EntryType.SESSION,)):
            # Without a prompt the run began with its session: now it begins later.
            self._left[home] = _dialect(prompt)

    def _match_hooks(self) -> None:
        """Give sessions that hooks reported to the traces that the same sessions sent.

        Every such trace names the session as its conversation; a session's first trace gets what
        names no call, the others get the calls that their spans describe.
        """
        for trace_id in sorted(self._sent_traces):
            run = self._batch.runs.find(trace_id)
            session = None if run is None else run.conversation_id
            for dialect in AGENTS if session is not None else ():
                turn = turn_id(dialect, str(session), "")
                if session_logs.logs_in_sequence(self._connection, turn, hooks.SEQUENCE):
                    self._claim(turn, trace_id)
        for session, dialect in sorted(self._hooked.items()):
            turn = turn_id(dialect, session, "")
            if session_logs.logs_in_sequence(self._connection, turn, hooks.SEQUENCE):
                sent = session_logs.sent_run_of(self._connection, session)
                if sent is not None:
                    self._claim(turn, sent)

    def _gather_hooks(self, session: str) -> None:
        """Bring what hooks reported of a session to the turns of the agent's own records."""
        dialect, _, name = session.partition(" ")
        turn = turn_id(dialect, name, "")
        for row in session_logs.logs_in_sequence(self._connection, turn, hooks.SEQUENCE):
            home = session_logs.last_prompt(
                self._connection, session, row.time_ns
            ) or self._home_of_hook(session, row.kind, row.key, time_ns=row.time_ns)
            if home is not None and home != row.trace_id:
                self._move(row, home)

    def _move(self, row: SessionLog, trace_id: bytes) -> None:
        span_id = self._span_for(trace_id, _dialect(row), row.entry_type, row.kind, row.key)
        session_logs.place_log(self._connection, row.log, trace_id=trace_id, span_id=span_id)
        if row.trace_id is not None:
            self._left[row.trace_id] = _dialect(row)
        if session_logs.is_sent_trace(self._connection, trace_id):
            if span_id is not None:
                self._rejoined[trace_id].add(span_id)
            return
        self._tell(replace(row, trace_id=trace_id))

    def _make_anew(self, trace_id: bytes, dialect: str) -> None:
        """Prepare a run that lost records: what is left of it is made again as a whole."""
        rows = session_logs.logs_of_trace(self._connection, trace_id)
        step_ids = [step_id(trace_id, row.kind, row.key) for row in rows if row.kind]
        self._maker.keep_only(trace_id, [root_id(trace_id), *step_ids])
        self._dialects[trace_id] = dialect
        self._news[trace_id] = News(is_whole=True)
        for row in rows:
            self._tell(row)

    def _join(self, trace_id: bytes) -> dict[bytes, str]:
        """Join parts with their calls; returns the calls that got or lost one."""
        parts = session_logs.logs_of_types(self._connection, trace_id, _PARTS)
        if not parts:
            return {}
        steps = session_logs.logs_of_types(self._connection, trace_id, (EntryType.STEP,))
        found = joined([row for row in steps if row.kind == LLM], parts)
        changed: dict[bytes, str] = {}
        root = root_id(trace_id)
        for part in parts:
            key = found.get(part.log)
            span_id = root if key is None else step_id(trace_id, LLM, key)
            before = session_logs.place_on_span(self._connection, part.log, span_id)
            if before != span_id:
                changed |= {one: LLM for one in (before, span_id) if one not in (None, root)}
        return changed


def _prompt_of(event: SessionEvent, time_ns: int) -> str:
    """Return what separates a turn from others of its session: the prompt's id, else its time."""
    return event.mark.prompt or f"at {time_ns}"


def _row_of(
    event: SessionEvent, log: int, time_ns: int, trace_id: bytes | None, *, is_sent: bool
) -> SessionLog:
    """Return the row of a record; one that was sent with ids belongs to no prompt by time."""
    mark = event.mark
    return SessionLog(
        log=log,
        session=event.full_session,
        time_ns=time_ns,
        start_ns=max(time_ns - mark.duration_ns, 0),
        entry_type=mark.entry_type,
        kind=mark.kind,
        key=event.key(time_ns),
        sequence=mark.sequence,
        lacks_prompt=not mark.prompt and mark.entry_type is not EntryType.PROMPT and not is_sent,
        trace_id=trace_id,
    )


def _dialect(row: SessionLog) -> str:
    return row.session.partition(" ")[0]


# Records that name no call, joined with the call that begins or ends when they were made.

_AT_ONCE = 8  # calls of one agent that run at one time, at most


@dataclass(frozen=True, slots=True)
class _Call:
    """A model call by its key, as far as its own records state when it ran."""

    key: str
    sequence: str
    start_ns: int
    end_ns: int


def joined(calls: Iterable[SessionLog], parts: Iterable[SessionLog]) -> Mapping[int, str]:
    """Return for each part (by log_record.id) the key of its call; parts without one are left out.

    START goes to the call that began closest to it among those that ended later; where the calls
    of an agent do not state when they began, that is the next to end. END goes to the call that
    ended closest to it. A function of the records alone: the order in which they came is none of
    its business.
    """
    known = _calls(calls)
    sequences: dict[str, list[_Call]] = {}
    for call in known:
        sequences.setdefault(call.sequence, []).append(call)
    found: dict[int, str] = {}
    for part in parts:
        # A call that names no sequence may be of any; so may a part.
        of_sequence = (
            sequences.get(part.sequence) or sequences.get("", []) if part.sequence else known
        )
        best = _closest(part, of_sequence)
        if best is not None:
            found[part.log] = best.key
    return found


def _calls(rows: Iterable[SessionLog]) -> list[_Call]:
    """Return the calls by their ends; a call may have several records."""
    calls: dict[str, _Call] = {}
    for row in rows:
        known = calls.get(row.key)
        start_ns, end_ns, sequence = row.start_ns, row.time_ns, row.sequence
        if known is not None:
            start_ns, end_ns = min(start_ns, known.start_ns), max(end_ns, known.end_ns)
            sequence = max(sequence, known.sequence)
        calls[row.key] = _Call(row.key, sequence, start_ns, end_ns)
    return sorted(calls.values(), key=lambda call: (call.end_ns, call.key))


def _closest(part: SessionLog, calls: Sequence[_Call]) -> _Call | None:
    at = bisect_left(calls, part.time_ns, key=lambda call: call.end_ns)
    first = at if part.entry_type == EntryType.START else max(at - _AT_ONCE, 0)
    return min(
        calls[first : at + _AT_ONCE], key=lambda call: _distance_ns(part, call), default=None
    )


def _distance_ns(part: SessionLog, call: _Call) -> int:
    has_start = call.start_ns < call.end_ns
    moment_ns = call.start_ns if part.entry_type == EntryType.START and has_start else call.end_ns
    return abs(moment_ns - part.time_ns)


# Stored log records read once more, as `hansard rebuild` does: what is understood now counts.


def settle_again(
    connection: apsw.Connection, batch: WriteBatch, messages: MessageCache, logs: Iterable[int]
) -> Mapping[bytes, set[bytes]]:
    """Place some log records (log_record.id) again and make their steps again.

    Slices may be of any size and in any order, while other records come in: afterwards the runs
    are what they would be if all records came now. Spans that were sent must be indexed before.
    Returns the sent spans that got records, by trace; they are to be derived again.
    """
    sessions, envelopes = SessionWriter(connection, batch, messages), Envelopes(connection)
    for log in logs:
        packed = record_of(connection, log)
        batch.write_held()
        record = restore_log(connection, packed.record)
        scope_name = envelopes.scope(packed.scope).scope.name
        view = log_view(record, envelopes.attributes(packed.resource), scope_name=scope_name)
        sessions.note_again(
            None if is_repeated(connection, log) else recognise(view, record),
            log,
            packed.time_ns,
            sent_trace_id=None if bad_trace_id(record.trace_id) else record.trace_id,
        )
    return sessions.settle()

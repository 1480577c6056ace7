"""The run projection: one row per trace, kept up to date span by span.

A run's row is read when a transaction first touches it, changed in memory and written once at the
end, so that a batch costs per run and not per span, whatever the size of the run.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import apsw

from hansard_store.database.stored_json import as_json
from hansard_store.ingest.derived_rows import Usage
from hansard_store.ingest.in_memory_runs import FreshRun
from hansard_store.steps.flags import SpanFlag

NO_ROOT = 9
ROOT_FLAGS = (
    SpanFlag.FOLLOWS_CALLS | SpanFlag.FOLLOWS_AGENTS | SpanFlag.SUM_IS_WHOLE
)  # that say more of the run
NO_TIMES = 2
MANY_SCOPES = 0
Fact = Literal[
    "agent_name", "domain", "user_goal", "conversation_id", "user_id", "first_input",
    "last_output", "prompt_id", "last_prompt_id",
]  # fmt: skip


@dataclass(slots=True)
class RunState:
    """The columns of a run that ingest changes, in the order of the table."""

    id: int
    trace_id: bytes
    change_seq: int
    version: int
    synthetic: int
    root_span: int | None
    root_rank: int
    name: str
    agent_name: str | None
    domain: str | None
    status: str
    times_rank: int
    started_ns: int
    ended_ns: int
    last_received_ns: int
    span_count: int
    step_count: int
    open_count: int
    error_count: int
    model_calls: int
    tool_calls: int
    tokens_input: int | None
    tokens_output: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    tokens_reasoning: int | None
    cost_usd_nano: int | None
    conversation_id: str | None
    user_id: str | None
    first_input: str | None
    last_output: str | None
    agent_span: int | None
    domain_span: int | None
    conversation_span: int | None
    user_span: int | None
    first_input_span: int | None
    last_output_span: int | None
    call_scope: int | None
    has_receipts: int
    notes: str
    work_count: int
    prompt_id: str | None
    last_prompt_id: str | None
    prompt_span: int | None
    last_prompt_span: int | None
    group_id: bytes | None
    user_goal: str | None
    user_goal_span: int | None
    # Not stored: when the root and the reporters of a fact started, read with them, as are the
    # root's flags that concern the run; whether there is anything to write; of a run that began in
    # this transaction, its steps; the response ids of calls that this transaction changed; and
    # whether what it holds of a replaced report may be more than its spans report now.
    root_sort_ns: int = 0
    root_flags: int = 0
    told_ns: dict[str, int] = field(default_factory=dict)
    changed: bool = False
    fresh: FreshRun | None = None
    responses: set[str] = field(default_factory=set)
    is_stale: bool = False

    def read_tables(self, connection: apsw.Connection) -> None:
        """Write what is held of a fresh run; from now on it is one like any other."""
        if self.fresh is not None:
            self.fresh.write(connection, run=self.id, trace_id=self.trace_id)
            self.fresh = None

    def add_call_scope(self, scope: int) -> None:
        """Note who reports a call: while it is one scope, no call is reported twice."""
        if self.call_scope is None:
            self.call_scope = scope
        elif self.call_scope != scope:
            self.call_scope = MANY_SCOPES

    def reports(self, response_id: str | None) -> None:
        """Note that a call with this response id came, went, or is counted differently."""
        if response_id:
            self.responses.add(response_id)

    def add_usage(self, usage: Usage) -> None:
        """Add a call's numbers to the totals; an unknown one changes nothing."""
        for column, value in zip(USAGE_COLUMNS, usage, strict=True):
            if value is not None:
                setattr(self, column, (getattr(self, column) or 0) + value)

    def note(self, notes: Iterable[str], sign: int) -> None:
        """Count what was repaired, missing or refused in a span (1), or take it back (-1)."""
        known: Counter[str] | None = None
        for what in notes:
            known = known or Counter(_notes_of(self.notes))
            known[what] += sign
        if known is not None:
            remaining = {what: count for what, count in known.items() if count > 0}
            self.notes = json.dumps(remaining, ensure_ascii=False, sort_keys=True)

    def tell(self, fact: Fact, value: str | None, *, span: int, at_ns: int) -> None:
        """Take a fact that a span reports, unless an earlier report of it holds.

        The earliest holds; of what is called last, stored with negative times, so the latest.
        """
        if not value:
            return
        by = _REPORTED_BY[fact]
        teller = getattr(self, by)
        if teller is None or teller == span or (at_ns, span) < (self.told_ns[fact], teller):
            setattr(self, fact, value)
            setattr(self, by, span)
            self.told_ns[fact] = at_ns

    def place_in_group(self) -> None:
        """Set the group of the run, made of its conversation and the one prompt that it tells."""
        session, prompt = self.conversation_id, self.prompt_id
        if not session or not prompt or prompt != self.last_prompt_id or "\n" in prompt:
            self.group_id = None
        else:
            identity = "\0".join(("group", session, prompt)).encode("utf-8", "surrogatepass")
            self.group_id = hashlib.sha256(identity).digest()[:_GROUP_BYTES]

    def reported_facts(self) -> set[Fact]:
        """Return the facts that some span reported."""
        return {fact for fact, by in _REPORTED_BY.items() if getattr(self, by) is not None}

    def facts_of(self, span: int) -> dict[Fact, int]:
        """Return the facts that a span reported, with the times they are ordered by."""
        return {
            fact: self.told_ns[fact]
            for fact, by in _REPORTED_BY.items()
            if getattr(self, by) == span
        }

    def holds(self, fact: Fact, span: int, *, at_ns: int) -> bool:
        """Return whether a fact is that of a span, which reports it no later than a time."""
        return getattr(self, _REPORTED_BY[fact]) == span and self.told_ns[fact] <= at_ns

    def forget_reported(self, span: int) -> None:
        """Forget what a span reported: its report is about to be replaced."""
        for fact, by in _REPORTED_BY.items():
            if getattr(self, by) == span:
                setattr(self, fact, None)
                setattr(self, by, None)


def _notes_of(text: str) -> dict[str, int]:
    """Return the notes of a run; none where the column was altered by hand."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    counts = found.items() if isinstance(found, dict) else ()
    return {str(what): count for what, count in counts if isinstance(count, int)}


_REPORTED_BY: Mapping[Fact, str] = {
    fact: f"{fact.removesuffix('_id').removesuffix('_name')}_span" for fact in get_args(Fact)
}
_GROUP_BYTES = 16
USAGE_COLUMNS = Usage._fields
_UNSTORED = ("root_sort_ns", "root_flags", "told_ns", "changed", "fresh", "responses", "is_stale")
_COLUMNS = [column.name for column in fields(RunState) if column.name not in _UNSTORED]
_LIST = ", ".join(_COLUMNS)
# A run that is being deleted, slice by slice, has its tombstone already: nothing is added to it.
_FIND = f"""
SELECT {_LIST} FROM run
WHERE trace_id = ? AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.trace_id = run.trace_id)
"""
_TIMES = f"""
SELECT sort_ns, coalesce(end_ns, sort_ns), flags & {ROOT_FLAGS} FROM span
WHERE id = ?
"""
_ADD = f"""
INSERT INTO run ({_LIST}) VALUES ({", ".join("?" * len(_COLUMNS))})
"""
_UPDATE = f"""
UPDATE run SET {", ".join(f"{column} = ?" for column in _COLUMNS[2:])} WHERE id = ?
"""
_IS_STORED = "SELECT 1 FROM run WHERE trace_id = ?"
_BURIED = "SELECT 1 FROM tombstone WHERE trace_id = ?"
# Never lower than a number of a deleted run: who follows changes would miss the next one.
_LAST = """
SELECT max((SELECT coalesce(max(id), 0) FROM run),
  coalesce((SELECT value FROM setting WHERE name = 'last_run'), 0))
"""
_LAST_CHANGE = """
SELECT max((SELECT coalesce(max(change_seq), 0) FROM run),
  coalesce((SELECT value FROM setting WHERE name = 'last_change'), 0))
"""
_DROP_DERIVED = (
    "DELETE FROM run_facet WHERE run = ?",
    "DELETE FROM text_use WHERE run = ?",
    "DELETE FROM tool_event WHERE run = ?",
    "DELETE FROM payload_use WHERE run = ?",
)
_DROP = (
    *_DROP_DERIVED,
    "DELETE FROM content_use WHERE run = ?",
    "DELETE FROM content_list_use WHERE run = ?",
    "DELETE FROM run WHERE id = ?",
)
_KEEP_NUMBERS = """
INSERT INTO setting (name, value)
SELECT 'last_run', max(id) FROM run UNION ALL
SELECT 'last_change', max(change_seq) FROM run WHERE true
ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
"""
_NOT_DERIVED = (
    "id", "trace_id", "change_seq", "version", "last_received_ns", "span_count", "started_ns",
    "ended_ns",
)  # fmt: skip
_ZERO = (  # of a new run
    "span_count", "step_count", "open_count", "error_count", "model_calls", "tool_calls",
    "work_count", "change_seq", "version", "last_received_ns", "has_receipts",
)  # fmt: skip
_DROP_MARKS = "DELETE FROM usage_below WHERE trace_id = ?"
_FACETS = """
INSERT OR IGNORE INTO run_facet (kind, value, run)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
"""
_OF_FACETS = {
    "agent": "span.agent_name",
    "model": "span.model",
    "tool": "span.tool_name",
    "service": "(SELECT service_name FROM resource WHERE resource.id = span.resource)",
}
MAX_FACET_CHARS = 200
_DROP_FACET = {
    kind: f"""
DELETE FROM run_facet WHERE kind = :kind AND value = :value AND run = :run AND NOT EXISTS (
  SELECT 1 FROM span
  WHERE trace_id = :trace_id AND substr({value}, 1, {MAX_FACET_CHARS}) = :value)
"""
    for kind, value in _OF_FACETS.items()
}
_USE_PAYLOAD = "INSERT OR IGNORE INTO payload_use (payload, run) VALUES (?, ?)"


class RunWriter:
    """The runs that one transaction touches."""

    def __init__(self, connection: apsw.Connection, *, now_ns: int | None) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._now_ns = now_ns
        self._touched: dict[bytes, RunState | None] = {}
        self._facets: set[tuple[str, str, int]] = set()
        self._lost_facets: dict[tuple[str, str, int], bytes] = {}  # -> trace id
        self._payloads: set[tuple[bytes, int]] = set()
        self._last_id = 0

    def get(self, trace_id: bytes, *, start_ns: int, synthetic: bool = False) -> RunState | None:
        """Return the run of a trace, new or stored; None when it was deleted."""
        try:
            return self._touched[trace_id]
        except KeyError:
            run = self._load(trace_id, start_ns=start_ns, synthetic=synthetic)
            self._touched[trace_id] = run
            return run

    def _load(self, trace_id: bytes, *, start_ns: int, synthetic: bool) -> RunState | None:
        row: Any = self._execute(_FIND, (trace_id,)).fetchone()
        if row is not None:
            run = RunState(*row)
            self._load_times(run)
            return run
        if self._execute(_BURIED, (trace_id,)).get is not None:
            return None
        # Numbers are assigned in the transaction: two processes may write to one file in turn.
        self._last_id = (self._last_id or self._execute(_LAST).get) + 1
        run = _new_run(self._last_id, trace_id, start_ns=start_ns, synthetic=synthetic)
        # The row must be there before the spans that refer to it.
        self._execute(_ADD, tuple(getattr(run, column) for column in _COLUMNS))
        return run

    def _load_times(self, run: RunState) -> None:
        times = {run.root_span} | {getattr(run, by) for by in _REPORTED_BY.values()}
        found: dict[int | None, Any] = {
            span: self._execute(_TIMES, (span,)).get for span in times if span is not None
        }
        if run.root_span is not None:
            # A row that was altered by hand may name spans that are not there; rebuild repairs it.
            root = found[run.root_span] or (0, 0, 0)
            run.root_sort_ns, _, run.root_flags = root
        for fact, by in _REPORTED_BY.items():
            teller = getattr(run, by)
            if teller is not None and found[teller] is None:
                setattr(run, fact, None)
                setattr(run, by, None)
            elif teller is not None:
                start_ns, end_ns, _ = found[teller]
                latest = {"last_output": -end_ns, "last_prompt_id": -start_ns}
                run.told_ns[fact] = latest.get(fact, start_ns)

    def find(self, trace_id: bytes) -> RunState | None:
        """Return the run of a trace; None when there is none."""
        known = self._touched.get(trace_id)
        if known is not None or self._execute(_IS_STORED, (trace_id,)).get is None:
            return known
        return self.get(trace_id, start_ns=0)

    def changed(self) -> list[RunState]:
        """Return the runs that this transaction changed."""
        return [run for run in self._touched.values() if run is not None and run.changed]

    def drop(self, run: RunState) -> None:
        """Forget a run that has no spans any more; its number is not to be found anywhere."""
        keep_numbers(self._execute)
        self._drop_rows(run, _DROP)
        self._touched.pop(run.trace_id, None)

    def blank(self, run: RunState) -> None:
        """Make a run as it was before its first span was derived; how many it has stays."""
        self._drop_rows(run, _DROP_DERIVED)
        new = _new_run(run.id, run.trace_id, start_ns=run.started_ns, synthetic=False)
        for column in _COLUMNS:
            if column not in _NOT_DERIVED:
                setattr(run, column, getattr(new, column))
        run.root_sort_ns, run.root_flags, run.changed = 0, 0, True
        run.is_stale = False
        run.told_ns.clear()

    def _drop_rows(self, run: RunState, removals: Iterable[str]) -> None:
        run.fresh = None
        for sql in removals:
            self._execute(sql, (run.id,))
        self._execute(_DROP_MARKS, (run.trace_id,))
        self._facets = {facet for facet in self._facets if facet[2] != run.id}
        self._lost_facets = {k: v for k, v in self._lost_facets.items() if k[2] != run.id}

    def uses_payload(self, run: int, digest: bytes) -> None:
        """Note that a run names a payload, stored or not."""
        self._payloads.add((digest, run))

    def facet(self, run: int, kind: str, value: str) -> None:
        """Note a value that a list of runs can be narrowed by."""
        self._facets.add((kind, value, run))

    def may_lose_facet(self, run: RunState, kind: str, value: str) -> None:
        """Remove a value at the end of the transaction if no span of the run has it any more."""
        self._lost_facets[kind, value[:MAX_FACET_CHARS], run.id] = run.trace_id

    def flush(self) -> int | None:
        """Write all changed runs; return the last change_seq assigned, None when there was none."""
        changed = self.changed()
        if not changed:
            return None
        change = int(self._execute(_LAST_CHANGE).get)
        for run in changed:
            run.read_tables(self._connection)
            run.place_in_group()
            change += 1
            run.change_seq, run.version = change, run.version + 1
            run.last_received_ns = run.last_received_ns if self._now_ns is None else self._now_ns
            values = [getattr(run, column) for column in _COLUMNS[2:]]
            self._execute(_UPDATE, (*values, run.id))
        self._execute(_FACETS, (as_json(sorted(self._facets)),))
        for (kind, value, number), trace_id in self._lost_facets.items():
            lost = {"kind": kind, "value": value, "run": number, "trace_id": trace_id}
            self._execute(_DROP_FACET[kind], lost)
        for payload in self._payloads:
            self._execute(_USE_PAYLOAD, payload)
        return change


def keep_numbers(execute: Callable[[str], object]) -> None:
    """Before runs are deleted: see that their numbers are not reused.

    Who follows changes by number would miss the next one.
    """
    execute(_KEEP_NUMBERS)


def _new_run(number: int, trace_id: bytes, *, start_ns: int, synthetic: bool) -> RunState:
    blank: dict[str, Any] = dict.fromkeys(_COLUMNS) | dict.fromkeys(_ZERO, 0)
    blank |= {"id": number, "trace_id": trace_id, "synthetic": int(synthetic)}
    blank |= {"root_rank": NO_ROOT, "times_rank": NO_TIMES, "name": "", "status": "ok"}
    blank |= {"started_ns": start_ns, "ended_ns": start_ns, "notes": "{}"}
    return RunState(**blank, changed=True, fresh=FreshRun())

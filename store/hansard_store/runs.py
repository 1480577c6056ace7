"""The run projection: one row per trace, kept up to date span by span.

A run's row is read when a transaction first touches it, changed in memory and written once at the
end, so that a batch costs per run and not per span, whatever the size of the run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

import apsw

from hansard_store.projections import Usage

NO_ROOT = 9


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
    agent_sort_ns: int | None
    domain: str | None
    status: str
    started_ns: int
    ended_ns: int
    news_ns: int
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
    first_input_ns: int | None
    last_output: str | None
    last_output_ns: int | None
    has_receipts: int
    notes: str
    root_sort_ns: int = field(default=0)  # not stored: of root_span, read with it

    def count_usage(self, usage: Usage, sign: int) -> None:
        """Add a call's numbers to the totals (sign 1) or take them away (sign -1)."""
        for column, value in zip(_USAGE_COLUMNS, usage.values(), strict=True):
            if value is not None:
                setattr(self, column, (getattr(self, column) or 0) + sign * value)

    def note(self, what: str) -> None:
        """Count a note: what was repaired, missing or refused in this run."""
        notes = json.loads(self.notes)
        notes[what] = notes.get(what, 0) + 1
        self.notes = json.dumps(notes, ensure_ascii=False, sort_keys=True)


_USAGE_COLUMNS = (
    "tokens_input",
    "tokens_output",
    "tokens_cache_read",
    "tokens_cache_write",
    "tokens_reasoning",
    "cost_usd_nano",
)
_COLUMNS = [column.name for column in fields(RunState)][:-1]
_LIST = ", ".join(_COLUMNS)
_FIND = f"""
SELECT {_LIST}, coalesce((SELECT sort_ns FROM span WHERE id = root_span), 0)
FROM run WHERE trace_id = ?
"""
_ADD = f"""
INSERT INTO run ({_LIST}) VALUES ({", ".join("?" * len(_COLUMNS))})
"""
_UPDATE = f"""
UPDATE run SET {", ".join(f"{column} = ?" for column in _COLUMNS[2:])} WHERE id = ?
"""
_BURIED = "SELECT 1 FROM tombstone WHERE trace_id = ?"
_LAST = "SELECT coalesce(max(id), 0) FROM run"
_LAST_CHANGE = "SELECT coalesce(max(change_seq), 0) FROM run"
_FACET = "INSERT OR IGNORE INTO run_facet (kind, value, run) VALUES (?, ?, ?)"


class RunWriter:
    """The runs that one transaction touches."""

    def __init__(self, connection: apsw.Connection, *, now_ns: int) -> None:
        self._execute = connection.execute
        self._now_ns = now_ns
        self._touched: dict[bytes, RunState | None] = {}
        self._new: set[int] = set()
        self._facets: set[tuple[str, str, int]] = set()
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
            return RunState(*row)
        if self._execute(_BURIED, (trace_id,)).get is not None:
            return None
        # Numbers are given in the transaction: two processes may write to one file in turn.
        self._last_id = (self._last_id or self._execute(_LAST).get) + 1
        run = _new_run(self._last_id, trace_id, start_ns=start_ns, synthetic=synthetic)
        self._new.add(run.id)
        # The row must be there before the spans that refer to it.
        self._execute(_ADD, tuple(getattr(run, column) for column in _COLUMNS))
        return run

    def facet(self, run: int, kind: str, value: str) -> None:
        """Note a value that a list of runs can be narrowed by."""
        self._facets.add((kind, value, run))

    def flush(self) -> int | None:
        """Write all touched runs; return the last change_seq given, None when there was none."""
        changed = [run for run in self._touched.values() if run is not None]
        if not changed:
            return None
        change = int(self._execute(_LAST_CHANGE).get)
        for run in changed:
            change += 1
            run.change_seq, run.version, run.news_ns = change, run.version + 1, self._now_ns
            values = [getattr(run, column) for column in _COLUMNS[2:]]
            self._execute(_UPDATE, (*values, run.id))
        for facet in self._facets:
            self._execute(_FACET, facet)
        return change


def _new_run(number: int, trace_id: bytes, *, start_ns: int, synthetic: bool) -> RunState:
    blank: dict[str, Any] = dict.fromkeys(_COLUMNS)
    zero = ("span_count", "step_count", "open_count", "error_count", "model_calls", "tool_calls")
    blank |= dict.fromkeys(zero, 0)
    blank |= {"id": number, "trace_id": trace_id, "change_seq": 0, "version": 0, "news_ns": 0}
    blank |= {"synthetic": int(synthetic), "root_rank": NO_ROOT, "name": "", "status": "ok"}
    blank |= {"started_ns": start_ns, "ended_ns": start_ns, "has_receipts": 0, "notes": "{}"}
    return RunState(**blank)

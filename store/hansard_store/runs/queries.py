"""Runs as lists and pages show them: one page, one run, facets, look-up by prefix."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.annotations.queries import NO_MARKS, RunMarks, marks_of_runs, tag_counts
from hansard_store.database.cursors import Page
from hansard_store.database.id_prefixes import find_row
from hansard_store.database.stored_json import read_only
from hansard_store.database.transactions import snapshot
from hansard_store.runs.candidates import candidate_runs
from hansard_store.runs.filters import (
    NEWEST_FIRST,
    RUN_KINDS,
    SORTED_RUNS,
    RunCursor,
    RunFilter,
    RunQuery,
    RunSort,
    decode_run_cursor,
    first_page,
    is_halved,
    is_scanned,
    run_query,
)
from hansard_store.runs.status import ALIVE_UNTIL, WAITS_UNTIL, TokenSums, run_status, token_sums
from hansard_store.runs.tombstones import check_deleted

FACET_SAMPLE = 1000  # newest runs that facets are counted over


@dataclass(frozen=True, slots=True)
class RunItem:
    """One run; times are Unix nanoseconds."""

    id: int  # first_seen_seq
    version: int  # rises with every change
    change_seq: int
    name: str
    agent_name: str | None
    domain: str | None
    user_goal: str | None
    started_ns: int
    last_received_ns: int  # when something of it last arrived
    span_count: int
    step_count: int
    open_count: int
    error_count: int
    model_calls: int
    tool_calls: int
    work_count: int  # steps of an agent's work
    cost_usd_nano: int | None
    conversation_id: str | None
    user_id: str | None
    first_input: str | None
    last_output: str | None
    run_id: str
    status: str  # ok error open no_end blocked cancelled
    ended_ns: int | None  # None while there is no end
    tokens: TokenSums | None  # None: no call reported any
    has_receipts: bool
    pinned: bool
    synthetic: bool
    group_id: str | None  # of the traces of one prompt of one session
    has_keepalive: bool  # its process reported that it is alive, while it was
    notes: Mapping[str, int]  # what was repaired, missing or refused -> how many spans
    models: tuple[str, ...]
    service_names: tuple[str, ...]
    marks: RunMarks  # tags and scores that stand on it and its steps
    pending_approvals: int  # that wait for a decision, or for a new draft
    rejected_approvals: int

    @property
    def duration_ns(self) -> int | None:
        """None while there is no end, never negative."""
        return None if self.ended_ns is None else max(self.ended_ns - self.started_ns, 0)

    @property
    def kind(self) -> str:
        """`agent` with a step of an agent's work (agent, model, tool, gate, …), else `other`."""
        return "agent" if self.work_count else "other"

    @property
    def cost_usd(self) -> float | None:
        return None if self.cost_usd_nano is None else self.cost_usd_nano / 1e9


@dataclass(frozen=True, slots=True)
class _FacetCount:
    value: str
    runs: int


@dataclass(frozen=True, slots=True)
class RunFacets:
    """Values of the runs that meet a filter, most frequent first, by kind (and `status`).

    Also of tags. Counted over the newest FACET_SAMPLE of them; `is_complete` says that this is all
    of them.
    """

    runs: int
    is_complete: bool
    counts: Mapping[str, Sequence[_FacetCount]]
    with_receipts: int  # runs whose context decisions were recorded


RUN_COLUMNS = f"""
  run.id, run.version, run.change_seq, run.name, run.agent_name, run.domain, run.user_goal,
  run.started_ns, run.last_received_ns, run.span_count, run.step_count, run.open_count,
  run.error_count, run.model_calls, run.tool_calls, run.work_count, run.cost_usd_nano,
  run.conversation_id, run.user_id, run.first_input, run.last_output,
  run.trace_id, run.status, run.ended_ns, run.tokens_input, run.tokens_output,
  run.tokens_cache_read, run.tokens_cache_write, run.tokens_reasoning, run.has_receipts,
  run.pinned, run.synthetic, run.group_id, run.notes, {ALIVE_UNTIL},
  run.alive_until_ns IS NOT NULL, {WAITS_UNTIL}
"""
_PLAIN = 21  # columns that an item shows as they are; they come first
_make: Callable[..., RunItem] = RunItem  # mypy cannot count the values of a slice
_BY_TRACE = f"SELECT {RUN_COLUMNS} FROM run WHERE trace_id = ?"
_BY_NUMBER = f"""
SELECT {RUN_COLUMNS} FROM json_each(:runs) AS wanted CROSS JOIN run ON run.id = wanted.value
"""
_CHANGED = f"""
SELECT {RUN_COLUMNS} FROM run WHERE change_seq > :seq ORDER BY change_seq LIMIT :limit
"""
_OF_KIND = {
    "agent": "SELECT 1 FROM run INDEXED BY run_agent WHERE id > 0 AND work_count > 0 LIMIT 1",
    "other": "SELECT 1 FROM run INDEXED BY run_other WHERE id > 0 AND work_count = 0 LIMIT 1",
}
_LAST_CHANGE = "SELECT coalesce(max(change_seq), 0) FROM run"
_PREFIX = """
SELECT trace_id FROM run WHERE trace_id BETWEEN :low AND :high ORDER BY trace_id LIMIT :limit
"""
_NAMES = """
SELECT facet.run, facet.kind, facet.value
FROM json_each(:runs) AS wanted CROSS JOIN run_facet AS facet
  ON facet.run = wanted.value AND facet.kind IN ('model', 'service')
ORDER BY facet.run, facet.kind, facet.value
"""
_APPROVALS = """
SELECT unhex(wanted.value),
  (SELECT count(*) FROM approval INDEXED BY approval_run
   WHERE approval.trace_id = unhex(wanted.value)
     AND approval.status IN ('awaiting', 'revised') AND approval.expires_ns > :now_ns),
  (SELECT count(*) FROM approval INDEXED BY approval_run
   WHERE approval.trace_id = unhex(wanted.value) AND approval.status = 'rejected')
FROM json_each(:traces) AS wanted
"""
_FACETS = """
SELECT facet.kind, facet.value, count(*) AS runs
FROM json_each(:runs) AS wanted CROSS JOIN run_facet AS facet ON facet.run = wanted.value
GROUP BY facet.kind, facet.value ORDER BY runs DESC, facet.value
"""


def list_runs(
    connection: apsw.Connection,
    filters: RunFilter,
    *,
    now_ns: int,
    sort: RunSort = NEWEST_FIRST,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[RunItem]:
    """Return one page of the runs that meet a filter, newest first unless sorted otherwise.

    Raises InvalidQueryError for a filter that cannot be meant and for a broken cursor.
    """
    after = decode_run_cursor(connection, cursor, sort) if cursor else first_page(sort)
    with snapshot(connection):
        found = matching_rows(
            connection, filters, RUN_COLUMNS, sort=sort, after=after, now_ns=now_ns, limit=limit + 1
        )
        items = run_items(connection, [row[1:] for row in found[:limit]], now_ns=now_ns)
    if len(found) <= limit:
        return Page(tuple(items), None)
    last = RunCursor(found[limit - 1][0], found[limit - 1][1])
    return Page(tuple(items), last.encode(sort))


def matching_rows(
    connection: apsw.Connection,
    filters: RunFilter,
    columns: str,
    *,
    sort: RunSort,
    after: RunCursor,
    now_ns: int,
    limit: int,
) -> list[Any]:
    """Return (sorted value, *columns) of the first runs after a cursor that meet a filter.

    In an order without an index they are the first of the newest SORTED_RUNS that meet it.
    """
    if is_scanned(sort):
        return _scanned(
            connection, filters, columns, sort=sort, after=after, now_ns=now_ns, limit=limit
        )
    if is_halved(filters, sort):
        halves = [
            matching_rows(
                connection,
                replace(filters, kind=kind),
                f"run.id, {columns}",
                sort=sort,
                after=after,
                now_ns=now_ns,
                limit=limit,
            )
            for kind in RUN_KINDS
        ]
        merged = heapq.merge(*halves, key=itemgetter(0, 1), reverse=sort.descending)
        return [(value, *rest) for value, _, *rest in islice(merged, limit)]
    candidates = candidate_runs(connection, filters)
    if candidates is None:
        query = run_query(connection, filters, sort=sort, after=after, now_ns=now_ns)
        return _select(connection, query, columns, limit=limit)
    found: list[Any] = []
    for some in _portions(candidates, sort=sort, after=after, limit=limit):
        query = run_query(
            connection, filters, sort=sort, after=after, now_ns=now_ns, candidates=some
        )
        found += _select(connection, query, columns, limit=limit - len(found))
        if len(found) == limit:
            break
    return found


def _scanned(
    connection: apsw.Connection,
    filters: RunFilter,
    columns: str,
    *,
    sort: RunSort,
    after: RunCursor,
    now_ns: int,
    limit: int,
) -> list[Any]:
    """Return what `matching_rows` does of the newest runs that meet a filter, sorted here."""
    newest = matching_rows(
        connection, filters, "1", sort=NEWEST_FIRST, after=first_page(NEWEST_FIRST),
        now_ns=now_ns, limit=SORTED_RUNS,
    )  # fmt: skip
    numbers = [row[0] for row in newest]
    query = run_query(
        connection, RunFilter(), sort=sort, after=after, now_ns=now_ns, candidates=numbers
    )
    return _select(connection, query, columns, limit=limit)


def _portions(
    candidates: Iterator[int], *, sort: RunSort, after: RunCursor, limit: int
) -> Iterator[list[int]]:
    """Cut candidates, which come newest first, into portions whose order is that of the sort."""
    if sort != NEWEST_FIRST:
        yield list(candidates)
        return
    rest = (run for run in candidates if run < after.id)
    while portion := list(islice(rest, 2 * limit)):
        yield portion


def _select(connection: apsw.Connection, query: RunQuery, columns: str, *, limit: int) -> list[Any]:
    sql = (
        f"SELECT {query.value}, {columns} FROM {query.source}"
        f" WHERE {query.where} ORDER BY {query.order} LIMIT :limit"
    )
    return connection.execute(sql, {**query.bindings, "limit": limit}).fetchall()


def count_runs(connection: apsw.Connection, filters: RunFilter, *, now_ns: int, limit: int) -> int:
    """Return how many runs meet a filter, `limit` at most."""
    sort = NEWEST_FIRST
    after = first_page(sort)
    with snapshot(connection):
        if candidate_runs(connection, filters) is not None:
            found = matching_rows(
                connection, filters, "1", sort=sort, after=after, now_ns=now_ns, limit=limit
            )
            return len(found)
        query = run_query(connection, filters, sort=sort, after=after, now_ns=now_ns)
        sql = (
            f"SELECT count(*) FROM (SELECT 1 FROM {query.source} WHERE {query.where} LIMIT :limit)"
        )
        return int(connection.execute(sql, {**query.bindings, "limit": limit}).get)


def has_runs_of_kind(connection: apsw.Connection, kind: str) -> bool:
    """Return whether any run is of a kind."""
    return connection.execute(_OF_KIND[kind]).get is not None


def get_run(connection: apsw.Connection, run_id: str, *, now_ns: int) -> RunItem:
    """Return a run by its id or a unique prefix.

    Raises NotFoundError, of a run that was deleted RunDeletedError, or AmbiguousIdError.
    """
    with snapshot(connection):
        trace_id = find_trace_id(connection, run_id)
        rows = connection.execute(_BY_TRACE, (trace_id,)).fetchall()
        if not rows:
            raise NotFoundError("run", run_id)
        return run_items(connection, rows, now_ns=now_ns)[0]


def runs_by_number(
    connection: apsw.Connection, numbers: Sequence[int], *, now_ns: int
) -> dict[int, RunItem]:
    """Return runs by their numbers; those that are gone are left out."""
    rows = connection.execute(_BY_NUMBER, {"runs": json.dumps(list(numbers))}).fetchall()
    return {item.id: item for item in run_items(connection, rows, now_ns=now_ns)}


def last_change(connection: apsw.Connection) -> int:
    """Return the newest change_seq, 0 for an empty store."""
    return int(connection.execute(_LAST_CHANGE).get)


def changed_runs(
    connection: apsw.Connection, *, since_change: int, now_ns: int, limit: int = 500
) -> list[RunItem]:
    """Return the runs that changed after a change_seq, oldest change first."""
    rows = connection.execute(_CHANGED, {"seq": since_change, "limit": limit}).fetchall()
    return run_items(connection, rows, now_ns=now_ns)


def find_trace_id(connection: apsw.Connection, prefix: str) -> bytes:
    """Return the trace id that a prefix of 8 to 32 hex digits stands for.

    Raises NotFoundError (also for what is no id at all; of a run that was deleted, RunDeletedError)
    and AmbiguousIdError.
    """
    try:
        trace_id: bytes = find_row(connection, _PREFIX, "run", prefix)[0]
    except NotFoundError:
        check_deleted(connection, prefix)
        raise
    return trace_id


def run_facets(
    connection: apsw.Connection, filters: RunFilter, *, now_ns: int, values: int = 20
) -> RunFacets:
    """Return the most frequent values of the newest runs that meet a filter."""
    sort = NEWEST_FIRST
    with snapshot(connection):
        rows = matching_rows(
            connection,
            filters,
            f"run.status, {ALIVE_UNTIL}, {WAITS_UNTIL}, run.user_id, run.has_receipts",
            sort=sort,
            after=first_page(sort),
            now_ns=now_ns,
            limit=FACET_SAMPLE + 1,
        )
        numbers = json.dumps([row[0] for row in rows[:FACET_SAMPLE]])
        facets: list[Any] = connection.execute(_FACETS, {"runs": numbers}).fetchall()
        tags = tag_counts(connection, [row[0] for row in rows[:FACET_SAMPLE]], limit=values)
    counts: dict[str, list[_FacetCount]] = {}
    for kind, value, runs in facets:
        if len(bucket := counts.setdefault(kind, [])) < values:
            bucket.append(_FacetCount(value, runs))
    statuses = Counter(
        run_status(stored, alive_until_ns=alive_ns, now_ns=now_ns, waits_until_ns=waits_ns)
        for _, stored, alive_ns, waits_ns, *_ in rows[:FACET_SAMPLE]
    )
    users = Counter(row[4] for row in rows[:FACET_SAMPLE] if row[4])
    by_count = sorted(statuses.items(), key=lambda counted: (-counted[1], counted[0]))
    counts["status"] = [_FacetCount(status, runs) for status, runs in by_count]
    if users:
        by_count = sorted(users.items(), key=lambda counted: (-counted[1], counted[0]))
        counts["user"] = [_FacetCount(user, runs) for user, runs in by_count[:values]]
    if tags:
        counts["tag"] = [_FacetCount(tag, runs) for tag, runs in tags]
    complete = len(rows) <= FACET_SAMPLE
    return RunFacets(
        min(len(rows), FACET_SAMPLE),
        is_complete=complete,
        counts={k: tuple(v) for k, v in counts.items()},
        with_receipts=sum(bool(row[5]) for row in rows[:FACET_SAMPLE]),
    )


def run_items(
    connection: apsw.Connection, rows: Sequence[tuple[Any, ...]], *, now_ns: int
) -> list[RunItem]:
    """Add models, services, annotations and approvals to rows of runs, with a query for each."""
    numbers = json.dumps([row[0] for row in rows])
    names: dict[tuple[int, str], list[str]] = {}
    for run, kind, value in connection.execute(_NAMES, {"runs": numbers}):
        names.setdefault((run, kind), []).append(value)
    marks = marks_of_runs(connection, [row[0] for row in rows])
    traces = json.dumps([row[_PLAIN].hex() for row in rows])
    found = connection.execute(_APPROVALS, {"traces": traces, "now_ns": now_ns})
    approvals = {trace: (pending, rejected) for trace, pending, rejected in found}
    return [
        _item(
            row,
            now_ns=now_ns,
            models=tuple(names.get((row[0], "model"), ())),
            service_names=tuple(names.get((row[0], "service"), ())),
            marks=marks.get(row[0], NO_MARKS),
            pending_approvals=approvals[row[_PLAIN]][0],
            rejected_approvals=approvals[row[_PLAIN]][1],
        )
        for row in rows
    ]


def _item(row: tuple[Any, ...], *, now_ns: int, **beside: Any) -> RunItem:
    trace_id, stored, ended_ns, *tokens = row[_PLAIN : _PLAIN + 8]
    receipts, pinned, synthetic, group, notes, alive_ns, has_keepalive, waits_ns = row[_PLAIN + 8 :]
    return _make(
        *row[:_PLAIN],
        run_id=trace_id.hex(),
        status=run_status(stored, alive_until_ns=alive_ns, now_ns=now_ns, waits_until_ns=waits_ns),
        ended_ns=None if stored == "open" else ended_ns,
        tokens=token_sums(tokens),
        has_receipts=bool(receipts),
        pinned=bool(pinned),
        synthetic=bool(synthetic),
        group_id=None if group is None else group.hex(),
        has_keepalive=bool(has_keepalive),
        notes=read_only(json.loads(notes)),
        **beside,
    )


# When the newest runs started, how long they took and what they cost: for charts of a list.


@dataclass(frozen=True, slots=True)
class RunDot:
    """One run as a point."""

    started_ns: int
    duration_ns: int | None  # None: it has no end
    status: str
    cost_usd_nano: int | None


def sample_runs(
    connection: apsw.Connection, filters: RunFilter, *, now_ns: int, limit: int = 1000
) -> list[RunDot]:
    """Return the runs last seen first among those that meet a filter, newest first."""
    sort = NEWEST_FIRST
    columns = f"run.started_ns, run.ended_ns, run.status, {ALIVE_UNTIL}, run.cost_usd_nano"
    with snapshot(connection):
        rows = matching_rows(
            connection, filters, columns, sort=sort, after=first_page(sort), now_ns=now_ns,
            limit=limit,
        )  # fmt: skip
    return [_dot(row[1:], now_ns=now_ns) for row in rows]


def _dot(row: Any, *, now_ns: int) -> RunDot:
    started_ns, ended_ns, stored, alive_until_ns, cost_usd_nano = row
    status = run_status(stored, alive_until_ns=alive_until_ns, now_ns=now_ns)
    has_end = status not in ("open", "no_end")
    return RunDot(
        started_ns, max(ended_ns - started_ns, 0) if has_end else None, status, cost_usd_nano
    )

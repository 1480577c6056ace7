"""Lists of runs in which the traces of one prompt are one item, summed once.

A coding agent sends a trace for every round, or for what it does beside them. Runs of one group
(the same conversation and prompt, as their spans tell them) are one item of a list, at the place of
the first of them that meets the filter; its figures are those of all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import apsw

from hansard_store.annotations.queries import RunMarks
from hansard_store.calls import group_repeats
from hansard_store.calls.group_repeats import Repeats
from hansard_store.database.cursors import Page
from hansard_store.database.transactions import snapshot
from hansard_store.runs.candidates import candidate_runs
from hansard_store.runs.filters import (
    NEWEST_FIRST,
    RunCursor,
    RunFilter,
    RunSort,
    decode_run_cursor,
    first_page,
    run_query,
)
from hansard_store.runs.queries import (
    RUN_COLUMNS,
    RunItem,
    matching_rows,
    run_items,
    runs_by_number,
)
from hansard_store.runs.status import TokenSums

MOST_MEMBERS = 500  # of one group whose figures are added up
_MOST_LOOKED_AT = 20_000  # members of the groups of one page


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The traces of one prompt."""

    group_id: str
    whole: RunItem  # figures of all of them, each call once; run_id is that of the first
    members: tuple[RunItem, ...]  # in order of start
    is_complete: bool  # False: there are more than MOST_MEMBERS, which are left out

    @property
    def newest(self) -> int:
        """The highest run.id of a member."""
        return max(one.id for one in self.members)


_MEMBERS_OF = f"""
SELECT run.id FROM json_each(:groups) AS wanted
  CROSS JOIN run INDEXED BY run_group ON run.group_id = unhex(wanted.value)
LIMIT {_MOST_LOOKED_AT}
"""
_MEMBERS = f"""
SELECT {RUN_COLUMNS} FROM run INDEXED BY run_group
WHERE run.group_id = :group ORDER BY run.id LIMIT :limit
"""


def list_grouped(
    connection: apsw.Connection,
    filters: RunFilter,
    *,
    now_ns: int,
    sort: RunSort = NEWEST_FIRST,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[RunItem | RunGroup]:
    """Return one page of the runs that meet a filter, with each group as one item, once.

    A group is where its first member in the order stands that meets the filter. Raises what
    `list_runs` raises.
    """
    start = decode_run_cursor(connection, cursor, sort) if cursor else first_page(sort)
    with snapshot(connection):
        places = _places(
            connection, filters, now_ns=now_ns, sort=sort, start=start, limit=limit + 1
        )
        shown = places[:limit]
        groups = get_groups(
            connection, [entry.group for entry in shown if entry.group], now_ns=now_ns
        )
        alone = [entry.run for entry in shown if entry.group not in groups]
        runs = runs_by_number(connection, alone, now_ns=now_ns)
    items = [groups.get(entry.group or b"") or runs[entry.run] for entry in shown]
    if len(places) <= limit:
        return Page(tuple(items), None)
    return Page(tuple(items), RunCursor(shown[-1].value, shown[-1].run).encode(sort))


def get_groups(
    connection: apsw.Connection, group_ids: Iterable[bytes], *, now_ns: int
) -> dict[bytes, RunGroup]:
    """Return groups of more than one run by their ids; others are left out."""
    rows = {
        group: connection.execute(_MEMBERS, {"group": group, "limit": MOST_MEMBERS + 1}).fetchall()
        for group in dict.fromkeys(group_ids)
    }
    several = {group: found for group, found in rows.items() if len(found) > 1}
    shown_rows = [row for found in several.values() for row in found[:MOST_MEMBERS]]
    members: dict[str | None, list[RunItem]] = {}
    for item in run_items(connection, shown_rows, now_ns=now_ns):
        members.setdefault(item.group_id, []).append(item)
    repeats = group_repeats.find_repeats(
        connection, {item.id: group or "" for group, items in members.items() for item in items}
    )
    return {
        group: _group(members[group.hex()], repeats.get(group.hex()), found=len(found))
        for group, found in several.items()
    }


# ---- places


@dataclass(frozen=True, slots=True)
class _Place:
    value: int | str  # in the sort
    run: int
    group: bytes | None


def _places(
    connection: apsw.Connection,
    filters: RunFilter,
    *,
    now_ns: int,
    sort: RunSort,
    start: RunCursor,
    limit: int,
) -> list[_Place]:
    """Return the first places after a cursor; of each group the first in the whole list."""
    found: list[_Place] = []
    seen: set[bytes] = set()
    after, portion = start, 2 * limit
    while len(found) < limit:
        rows = matching_rows(
            connection, filters, "run.id, run.group_id", sort=sort, after=after, now_ns=now_ns,
            limit=portion,
        )  # fmt: skip
        new = {group for _, _, group in rows if group is not None} - seen
        if start != first_page(sort):
            seen |= _shown_before(connection, filters, new, sort=sort, start=start, now_ns=now_ns)
        for value, run, group in rows:
            if group is None or group not in seen:
                found.append(_Place(value, run, group))
            if group is not None:
                seen.add(group)
        if len(rows) < portion:
            break
        after = RunCursor(rows[-1][0], rows[-1][1])
    return found[:limit]


def _shown_before(
    connection: apsw.Connection,
    filters: RunFilter,
    groups: Collection[bytes],
    *,
    sort: RunSort,
    start: RunCursor,
    now_ns: int,
) -> set[bytes]:
    """Return those of some groups that have a member up to a place: they stood on a page before."""
    if not groups:
        return set()
    parameters = {"groups": json.dumps([group.hex() for group in groups])}
    members = [run for (run,) in connection.execute(_MEMBERS_OF, parameters)]
    meeting = candidate_runs(connection, filters)
    if meeting is not None:
        lowest = min(members)
        members = sorted(set(members).intersection(takewhile(lambda run: run >= lowest, meeting)))
    query = run_query(
        connection, filters, sort=sort, after=first_page(sort), now_ns=now_ns, candidates=members
    )
    sql = f"SELECT {query.value}, run.id, run.group_id FROM {query.source} WHERE {query.where}"
    position = (start.value, start.id)
    return {
        group
        for value, run, group in connection.execute(sql, query.bindings)
        if ((value, run) >= position if sort.descending else (value, run) <= position)
    }


# ---- sums


def _first(values: Iterable[str | None]) -> str | None:
    return next(filter(None, values), None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _distinct(values: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for some in values for one in some))


# How the figures of several runs become one, and which are combined so.
_COMBINED: tuple[tuple[Callable[[list[Any]], Any], Sequence[str]], ...] = (
    (max, ("last_received_ns", "change_seq")),
    (sum, ("version", "span_count", "step_count", "open_count", "error_count", "work_count",
           "model_calls", "tool_calls",
           "pending_approvals", "rejected_approvals")),
    (_sum, ("cost_usd_nano",)),
    (any, ("has_receipts", "pinned", "has_keepalive")),
    (_first, ("agent_name", "domain", "user_id", "first_input")),
    (_distinct, ("models", "service_names")),
)  # fmt: skip


def _group(items: Sequence[RunItem], repeats: Repeats | None, *, found: int) -> RunGroup:
    members = tuple(sorted(items, key=lambda one: (one.started_ns, one.id)))
    whole = _whole(members, repeats or Repeats())
    return RunGroup(whole.group_id or "", whole, members, is_complete=found <= MOST_MEMBERS)


def _whole(members: Sequence[RunItem], repeats: Repeats) -> RunItem:
    """Return what a list shows of several runs together."""
    working = [one for one in members if one.kind == "agent"] or list(members)
    last = max(working, key=_heard_until)
    status = _status(members, last)
    notes: Counter[str] = Counter()
    for one in members:
        notes.update(one.notes)
    has_end = status not in ("open", "no_end")
    outputs = [one.last_output for one in sorted(members, key=_heard_until) if one.last_output]
    changes: dict[str, Any] = {
        "status": status,
        "started_ns": min(one.started_ns for one in members),
        "ended_ns": max(one.ended_ns or one.started_ns for one in members) if has_end else None,
        "last_output": outputs[-1] if outputs else None,
        "notes": dict(notes),
        "tokens": _tokens([one.tokens for one in members if one.tokens], repeats.usage),
        "marks": RunMarks(
            tuple(dict.fromkeys(tag for one in members for tag in one.marks.tags)),
            note_count=sum(one.marks.note_count for one in members),
        ),
    }
    for combine, names in _COMBINED:
        changes |= {name: combine([getattr(one, name) for one in members]) for name in names}
    changes["model_calls"] -= repeats.calls
    changes["tool_calls"] -= repeats.tools
    changes["cost_usd_nano"] = _less(changes["cost_usd_nano"], repeats.usage.get("cost_usd_nano"))
    return replace(working[0], **changes)


def _status(members: Sequence[RunItem], last: RunItem) -> str:
    """Return blocked or open if any is, else how the last of them to end that does work ended."""
    found = {one.status for one in members}
    return next((status for status in ("blocked", "open") if status in found), last.status)


def _heard_until(run: RunItem) -> tuple[int, int]:
    return max(run.ended_ns or run.last_received_ns, run.started_ns), run.id


def _less(value: int | None, repeated: int | None) -> int | None:
    return value if value is None else value - (repeated or 0)


def _tokens(sums: Sequence[TokenSums], repeated: Mapping[str, int]) -> TokenSums | None:
    if not sums:
        return None
    return TokenSums(
        *(
            _less(_sum(getattr(one, name) for one in sums), repeated.get(f"tokens_{name}"))
            for name in ("input", "output", "cache_read", "cache_write", "reasoning")
        )
    )

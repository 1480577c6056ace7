"""Lists of memory as a person looks through them, narrowed and page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import COLUMNS, whole
from hansard_store.search.match_query import parse_match

Sort = Literal["written", "read"]
ABOVE_ALL: Final = (1 << 63) - 1

# Conditions on a record; each with the index that serves it, the narrowest first.
_FILTERS: Final[Mapping[str, tuple[str, str]]] = {
    "approval": ("memory_approval", "memory.approval_id = :approval"),
    "line": ("memory_line", "memory.line = :line"),
    "run": ("", "memory.id IN (SELECT id FROM memory WHERE source_trace = :run UNION ALL "
            "SELECT id FROM memory WHERE trace_id = :run UNION ALL "
            "SELECT memory FROM memory_access WHERE trace_id = :run)"),
    "tag": ("", "memory.id IN (SELECT memory FROM memory_tag WHERE tag = :tag)"),
    "project": ("memory_project", "memory.project = :project AND memory.project <> ''"),
    "user": ("memory_user", "memory.user = :user AND memory.user <> ''"),
    "agent": ("memory_agent", "memory.agent = :agent AND memory.agent <> ''"),
    "writer": ("memory_writer", "memory.writer = :writer"),
    "memory_type": ("memory_sort", "memory.memory_type = :memory_type"),
    "slot": ("", "memory.slot = :slot"),
    "min_confidence": ("", "memory.confidence >= :min_confidence"),
    "fresh_since_ns": ("", "memory.freshness_ns >= :fresh_since_ns"),
    "unread_since_ns": ("", "memory.last_read_ns < :unread_since_ns"),
    "without_agent": ("", "memory.agent <> :without_agent"),
    "layer": ("", "(memory.memory_type = 'working') = (:layer = 'working')"),
}  # fmt: skip
IN_TIME: Final = "(memory.expires_ns IS NULL OR memory.expires_ns > :now)"
STATES: Final[Mapping[str, str]] = {
    "current": f"memory.state = 'current' AND {IN_TIME}",
    "expired": "(memory.state = 'expired' OR memory.state = 'current' "
               "AND memory.expires_ns <= :now)",
    "superseded": "memory.state = 'superseded'",
    "review": "memory.state = 'review'",
    "invalidated": "memory.state = 'invalidated'",
    "purged": "memory.state = 'purged'",
    "all": "1",
    "hidden": f"memory.state <> 'purged' AND NOT (memory.state = 'current' AND {IN_TIME})",
}  # fmt: skip
_ORDERS: Final[Mapping[Sort, tuple[str, str]]] = {
    "written": ("memory.id < :before", "memory.id DESC"),
    "read": (
        "(memory.last_read_ns, memory.id) < (:read, :before)",
        "memory.last_read_ns DESC, memory.id DESC",
    ),
}
_LIST: Final = f"""
SELECT {COLUMNS} FROM memory {{index}} WHERE {{wanted}} ORDER BY {{order}} LIMIT :limit
"""
MATCHED: Final = f"""
SELECT {COLUMNS} FROM memory_fts CROSS JOIN memory ON memory.id = memory_fts.rowid
WHERE memory_fts MATCH :match AND memory_fts.rowid < :before AND {{wanted}}
ORDER BY memory_fts.rowid DESC LIMIT :limit
"""
_ANY_OF_AGENT: Final = (
    "SELECT 1 FROM memory INDEXED BY memory_agent WHERE agent = ? AND agent <> '' LIMIT 1"
)
_FACETS: Final = f"""
SELECT CASE WHEN state = 'current' AND NOT {IN_TIME} THEN 'expired' ELSE state END,
  memory_type, project, writer, count(*)
FROM memory INDEXED BY memory_facet GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Conditions on records, all of which must hold; None leaves one out."""

    text: str = ""
    state: str = "current"  # a standing, or all
    layer: str | None = None  # working durable
    memory_type: str | None = None
    tag: str | None = None
    project: str | None = None
    user: str | None = None
    agent: str | None = None
    without_agent: str | None = None  # all but those in the namespace of this agent
    writer: str | None = None
    slot: str | None = None
    approval: str | None = None  # written under it: its whole id
    run: bytes | None = None  # comes from it, is its working memory, or was touched in it
    min_confidence: float | None = None
    fresh_since_ns: int | None = None
    unread_since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """Counts over the whole store: {value: count} each, state by state for kinds and so on."""

    states: Mapping[str, int]
    types: Mapping[str, int]
    projects: Mapping[str, int]
    writers: Mapping[str, int]


def list_memories(
    connection: apsw.Connection,
    filters: MemoryFilter,
    *,
    now_ns: int,
    sort: Sort = "written",
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Memory]:
    """Return records, the last written (or last read) first. A text is always by last written."""
    by: Sort = "written" if filters.text else sort
    read, before = _after(by, cursor)
    sql, conditions = list_query(filters, sort=by)
    parameters = {**conditions, "now": now_ns, "read": read, "before": before, "limit": limit + 1}
    rows: list[Any] = connection.execute(sql, parameters).fetchall()
    items = whole(connection, rows[:limit], now_ns=now_ns)
    if len(rows) <= limit:
        return Page(tuple(items), None)
    last = items[-1]
    position = (last.id,) if by == "written" else (last.last_read_ns, last.id)
    return Page(tuple(items), encode_cursor(f"memory {by}", *position))


def has_memory_of(connection: apsw.Connection, agent: str) -> bool:
    """Say whether any record, of whatever standing, is in the namespace of an agent."""
    return connection.execute(_ANY_OF_AGENT, (agent,)).get is not None


def written_under(connection: apsw.Connection, approval_id: str, *, now_ns: int) -> list[Memory]:
    """Return what was written under an approval, the last first; at most 50."""
    filters = MemoryFilter(state="all", approval=approval_id)
    return list(list_memories(connection, filters, now_ns=now_ns).items)


def list_query(filters: MemoryFilter, *, sort: Sort = "written") -> tuple[str, dict[str, Any]]:
    """Return the statement of a list, and what it is filtered by."""
    parameters = {
        name: value for name in _FILTERS if (value := getattr(filters, name, None)) is not None
    }
    clauses = [STATES[filters.state], *(_FILTERS[name][1] for name in parameters)]
    if filters.text:
        parameters["match"] = f"body : ({parse_match(filters.text).expression})"
        return MATCHED.format(wanted=" AND ".join(clauses)), parameters
    after, order = _ORDERS[sort]
    index = next((_FILTERS[name][0] for name in parameters if _FILTERS[name][0]), "")
    if not index and filters.state not in ("all", "expired", "hidden"):
        index = "memory_state"
    # A filter that names rows by itself needs no index beside it, nor does the order by reads.
    if sort == "read" or not {"run", "tag"}.isdisjoint(parameters):
        index = ""
    use = f"INDEXED BY {index}" if index else ""
    return _LIST.format(index=use, wanted=" AND ".join([after, *clauses]), order=order), parameters


def facets(connection: apsw.Connection, *, now_ns: int, state: str = "current") -> Facets:
    """Return counts for what lists are narrowed by; kinds, projects and writers of one state."""
    states: dict[str, int] = {}
    kinds: dict[str, dict[str, int]] = {"type": {}, "project": {}, "writer": {}}
    for one, *values, count in connection.execute(_FACETS, {"now": now_ns}):
        states[one] = states.get(one, 0) + count
        if state not in (one, "all"):
            continue
        for name, value in zip(kinds, values, strict=True):
            if value:
                kinds[name][value] = kinds[name].get(value, 0) + count
    return Facets(states, kinds["type"], kinds["project"], kinds["writer"])


def _after(sort: Sort, cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return ABOVE_ALL, ABOVE_ALL
    if sort == "written":
        return ABOVE_ALL, decode_cursor("memory written", cursor, count=1)[0]
    read, number = decode_cursor("memory read", cursor, count=2)
    return read, number

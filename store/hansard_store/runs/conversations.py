"""Conversations: runs that share a conversation id.

The runs of one conversation, in order, are `list_runs` with `RunFilter(conversation=…)` sorted by
`started_at`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.calls import tool_calls as tool_events
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.transactions import snapshot
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.status import TokenSums, token_sums

_NEWEST = (1 << 63) - 1
_RUNS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """A conversation, summed over its runs; times are Unix nanoseconds."""

    conversation_id: str
    last_run: int  # run.id of the newest: conversations are listed by it
    last_run_id: str
    runs: int
    failed_runs: int
    started_ns: int
    ended_ns: int  # the latest end heard of
    model_calls: int
    tool_calls: int
    error_count: int
    tokens: TokenSums | None
    cost_usd_nano: int | None
    user_id: str | None
    agents: tuple[str, ...]
    first_input: str | None  # of the first run
    last_output: str | None  # of the last

    @property
    def duration_ns(self) -> int:
        """From the first start to the latest end."""
        return max(self.ended_ns - self.started_ns, 0)


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """Conditions on conversations, each met by some run of it; empty ones are left out."""

    user: str | None = None
    agent: str | None = None
    since_ns: int | None = None  # started at or after
    until_ns: int | None = None  # started before

    @property
    def bindings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("user", "agent", "since_ns", "until_ns")}


# Sort key -> what conversations are ordered by, over their runs.
_VALUES = {
    "last_run": "max(run.id)",
    "started_at": "min(run.started_ns)",
    "ended_at": "max(run.ended_ns)",
    "duration_ms": "max(run.ended_ns) - min(run.started_ns)",
    "runs": "count(*)",
    "model_calls": "sum(run.model_calls)",
    "errors": "sum(run.error_count)",
    "tokens": "coalesce(sum(run.tokens_input), 0) + coalesce(sum(run.tokens_output), 0)",
    "cost_usd": "coalesce(sum(run.cost_usd_nano), -1)",
}
CONVERSATION_SORTS = tuple(_VALUES)
# The conversations of a user are found first: they are few among all.
_OF_USER = """ AND run.conversation_id IN (
  SELECT theirs.conversation_id FROM run AS theirs INDEXED BY run_user_sums
  WHERE theirs.user_id = :user AND theirs.conversation_id IS NOT NULL)"""
_HAVING = {
    "agent": "max(run.agent_name = :agent) = 1",
    "since_ns": "max(run.started_ns) >= :since_ns",
    "until_ns": "min(run.started_ns) < :until_ns",
}
_SORTED = """
SELECT conversation_id, value, number FROM (
  SELECT run.conversation_id, {value} AS value, max(run.id) AS number
  FROM run INDEXED BY run_conversation
  WHERE run.conversation_id IS NOT NULL AND run.conversation_id >= ''{of_user}
  GROUP BY run.conversation_id HAVING {having})
WHERE (value, number) {compare} (:value, :number)
ORDER BY value {direction}, number {direction} LIMIT :limit
"""
_RUNS_DOWN = """
SELECT id, conversation_id FROM run INDEXED BY run_talk
WHERE id < :before AND conversation_id IS NOT NULL ORDER BY id DESC LIMIT :limit
"""
_LAST_RUNS = """
SELECT wanted.value, (SELECT max(id) FROM run WHERE conversation_id = wanted.value)
FROM json_each(:conversations) AS wanted
"""
_SUMS = """
SELECT count(*), sum(status = 'error'), min(started_ns), max(ended_ns), sum(model_calls),
  sum(tool_calls), sum(error_count), max(user_id), sum(cost_usd_nano), sum(tokens_input),
  sum(tokens_output),
  sum(tokens_cache_read), sum(tokens_cache_write), sum(tokens_reasoning), max(id)
FROM run WHERE conversation_id = :conversation
"""
_RUNS = "SELECT id FROM run WHERE conversation_id = :conversation"
_ENDS = """
SELECT trace_id,
  (SELECT first_input FROM run INDEXED BY run_conversation
   WHERE conversation_id = :conversation AND first_input IS NOT NULL
   ORDER BY started_ns LIMIT 1),
  (SELECT last_output FROM run INDEXED BY run_conversation
   WHERE conversation_id = :conversation AND last_output IS NOT NULL
   ORDER BY started_ns DESC LIMIT 1)
FROM run WHERE id = :last
"""
_AGENTS = """
SELECT DISTINCT agent_name FROM run
WHERE conversation_id = :conversation AND agent_name IS NOT NULL ORDER BY agent_name LIMIT 20
"""


def list_conversations(
    connection: apsw.Connection,
    filters: ConversationFilter = ConversationFilter(),
    *,
    sort: str = "-last_run",
    limit: int = 50,
    cursor: str | None = None,
) -> Page[ConversationItem]:
    """Return conversations, the one with the newest run first.

    In any other order, or with a filter, an index entry of every run that names a conversation is
    read. Raises InvalidQueryError for an unknown sort, InvalidCursorError.
    """
    if filters != ConversationFilter() or sort != "-last_run":
        return _sorted(connection, filters, sort=sort, limit=limit, cursor=cursor)
    before = decode_cursor("conversations", cursor, count=1)[0] if cursor else _NEWEST
    with snapshot(connection):
        names = _newest(connection, before=before, count=limit + 1)
        items = [_conversation(connection, name) for name in names[:limit]]
    more = len(names) > limit
    return Page(tuple(items), encode_cursor("conversations", items[-1].last_run) if more else None)


def _sorted(
    connection: apsw.Connection,
    filters: ConversationFilter,
    *,
    sort: str,
    limit: int,
    cursor: str | None,
) -> Page[ConversationItem]:
    key, falling = sort.removeprefix("-"), sort.startswith("-")
    if key not in _VALUES:
        known = ", ".join(CONVERSATION_SORTS)
        raise InvalidQueryError(
            "sort",
            f"cannot sort conversations by {sort[:40]!r}; known are {known}, each also with -",
        )
    kind = f"conversations {sort}"
    edge = _NEWEST if falling else -_NEWEST - 1
    value, number = decode_cursor(kind, cursor, count=2) if cursor else (edge, edge)
    bindings = filters.bindings | {"value": value, "number": number, "limit": limit + 1}
    conditions = [test for name, test in _HAVING.items() if bindings[name] is not None]
    sql = _SORTED.format(
        value=_VALUES[key],
        of_user="" if filters.user is None else _OF_USER,
        having=" AND ".join(conditions) or "true",
        compare="<" if falling else ">",
        direction="DESC" if falling else "ASC",
    )
    with snapshot(connection):
        rows: list[Any] = connection.execute(sql, bindings).fetchall()
        items = tuple(_conversation(connection, row[0]) for row in rows[:limit])
    more = len(rows) > limit
    return Page(items, encode_cursor(kind, *rows[limit - 1][1:]) if more else None)


def get_conversation(connection: apsw.Connection, conversation_id: str) -> ConversationItem:
    """Return a conversation by its id; raises NotFoundError."""
    with snapshot(connection):
        return _conversation(connection, conversation_id)


def _newest(connection: apsw.Connection, *, before: int, count: int) -> list[str]:
    """Return the conversations whose newest run is below a run.id, newest first."""
    found: list[str] = []
    seen: set[str] = set()
    position = before
    while len(found) < count:
        page = {"before": position, "limit": _RUNS_AT_ONCE}
        runs: list[Any] = connection.execute(_RUNS_DOWN, page).fetchall()
        if not runs:
            break
        position = runs[-1][0]
        new = [name for name in dict.fromkeys(name for _, name in runs) if name not in seen]
        seen.update(new)
        # Those with a run at or above the cursor stood on an earlier page.
        earlier = _with_run_from(connection, new, first=before) if before != _NEWEST else set()
        found += [name for name in new if name not in earlier]
    return found[:count]


def _with_run_from(connection: apsw.Connection, names: Sequence[str], *, first: int) -> set[str]:
    rows: list[Any] = connection.execute(
        _LAST_RUNS, {"conversations": json.dumps(names)}
    ).fetchall()
    return {name for name, last in rows if last >= first}


def _conversation(connection: apsw.Connection, name: str) -> ConversationItem:
    parameters: dict[str, Any] = {"conversation": name}
    sums: Any = connection.execute(_SUMS, parameters).fetchone()
    runs, failed, started_ns, ended_ns, calls, tools, errors, user, cost, *tokens, last = sums
    if not runs:
        raise NotFoundError("conversation", name)
    ends: Any = connection.execute(_ENDS, parameters | {"last": last}).fetchone()
    trace_id, first_input, last_output = ends
    agents: list[Any] = connection.execute(_AGENTS, parameters).fetchall()
    if tools and runs > 1:
        of_it: list[Any] = connection.execute(_RUNS, parameters).fetchall()
        tools -= tool_events.count_in_two_runs(connection, (run for (run,) in of_it))
    return ConversationItem(
        conversation_id=name,
        last_run=last,
        last_run_id=trace_id.hex(),
        runs=runs,
        failed_runs=failed,
        started_ns=started_ns,
        ended_ns=ended_ns,
        model_calls=calls,
        tool_calls=tools,
        error_count=errors,
        tokens=token_sums(tokens),
        cost_usd_nano=cost,
        user_id=user,
        agents=tuple(agent for (agent,) in agents),
        first_input=first_input,
        last_output=last_output,
    )

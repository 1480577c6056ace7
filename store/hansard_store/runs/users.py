"""Users: runs that name one user id (`user.id` or `enduser.id`), summed.

All sums are read from one index that holds what they need of a run, so they are exact for any
period, follow every write, and lose a deleted run with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.transactions import snapshot
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.runs.status import TokenSums, token_sums

_DAY_NS = 86_400 * 1_000_000_000
_MAX_NS = (1 << 63) - 1
_ALL_NAMES = b""  # in SQLite's order a blob stands above every text
_HIGHEST = "\U0010ffff"
_SCORES_SHOWN = 20
_AGENTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class NameScore:
    """The numeric scores of one name that stand on the runs of a user, or on their steps."""

    name: str
    value: float  # their mean
    count: int


@dataclass(frozen=True, slots=True)
class UserItem:
    """A user, summed over the runs of a period; times are Unix nanoseconds."""

    user_id: str
    runs: int
    failed_runs: int
    model_calls: int
    tokens: TokenSums | None
    cost_usd_nano: int | None
    first_seen_ns: int  # when the first run started
    last_seen_ns: int  # the latest end of a run
    conversations: int
    agents: tuple[str, ...] = ()
    scores: tuple[NameScore, ...] = ()  # the names with the most scores first

    @property
    def error_rate(self) -> float:
        """The share of runs that failed."""
        return self.failed_runs / self.runs

    @property
    def score(self) -> float | None:
        """The mean of all numeric scores; None where there are none."""
        count = sum(one.count for one in self.scores)
        return sum(one.value * one.count for one in self.scores) / count if count else None


@dataclass(frozen=True, slots=True)
class UserDay:
    """The runs of a user that started on one day of UTC."""

    day: str
    runs: int
    failed_runs: int
    tokens: int
    cost_usd_nano: int | None


@dataclass(frozen=True, slots=True)
class UserFilter:
    """A period by the start of runs, and how names begin."""

    since_ns: int = 0
    until_ns: int = _MAX_NS
    prefix: str = ""

    @property
    def bindings(self) -> dict[str, Any]:
        high = self.prefix + _HIGHEST if self.prefix else _ALL_NAMES
        return {
            "low": self.prefix,
            "high": high,
            "since": self.since_ns,
            "until": self.until_ns,
        }


# Sort key -> what users are ordered by, over their runs. Integers, as cursors hold them.
_VALUES = {
    "user": "run.user_id",
    "runs": "count(*)",
    "errors": "sum(run.status = 'error')",
    "error_rate": "sum(run.status = 'error') * 1000000 / count(*)",
    "model_calls": "sum(run.model_calls)",
    "tokens": "coalesce(sum(run.tokens_input), 0) + coalesce(sum(run.tokens_output), 0)",
    "cost_usd": "coalesce(sum(run.cost_usd_nano), -1)",
    "score": "0",  # joined to the users: _BY_SCORE
    "first_seen": "min(run.started_ns)",
    "last_seen": "max(run.ended_ns)",
}
USER_SORTS = tuple(_VALUES)
_RUNS = """
run INDEXED BY run_user_sums
WHERE run.user_id IS NOT NULL AND run.user_id >= :low AND run.user_id < :high
  AND run.started_ns >= :since AND run.started_ns < :until
"""
_LIST = f"""
SELECT user_id, value, number FROM (
  SELECT run.user_id, {{value}} AS value, min(run.id) AS number
  FROM {_RUNS} GROUP BY run.user_id)
WHERE {{after}} ORDER BY value {{direction}}, number {{direction}} LIMIT :limit
"""
_IN_SCORES = """
annotation INDEXED BY annotation_name CROSS JOIN run ON run.trace_id = annotation.trace_id
WHERE annotation.kind = 'score' AND annotation.ended_ns IS NULL AND annotation.value IS NOT NULL
  AND run.user_id IS NOT NULL AND run.started_ns >= :since AND run.started_ns < :until
"""
# Users without a score stand at the low end.
_BY_SCORE = f"""
SELECT user_id, value, number FROM (
  SELECT people.user_id, coalesce(scored.value, -1 << 62) AS value, people.number
  FROM (SELECT run.user_id, min(run.id) AS number FROM {_RUNS} GROUP BY run.user_id) AS people
  LEFT JOIN (
    SELECT run.user_id, CAST(avg(annotation.value) * 1000000 AS INTEGER) AS value
    FROM {_IN_SCORES} GROUP BY run.user_id) AS scored ON scored.user_id = people.user_id)
WHERE {{after}} ORDER BY value {{direction}}, number {{direction}} LIMIT :limit
"""
_WANTED = "(SELECT value FROM json_each(:users))"
_SUMS = f"""
SELECT run.user_id, count(*), sum(run.status = 'error'), sum(run.model_calls),
  sum(run.tokens_input), sum(run.tokens_output), sum(run.cost_usd_nano), min(run.started_ns),
  max(run.ended_ns), count(DISTINCT run.conversation_id)
FROM run INDEXED BY run_user_sums
WHERE run.user_id IS NOT NULL AND run.user_id IN {_WANTED}
  AND run.started_ns >= :since AND run.started_ns < :until
GROUP BY run.user_id
"""
_AGENTS = f"""
SELECT DISTINCT run.user_id, run.agent_name
FROM run INDEXED BY run_user_sums
WHERE run.user_id IS NOT NULL AND run.user_id IN {_WANTED}
  AND run.started_ns >= :since AND run.started_ns < :until AND run.agent_name IS NOT NULL
ORDER BY 1, 2
"""
_SCORES = f"""
SELECT run.user_id, annotation.name, avg(annotation.value), count(*)
FROM {_IN_SCORES} AND run.user_id IN {_WANTED}
GROUP BY 1, 2 ORDER BY 1, 4 DESC, 2
"""
_DAYS = f"""
SELECT date(run.started_ns / {_DAY_NS} * 86400, 'unixepoch'), count(*),
  sum(run.status = 'error'),
  coalesce(sum(run.tokens_input), 0) + coalesce(sum(run.tokens_output), 0),
  sum(run.cost_usd_nano)
FROM run INDEXED BY run_user_sums
WHERE run.user_id = :user AND run.started_ns >= :since AND run.started_ns < :until
GROUP BY run.started_ns / {_DAY_NS} ORDER BY 1 DESC LIMIT :limit
"""
_TALKS = """
SELECT run.conversation_id
FROM run INDEXED BY run_user_sums
WHERE run.user_id = :user AND run.conversation_id IS NOT NULL
  AND run.started_ns >= :since AND run.started_ns < :until
GROUP BY 1 ORDER BY max(run.id) DESC LIMIT :limit
"""
_NAME_OF = "SELECT user_id FROM run WHERE id = ?"
_TRACES = """
SELECT trace_id FROM run INDEXED BY run_user WHERE user_id = :user ORDER BY id
"""


def list_users(
    connection: apsw.Connection,
    filters: UserFilter = UserFilter(),
    *,
    sort: str = "-last_seen",
    limit: int = 50,
    cursor: str | None = None,
) -> Page[UserItem]:
    """Return the users with a run in the period, summed over those runs.

    Reads an index entry of every run that names a user; with the sort `score` every score, too.
    Raises InvalidQueryError for an unknown sort, InvalidCursorError.
    """
    key = sort.removeprefix("-")
    if key not in _VALUES:
        known = ", ".join(USER_SORTS)
        raise InvalidQueryError(
            "sort", f"cannot sort users by {sort[:40]!r}; known are {known}, each also with -"
        )
    falling = sort.startswith("-")
    with snapshot(connection):
        bindings = {**filters.bindings, "limit": limit + 1}
        after = "true"
        if cursor:
            bindings |= _after(connection, sort, cursor)
            after = f"(value, number) {'<' if falling else '>'} (:value, :number)"
        sql = (_BY_SCORE if key == "score" else _LIST).format(
            value=_VALUES[key], after=after, direction="DESC" if falling else "ASC"
        )
        rows: list[Any] = connection.execute(sql, bindings).fetchall()
        items = _users(connection, [row[0] for row in rows[:limit]], filters)
    if len(rows) <= limit:
        return Page(items, None)
    _, value, number = rows[limit - 1]
    return Page(items, encode_cursor(f"users {sort}", 0 if key == "user" else value, number))


def get_user(
    connection: apsw.Connection, user_id: str, filters: UserFilter = UserFilter()
) -> UserItem:
    """Return one user; raises NotFoundError where no run of the period names the id."""
    with snapshot(connection):
        found = _users(connection, [user_id], filters)
    if not found:
        raise NotFoundError("user", user_id)
    return found[0]


def user_days(
    connection: apsw.Connection,
    user_id: str,
    filters: UserFilter = UserFilter(),
    *,
    limit: int = 400,
) -> list[UserDay]:
    """Return the days of UTC on which a user's runs started, the newest first."""
    bindings = {**_period(filters), "user": user_id, "limit": limit}
    return [UserDay(*row) for row in connection.execute(_DAYS, bindings)]


def user_conversations(
    connection: apsw.Connection,
    user_id: str,
    filters: UserFilter = UserFilter(),
    *,
    limit: int = 20,
) -> list[str]:
    """Return the ids of the conversations that a user's runs are in, the newest first."""
    bindings = {**_period(filters), "user": user_id, "limit": limit}
    rows: list[Any] = connection.execute(_TALKS, bindings).fetchall()
    return [name for (name,) in rows]


def user_traces(connection: apsw.Connection, user_id: str) -> list[bytes]:
    """Return the trace ids of all runs that name a user, in the order of arrival."""
    rows: list[Any] = connection.execute(_TRACES, {"user": user_id}).fetchall()
    return [trace_id for (trace_id,) in rows]


def _after(connection: apsw.Connection, sort: str, cursor: str) -> dict[str, Any]:
    value, number = decode_cursor(f"users {sort}", cursor, count=2)
    if sort.removeprefix("-") != "user":
        return {"value": value, "number": number}
    name = connection.execute(_NAME_OF, (number,)).get
    if name is None:
        raise InvalidCursorError("cursor")  # its run was deleted meanwhile
    return {"value": name, "number": number}


def _users(
    connection: apsw.Connection, names: Iterable[str], filters: UserFilter
) -> list[UserItem]:
    wanted = list(names)
    bindings = {**_period(filters), "users": json.dumps(wanted)}
    agents: dict[str, list[str]] = {}
    for user, agent in connection.execute(_AGENTS, bindings):
        agents.setdefault(user, []).append(agent)
    scores: dict[str, list[NameScore]] = {}
    for user, *score in connection.execute(_SCORES, bindings):
        scores.setdefault(user, []).append(NameScore(*score))
    found = {row[0]: _user(row) for row in connection.execute(_SUMS, bindings)}
    return [
        replace(
            found[name],
            agents=tuple(agents.get(name, ())[:_AGENTS_SHOWN]),
            scores=tuple(scores.get(name, ())[:_SCORES_SHOWN]),
        )
        for name in wanted
        if name in found
    ]


def _user(row: Any) -> UserItem:
    user, runs, failed, calls, tokens_in, tokens_out, cost, first_ns, last_ns, talks = row
    tokens = token_sums((tokens_in, tokens_out, None, None, None))
    return UserItem(user, runs, failed, calls, tokens, cost, first_ns, last_ns, talks)


def _period(filters: UserFilter) -> dict[str, Any]:
    return {"since": filters.since_ns, "until": filters.until_ns}

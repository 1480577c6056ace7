"""Runs, steps, users and conversations by name, in bounded time: what a palette offers.

Looked through are the newest runs and steps, by part of a word; ids of runs, users and
conversations are found by their beginning in the whole store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import apsw

_NEWEST_RUNS: Final = 2_000
_NEWEST_STEPS: Final = 4_000
_STEPS_OF_RUN: Final = 20_000
_LONGEST: Final = 200  # characters of a query that are looked for
_HEX: Final = re.compile("[0-9a-f]{4,32}")
_RUN_COLUMNS = "trace_id, name, coalesce(agent_name, ''), status, started_ns"
_RUNS_BY_NAME = f"""
SELECT {_RUN_COLUMNS}
FROM (SELECT * FROM run ORDER BY id DESC LIMIT :newest)
WHERE name LIKE :like ESCAPE '\\' OR agent_name LIKE :like ESCAPE '\\'
LIMIT :limit
"""
_RUNS_BY_ID = f"""
SELECT {_RUN_COLUMNS}
FROM run
WHERE trace_id BETWEEN :low AND :high
LIMIT :limit
"""
_STEP_COLUMNS = "trace_id, span_id, coalesce(label, name), role, status, sort_ns"
_NEWEST_STEPS_BY_NAME = f"""
SELECT {_STEP_COLUMNS}
FROM (SELECT * FROM span ORDER BY id DESC LIMIT :newest)
WHERE name LIKE :like ESCAPE '\\' OR label LIKE :like ESCAPE '\\'
LIMIT :limit
"""
_STEPS_OF_RUN_BY_NAME = f"""
SELECT {_STEP_COLUMNS}
FROM (SELECT * FROM span WHERE trace_id = :trace LIMIT :newest)
WHERE name LIKE :like ESCAPE '\\' OR label LIKE :like ESCAPE '\\'
LIMIT :limit
"""
_NEWEST_VALUES = {
    "user": """
SELECT DISTINCT user_id
FROM (SELECT user_id FROM run ORDER BY id DESC LIMIT :newest)
WHERE user_id LIKE :like ESCAPE '\\'
LIMIT :limit
""",
    "conversation": """
SELECT DISTINCT conversation_id
FROM (SELECT conversation_id FROM run ORDER BY id DESC LIMIT :newest)
WHERE conversation_id LIKE :like ESCAPE '\\'
LIMIT :limit
""",
}
_NEXT_VALUE = {
    "user": """
SELECT user_id FROM run
WHERE user_id >= :after AND user_id < :high AND user_id <> :after
ORDER BY user_id LIMIT 1
""",
    "conversation": """
SELECT conversation_id FROM run
WHERE conversation_id >= :after AND conversation_id < :high AND conversation_id <> :after
ORDER BY conversation_id LIMIT 1
""",
}
_IS_VALUE = {
    "user": "SELECT 1 FROM run WHERE user_id = :value LIMIT 1",
    "conversation": "SELECT 1 FROM run WHERE conversation_id = :value LIMIT 1",
}


@dataclass(frozen=True, slots=True)
class NamedRun:
    run_id: str
    name: str
    agent: str  # "" for none
    status: str
    started_ns: int


@dataclass(frozen=True, slots=True)
class NamedStep:
    step_id: str
    run_id: str
    name: str
    role: str
    is_error: bool
    at_ns: int


def find_runs_by_name(connection: apsw.Connection, query: str, *, limit: int) -> Iterator[NamedRun]:
    """Yield runs whose id begins with a query, then the newest that it is part of the name of."""
    seen = set[bytes]()
    found: list[tuple[bytes, str, str, str, int]] = []
    digits = query.strip().lower()
    if _HEX.fullmatch(digits):
        low, high = (bytes.fromhex(digits.ljust(32, fill)) for fill in "0f")
        found += connection.execute(_RUNS_BY_ID, {"low": low, "high": high, "limit": limit})
    values = {"newest": _NEWEST_RUNS, "like": _like(query), "limit": limit}
    found += connection.execute(_RUNS_BY_NAME, values)
    for trace_id, name, agent, status, started_ns in found:
        if trace_id not in seen and len(seen) < limit:
            seen.add(trace_id)
            yield NamedRun(trace_id.hex(), name, agent, status, started_ns)


def find_steps_by_name(
    connection: apsw.Connection, query: str, *, run_id: str = "", limit: int
) -> Iterator[NamedStep]:
    """Yield steps with a query in their name: of one run, or of the newest steps of all."""
    values = {"newest": _NEWEST_STEPS, "like": _like(query), "limit": limit}
    if run_id:
        values |= {"newest": _STEPS_OF_RUN, "trace": bytes.fromhex(run_id)}
    sql = _STEPS_OF_RUN_BY_NAME if run_id else _NEWEST_STEPS_BY_NAME
    for trace_id, span_id, name, role, status, at_ns in connection.execute(sql, values):
        step_id = f"{trace_id.hex()}-{span_id.hex()}"
        yield NamedStep(step_id, trace_id.hex(), name, role, status == 2, at_ns)


def find_values(
    connection: apsw.Connection,
    kind: Literal["user", "conversation"],
    query: str,
    *,
    limit: int,
) -> list[str]:
    """Return ids of users or conversations: that begin with a query, then others it is part of."""
    low = query.strip()[:_LONGEST]
    found: list[str] = []
    if low:
        found += [low for _ in connection.execute(_IS_VALUE[kind], {"value": low})]
        after, high = low, low + "\U0010ffff"
        # A look-up for each: values are many rows each, and are not walked.
        while len(found) < limit:
            row = connection.execute(_NEXT_VALUE[kind], {"after": after, "high": high}).fetchone()
            if row is None:
                break
            after = row[0]
            found.append(after)
    values = {"newest": _NEWEST_RUNS, "like": _like(query), "limit": limit}
    found += (one for (one,) in connection.execute(_NEWEST_VALUES[kind], values))
    return list(dict.fromkeys(found))[:limit]


def _like(query: str) -> str:
    text = query.strip()[:_LONGEST].replace("\0", "")
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"

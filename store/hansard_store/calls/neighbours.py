"""The steps close above and below a step, in the tree as far as it is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

# How far apart in the tree two spans about one call may stand: wrapper, retry, client.
REACH = 3
MOST_PARENTS = 64
MOST_CHILDREN = 64  # more than that below one call and it is a sum, whatever the rest is

_ABOVE = """
SELECT id, role, tool_name, tool_call_id, parent_span_id
FROM span WHERE trace_id = ? AND span_id = ?
"""
_BELOW = f"""
SELECT id, role, tool_name, tool_call_id, span_id
FROM span WHERE trace_id = ? AND parent_span_id = ?
LIMIT {MOST_CHILDREN}
"""


class Near(NamedTuple):
    """A span close above or below."""

    span: int
    role: str
    tool_name: str | None
    call_id: str | None  # of a tool step
    level: int  # how many levels apart


def near_above(
    connection: apsw.Connection, trace_id: bytes, parent_span_id: bytes | None
) -> Iterator[Near]:
    """Yield the ancestors at most `REACH` levels up, nearest first."""
    for level in range(1, REACH + 1):
        if parent_span_id is None:
            return
        row: Any = connection.execute(_ABOVE, (trace_id, parent_span_id)).fetchone()
        if row is None:
            return
        span, role, tool_name, call_id, parent_span_id = row
        yield Near(span, role, tool_name, call_id, level)


def near_below(connection: apsw.Connection, trace_id: bytes, span_id: bytes) -> Iterator[Near]:
    """Yield the descendants at most `REACH` levels down, level by level."""
    parents = [span_id]
    for level in range(1, REACH + 1):
        rows: list[Any] = [
            row for above in parents for row in connection.execute(_BELOW, (trace_id, above))
        ]
        for span, role, tool_name, call_id, _ in rows:
            yield Near(span, role, tool_name, call_id, level)
        parents = [row[-1] for row in rows if row[-1] not in parents][:MOST_PARENTS]

"""Where rows of a time begin in a table whose numbers rise as rows are written.

Tables of spans and memory have no index by the time of writing, which every insert would pay for.
"""

from __future__ import annotations

from typing import Any, Final

import apsw

_LAST_SPAN: Final = "SELECT coalesce(max(span), 0) FROM span_record"
_SPAN_AT: Final = "SELECT span, received_ns FROM span_record WHERE span >= ? ORDER BY span LIMIT 1"
_LAST_MEMORY: Final = "SELECT coalesce(max(id), 0) FROM memory"
_MEMORY_AT: Final = "SELECT id, created_ns FROM memory WHERE id >= ? ORDER BY id LIMIT 1"


def first_span_since(connection: apsw.Connection, since_ns: int) -> int:
    """Return a number below which every span was received before a time. About 20 look-ups.

    A report that replaced an older one counts by its own time, so the number may be too low; where
    the clock was set back since that time, and forward again, it may be too high.
    """
    return _first(connection, _LAST_SPAN, _SPAN_AT, since_ns)


def first_memory_since(connection: apsw.Connection, since_ns: int) -> int:
    """Return a number below which every memory was written before a time. About 20 look-ups."""
    return _first(connection, _LAST_MEMORY, _MEMORY_AT, since_ns)


def _first(connection: apsw.Connection, last: str, at: str, since_ns: int) -> int:
    low, high = 0, int(connection.execute(last).get) + 1
    while low < high:
        middle = (low + high) // 2
        row: Any = connection.execute(at, (middle,)).fetchone()
        if row is None or row[1] >= since_ns:
            high = middle
        else:
            low = row[0] + 1
    return low

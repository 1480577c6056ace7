"""Records that no agent has retrieved for long: counted, and changed in nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import apsw

_MOST_NAMED: Final = 20
# Written or last read: a record that is new is not stale because nobody had time to read it.
_STALE: Final = """
FROM memory INDEXED BY memory_state
WHERE state = 'current' AND memory_type <> 'working'
  AND max(last_read_ns, created_ns) <= :before AND (expires_ns IS NULL OR expires_ns > :now)
"""
_COUNT: Final = f"SELECT count(*), coalesce(sum(last_read_ns = 0), 0) {_STALE}"
_NAMES: Final = f"""
SELECT lower(hex(memory_id)) {_STALE} ORDER BY max(last_read_ns, created_ns), id LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Stale:
    """Records that stand and were not retrieved for a time."""

    count: int
    never_read: int  # among them
    longest: tuple[str, ...]  # ids, those first that were not retrieved for longest; at most 20


def count_stale(connection: apsw.Connection, *, length_ns: int, now_ns: int) -> Stale:
    """Return the records that were neither written nor read in the last `length_ns`.

    A read is one by an agent, with its step or without; looking at pages and lists is none.
    """
    given = {"before": now_ns - length_ns, "now": now_ns}
    row: Any = connection.execute(_COUNT, given).fetchone()
    names: Any = connection.execute(_NAMES, {**given, "limit": _MOST_NAMED})
    return Stale(row[0], row[1], tuple(memory_id for (memory_id,) in names))

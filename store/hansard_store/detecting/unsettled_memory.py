"""Memory that does not settle: corrected again and again, or in contradiction for long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import apsw

from hansard_store.detecting.rules import Finding, Occurrence, Rule, in_order

# What takes the place of another version; working memory is there to change.
_CORRECTED: Final = """
SELECT id, created_ns, memory_id, key, memory_type FROM memory INDEXED BY memory_corrected
WHERE version > 1 AND memory_type <> 'working' AND created_ns > :since AND created_ns <= :now
  AND contests IS NULL
"""
_WAITING: Final = """
SELECT id, created_ns, memory_id FROM memory INDEXED BY memory_state
WHERE state = 'review' AND created_ns <= :before
"""


def repeated_corrections(
    connection: apsw.Connection, rule: Rule, *, now_ns: int
) -> Iterator[Finding]:
    """Yield the memories that were corrected as often as the rule says, within its window."""
    found: dict[tuple[str, str], list[Occurrence]] = defaultdict(list)
    rows: Any = connection.execute(_CORRECTED, {"since": now_ns - rule.window_ns, "now": now_ns})
    for number, at_ns, memory_id, key, memory_type in rows:
        one = Occurrence(number, at_ns, "memory", memory_id.hex())
        found[memory_type, key.hex()].append(one)
    for (memory_type, key), occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield Finding(rule, "memory", memory_type, key, in_order(occurrences))


def stale_contradictions(
    connection: apsw.Connection, rule: Rule, *, now_ns: int
) -> Iterator[Finding]:
    """Yield the contradictions that have waited for a person longer than the window, as one."""
    rows: Any = connection.execute(_WAITING, {"before": now_ns - rule.window_ns})
    found = [Occurrence(number, at, "memory", one.hex()) for number, at, one in rows]
    if len(found) >= rule.threshold:
        yield Finding(rule, "memory", "", "", in_order(found))

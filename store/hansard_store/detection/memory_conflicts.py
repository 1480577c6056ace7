"""Memory that does not settle: corrected again and again, or in contradiction for long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import apsw

from hansard_store.detection.components import HEARTBEAT_AGENT
from hansard_store.detection.rules import Finding, Occurrence, Rule, in_order

# What takes the place of another version. Working memory is there to change, and the heartbeat
# replaces the notes about itself in every cycle.
_CORRECTED: Final = """
SELECT id, created_ns, memory_id, key, memory_type FROM memory INDEXED BY memory_corrected
WHERE version > 1 AND memory_type <> 'working' AND created_ns > :since AND created_ns <= :now
  AND contests IS NULL AND memory_type <> 'correction' AND agent <> :heartbeat
"""
# A correction counts from its first version on, and again when it is written once more.
_WRITTEN_AGAIN: Final = """
SELECT memory_access.id, memory_access.time_ns, memory.memory_id, memory.key, memory.memory_type
FROM memory INDEXED BY memory_sort CROSS JOIN memory_access INDEXED BY memory_access_memory
  ON memory_access.memory = memory.id
WHERE memory.memory_type = 'correction' AND memory_access.kind IN ('write', 'repeat')
  AND memory_access.time_ns > :since AND memory_access.time_ns <= :now
"""
# A contradiction that evaluation sees again is counted, and its correction is not written again.
_COUNTED: Final = """
SELECT claim_verdict.id, count, first_seen_ns, last_seen_ns, lower(hex(memory.memory_id))
FROM claim_verdict INDEXED BY claim_verdict_verdict JOIN memory ON memory.id = correction
WHERE verdict = 'contradicted' AND correction IS NOT NULL AND last_seen_ns > :since
  AND last_seen_ns <= :now
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
    given = {"since": now_ns - rule.window_ns, "now": now_ns}
    replaced: Any = connection.execute(_CORRECTED, {**given, "heartbeat": HEARTBEAT_AGENT})
    written: Any = connection.execute(_WRITTEN_AGAIN, given)
    for number, at_ns, memory_id, key, memory_type in chain(replaced, written):
        one = Occurrence(number, at_ns, "memory", memory_id.hex())
        found[memory_type, key.hex()].append(one)
    for (memory_type, key), occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield Finding(rule, "memory", memory_type, key, in_order(occurrences))
    if connection.table_exists("main", "claim_verdict"):
        yield from _counted(connection, rule, now_ns=now_ns)


def _counted(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the contradictions that evaluations saw as often, each with one correction.

    Of one that began before the window, as many as fall into it when all are spread evenly.
    """
    since_ns = now_ns - rule.window_ns
    rows: Any = connection.execute(_COUNTED, {"since": since_ns, "now": now_ns})
    for number, count, first_ns, last_ns, memory_id in rows:
        begun_ns = max(first_ns, since_ns + 1)
        share = (last_ns - begun_ns) / (last_ns - first_ns) if last_ns > first_ns else 1
        times = max(round(count * share), 1)
        if times >= rule.threshold:
            step_ns = (last_ns - begun_ns) // max(times - 1, 1)
            occurrences = [
                Occurrence(count - times + at + 1, begun_ns + at * step_ns, "memory", memory_id)
                for at in range(times)
            ]
            yield Finding(rule, "memory", "correction", f"verdict {number}", occurrences)


def stale_contradictions(
    connection: apsw.Connection, rule: Rule, *, now_ns: int
) -> Iterator[Finding]:
    """Yield the contradictions that have waited for a person longer than the window, as one."""
    rows: Any = connection.execute(_WAITING, {"before": now_ns - rule.window_ns})
    found = [Occurrence(number, at, "memory", one.hex()) for number, at, one in rows]
    if len(found) >= rule.threshold:
        yield Finding(rule, "memory", "", "", in_order(found))

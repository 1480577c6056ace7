"""One look at the record: every rule, at all three levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Protocol

import apsw

from hansard_store.database.transactions import snapshot
from hansard_store.detection import components
from hansard_store.detection.components import HEARTBEAT_AGENT
from hansard_store.detection.failed_steps import repeated_errors
from hansard_store.detection.rules import RULES, Finding, Occurrence, Rule, in_order
from hansard_store.heartbeat import hook_rates

# Memory that does not settle: corrected again and again, or in contradiction for long.

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
    parameters = {"since": now_ns - rule.window_ns, "now": now_ns}
    replaced: Any = connection.execute(_CORRECTED, {**parameters, "heartbeat": HEARTBEAT_AGENT})
    written: Any = connection.execute(_WRITTEN_AGAIN, parameters)
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


# Approvals that do not do their work: nobody decides in time, or nobody knows how it ended.

# `held` is what the index holds: SQLite needs it word for word. Newest first, and read no
# further back than the window: the log's numbers rise with time, but for what was written late.
_EVENTS: Final = """
SELECT seq, time_ns, late, action, approval_id FROM event INDEXED BY event_type
WHERE type = '{type}' AND type NOT IN ('tool.called', 'tool.returned')
  AND approval_id IS NOT NULL{more}
ORDER BY seq DESC
"""
_EXPIRED: Final = _EVENTS.format(type="action.expired", more="")
_UNKNOWN: Final = _EVENTS.format(
    type="action.unknown",
    more="""
  AND EXISTS (SELECT 1 FROM approval_claim AS claim
    WHERE claim.approval_id = event.approval_id AND claim.state = 'unknown')""",
)


def expired_approvals(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the tools whose calls ran out of time undecided, as often as the rule says."""
    for tool, occurrences in _by_tool(connection.execute(_EXPIRED), rule, now_ns=now_ns):
        yield Finding(rule, "tool", tool, "", occurrences)


def unknown_outcomes(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the tools of which approved calls began, and nobody knows yet how they ended."""
    for tool, occurrences in _by_tool(connection.execute(_UNKNOWN), rule, now_ns=now_ns):
        yield Finding(rule, "tool", tool, "", occurrences)


def _by_tool(
    rows: Iterable[Any], rule: Rule, *, now_ns: int
) -> Iterator[tuple[str, list[Occurrence]]]:
    found: dict[str, list[Occurrence]] = defaultdict(list)
    since_ns = now_ns - rule.window_ns
    for seq, time_ns, late, tool, approval_id in rows:
        if since_ns < time_ns <= now_ns:
            found[tool].append(Occurrence(seq, time_ns, "approval", approval_id.hex()))
        elif time_ns <= since_ns and not late:
            break
    for tool, occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield tool, in_order(occurrences)


# How often commands draw a warning before they run: too often, or almost never.

COMPONENT: Final = "escalation"


def frequent_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is at the threshold or above it."""
    rates = hook_rates(connection, now_ns - rule.window_ns, before_ns=now_ns + 1)
    checked, warned = rates.evaluated, rates.warned
    if checked >= max(rule.least, 1) and 100 * warned >= rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def rare_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is below the threshold."""
    rates = hook_rates(connection, now_ns - rule.window_ns, before_ns=now_ns + 1)
    checked, warned = rates.evaluated, rates.warned
    if checked >= max(rule.least, 1) and 100 * warned < rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def _finding(rule: Rule, checked: int, warned: int, *, now_ns: int) -> Finding:
    at_ns = now_ns - now_ns % rule.window_ns  # counts once in a window
    message = f"{warned:,} of {checked:,} checked commands drew a warning"
    found = Occurrence(at_ns, at_ns, "figure", message)
    return Finding(rule, "component", COMPONENT, "", [found], opens_at=1)


MOST_FINDINGS: Final = 100  # of a rule: a sender that names a new tool each time opens no more


class _Look(Protocol):
    def __call__(
        self, connection: apsw.Connection, rule: Rule, *, now_ns: int
    ) -> Iterator[Finding]: ...


_LOOKS: Final[Mapping[str, _Look]] = {
    "repeated_errors": repeated_errors,
    "expired_approvals": expired_approvals,
    "unknown_outcomes": unknown_outcomes,
    "evaluation_blind_spot": components.evaluation_blind_spot,
    "idle_maintenance": components.idle_maintenance,
    "frequent_warnings": frequent_warnings,
    "rare_warnings": rare_warnings,
    "unread_reports": components.unread_reports,
    "memory_outgrows_maintenance": components.memory_outgrows_maintenance,
    "repeated_corrections": repeated_corrections,
    "stale_contradictions": stale_contradictions,
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found at a moment, with the rules as they were applied."""

    rules: Sequence[Rule]
    findings: Sequence[Finding]  # rule by rule, the most frequent first
    left_off: int  # findings beyond the most of a rule


def scan(connection: apsw.Connection, chosen: Sequence[Rule] = RULES, *, now_ns: int) -> Scan:
    """Look for every pattern. Reads by index what failed or was corrected within the windows."""
    findings: list[Finding] = []
    left_off = 0
    with snapshot(connection):
        for rule in chosen:
            found = sorted(_LOOKS[rule.name](connection, rule, now_ns=now_ns), key=_by_weight)
            findings += found[:MOST_FINDINGS]
            left_off += max(len(found) - MOST_FINDINGS, 0)
    return Scan(chosen, findings, left_off)


def _by_weight(finding: Finding) -> tuple[int, str, str]:
    return -len(finding.occurrences), finding.subject, finding.signature

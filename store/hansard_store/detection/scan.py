"""One look at the record: every rule, at all three levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol

import apsw

from hansard_store.database.row_order import first_memory_since
from hansard_store.database.transactions import snapshot
from hansard_store.detection.failed_steps import iter_failures, repeated_errors
from hansard_store.detection.rules import (
    RULES,
    DetectionFinding,
    DetectionRule,
    Occurrence,
    in_order,
)
from hansard_store.heartbeat import (
    HEARTBEAT_AGENT,
    PhaseRecord,
    hook_rates,
    last_phase,
    phase_history,
)
from hansard_store.reports.files import reports_beside

# Parts of the heartbeat that may not do their work, seen from what their phases recorded.

EVALUATION: Final = "evaluation"  # names of phases
MAINTENANCE: Final = "maintenance"
_MOST_RUNS: Final = 10_000  # of a phase that are looked at

_CORRECTION: Final = """
SELECT 1 FROM memory WHERE id >= :first AND memory_type = 'correction'
  AND created_ns > :since AND created_ns <= :now LIMIT 1
"""
_REPEATED_CORRECTION: Final = """
SELECT 1 FROM memory INDEXED BY memory_sort CROSS JOIN memory_access ON
  memory_access.memory = memory.id
WHERE memory.memory_type = 'correction' AND memory_access.kind IN ('write', 'repeat')
  AND memory_access.time_ns > :since AND memory_access.time_ns <= :now LIMIT 1
"""
_GROWTH: Final = """
SELECT count(*) FROM memory WHERE id >= :first AND created_ns > :since AND created_ns <= :now
  AND state = 'current' AND memory_type NOT IN ('working', 'interest', 'correction')
  AND agent <> :heartbeat
"""


def evaluation_blind_spot(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield that many calls failed and evaluation, which ran, corrected nothing."""
    since_ns = now_ns - rule.window_ns
    ran = last_phase(connection, EVALUATION)
    if ran is None or ran.started_ns <= since_ns or _is_corrected(connection, since_ns, now_ns):
        return
    failures = iter_failures(connection, since_ns=since_ns, now_ns=now_ns)
    found = [one.occurrence for one in failures if one.kind in ("tool", "model")]
    if len(found) >= rule.threshold:
        yield DetectionFinding(rule, "component", EVALUATION, "", in_order(found))


def idle_maintenance(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield that no run of maintenance found a contradiction, though each compared records."""
    runs = _done(connection, MAINTENANCE, since_ns=now_ns - rule.window_ns)
    compared = [one for one in runs if _number(one.figures, _COMPARED)]
    if any(_number(one.figures, _CONTRADICTIONS) for one in compared):
        return
    if len(compared) >= rule.threshold:
        found = [Occurrence(one.started_ns, one.started_ns, "step", one.step_id)
                 for one in compared]  # fmt: skip
        yield DetectionFinding(rule, "component", MAINTENANCE, "", in_order(found))


def unread_reports(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield the reports of the window that nobody acknowledged, as one."""
    found = [
        Occurrence(one.written_ns, one.written_ns, "report", one.name)
        for one in reports_beside(connection).list()
        if not one.read_by and now_ns - rule.window_ns < one.written_ns <= now_ns
    ]
    if len(found) >= rule.threshold:
        yield DetectionFinding(rule, "component", "report", "", in_order(found))


def memory_outgrows_maintenance(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield that more records were written within the window than maintenance compared.

    A store on which maintenance never ran is not judged.
    """
    if last_phase(connection, MAINTENANCE) is None:
        return
    since_ns = now_ns - rule.window_ns
    parameters = {
        "first": first_memory_since(connection, since_ns), "since": since_ns, "now": now_ns,
        "heartbeat": HEARTBEAT_AGENT,
    }  # fmt: skip
    grown: int = connection.execute(_GROWTH, parameters).get
    runs = _done(connection, MAINTENANCE, since_ns=since_ns)
    processed = sum(_number(one.figures, _PROCESSED) for one in runs)
    left = grown - processed
    if left >= rule.threshold:
        message = (
            f"{grown:,} records were written, {processed:,} were compared by maintenance, "
            f"{left:,} are left"
        )
        yield _of_figure(rule, MAINTENANCE, "growth", message, now_ns=now_ns)


def _of_figure(
    rule: DetectionRule, component: str, signature: str, text: str, *, now_ns: int
) -> DetectionFinding:
    at_ns = now_ns - now_ns % rule.window_ns  # counts once in a window
    found = Occurrence(at_ns, at_ns, "figure", text)
    return DetectionFinding(rule, "component", component, signature, [found], opens_at=1)


def _is_corrected(connection: apsw.Connection, since_ns: int, now_ns: int) -> bool:
    parameters: dict[str, Any] = {"since": since_ns, "now": now_ns}
    first = first_memory_since(connection, since_ns)
    if connection.execute(_CORRECTION, {**parameters, "first": first}).get:
        return True
    return bool(connection.execute(_REPEATED_CORRECTION, parameters).get)


# ---- what maintenance says of itself: its figures, by their places

_CONTRADICTIONS: Final = ("contradictions_found",)
_COMPARED: Final = ("contradictions", "pairs")
_PROCESSED: Final = ("contradictions", "new")  # records that had not been compared before


def _number(figures: Mapping[str, Any], path: tuple[str, ...]) -> int:
    """Return a figure; 0 where a part was skipped."""
    found: Any = figures
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, int) else 0


def _done(connection: apsw.Connection, name: str, *, since_ns: int) -> list[PhaseRecord]:
    """Return the runs of a phase that were done, the newest first."""
    runs = phase_history(connection, name, since_ns=since_ns, limit=_MOST_RUNS)
    return [one for one in runs if one.status == "done"]


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
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
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
            yield DetectionFinding(rule, "memory", memory_type, key, in_order(occurrences))
    if connection.table_exists("main", "claim_verdict"):
        yield from _counted(connection, rule, now_ns=now_ns)


def _counted(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
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
            yield DetectionFinding(rule, "memory", "correction", f"verdict {number}", occurrences)


def stale_contradictions(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield the contradictions that have waited for a person longer than the window, as one."""
    rows: Any = connection.execute(_WAITING, {"before": now_ns - rule.window_ns})
    found = [Occurrence(number, at, "memory", one.hex()) for number, at, one in rows]
    if len(found) >= rule.threshold:
        yield DetectionFinding(rule, "memory", "", "", in_order(found))


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


def approvals_by_tool(
    sql: str, connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield the tools whose calls have such events, as often as the rule says."""
    found: dict[str, list[Occurrence]] = defaultdict(list)
    since_ns = now_ns - rule.window_ns
    rows: Any = connection.execute(sql)
    for seq, time_ns, late, tool, approval_id in rows:
        if since_ns < time_ns <= now_ns:
            found[tool].append(Occurrence(seq, time_ns, "approval", approval_id.hex()))
        elif time_ns <= since_ns and not late:
            break
    for tool, occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield DetectionFinding(rule, "tool", tool, "", in_order(occurrences))


# How often commands draw a warning before they run: too often, or almost never.

_FREQUENT: Final = "frequent_warnings"


def unusual_warnings(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield that the share of warnings reaches the threshold of one rule, or not the other's."""
    rates = hook_rates(connection, now_ns - rule.window_ns, before_ns=now_ns + 1)
    checked, warned = rates.evaluated, rates.warned
    if checked < max(rule.least, 1):
        return
    if (100 * warned >= rule.threshold * checked) == (rule.name == _FREQUENT):
        text = f"{warned:,} of {checked:,} checked commands drew a warning"
        yield _of_figure(rule, "escalation", "", text, now_ns=now_ns)


MOST_FINDINGS: Final = 100  # of a rule: a sender that names a new tool each time opens no more


class _Look(Protocol):
    def __call__(
        self, connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
    ) -> Iterator[DetectionFinding]: ...


_LOOKS: Final[Mapping[str, _Look]] = {
    "repeated_errors": repeated_errors,
    "expired_approvals": partial(approvals_by_tool, _EXPIRED),
    "unknown_outcomes": partial(approvals_by_tool, _UNKNOWN),
    "evaluation_blind_spot": evaluation_blind_spot,
    "idle_maintenance": idle_maintenance,
    _FREQUENT: unusual_warnings,
    "rare_warnings": unusual_warnings,
    "unread_reports": unread_reports,
    "memory_outgrows_maintenance": memory_outgrows_maintenance,
    "repeated_corrections": repeated_corrections,
    "stale_contradictions": stale_contradictions,
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found at a moment, with the rules as they were applied."""

    rules: Sequence[DetectionRule]
    findings: Sequence[DetectionFinding]  # rule by rule, the most frequent first
    left_off: int  # findings beyond the most of a rule


def scan(
    connection: apsw.Connection, chosen: Sequence[DetectionRule] = RULES, *, now_ns: int
) -> Scan:
    """Look for every pattern. Reads by index what failed or was corrected within the windows."""
    findings: list[DetectionFinding] = []
    left_off = 0
    with snapshot(connection):
        for rule in chosen:
            found = sorted(_LOOKS[rule.name](connection, rule, now_ns=now_ns), key=_by_weight)
            findings += found[:MOST_FINDINGS]
            left_off += max(len(found) - MOST_FINDINGS, 0)
    return Scan(chosen, findings, left_off)


def _by_weight(finding: DetectionFinding) -> tuple[int, str, str]:
    return -len(finding.occurrences), finding.subject, finding.signature

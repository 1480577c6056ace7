"""Parts of the heartbeat that may not do their work, seen from what their phases recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import apsw

from hansard_store.database.row_order import first_memory_since
from hansard_store.detection.failed_steps import iter_failures
from hansard_store.detection.rules import Finding, Occurrence, Rule, in_order
from hansard_store.heartbeat import PhaseRecord, last_phase, phase_history
from hansard_store.reports.files import reports_beside

EVALUATION: Final = "evaluation"  # names of phases
MAINTENANCE: Final = "maintenance"
HEARTBEAT_AGENT: Final = "hansard.heartbeat"  # whose memory is notes about itself
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
    connection: apsw.Connection, rule: Rule, *, now_ns: int
) -> Iterator[Finding]:
    """Yield that many calls failed and evaluation, which ran, corrected nothing."""
    since_ns = now_ns - rule.window_ns
    ran = last_phase(connection, EVALUATION)
    if ran is None or ran.started_ns <= since_ns or _is_corrected(connection, since_ns, now_ns):
        return
    failures = iter_failures(connection, since_ns=since_ns, now_ns=now_ns)
    found = [one.occurrence for one in failures if one.kind in ("tool", "model")]
    if len(found) >= rule.threshold:
        yield Finding(rule, "component", EVALUATION, "", in_order(found))


def idle_maintenance(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that no run of maintenance found a contradiction, though each compared records."""
    runs = _done(connection, MAINTENANCE, since_ns=now_ns - rule.window_ns)
    compared = [one for one in runs if _number(one.figures, _COMPARED)]
    if any(_number(one.figures, _CONTRADICTIONS) for one in compared):
        return
    if len(compared) >= rule.threshold:
        found = [Occurrence(one.started_ns, one.started_ns, "step", one.step_id)
                 for one in compared]  # fmt: skip
        yield Finding(rule, "component", MAINTENANCE, "", in_order(found))


def unread_reports(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the reports of the window that nobody acknowledged, as one."""
    found = [
        Occurrence(one.written_ns, one.written_ns, "report", one.name)
        for one in reports_beside(connection).list()
        if not one.read_by and now_ns - rule.window_ns < one.written_ns <= now_ns
    ]
    if len(found) >= rule.threshold:
        yield Finding(rule, "component", "report", "", in_order(found))


def memory_outgrows_maintenance(
    connection: apsw.Connection, rule: Rule, *, now_ns: int
) -> Iterator[Finding]:
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
        at_ns = now_ns - now_ns % rule.window_ns  # counts once in a window
        message = (
            f"{grown:,} records were written, {processed:,} were compared by maintenance, "
            f"{left:,} are left"
        )
        found = Occurrence(at_ns, at_ns, "figure", message)
        yield Finding(rule, "component", MAINTENANCE, "growth", [found], opens_at=1)


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

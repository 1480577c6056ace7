"""Heartbeat cycles, the results of their phases, and diagnostics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

import apsw

from hansard_compiler.renamed import with_current_code
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.bodies import Body, Description, body_of
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.stored_json import own_copy, read_only
from hansard_store.times import time_text

# Cycles of the heartbeat and the results of their phases, as rows and as records.

Origin = Literal["command", "server"]
Status = Literal["done", "failed", "skipped"]
KEPT_NS: Final = 400 * 24 * 3_600 * 10**9  # older cycles are pruned: a year can be compared
_AT_ONCE: Final = 1_000
HEARTBEAT_AGENT: Final = "hansard.heartbeat"  # whose memory is notes about itself

_BEGIN: Final = """
INSERT INTO heartbeat_cycle (trace_id, origin, started_ns) VALUES (:trace_id, :origin, :now)
RETURNING id
"""
_END: Final = "UPDATE heartbeat_cycle SET ended_ns = :now WHERE trace_id = :trace_id"
_ADD_PHASE: Final = """
INSERT INTO heartbeat_phase (cycle, name, span_id, status, started_ns, ended_ns, summary, figures)
SELECT id, :name, :span_id, :status, :started_ns, :ended_ns, :summary, :figures
FROM heartbeat_cycle WHERE trace_id = :trace_id
"""
_CYCLES: Final = """
SELECT id, lower(hex(trace_id)), origin, started_ns, ended_ns FROM heartbeat_cycle
WHERE id < :before ORDER BY id DESC LIMIT :limit
"""
_PHASE: Final = """
SELECT lower(hex(cycle.trace_id)), phase.name, phase.span_id, phase.status, phase.started_ns,
  phase.ended_ns, phase.summary, phase.figures
FROM heartbeat_phase AS phase JOIN heartbeat_cycle AS cycle ON cycle.id = phase.cycle
"""
_OF_CYCLE: Final = f"{_PHASE} WHERE phase.cycle = ? ORDER BY phase.id"
_LAST: Final = f"""
{_PHASE} WHERE phase.name = ? AND phase.status = 'done' ORDER BY phase.id DESC LIMIT 1
"""
_HISTORY: Final = f"""
{_PHASE} WHERE phase.name = :name AND phase.started_ns >= :since ORDER BY phase.id DESC LIMIT :limit
"""
_OLD: Final = "SELECT id FROM heartbeat_cycle WHERE started_ns < ? ORDER BY id LIMIT ?"
_DROP: Final = (
    "DELETE FROM heartbeat_phase WHERE cycle = ?",
    "DELETE FROM heartbeat_cycle WHERE id = ?",
)
_ABOVE_ALL: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """How one phase of one cycle ended. Times are Unix nanoseconds."""

    cycle_id: str  # the cycle's trace, 32 hex digits
    name: str
    step_id: str  # the phase's span
    status: Status
    started_ns: int
    ended_ns: int
    summary: str  # of a failed phase the error, of a skipped one the reason
    figures: Mapping[str, Any]  # JSON, read-only

    @property
    def duration_ns(self) -> int:
        return self.ended_ns - self.started_ns


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One cycle with its phases, in the order in which they ran."""

    id: int
    cycle_id: str  # the run that shows it, 32 hex digits
    origin: Origin
    started_ns: int
    ended_ns: int | None  # None: it is under way, or its process was killed
    phases: Sequence[PhaseRecord]

    @property
    def failed(self) -> int:
        """How many phases failed."""
        return sum(one.status == "failed" for one in self.phases)


def list_cycles(
    connection: apsw.Connection, *, limit: int = 20, before: int = _ABOVE_ALL
) -> list[CycleRecord]:
    """Return cycles with their phases, the newest first; `before` is the last id seen."""
    rows: list[Any] = connection.execute(_CYCLES, {"before": before, "limit": limit}).fetchall()
    return [
        CycleRecord(
            number, cycle_id, origin, started_ns, ended_ns,
            tuple(map(_phase, connection.execute(_OF_CYCLE, (number,)))),
        )
        for number, cycle_id, origin, started_ns, ended_ns in rows
    ]  # fmt: skip


def last_phase(connection: apsw.Connection, name: str) -> PhaseRecord | None:
    """Return the newest result of a phase that was done; None before the first."""
    row: Any = connection.execute(_LAST, (name,)).fetchone()
    return None if row is None else _phase(row)


def phase_history(
    connection: apsw.Connection, name: str, *, since_ns: int = 0, limit: int = 1_000
) -> list[PhaseRecord]:
    """Return a phase's results that began since a time, the newest first."""
    parameters = {"name": name, "since": since_ns, "limit": limit}
    return [_phase(row) for row in connection.execute(_HISTORY, parameters)]


class CycleLog:
    """Writes cycles and phases, each call a transaction on the caller's thread."""

    def __init__(self, folder: DataFolder, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._connections = OwnConnections(folder)
        self._clock = clock

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def begin(self, cycle_id: str, *, origin: Origin) -> None:
        """Record that a cycle begins, and prune what is older than a year."""
        now_ns = self._clock()
        parameters = {"trace_id": bytes.fromhex(cycle_id), "origin": origin, "now": now_ns}
        with self._connections.writing() as connection:
            connection.execute(_BEGIN, parameters)
            old: list[Any] = connection.execute(_OLD, (now_ns - KEPT_NS, _AT_ONCE)).fetchall()
            for sql in _DROP:
                connection.executemany(sql, old)

    def add(self, phase: PhaseRecord) -> None:
        """Record how a phase ended."""
        parameters = {
            "trace_id": bytes.fromhex(phase.cycle_id),
            "name": phase.name,
            "span_id": bytes.fromhex(phase.step_id[33:49]),
            "status": phase.status,
            "started_ns": phase.started_ns,
            "ended_ns": phase.ended_ns,
            "summary": phase.summary,
            "figures": json.dumps(dict(phase.figures), ensure_ascii=False),
        }
        with self._connections.writing() as connection:
            connection.execute(_ADD_PHASE, parameters)

    def end(self, cycle_id: str) -> None:
        """Record that a cycle has ended."""
        with self._connections.writing() as connection:
            connection.execute(_END, {"trace_id": bytes.fromhex(cycle_id), "now": self._clock()})

    def last(self, name: str) -> PhaseRecord | None:
        """Return the newest result of a phase that was done; None before the first."""
        return last_phase(self._connections.get(), name)


def _phase(row: Any) -> PhaseRecord:
    cycle_id, name, span_id, status, started_ns, ended_ns, summary, figures = row
    return PhaseRecord(
        cycle_id,
        name,
        f"{cycle_id}-{span_id.hex()}",
        status,
        started_ns,
        ended_ns,
        summary,
        read_only(with_current_code(json.loads(figures), "error")),
    )


# Diagnostics: what components of Hansard report of their own work, in one log that SQL can query.
#
# Tools of agents are in the same view, `diagnostics`, by their spans; rows here are of Hansard's
# own.

Level = Literal["info", "warning", "error"]
MOST_CHARS: Final = 2_000
MOST_ROWS: Final = 100_000  # of more, the oldest are removed

_ADD: Final = """
INSERT INTO diagnostic (time_ns, component, level, signature, message, trace_id, span_id)
VALUES (:time_ns, :component, :level, :signature, :message, :trace_id, :span_id)
"""
_PRUNE: Final = "DELETE FROM diagnostic WHERE id <= (SELECT max(id) FROM diagnostic) - ?"
_LIST: Final = """
SELECT id, time_ns, component, level, signature, message, trace_id, span_id FROM diagnostic{of}
WHERE{wanted} id < :before ORDER BY id DESC LIMIT :limit
"""
_OF_ALL: Final = _LIST.format(of="", wanted="")
_OF_COMPONENT: Final = _LIST.format(
    of=" INDEXED BY diagnostic_component", wanted=" component = :component AND"
)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One line of the log. Times are Unix nanoseconds."""

    id: int
    time_ns: int
    component: str
    level: Level
    signature: str
    message: str
    run_id: str | None
    step_id: str | None


def list_diagnostics(
    connection: apsw.Connection,
    *,
    component: str | None = None,
    limit: int = 100,
    before: int = _ABOVE_ALL,
) -> list[Diagnostic]:
    """Return diagnostics, the newest first; `before` is the id of the last one seen."""
    parameters = {"component": component, "limit": limit, "before": before}
    sql = _OF_ALL if component is None else _OF_COMPONENT
    return [_diagnostic(row) for row in connection.execute(sql, parameters)]


class Line(NamedTuple):
    """A diagnostic that is to be written."""

    component: str
    level: Level
    message: str
    signature: str = ""
    run_id: str | None = None
    step_id: str | None = None


class DiagnosticLog:
    """Writes diagnostics; each call is a transaction on the caller's thread."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._retention = Retention.of(folder, mode)
        self._connections = OwnConnections(folder)
        self._clock = clock

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def write(self, *lines: Line) -> None:
        """Add lines in one transaction; secrets are removed from their messages.

        Raises StoreBusyError, StoreError.
        """
        rows = [self._row(one) for one in lines]
        with self._connections.writing() as connection:
            connection.executemany(_ADD, rows)
            connection.execute(_PRUNE, (MOST_ROWS,))

    def _row(self, line: Line) -> dict[str, Any]:
        step_id = line.step_id
        run = line.run_id or (step_id[:32] if step_id else None)
        return {
            "time_ns": self._clock(),
            "component": line.component[:200],
            "level": line.level,
            "signature": line.signature[:MOST_CHARS],
            "message": self._retention.clean_text(line.message)[:MOST_CHARS],
            "trace_id": bytes.fromhex(run) if run else None,
            "span_id": bytes.fromhex(step_id[33:49]) if step_id else None,
        }


def _diagnostic(row: Any) -> Diagnostic:
    number, time_ns, component, level, signature, message, trace_id, span_id = row
    run_id = None if trace_id is None else trace_id.hex()
    step_id = None if span_id is None else f"{run_id}-{span_id.hex()}"
    return Diagnostic(number, time_ns, component, level, signature, message, run_id, step_id)


# How often hooks looked at a call before it was made, and how often they warned.

EVALUATED: Final = "hansard.hook.evaluated"  # the event names of records of calls with a score:
WARNED: Final = "hansard.hook.warned"  # below the threshold of its hook, or not
# The condition is that of the partial index, word for word: the planner compares texts.
_RATES = """
SELECT count(*), count(*) FILTER (WHERE event_name = 'hansard.hook.warned')
FROM log_record INDEXED BY log_record_hook
WHERE event_name IN ('hansard.hook.evaluated', 'hansard.hook.warned')
  AND time_ns >= ? AND time_ns < ?
"""
_END_OF_TIME: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class HookRates:
    """What hooks did within a time."""

    evaluated: int  # calls with a score, warned ones too
    warned: int

    @property
    def share(self) -> float | None:
        """The share of warned calls, 0 to 1; None where none was looked at."""
        return self.warned / self.evaluated if self.evaluated else None


def hook_rates(
    connection: apsw.Connection, since_ns: int, *, before_ns: int = _END_OF_TIME
) -> HookRates:
    """Return how many calls hooks gave a score since a time, and of how many they warned.

    By the time of the call. Calls without a command, and those that a hook with its evaluator off
    saw, are not counted. One range of an index.
    """
    row: Any = connection.execute(_RATES, (since_ns, before_ns)).fetchone()
    return HookRates(row[0], row[1])


# Cycles and diagnostics as programs get them: the same over HTTP and on the command line.


class HeartbeatPhase(Body):
    """How one phase of a cycle ended."""

    name: str
    status: Status
    step_id: Annotated[str, Description("the phase's span in the cycle's trace")]
    started_at: str
    duration_ns: str
    summary: Annotated[str, Description("of a failed phase the error, of a skipped one the reason")]
    figures: dict[str, Any]


class HeartbeatCycle(Body):
    """One cycle: a trace with a span for each phase."""

    run_id: str
    origin: Origin
    started_at: str
    ended_at: Annotated[str | None, Description("null: it is under way, or its process was killed")]
    phases: list[HeartbeatPhase]


class DiagnosticBody(Body):
    """What a component of Hansard reported of its own work."""

    time: str
    component: str
    level: Level
    signature: Annotated[str, Description("what equal diagnostics share")]
    message: str
    run_id: str | None
    step_id: str | None


def cycle_json(one: CycleRecord) -> HeartbeatCycle:
    """Return a cycle as programs get it."""
    phases = [phase_json(phase) for phase in one.phases]
    return body_of(HeartbeatCycle, one, run_id=one.cycle_id, phases=phases)


def phase_json(one: PhaseRecord) -> HeartbeatPhase:
    """Return a phase's result as programs get it."""
    return body_of(HeartbeatPhase, one, figures=own_copy(dict(one.figures)))


def diagnostic_json(one: Diagnostic) -> DiagnosticBody:
    """Return a diagnostic as programs get it."""
    return body_of(DiagnosticBody, one, time=time_text(one.time_ns))

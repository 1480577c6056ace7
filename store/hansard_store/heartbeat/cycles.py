"""Cycles of the heartbeat and the results of their phases, as rows and as records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_compiler.renamed import with_current_code
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.read_only_json import read_only
from hansard_store.database.thread_connections import OwnConnections
from hansard_store.database.transactions import transaction

Origin = Literal["command", "server"]
Status = Literal["done", "failed", "skipped"]
KEPT_NS: Final = 400 * 24 * 3_600 * 10**9  # older cycles are pruned: a year can be compared
_AT_ONCE: Final = 1_000

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
{_PHASE} WHERE phase.name = :name AND phase.status = :status ORDER BY phase.id DESC LIMIT 1
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
        CycleRecord(number, cycle_id, origin, started_ns, ended_ns, _phases(connection, number))
        for number, cycle_id, origin, started_ns, ended_ns in rows
    ]


def last_phase(
    connection: apsw.Connection, name: str, *, status: Status = "done"
) -> PhaseRecord | None:
    """Return the newest result of a phase with this status; None before the first."""
    row: Any = connection.execute(_LAST, {"name": name, "status": status}).fetchone()
    return None if row is None else _phase(row)


def phase_history(
    connection: apsw.Connection, name: str, *, since_ns: int = 0, limit: int = 1_000
) -> list[PhaseRecord]:
    """Return a phase's results that began since a time, the newest first."""
    given = {"name": name, "since": since_ns, "limit": limit}
    return [_phase(row) for row in connection.execute(_HISTORY, given)]


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
        connection, now_ns = self._connections.get(), self._clock()
        given = {"trace_id": bytes.fromhex(cycle_id), "origin": origin, "now": now_ns}
        with transaction(connection):
            connection.execute(_BEGIN, given)
            old: list[Any] = connection.execute(_OLD, (now_ns - KEPT_NS, _AT_ONCE)).fetchall()
            for sql in _DROP:
                connection.executemany(sql, old)

    def add(self, phase: PhaseRecord) -> None:
        """Record how a phase ended."""
        connection = self._connections.get()
        given = {
            "trace_id": bytes.fromhex(phase.cycle_id),
            "name": phase.name,
            "span_id": bytes.fromhex(phase.step_id[33:49]),
            "status": phase.status,
            "started_ns": phase.started_ns,
            "ended_ns": phase.ended_ns,
            "summary": phase.summary,
            "figures": json.dumps(dict(phase.figures), ensure_ascii=False),
        }
        with transaction(connection):
            connection.execute(_ADD_PHASE, given)

    def end(self, cycle_id: str) -> None:
        """Record that a cycle has ended."""
        connection = self._connections.get()
        with transaction(connection):
            connection.execute(_END, {"trace_id": bytes.fromhex(cycle_id), "now": self._clock()})

    def last(self, name: str, *, status: Status = "done") -> PhaseRecord | None:
        """Return the newest result of a phase with this status; None before the first."""
        return last_phase(self._connections.get(), name, status=status)


def _phases(connection: apsw.Connection, cycle: int) -> tuple[PhaseRecord, ...]:
    return tuple(_phase(row) for row in connection.execute(_OF_CYCLE, (cycle,)))


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

"""One cycle: every phase in its order, each isolated from the others, none twice at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.trace import Span

from hansard._runtime.locks import hold_lock
from hansard_collector.heartbeat.notes import PhaseNotes
from hansard_collector.heartbeat.phase import (
    CycleContext,
    HeartbeatRunning,
    HeartbeatSettings,
    Phase,
    PhaseResult,
    PhaseSkipped,
)
from hansard_collector.heartbeat.phases import PHASES
from hansard_collector.heartbeat.trace import CycleTrace, set_outcome
from hansard_collector.judges import Judges
from hansard_compiler.errors import HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.heartbeat import (
    CycleLog,
    DiagnosticLog,
    Level,
    Line,
    Origin,
    PhaseRecord,
    Status,
)

_LEVELS: Final[dict[Status, Level]] = {"done": "info", "skipped": "info", "failed": "error"}
_log = logging.getLogger("hansard.heartbeat")

Progress = Callable[[PhaseRecord], None]


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one cycle did."""

    cycle_id: str  # the run that shows it
    started_ns: int
    ended_ns: int
    phases: Sequence[PhaseRecord]

    @property
    def failed(self) -> Sequence[str]:
        """Names of the phases that failed."""
        return [one.name for one in self.phases if one.status == "failed"]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Runs cycles over one store. Every cycle opens what it needs and closes it."""

    folder: DataFolder
    judges: Judges
    mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS
    settings: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    origin: Origin = "command"
    clock: Callable[[], int] = time.time_ns
    phases: Sequence[Phase] = PHASES

    def run(self, *, progress: Progress = lambda _: None) -> CycleResult:
        """Run one cycle. Raises HeartbeatRunning while another one runs, StoreError.

        A phase that fails is recorded and does not stop the others.
        """
        with hold_lock(self.folder.heartbeat, HeartbeatRunning), ExitStack() as opened:
            trace = opened.enter_context(closing(CycleTrace(self.folder, self.mode)))
            cycles = opened.enter_context(closing(CycleLog(self.folder, clock=self.clock)))
            log = opened.enter_context(
                closing(DiagnosticLog(self.folder, self.mode, clock=self.clock))
            )
            notes = opened.enter_context(
                closing(PhaseNotes(self.folder, self.mode, clock=self.clock))
            )
            started_ns = self.clock()
            cycles.begin(trace.cycle_id, origin=self.origin)
            cycle = _Cycle(self, trace, cycles, log, notes)
            records = []
            for phase in self.phases:
                records.append(cycle.run(phase))
                progress(records[-1])
            trace.end(failed=[one.name for one in records if one.status == "failed"])
            cycles.end(trace.cycle_id)
            return CycleResult(trace.cycle_id, started_ns, self.clock(), tuple(records))


@dataclass(frozen=True, slots=True)
class _Cycle:
    """What the phases of one cycle share."""

    heartbeat: Heartbeat
    trace: CycleTrace
    cycles: CycleLog
    log: DiagnosticLog
    notes: PhaseNotes

    def run(self, phase: Phase) -> PhaseRecord:
        """Run a phase, and record how it ended: as a row, a span, a diagnostic and a note."""
        started_ns = self.heartbeat.clock()
        with self.trace.phase(phase.name) as span:
            context = self._context(span, started_ns)
            status, result = _ended(phase, context)
            set_outcome(span, status=status, summary=result.summary, figures=result.figures)
        record = PhaseRecord(
            cycle_id=self.trace.cycle_id,
            name=phase.name,
            step_id=context.step_id,
            status=status,
            started_ns=started_ns,
            ended_ns=max(self.heartbeat.clock(), started_ns),
            summary=result.summary,
            figures=result.figures,
        )
        self.trace.store(result.evaluations)
        self.cycles.add(record)
        component = f"heartbeat.{phase.name}"
        self.log.write(
            Line(component, _LEVELS[status], result.summary, status, step_id=context.step_id)
        )
        self.notes.write(record)
        return record

    def _context(self, span: Span, now_ns: int) -> CycleContext:
        return CycleContext(
            folder=self.heartbeat.folder,
            mode=self.heartbeat.mode,
            now_ns=now_ns,
            cycle_id=self.trace.cycle_id,
            step_id=self.trace.step_id(span),
            settings=self.heartbeat.settings,
            judges=self.heartbeat.judges.recorded_by(self.trace.recorder),
            log=self.log,
            tracer=self.trace.tracer,
            last=self.cycles.last,
        )


def _ended(phase: Phase, context: CycleContext) -> tuple[Status, PhaseResult]:
    try:
        if phase.every_ns and context.ran_within(phase.name, phase.every_ns):
            hours = phase.every_ns // (3_600 * 10**9)
            raise PhaseSkipped(f"it was done within the last {hours} hours")
        return "done", phase.run(context)
    except PhaseSkipped as reason:
        return "skipped", PhaseResult(str(reason), {})
    except HansardError as error:
        return "failed", PhaseResult(str(error), {"error": error.code})
    except Exception as error:  # a border: one phase must not end the others
        _log.exception("phase %s of the heartbeat failed", phase.name)
        return "failed", PhaseResult(type(error).__name__, {"error": type(error).__name__})

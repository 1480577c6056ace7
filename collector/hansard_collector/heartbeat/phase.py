"""What a phase of the heartbeat gets and returns, and what stops it or its cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.trace import Tracer

from hansard_collector.judges import Judges
from hansard_compiler.errors import HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.heartbeat import DiagnosticLog, PhaseRecord

DAY_NS: Final = 24 * 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """What a person may set about the cycle. Phases find their own settings in `options`."""

    window_ns: int = DAY_NS  # what evaluation and reviews look back on
    outbound: bool = False  # whether the scan may ask a source outside
    options: Mapping[str, Any] = field(default_factory=dict)  # by name, read-only


@dataclass(frozen=True, slots=True)
class CycleContext:
    """One phase of one cycle: the store, the time, and what it may ask. Times in Unix ns."""

    folder: DataFolder
    mode: RetentionMode
    now_ns: int
    cycle_id: str  # the cycle's trace, 32 hex digits
    step_id: str  # the phase's span in it, `<trace>-<span>`
    settings: HeartbeatSettings
    judges: Judges
    log: DiagnosticLog
    tracer: Tracer  # records steps below the phase: its span is the current one
    last: Callable[[str], PhaseRecord | None]  # the newest result of a phase that was done

    @property
    def since_ns(self) -> int:
        """The beginning of the window."""
        return self.now_ns - self.settings.window_ns

    def ran_within(self, name: str, length_ns: int) -> bool:
        """Whether a phase was done in the last so many nanoseconds."""
        found = self.last(name)
        return found is not None and found.started_ns > self.now_ns - length_ns


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """A judgement of a stored step, recorded on its span as `gen_ai.evaluation.result`."""

    step_id: str  # of the judged step, `<trace>-<span>`
    name: str
    label: str
    explanation: str  # no secrets
    score: float | None = None


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """What a phase found and did."""

    summary: str  # one sentence, no recorded content
    figures: Mapping[str, Any]  # JSON
    evaluations: Sequence[EvaluationResult] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """An entry of the list of phases."""

    name: str
    run: Callable[[CycleContext], PhaseResult]  # raises PhaseSkipped with the reason
    every_ns: int = 0  # at most once in this time; 0: every cycle


class HeartbeatRunning(HansardError):
    """Another process runs a cycle on this store; nothing was changed."""

    code = "heartbeat_running"

    def __init__(self) -> None:
        super().__init__("a heartbeat is under way on this store; it does not run twice at once")


class PhaseSkipped(HansardError):
    """A phase has nothing to do, or lacks what it needs; the message names which."""

    code = "phase_skipped"

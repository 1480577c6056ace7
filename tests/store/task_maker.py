"""A store in which things go wrong, and the queue of tasks over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hansard_compiler.models.tasks import Decide, Decision
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.detection.rules import RULES, DetectionRule
from hansard_store.detection.scan import Scan, scan
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.tasks.rows import Task, get_task, list_tasks
from hansard_store.tasks.service import RecordedDecision, TaskService
from tests.store.maker import NOW, SECOND, StoreMaker

HOUR_S = 3_600
_SUMMARY_CHARS = 120


class TaskMaker:
    """Steps that fail, looks of the detector, and decisions; the clock stands at `now_ns`."""

    def __init__(
        self,
        store: StoreMaker,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        now_ns: int = NOW,
    ) -> None:
        self.store = store
        self.now_ns = now_ns
        self.book = TaskService(store.folder, mode, clock=lambda: self.now_ns)
        self._made = 0

    def close(self) -> None:
        self.book.close()

    def fail(
        self,
        message: str = "connection refused",
        *,
        tool: str | None = "run_tests",
        model: str | None = None,
        role: str = "tool",
        name: str = "",
        parent: str | None = None,
        run: str = "run",
        ago_s: float = 60,
        flags: int = 0,
    ) -> str:
        """Store a step that failed so long ago; returns its span's name."""
        self._made += 1
        name = name or f"step {self._made}"
        line = " ".join(message.split())
        cut = line if len(line) <= _SUMMARY_CHARS else f"{line[: _SUMMARY_CHARS - 1]}…"
        self.store.span(
            name,
            parent,
            run=run,
            start_s=(self.now_ns - NOW) / SECOND + HOUR_S - ago_s,
            status=2,
            flags=flags,
            texts=[("error", message)] if message else [],
            projection=SpanProjection(
                role=role, dialect="otel", tool_name=tool, model=model, summary=cut or None
            ),
        )
        return name

    def fail_often(self, times: int, message: str = "connection refused", **more: object) -> None:
        for number in range(times):
            self.fail(message, **{"ago_s": 60.0 * (times - number), **more})  # type: ignore[arg-type]

    def scan(self, wanted: tuple[DetectionRule, ...] = RULES) -> Scan:
        return scan(self.store.db, wanted, now_ns=self.now_ns)

    def detect(self, wanted: tuple[DetectionRule, ...] = RULES) -> list[RecordedDecision]:
        """Look, and record what was found."""
        return self.book.record(self.scan(wanted).findings)

    def detect_one(self) -> Task:
        """Look, and return the one task that there is then."""
        self.detect()
        (task,) = self.tasks()
        return task

    def tasks(self) -> list[Task]:
        return list(list_tasks(self.store.db, limit=100).items)

    def task(self, task_id: str) -> Task:
        return get_task(self.store.db, task_id)

    def decide(
        self, task: Task, decision: Decision, *, by: str = "noor", note: str | None = None
    ) -> Task:
        return self.book.decide(task.task_id, Decide(decision=decision, note=note), by=by)


@contextmanager
def task_maker(path: Path, *, now_ns: int = NOW) -> Iterator[TaskMaker]:
    """Open a maker of a store of its own for the block."""
    store = StoreMaker(path)
    maker = TaskMaker(store, now_ns=now_ns)
    try:
        yield maker
    finally:
        maker.close()
        store.close()

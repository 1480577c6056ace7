"""A store of memory and the maintenance of it, under a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hansard_collector.judges import Judges
from hansard_collector.judges.embedders import HashedPieces
from hansard_collector.judges.errors import JudgeError
from hansard_collector.judges.offline import OfflineClassifier
from hansard_collector.maintenance import Maintainer, MaintenanceResult, MaintenanceSettings
from hansard_compiler.calls import Json
from hansard_compiler.classifier import ClassifierQuestion, ClassifierVerdict
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.tasks.service import TaskService
from tests.store.memory_maker import SECOND, MemoryMaker


@dataclass(slots=True)
class Answers:
    """A classifier that gives one answer, and counts how often it is asked."""

    verdict: ClassifierVerdict
    name: str = "answers/1"
    asked: list[ClassifierQuestion] = field(default_factory=list)
    before: Callable[[], object] = lambda: None  # what happens while it thinks

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        """Give the answer; see the protocol of a classifier."""
        self.asked.append(question)
        self.before()
        return self.verdict


@dataclass(slots=True)
class Down:
    """A classifier, or an embedder, that cannot be reached."""

    name: str = "down/1"
    dimensions: int = 8
    asked: int = 0

    def __call__(self, _: Any) -> Any:
        self.asked += 1
        raise JudgeError("the model cannot be reached")


class Upkeep:
    """A store with records that are written one after the other, and its maintenance."""

    def __init__(self, path: Path) -> None:
        self.memory = MemoryMaker(path / "data")
        self.book = MaintenanceService(self.memory.folder, clock=self.clock)
        self.tasks = TaskService(self.memory.folder, clock=self.clock)

    def close(self) -> None:
        self.tasks.close()
        self.book.close()
        self.memory.close()

    def clock(self) -> int:
        return self.memory.now_ns

    def write(self, text: Any, subject: str = "staging", **more: Any) -> str:
        """Write a record a second after the last one; return its id."""
        answer = self.tell(text, subject, **more)
        memory_id: str = answer["memory"]["memory_id"]
        return memory_id

    def tell(self, text: Any, subject: str = "staging", **more: Any) -> Json:
        self.memory.now_ns += SECOND
        return self.memory.write(
            text, **{"subject": subject, "attribute": "", "memory_type": "fact", **more}
        )

    def correct(self, text: str, subject: str, **more: Any) -> str:
        """Write a correction that names nothing that it corrects."""
        number = self.memory.now_ns // SECOND
        return self.write(
            text, subject, memory_type="correction", attribute=f"correction {number}",
            tags=["correction"], **more,
        )  # fmt: skip

    def run(
        self, judges: Judges | None = None, *, is_dry: bool = False, **settings: Any
    ) -> MaintenanceResult:
        judges = judges or Judges(OfflineClassifier(), HashedPieces())
        return Maintainer(self.book, judges, MaintenanceSettings(**settings), is_dry).run()

    def states(self) -> dict[str, str]:
        rows = self.memory.rows("SELECT lower(hex(memory_id)), state FROM memory")
        return dict(rows)

    def events(self, action: str) -> Sequence[tuple[str, str, str]]:
        return self.memory.rows(
            "SELECT subject, who, body FROM event WHERE action = ? ORDER BY seq", action
        )

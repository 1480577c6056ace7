"""Memory written as programs write it, under a clock that the test turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.memory.service import MemoryService

NOW = 1_780_000_000 * 10**9
SECOND = 10**9
RUN, OTHER_RUN = "ab" * 16, "cd" * 16
STEP = f"{RUN}-{'12' * 8}"
PROJECT = {"project": "quillbook"}


class MemoryMaker:
    """A store with a memory book over it."""

    def __init__(self, path: Path, mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS) -> None:
        self.folder = DataFolder(path)
        self.connection = open_for_ingest(self.folder)
        self.now_ns = NOW
        self.book = MemoryService(self.folder, mode, clock=lambda: self.now_ns)

    def close(self) -> None:
        self.book.close()
        self.connection.close()

    def write(self, content: Any = "Money is Decimal inside.", **more: Any) -> Json:
        """Write a durable record as the program itself, unless told otherwise."""
        told = {
            "writer": "app",
            "memory_type": "constraint",
            "subject": "money",
            "attribute": "type",
            "namespace": PROJECT,
            "run_id": RUN,
            "step_id": STEP,
            "content": content,
            **more,
        }
        return self.book.write_json(told)

    def work(self, slot: str, content: Any, **more: Any) -> Json:
        """Write into a slot of a run's working memory."""
        told = {"writer": "app", "memory_type": "working", "slot": slot, "run_id": RUN, **more}
        return self.book.write_json({**told, "content": content})

    def read(self, **asked: Any) -> list[Json]:
        """Return what a read of the project answers, unless it asks for something else."""
        items: list[Json] = self.book.read_json({"namespace": PROJECT, **asked})["items"]
        return items

    def contents(self, **asked: Any) -> list[Any]:
        return [one["content"] for one in self.read(**asked)]

    def invalidate(self, memory_id: str, reason: str = "it changed", by: str = "noor") -> Json:
        told = {"memory_id": memory_id, "reason": reason, "by": by}
        memory: Json = self.book.invalidate_json(told)["memory"]
        return memory

    def rows(self, sql: str, *bindings: Any) -> list[Any]:
        return self.connection.execute(sql, bindings).fetchall()

"""A store with interests, and scans of a local source over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from hansard_collector.scanning import HackerNews, Scanner, ScanResult
from hansard_compiler.calls import Json
from hansard_compiler.classifier import (
    Classifier,
    ClassifierQuestion,
    ClassifierVerdict,
    WordOverlap,
)
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.memory.service import MemoryService
from hansard_store.stories.service import StoryService
from tests.collector.scanning.hacker_news import HackerNewsServer
from tests.store.empty import empty_store

PROJECT = {"project": "quillbook"}


@dataclass
class Counting:
    """The built-in classifier behind another name, with what it was asked."""

    name: str = "counting/1"
    asked: list[str] = field(default_factory=list)

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        self.asked.append(question.text)
        return WordOverlap()(question)


class Scanning:
    """Scans of one store."""

    def __init__(self, path: Path, server: HackerNewsServer) -> None:
        self.folder = empty_store(path)
        self.server = server
        self.connection = apsw.Connection(str(self.folder.database))
        self.memory = MemoryService(self.folder)
        self.classifier = Counting()

    def close(self) -> None:
        self.memory.close()
        self.connection.close()

    def write(self, content: str, **more: Any) -> Json:
        """Write an interest as the program itself, unless told otherwise."""
        told = {"writer": "app", "memory_type": "interest", "subject": content, "content": content}
        answer = self.memory.write_json({**told, "namespace": PROJECT, **more})
        memory: Json = answer["memory"]
        return memory

    def scan(
        self,
        *,
        limit: int = 30,
        timeout_s: float = 5,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        classifier: Classifier | None = None,
        **more: Any,
    ) -> ScanResult:
        book = StoryService(self.folder, mode)
        source = HackerNews(self.server.address, timeout_s=timeout_s)
        try:
            return Scanner(source, book, classifier or self.classifier, **more).scan(limit=limit)
        finally:
            book.close()

    def notes(self, **asked: Any) -> list[Json]:
        """Return what an agent of the project reads."""
        items: list[Json] = self.memory.read_json({"namespace": PROJECT, "limit": 200, **asked})[
            "items"
        ]
        return [one for one in items if one["memory_type"] == "note"]

    def rows(self, sql: str) -> list[Any]:
        return self.connection.execute(sql).fetchall()

    def outcomes(self, result: ScanResult) -> dict[str, str]:
        return {one.story_id: one.outcome for one in result.stories}

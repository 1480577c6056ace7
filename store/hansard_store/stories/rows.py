"""Stories of outside sources: which were processed, and the verdict on each.

A story is classified once, accepted or not. Its row is written in one transaction with the note
that an accepted one becomes (`story_book.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import orjson

from hansard_store.errors import StoreError

_KNOWN = """
SELECT story_id FROM processed_story
WHERE source = ? AND story_id IN (SELECT value FROM json_each(?))
"""
_ADD = """
INSERT INTO processed_story (
  source, story_id, title, url, score, accepted, interest, classifier, classifier_score, threshold,
  processed_ns, memory
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_LATEST = """
SELECT story.source, story.story_id, story.title, story.url, story.score, story.classifier,
  story.classifier_score, story.threshold, story.processed_ns, lower(hex(note.memory_id)),
  lower(hex(interest.memory_id)), body.subject
FROM processed_story AS story INDEXED BY processed_story_time
LEFT JOIN memory AS note ON note.id = story.memory
LEFT JOIN memory AS interest ON interest.id = story.interest
LEFT JOIN memory_body AS body ON body.memory = story.interest
ORDER BY story.processed_ns DESC, story.source DESC, story.story_id DESC LIMIT :limit
"""
_FORGET = """
UPDATE processed_story INDEXED BY processed_story_memory SET title = '', url = '' WHERE memory = ?
"""


class AlreadyProcessed(StoreError):
    """Another process was first: its verdict stands."""

    code = "already_processed"

    def __init__(self, source: str, story_id: str) -> None:
        super().__init__(f"story {story_id!r} of {source!r} was processed already")


@dataclass(frozen=True, slots=True)
class Story:
    """What a source tells of a story."""

    source: str
    story_id: str
    title: str
    url: str
    score: int  # the source's own: points


@dataclass(frozen=True, slots=True)
class JudgedStory:
    """A story, and a classifier's verdict on it."""

    story: Story
    interest: int | None  # the nearest, a memory's number; None: it is near none
    classifier: str
    score: float  # how near, 0 to 1
    threshold: float

    @property
    def is_accepted(self) -> bool:
        return self.interest is not None and self.score >= self.threshold


@dataclass(frozen=True, slots=True)
class ProcessedStory:
    """A story as it was processed."""

    story: Story
    classifier: str
    score: float
    threshold: float
    processed_ns: int
    memory_id: str | None  # its note; None: it was refused
    interest_id: str | None
    interest: str  # the subject; "" for none, or one that was purged


def known_ids(connection: apsw.Connection, source: str, ids: Sequence[str]) -> set[str]:
    """Return which of these stories were processed, accepted or not."""
    rows: Any = connection.execute(_KNOWN, (source, orjson.dumps(list(ids)).decode()))
    return {story_id for (story_id,) in rows}


def add(connection: apsw.Connection, one: JudgedStory, *, memory: int | None, now_ns: int) -> None:
    """Store the verdict on a story, inside a transaction. Raises AlreadyProcessed."""
    story = one.story
    connection.execute(
        _ADD,
        (
            story.source, story.story_id, story.title, story.url, story.score,
            int(one.is_accepted), one.interest, one.classifier, one.score, one.threshold,
            now_ns, memory,
        ),
    )  # fmt: skip
    if not connection.changes():
        raise AlreadyProcessed(story.source, story.story_id)


def list_processed(connection: apsw.Connection, *, limit: int) -> list[ProcessedStory]:
    """Return what was processed, the last first."""
    return [_processed(row) for row in connection.execute(_LATEST, {"limit": limit}).fetchall()]


def forget(connection: apsw.Connection, memory: int) -> None:
    """Remove the words of the story that a note was made of; that it was processed stays."""
    connection.execute(_FORGET, (memory,))


def _processed(row: Sequence[Any]) -> ProcessedStory:
    classifier, score, threshold, at_ns, note, interest, subject = row[5:]
    return ProcessedStory(
        Story(*row[:5]),
        classifier,
        score,
        threshold,
        at_ns,
        memory_id=note or None,
        interest_id=interest or None,
        interest=subject or "",
    )

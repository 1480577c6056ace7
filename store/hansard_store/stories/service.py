"""What a scan reads of the store, interests and known stories, and the one way it writes there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import apsw

from hansard_compiler.compile.models import EXTERNAL
from hansard_compiler.models.memory import EXTERNAL_CONFIDENCE, Namespace, WriteMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreError
from hansard_store.memory.access_log import record
from hansard_store.memory.errors import MemoryNotRetained
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.records import Memory, Origin, Toucher
from hansard_store.memory.service import MemoryService, WrittenMemory
from hansard_store.stories import rows as stories
from hansard_store.stories.rows import JudgedStory, Story

MOST_INTERESTS: Final = 200
SCANNER: Final = "scanner"  # who reads interests and writes notes


class SubjectConflict(StoreError):
    """A note would take the place of a record that somebody else wrote, or wait behind it."""

    code = "subject_conflict"

    def __init__(self, story: Story) -> None:
        super().__init__(
            f"memory has a record of its own for {_attribute(story)!r}; it stays as it is"
        )


class StoryService:
    """Interests, and the stories that were held against them, of one store."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "cli",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open it; raises MemoryNotRetained where the store keeps no content to make notes of."""
        if mode is RetentionMode.METADATA_ONLY:
            raise MemoryNotRetained
        self._retention = Retention.of(folder, mode)
        self._memory = MemoryService(folder, mode, origin=origin, clock=clock)
        self._connections = OwnConnections(folder)
        self._origin: Origin = origin
        self._clock = clock

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._memory.close()
        self._connections.close()

    def interests(self) -> list[Memory]:
        """Return the interests that stand, the last written first, and record that they were read.

        Of every namespace, at most 200.
        """
        now_ns = self._clock()
        filters = MemoryFilter(memory_type="interest")
        connection = self._connections.get()
        found = list_memories(connection, filters, now_ns=now_ns, limit=MOST_INTERESTS).items
        with self._connections.writing() as connection:
            who = Toucher(self._origin, agent=SCANNER)
            record(connection, "read", [one.id for one in found], who, now_ns=now_ns)
        return list(found)

    def known(self, source: str, ids: Sequence[str]) -> set[str]:
        """Return which of these stories were processed."""
        return stories.known_ids(self._connections.get(), source, ids)

    def without_secrets(self, story: Story) -> Story:
        """Return a story as it may be classified and stored."""
        clean = self._retention.clean_text
        return replace(story, title=clean(story.title), url=clean(story.url))

    def record(self, judged: JudgedStory, interest: Memory | None) -> Memory | None:
        """Store the verdict on a story, and return the note that an accepted one becomes.

        Row and note are one transaction: after a crash both are there, or the story is new.
        Raises AlreadyProcessed, SubjectConflict, StoreBusyError.
        """
        if interest is None or not judged.is_accepted:
            with self._connections.writing() as connection:
                stories.add(connection, judged, memory=None, now_ns=self._clock())
            return None

        def along(connection: apsw.Connection, written: WrittenMemory) -> None:
            if written.outcome not in ("current", "repeat") or written.superseded:
                raise SubjectConflict(judged.story)
            stories.add(connection, judged, memory=written.memory.id, now_ns=self._clock())

        return self._memory.write(_note(judged, interest), along=along).memory


def _note(judged: JudgedStory, interest: Memory) -> WriteMemory:
    """Return the note of an accepted story: in its interest's place, and trusted by nobody."""
    story = judged.story
    return WriteMemory(
        writer="app",
        by=f"{SCANNER}:{story.source}",
        agent=SCANNER,
        memory_type="note",
        namespace=Namespace(**interest.namespace),
        scope=dict(interest.scope),
        subject=interest.subject,
        attribute=_attribute(story),
        content=f"{story.title}\n{story.url}",
        confidence=EXTERNAL_CONFIDENCE,
        tags=[EXTERNAL, story.source],
        metadata={
            "origin": EXTERNAL,
            "source": story.source,
            "story_id": story.story_id,
            "url": story.url,
            "score": story.score,
            "interest": interest.memory_id,
            "classifier": judged.classifier,
            "classifier_score": judged.score,
        },
    )


def _attribute(story: Story) -> str:
    """Return what tells one story from others of its subject; no other record is called so."""
    return f"{story.source}:{story.story_id}"

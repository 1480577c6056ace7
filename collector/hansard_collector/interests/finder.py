"""Finding interests: extract topics of each namespace, check them, and write those that are new."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_collector.interests.entries import (
    WINDOW_NS,
    Place,
    RecentEntries,
    recent_entries,
    texts_of,
)
from hansard_collector.interests.support import Likeness, supporting
from hansard_collector.interests.topics import LONGEST_TOPIC, MOST_TOPICS, Entry, Extractor, Topic
from hansard_compiler.embedder import Embedder
from hansard_compiler.models.memory import Namespace, WriteMemory
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.memory.errors import NotRemembered
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.records import Memory
from hansard_store.memory.service import MemoryBook

ORIGIN: Final = "interests"  # in the metadata of what is written here
BY: Final = "heartbeat:interests"
_MOST_KNOWN: Final = 1_000  # interests that a topic is compared with, the last written
_MOST_CITED: Final = 32

Outcome = Literal["new", "known", "unsupported"]


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """One topic of an extraction, and what it became."""

    text: str
    place: Place
    outcome: Outcome
    entries: Sequence[str]  # memory ids that support it
    memory_id: str | None = None  # the interest: of a known one the other; None in a dry run


@dataclass(frozen=True, slots=True)
class InterestsResult:
    """What one extraction found."""

    extractor: str
    recent: RecentEntries
    topics: Sequence[FoundTopic]

    @property
    def figures(self) -> dict[str, Any]:
        """How many entries were read and left out, and how many topics came to which end."""
        ends = Counter(one.outcome for one in self.topics)
        return {
            "extractor": self.extractor,
            "entries": self.recent.count,
            "types": self.recent.types,
            "namespaces": len(self.recent.by_place),
            "excluded_diagnostic": self.recent.excluded["diagnostic"],
            "excluded_external": self.recent.excluded["external"],
            "topics": len(self.topics),
            "written": ends["new"],
            "known": ends["known"],
            "unsupported": ends["unsupported"],
            "digest": self.recent.digest,
        }


@dataclass(frozen=True, slots=True)
class InterestFinder:
    """Extracts the interests of one store."""

    folder: DataFolder
    mode: RetentionMode
    extractor: Extractor
    embedder: Embedder | None = None  # None: near-duplicates are found by their words alone
    clock: Callable[[], int] = time.time_ns
    window_ns: int = WINDOW_NS

    def recent(self) -> RecentEntries:
        """Return the entries that topics would come from. Raises NotRemembered."""
        if self.mode is RetentionMode.METADATA_ONLY:
            raise NotRemembered
        now_ns = self.clock()
        with closing(open_reader(self.folder)) as connection:
            redactor = Redactor(self.folder.key())
            since_ns = now_ns - self.window_ns
            return recent_entries(connection, redactor, now_ns=now_ns, since_ns=since_ns)

    def find(self, recent: RecentEntries, *, step_id: str | None) -> InterestsResult:
        """Extract topics, and write those that are new, as of a step; None: a dry run.

        Raises what the extractor raises, ProviderError and BadJudgement for a model; then nothing
        is written, of no namespace.
        """
        extracted = {
            place: self.extractor(entries, limit=MOST_TOPICS)
            for place, entries in recent.by_place.items()
        }
        with closing(open_reader(self.folder)) as connection:
            known = self._known(connection)
        likeness = Likeness(self.embedder)
        topics: list[FoundTopic] = []
        for place, found in extracted.items():
            of_place = known.setdefault(place, [])
            topics += self._checked(found, recent.by_place[place], of_place, likeness, place=place)
        if step_id is not None:
            topics = self._written(topics, step_id)
        return InterestsResult(self.extractor.name, recent, topics)

    def _known(self, connection: apsw.Connection) -> dict[Place, list[tuple[str, str]]]:
        """Return what each namespace's interests say, with their ids, whatever became of them.

        One that a person invalidated is not written again.
        """
        wanted = MemoryFilter(memory_type="interest", state="all")
        page = list_memories(connection, wanted, now_ns=self.clock(), limit=_MOST_KNOWN)
        known: dict[Place, list[tuple[str, str]]] = {}
        for one in page.items:
            place = (one.project, one.user, one.agent)
            known.setdefault(place, []).extend((said, one.memory_id) for said in _said(one))
        return known

    def _checked(
        self,
        found: Sequence[Topic],
        entries: Sequence[Entry],
        known: list[tuple[str, str]],
        likeness: Likeness,
        *,
        place: Place,
    ) -> Iterator[FoundTopic]:
        """Yield each topic with its support; of two that are one the first is new."""
        for topic in found[:MOST_TOPICS]:
            text = " ".join(topic.text.split())[:LONGEST_TOPIC]
            cited = supporting(Topic(text, topic.entries), entries)
            if not cited:
                yield FoundTopic(text, place, "unsupported", ())
                continue
            like = likeness.find(text, [said for said, _ in known])
            if like is not None:
                yield FoundTopic(text, place, "known", cited, known[like][1] or None)
                continue
            known.append((text, ""))
            yield FoundTopic(text, place, "new", cited)

    def _written(self, topics: Sequence[FoundTopic], step_id: str) -> list[FoundTopic]:
        with closing(MemoryBook(self.folder, self.mode, origin="cli", clock=self.clock)) as memory:
            return [
                one if one.outcome != "new" else self._write(memory, one, step_id) for one in topics
            ]

    def _write(self, memory: MemoryBook, topic: FoundTopic, step_id: str) -> FoundTopic:
        project, user, agent = topic.place
        written = memory.write(
            WriteMemory(
                writer="post_step_summarizer",
                by=BY,
                agent="hansard.heartbeat",
                step_id=step_id,
                memory_type="interest",
                namespace=Namespace(
                    project=project or None, user=user or None, agent=agent or None
                ),
                subject=topic.text,
                content=topic.text,
                metadata={
                    "origin": ORIGIN,
                    "extractor": self.extractor.name,
                    "entries": list(topic.entries[:_MOST_CITED]),
                },
            )
        )
        return FoundTopic(topic.text, topic.place, "new", topic.entries, written.memory.memory_id)


def _said(one: Memory) -> Sequence[str]:
    """Return what an interest is called: its content, and its subject where that says more."""
    content = one.content if isinstance(one.content, str) else " ".join(texts_of(one.content))
    return [text for text in dict.fromkeys((content, one.subject)) if text]


def result_json(result: InterestsResult) -> Mapping[str, Any]:
    """Return an extraction as JSON."""
    return {
        **result.figures,
        "found": [
            {
                "topic": one.text,
                "outcome": one.outcome,
                "namespace": _named(one.place),
                "entries": list(one.entries),
                "memory_id": one.memory_id,
            }
            for one in result.topics
        ],
    }


def _named(place: Place) -> dict[str, str]:
    named = zip(("project", "user", "agent"), place, strict=True)
    return {name: value for name, value in named if value}

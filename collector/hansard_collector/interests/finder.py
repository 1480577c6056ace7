"""Finding interests: extract topics of each namespace, check them, and write those that are new."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import apsw

from hansard_collector.heartbeat.notes import AGENT, DIAGNOSTIC
from hansard_collector.interests.topics import (
    LONGEST_TOPIC,
    MOST_TOPICS,
    Extractor,
    Topic,
    TopicEntry,
    roots,
)
from hansard_collector.judges.embedders import PIECES, cosine
from hansard_compiler.compile.models import EXTERNAL
from hansard_compiler.models.memory import Namespace, WriteMemory
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.relevance import Embedder, Vector
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.words import WORD
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.memory.errors import MemoryNotRetained
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.records import Memory
from hansard_store.memory.service import MemoryService

# Recent memory that topics come from: decisions, notes and corrections, without diagnostics.

TYPES: Final = ("decision", "note", "correction")
WINDOW_NS: Final = 14 * 24 * 3_600 * 10**9
MOST_OF_TYPE: Final = 200  # the last written
MOST_NAMESPACES: Final = 20  # those written to last
_LONGEST: Final = 4_000  # characters of an entry that are looked at
# What writes about the work of Hansard itself, or copies what strangers wrote.
_ORIGINS: Final = frozenset({DIAGNOSTIC, EXTERNAL, "evaluation", "maintenance", "interests"})
_WRITERS: Final = ("heartbeat:", "scanner:")
# Notes of older systems that have no origin.
PREFIXES: Final = ("[log-review]", "[evaluation]", "[longitudinal]", "[peep]")

Owner = tuple[str, str, str]  # project, user, agent; "" for none


@dataclass(frozen=True, slots=True)
class RecentEntries:
    """What was read, by namespace, those written to last first."""

    by_owner: dict[Owner, list[TopicEntry]]
    excluded: dict[str, int]  # how many were left out: diagnostic, external

    @property
    def count(self) -> int:
        return sum(map(len, self.by_owner.values()))

    @property
    def types(self) -> dict[str, int]:
        """How many there are of each type."""
        counts = dict.fromkeys(TYPES, 0)
        for found in self.by_owner.values():
            for one in found:
                counts[one.memory_type] += 1
        return counts

    @property
    def digest(self) -> str:
        """Names the set of entries: equal ones give the same topics."""
        names = sorted(one.memory_id for found in self.by_owner.values() for one in found)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]


def recent_entries(
    connection: apsw.Connection, redactor: Redactor, *, now_ns: int, since_ns: int
) -> RecentEntries:
    """Return the current decisions, notes and corrections written since a time.

    Diagnostics and what came from outside are left out and counted, by origin and writer, and by
    the prefixes of notes that have no origin. These reads do not count as retrievals.
    """
    found: list[Memory] = []
    for memory_type in TYPES:
        filters = MemoryFilter(memory_type=memory_type)
        page = list_memories(connection, filters, now_ns=now_ns, limit=MOST_OF_TYPE)
        found += [one for one in page.items if one.created_ns >= since_ns]
    found.sort(key=lambda one: -one.id)
    by_place: dict[Owner, list[TopicEntry]] = defaultdict(list)
    excluded = {DIAGNOSTIC: 0, EXTERNAL: 0}
    for one in found:
        reason = excluded_as(one)
        if reason is not None:
            excluded[reason] += 1
            continue
        by_place[one.project, one.user, one.agent].append(_entry(one, redactor))
    return RecentEntries(dict(list(by_place.items())[:MOST_NAMESPACES]), excluded)


def excluded_as(one: Memory) -> str | None:
    """Return why a record is no source of interests, `diagnostic` or `external`; None: it is."""
    origin = one.metadata.get("origin")
    by = one.written_by or ""
    if origin == EXTERNAL or EXTERNAL in one.tags or by.startswith("scanner:"):
        return EXTERNAL
    is_noise = (isinstance(origin, str) and origin in _ORIGINS) or by.startswith(_WRITERS)
    texts = [text.lstrip().lower() for text in texts_of(one.content)]
    is_old = any(text.startswith(PREFIXES) for text in texts)
    return DIAGNOSTIC if is_noise or is_old or one.agent == AGENT else None


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content; of an object its values, without their names."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, Mapping):
        content = list(content.values())
    if isinstance(content, list | tuple):
        return [text for one in content for text in texts_of(one)]
    return []


def _entry(one: Memory, redactor: Redactor) -> TopicEntry:
    content = "\n".join(texts_of(one.content))[:_LONGEST]
    clean = [redactor.redact_text(text).text for text in (one.subject, content)]
    return TopicEntry(one.memory_id, one.memory_type, *clean)


# Whether a topic is what its entries say, and whether two topics are one.

_MOST_LACKING: Final = 3  # of so many words of a topic less than one may be the extractor's own
_SAME_PCT: Final = 60  # of the words of two topics
# From which cosine on two topics are one; measured with `python -m bench interests`.
_NEAR: Final = {PIECES: 0.8, "wordllama/1": 0.85}
_NEAR_BY_MODEL: Final = 0.9


def supporting(topic: Topic, entries: Sequence[TopicEntry]) -> list[str]:
    """Return the ids of the entries that support a topic, in their order; none: it has no support.

    One entry has to say it: nearly all of the topic's words (more than two thirds), and every name
    in it. Words of two entries do not add up, as they would in "escalation scoring with FTS5".
    Cited entries are held against the topic; where it cites none, all are.
    """
    topic_roots = frozenset(roots(topic.text))
    if not topic_roots:
        return []
    names = frozenset(term for word in WORD.findall(topic.text) if _is_name(word)
                      for term in roots(word))  # fmt: skip
    cited = entries
    if topic.entries is not None:
        ids = frozenset(topic.entries)
        cited = [one for one in entries if one.memory_id in ids]
    return [one.memory_id for one in cited if _says(frozenset(roots(one.text)), topic_roots, names)]


def is_one_topic(a: str, b: str) -> bool:
    """Whether two topics share their words: the same stems, most of them, or one within the other.

    A single word is no part of another topic: "search" is wider than "full text search".
    """
    words = [frozenset(roots(one)) for one in (a, b)]
    if not all(words):
        return a.strip().casefold() == b.strip().casefold()
    common = len(words[0] & words[1])
    least = min(map(len, words))
    if least > 1 and common == least:
        return True
    return 100 * common >= _SAME_PCT * len(words[0] | words[1])


class Likeness:
    """Finds topics that are one: by their words and, with an embedder, by meaning.

    Each text is embedded once for as long as it lives.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}

    def find(self, topic: str, known: Sequence[str]) -> int | None:
        """Return the place of the known topic that is the same one; None for a new topic.

        Raises HansardError where the embedder does.
        """
        for index, one in enumerate(known):
            if is_one_topic(topic, one):
                return index
        if self._embedder is None or not known:
            return None
        self._embed(self._embedder, [topic, *known])
        first = self._vectors[topic]
        near = [cosine(first, self._vectors[one]) for one in known]
        best = max(range(len(near)), key=near.__getitem__)
        least = _NEAR.get(self._embedder.name, _NEAR_BY_MODEL)
        return best if near[best] >= least else None

    def _embed(self, embedder: Embedder, texts: Sequence[str]) -> None:
        new = [one for one in dict.fromkeys(texts) if one not in self._vectors]
        self._vectors.update(zip(new, embedder(new), strict=True))


def _says(stated: frozenset[str], sought: frozenset[str], names: frozenset[str]) -> bool:
    lacking = len(sought - stated)
    return names <= stated and lacking * _MOST_LACKING < len(sought)


def _is_name(word: str) -> bool:
    """Return whether a word is spelled like a name: FTS5, SQLite, gpt4; not as a first word."""
    has_digit = any(map(str.isdigit, word))
    return has_digit or any(map(str.isupper, word[1:]))


ORIGIN: Final = "interests"  # in the metadata of what is written here
BY: Final = "heartbeat:interests"
_MOST_KNOWN: Final = 1_000  # interests that a topic is compared with, the last written
_MOST_CITED: Final = 32

Outcome = Literal["new", "known", "unsupported"]


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """One topic of an extraction, and its outcome."""

    text: str
    owner: Owner
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
            "namespaces": len(self.recent.by_owner),
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
        """Return the entries that topics would come from. Raises MemoryNotRetained."""
        if self.mode is RetentionMode.METADATA_ONLY:
            raise MemoryNotRetained
        now_ns = self.clock()
        with closing(open_reader(self.folder)) as connection:
            redactor = Redactor(self.folder.key())
            since_ns = now_ns - self.window_ns
            return recent_entries(connection, redactor, now_ns=now_ns, since_ns=since_ns)

    def find(self, recent: RecentEntries, *, step_id: str | None) -> InterestsResult:
        """Extract topics, and write those that are new, as of a step; None: a dry run.

        Raises what the extractor raises, ProviderError and InvalidJudgement for a model; then
        nothing is written, of no namespace.
        """
        extracted = {
            owner: self.extractor(entries, limit=MOST_TOPICS)
            for owner, entries in recent.by_owner.items()
        }
        with closing(open_reader(self.folder)) as connection:
            known = self._known(connection)
        likeness = Likeness(self.embedder)
        topics: list[FoundTopic] = []
        for owner, found in extracted.items():
            of_place = known.setdefault(owner, [])
            topics += self._checked(found, recent.by_owner[owner], of_place, likeness, owner=owner)
        if step_id is not None:
            topics = self._written(topics, step_id)
        return InterestsResult(self.extractor.name, recent, topics)

    def _known(self, connection: apsw.Connection) -> dict[Owner, list[tuple[str, str]]]:
        """Return the texts of each namespace's interests, with their ids, in any state.

        One that a person invalidated is not written again.
        """
        filters = MemoryFilter(memory_type="interest", state="all")
        page = list_memories(connection, filters, now_ns=self.clock(), limit=_MOST_KNOWN)
        known: dict[Owner, list[tuple[str, str]]] = {}
        for one in page.items:
            owner = (one.project, one.user, one.agent)
            known.setdefault(owner, []).extend((text, one.memory_id) for text in _texts_of(one))
        return known

    def _checked(
        self,
        found: Sequence[Topic],
        entries: Sequence[TopicEntry],
        known: list[tuple[str, str]],
        likeness: Likeness,
        *,
        owner: Owner,
    ) -> Iterator[FoundTopic]:
        """Yield each topic with its support; of two that are one the first is new."""
        for topic in found[:MOST_TOPICS]:
            text = " ".join(topic.text.split())[:LONGEST_TOPIC]
            cited = supporting(Topic(text, topic.entries), entries)
            if not cited:
                yield FoundTopic(text, owner, "unsupported", ())
                continue
            like = likeness.find(text, [one for one, _ in known])
            if like is not None:
                yield FoundTopic(text, owner, "known", cited, known[like][1] or None)
                continue
            known.append((text, ""))
            yield FoundTopic(text, owner, "new", cited)

    def _written(self, topics: Sequence[FoundTopic], step_id: str) -> list[FoundTopic]:
        with closing(
            MemoryService(self.folder, self.mode, origin="cli", clock=self.clock)
        ) as memory:
            return [
                one if one.outcome != "new" else self._write(memory, one, step_id) for one in topics
            ]

    def _write(self, memory: MemoryService, topic: FoundTopic, step_id: str) -> FoundTopic:
        project, user, agent = topic.owner
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
        return replace(topic, memory_id=written.memory.memory_id)


def _texts_of(one: Memory) -> Sequence[str]:
    """Return the texts of an interest: its content, and its subject where that adds to it."""
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
                "namespace": _named(one.owner),
                "entries": list(one.entries),
                "memory_id": one.memory_id,
            }
            for one in result.topics
        ],
    }


def _named(owner: Owner) -> dict[str, str]:
    named = zip(("project", "user", "agent"), owner, strict=True)
    return {name: value for name, value in named if value}

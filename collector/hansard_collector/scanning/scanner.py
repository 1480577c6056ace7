"""A scan: fetch what is new among a source's top stories, classify each once, keep what was said.

A story that fails is counted and left for the next scan; the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from hansard_collector.scanning.errors import BadVerdict, NoInterests, SourceDown
from hansard_collector.scanning.sources import StorySource
from hansard_compiler.classifier import Classifier, Question, WordOverlap
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.transport.failures import CallFailed
from hansard_store.memory.records import Memory
from hansard_store.stories.rows import AlreadyProcessed, Judged, Story
from hansard_store.stories.service import StoryBook

LIMIT: Final = 30  # a front page
THRESHOLD: Final = 0.6  # two of three words, or three of five
MOST_STORIES: Final = 500
_MOST_DOWN: Final = 3  # in a row: then the source, or the classifier's provider, is down

Progress = Callable[[str, int, int], None]  # of what, how many by now, and of how many
Outcome = Literal["accepted", "refused", "failed", "known", "left"]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What became of one story of the list."""

    story_id: str
    outcome: Outcome
    story: Story | None = None  # None: it was not fetched, or could not be
    interest: Memory | None = None  # the nearest
    score: float = 0.0  # how near
    memory_id: str | None = None  # the note that an accepted one became; None in a dry run
    error: HansardError | None = None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan did, story by story."""

    source: str
    classifier: str
    interests: int
    stories: Sequence[Scanned]

    @property
    def figures(self) -> Mapping[str, int]:
        """How many stories were listed and fetched, and how many came to which end."""
        ends = Counter(one.outcome for one in self.stories)
        counts = {end: ends[end] for end in get_args(Outcome)}
        listed = len(self.stories)
        fetched = sum(one.story is not None for one in self.stories)
        return {"listed": listed, "fetched": fetched, **counts}

    @property
    def has_failed(self) -> bool:
        """Whether source or classifier went down, or nothing that was listed is of use.

        A story that fails among others is none of its faults: deleted ones stay on lists for days.
        """
        figures = self.figures
        return figures["left"] > 0 or 0 < figures["failed"] == figures["listed"]


@dataclass(frozen=True, slots=True)
class Scanner:
    """Holds the stories of one source against the interests in memory."""

    source: StorySource
    book: StoryBook
    classifier: Classifier = field(default_factory=WordOverlap)
    threshold: float = THRESHOLD
    is_dry: bool = False  # nothing is kept: the next scan classifies them again

    def scan(self, *, limit: int = LIMIT, progress: Progress = lambda *_: None) -> ScanResult:
        """Scan the top stories. Raises NoInterests, and SourceDown or BadAnswer for the list."""
        interests = self.book.interests()
        if not interests:
            raise NoInterests
        ids = self.source.top(limit)
        known = self.book.known(self.source.name, ids)
        labels = labels_of(interests)
        stories = []
        for scanned in self._each(ids, known, labels):
            stories.append(scanned)
            progress("stories", len(stories), len(ids))
        return ScanResult(self.source.name, self.classifier.name, len(interests), stories)

    def _each(
        self, ids: Sequence[str], known: set[str], labels: Mapping[str, Memory]
    ) -> Iterator[Scanned]:
        down = 0
        for story_id in ids:
            if story_id in known or down == _MOST_DOWN:
                yield Scanned(story_id, "known" if story_id in known else "left")
                continue
            story = None
            try:
                # Before anything is done with it: a classifier may be a model elsewhere.
                story = self.book.without_secrets(self.source.story(story_id))
                yield self._one(story, labels)
                down = 0
            except AlreadyProcessed:
                yield Scanned(story_id, "known")
            except HansardError as error:
                down = down + 1 if isinstance(error, SourceDown | CallFailed) else 0
                yield Scanned(story_id, "failed", story, error=error)

    def _one(self, story: Story, labels: Mapping[str, Memory]) -> Scanned:
        verdict = self.classifier(Question("topic", story.title, tuple(labels)))
        if verdict.label not in (None, *labels) or not 0 <= verdict.score <= 1:
            raise BadVerdict(self.classifier.name)
        interest = labels[verdict.label] if verdict.label is not None else None
        number = None if interest is None else interest.id
        judged = Judged(story, number, self.classifier.name, verdict.score, self.threshold)
        note = None if self.is_dry else self.book.record(judged, interest)
        return Scanned(
            story.story_id,
            "accepted" if judged.is_accepted else "refused",
            story,
            interest,
            verdict.score,
            None if note is None else note.memory_id,
        )


def labels_of(interests: Sequence[Memory]) -> dict[str, Memory]:
    """Return what a story can be about: what each interest says, or its subject if that is no text.

    Not its subject beside that: "search" is a name for "SQLite full text search", and too wide.
    """
    labels: dict[str, Memory] = {}
    for interest in interests:
        said = interest.content if isinstance(interest.content, str) else interest.subject
        labels.setdefault(said, interest)
    return labels

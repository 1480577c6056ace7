"""The offline extractor of topics: phrases that several entries share, ranked.

A candidate is a run of up to four words that says something (common words end it). Its words may
stand in another order elsewhere: "linking corrections" is "correction linking". What counts is in
how many entries it stands; a phrase within longer ones counts as far as it stands alone (C-value:
Frantzi, Ananiadou and Mima, "Automatic recognition of multi-word terms", 2000).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, NamedTuple

from hansard_collector.interests.topics import MOST_TOPICS, Topic, TopicEntry, roots, within
from hansard_compiler.words import is_dense

# `words.toml` has the words that say nothing of a topic: they end a phrase, and are none.
_WORDS: Final = {
    kind: text.split()
    for kind, text in tomllib.loads(
        files(__package__).joinpath("words.toml").read_text(encoding="utf-8")
    ).items()
}
COMMON: Final = frozenset(_WORDS["function"] + _WORDS["verbs"] + _WORDS["general"])
EITHER: Final = frozenset(form for word in _WORDS["either"] for form in (word, f"{word}s"))

NAME: Final = "phrases/1"
_LONGEST: Final = 4  # words of a phrase
_MOST_STEMS: Final = 5
_LEAST_ENTRIES: Final = 2  # that a topic is in
_LEAST_OF_WORD: Final = 3  # entries that a single word is in
_SINGLE_SHARE: Final = 0.4  # what a single word counts beside a phrase
_LOOSE_SHARE: Final = 0.5  # what an entry counts with a phrase's words apart, in one sentence
_AGAIN_SHARE: Final = 0.4  # what it counts that a phrase stands in another place of an entry
_SUBJECT_SHARE: Final = 0.5  # more for what is the subject of a record
_OVERLAP_PCT: Final = 50  # of the words of two topics: with as many they are one
_MOST_COMPARED: Final = 400  # phrases
_MOST_CHARACTERS: Final = 120_000  # of all entries: more take seconds
_LONGEST_DENSE: Final = 8  # characters of a phrase of a script without spaces

_REMOVED: Final = re.compile(r"[‹<\[]\s*(?:redacted|withheld)[^›>\]]*[›>\]]", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_BREAK: Final = re.compile(r"[^\w\s'’.&-]|\.(?=\s|$)|\s[-–—]\s")
# A word with what it is made of: hyphens, apostrophes and dots within.
_TOKEN: Final = re.compile(r"[^\W_]+(?:[-'’._][^\W_]+)*")
_NOT_A_WORD: Final = re.compile(r"[\d.,:%-]+|(?=.*\d)[0-9a-f-]{7,}|.*\d{4,}.*|.+\.\w{1,4}")
_EDGE: Final = re.compile(r"\w{3,}(?:ed|ly)")  # begins and ends no phrase: "quickly", "delayed"

Key = frozenset[str]
Sentence = tuple[int, int]  # an entry and its sentence; 0 is the subject
Position = tuple[int, int, int]  # an entry, its sentence, and a clause in it


class _Word(NamedTuple):
    surface: str
    stems: tuple[str, ...]
    is_either: bool


@dataclass(slots=True)
class _Phrase:
    """One set of words that occurs together somewhere."""

    key: Key
    surfaces: dict[str, int] = field(default_factory=dict)
    places: set[Position] = field(default_factory=set)
    is_subject: bool = False

    def add(self, surface: str, position: Position, *, is_subject: bool) -> None:
        """Count one occurrence."""
        self.surfaces[surface] = self.surfaces.get(surface, 0) + 1
        self.places.add(position)
        self.is_subject |= is_subject

    @property
    def entries(self) -> set[int]:
        return {entry for entry, _, _ in self.places}

    @property
    def surface(self) -> str:
        """How it is mostly written; of equals the first."""
        return max(self.surfaces, key=self.surfaces.__getitem__)


@dataclass(frozen=True, slots=True)
class PhraseExtractor:
    """Finds topics by counting; the same on every machine."""

    name: str = NAME

    def __call__(
        self, entries: Sequence[TopicEntry], /, *, limit: int = MOST_TOPICS
    ) -> list[Topic]:
        """Return topics that two entries or more share, each with those entries."""
        phrases, apart = _read(within(entries, _MOST_CHARACTERS))
        supported = {
            phrase.key: found
            for phrase in phrases.values()
            if _is_repeated(phrase, found := _entries_of(phrase, apart))
        }
        weights = _heaviest(
            {key: _weight(phrases[key], found) for key, found in supported.items()}, phrases
        )
        ranked = sorted(
            ((_score(phrases[key], weights), key) for key in weights),
            key=lambda one: (-one[0], phrases[one[1]].surface),
        )
        chosen: list[Key] = []
        for score, key in ranked:
            if score <= 0 or len(chosen) == limit:
                break
            if not any(_are_one(key, other) for other in chosen):
                chosen.append(key)
        return [
            Topic(phrases[key].surface, [entries[at].memory_id for at in sorted(supported[key])])
            for key in chosen
        ]


# ---- what counts


def _is_repeated(phrase: _Phrase, entries: set[int]) -> bool:
    """Return whether a phrase is more than a remark: in several entries, or twice in one."""
    if len(phrase.key) == 1:
        return len(entries) >= _LEAST_OF_WORD
    return len(entries) >= _LEAST_ENTRIES or len(phrase.places) >= _LEAST_ENTRIES


def _entries_of(phrase: _Phrase, apart: Mapping[str, set[Sentence]]) -> set[int]:
    """Return the entries that have a phrase's words in one sentence, together or apart."""
    if len(phrase.key) == 1:
        return phrase.entries
    places = sorted((apart[stem] for stem in phrase.key), key=len)
    if len(places[0]) == 1:
        return phrase.entries  # one of its words stands in no other sentence
    return phrase.entries | {entry for entry, _ in set.intersection(*places)}


def _heaviest(weights: Mapping[Key, float], phrases: Mapping[Key, _Phrase]) -> dict[Key, float]:
    """Return the phrases that are compared with each other: so many that it stays quick."""
    if len(weights) <= _MOST_COMPARED:
        return dict(weights)

    def order(key: Key) -> tuple[float, str]:
        return -weights[key] * len(key), phrases[key].surface

    return {key: weights[key] for key in sorted(weights, key=order)[:_MOST_COMPARED]}


def _weight(phrase: _Phrase, entries: set[int]) -> float:
    strict = len(phrase.entries)
    again = min(1, len(phrase.places) - strict)
    return strict + _LOOSE_SHARE * (len(entries) - strict) + _AGAIN_SHARE * again


def _score(phrase: _Phrase, weights: Mapping[Key, float]) -> float:
    longer = [weight for key, weight in weights.items() if phrase.key < key]
    alone = weights[phrase.key] - (math.fsum(longer) / len(longer) if longer else 0.0)
    share = _SINGLE_SHARE if len(phrase.key) == 1 else math.log2(1 + len(phrase.key))
    return alone * share * (1 + _SUBJECT_SHARE * phrase.is_subject)


def _are_one(a: Key, b: Key) -> bool:
    common = len(a & b)
    return common > 0 and (
        common == min(len(a), len(b)) or 100 * common >= _OVERLAP_PCT * len(a | b)
    )


# ---- reading


def _read(entries: Sequence[TopicEntry]) -> tuple[dict[Key, _Phrase], dict[str, set[Sentence]]]:
    """Return the phrases of entries, and in which sentences each stem occurs."""
    phrases: dict[Key, _Phrase] = {}
    apart: dict[str, set[Sentence]] = defaultdict(set)
    for at, entry in enumerate(entries):
        sentences = [entry.subject, *_SENTENCE.split(_REMOVED.sub(" | ", entry.content))]
        for number, sentence in enumerate(sentences):
            for clause, run in enumerate(_runs(sentence)):
                for word in run:
                    for stem in word.stems:
                        apart[stem].add((at, number))
                for gram in _grams(run):
                    if len(gram) == 1 and not number:
                        continue  # the subject of a record by itself: a category, and no topic
                    key = frozenset(stem for word in gram for stem in word.stems)
                    surface = " ".join(word.surface for word in gram)
                    phrase = phrases.setdefault(key, _Phrase(key))
                    phrase.add(surface, (at, number, clause), is_subject=not number)
    return phrases, apart


def _runs(sentence: str) -> Iterator[list[_Word]]:
    """Yield the runs of words with content."""
    for clause in _BREAK.split(sentence):
        run: list[_Word] = []
        for found in _TOKEN.finditer(clause):
            word = _word(found[0], is_first=found.start() == 0)
            if word is not None:
                run.append(word)
            elif run:
                yield run
                run = []
        if run:
            yield run


def _word(token: str, *, is_first: bool) -> _Word | None:
    """Return a word, in small letters unless it is a name; None for one without content."""
    token = re.sub(r"['’]s$", "", token)
    low = token.lower()
    if low in COMMON or _NOT_A_WORD.fullmatch(low):
        return None
    stems = tuple(roots(token))
    if not stems or (is_dense(stems[0]) and len(token) > _LONGEST_DENSE):
        return None
    is_name = any(map(str.isupper, token[1:])) or any(map(str.isdigit, token))
    is_title = token[:1].isupper() and not is_first
    return _Word(token if is_name or is_title else low, stems, low in EITHER)


def _grams(run: Sequence[_Word]) -> Iterator[Sequence[_Word]]:
    """Yield the phrases of a run: those that begin and end with a noun, as far as is known."""
    for begin in range(len(run)):
        for end in range(begin + 1, min(begin + _LONGEST, len(run)) + 1):
            gram = run[begin:end]
            edges = (gram[0].surface, gram[-1].surface)
            stems = {stem for word in gram for stem in word.stems}
            if any(map(_EDGE.fullmatch, edges)) or len(stems) > _MOST_STEMS:
                continue
            if not all(word.is_either for word in gram):
                yield gram

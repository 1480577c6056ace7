"""Where in a sentence something is meant otherwise than it is said: planned, doubted, reported.

Each kind has its reach. What stands in it is no claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from hansard_collector.evaluation.languages import Language, is_of_plans, words_of
from hansard_collector.evaluation.sentences import ClaimToken

# Phrases found in tokens: a table by first words, so that a text costs its length.
#
# A phrase is words with spaces between them. `a|b` is either, `fail*` what begins so (not as its
# first word), `word?` a word that may be left out, `~` up to three words.

T = TypeVar("T")
_GAP: Final = "~"
_MOST_GAP: Final = 3
_MARKS: Final = frozenset(",;:()–—|-")


class ModalityHit(NamedTuple, Generic[T]):
    """A phrase at tokens `start` up to, and without, `end`."""

    start: int
    end: int
    value: T


@dataclass(slots=True)
class PhraseTable(Generic[T]):
    """Phrases of several kinds, and what each means."""

    _by_word: dict[str, list[tuple[tuple[str, ...], str, T]]] = field(default_factory=dict)

    def add(self, kind: str, phrases: Iterable[str], value: T) -> None:
        """Add phrases of a kind that mean a value."""
        for phrase in phrases:
            for words in _expanded(phrase.split()):
                if words:
                    self._by_word.setdefault(words[0], []).append((words[1:], kind, value))

    def key_words(self, *kinds: str) -> frozenset[str]:
        """Return a word of each phrase of some kinds, its longest: a text without it has it not."""
        return frozenset(
            max((first, *(one for one in rest if one[-1:] not in "*~")), key=len)
            for first, entries in self._by_word.items()
            for rest, kind, _ in entries
            if kind in kinds
        )

    def find(self, tokens: Sequence[ClaimToken]) -> dict[str, list[ModalityHit[T]]]:
        """Return by kind the longest phrase at each place, then those behind it.

        One pass finds all kinds: most words begin no phrase.
        """
        found: dict[str, list[ModalityHit[T]]] = {}
        known = self._by_word
        for at, token in enumerate(tokens):
            entries = known.get(token.text)
            if entries is None:
                continue
            best: dict[str, list[ModalityHit[T]]] = {}
            for rest, kind, value in entries:
                before = found.get(kind)
                if before and before[-1].end > at:
                    continue
                end = _matched(tokens, at + 1, rest) if rest else at + 1
                if end is None:
                    continue
                hits = best.get(kind)
                if hits is None or end > hits[0].end:
                    best[kind] = [ModalityHit(at, end, value)]
                elif end == hits[0].end and all(value != one.value for one in hits):
                    hits.append(ModalityHit(at, end, value))
            for kind, hits in best.items():
                found.setdefault(kind, []).extend(hits)
        return found


def _expanded(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a phrase in all its forms."""
    if not words:
        yield ()
        return
    first = words[0]
    optional = first.endswith("?")
    for rest in _expanded(words[1:]):
        for form in first.rstrip("?").split("|"):
            yield (form, *rest)
        if optional:
            yield rest


def _matched(tokens: Sequence[ClaimToken], at: int, words: Sequence[str]) -> int | None:
    for number, word in enumerate(words):
        if word == _GAP:
            for skip in range(_MOST_GAP + 1):
                if any(one.text in _MARKS for one in tokens[at : at + skip]):
                    return None
                end = _matched(tokens, at + skip, words[number + 1 :])
                if end is not None:
                    return end
            return None
        if at >= len(tokens) or not _fits(tokens[at].text, word):
            return None
        at += 1
    return at


def _fits(text: str, word: str) -> bool:
    return text.startswith(word[:-1]) if word.endswith("*") else text == word


_BUTS: Final = frozenset({"but", "aber", "jedoch", "mais", "pero", "sondern", "sin embargo"})
_SEMICOLON: Final = frozenset({";", "—", "–", "|"})
_TRAILING: Final = words_of("trailing_reports")
_YEARS: Final = ("19", "20")


_REACHES: Final = (
    ("conditions", "segment"),
    ("doubts", "segment"),
    ("plans", "after"),
    ("reports", "report"),
    ("other_times", "clause"),
    ("elsewhere", "segment"),
    ("subordinate", "rest of clause"),
)


@dataclass(frozen=True, slots=True)
class Scopes:
    """Tokens of a sentence that are not literal, and those that negate."""

    blocked: frozenset[int]
    negated: tuple[tuple[int, int], ...]

    def is_blocked(self, start: int, end: int) -> bool:
        """Return whether any of some tokens is not literal."""
        return any(at in self.blocked for at in range(start, end))

    def negations(self, start: int, end: int) -> int:
        """Return how many negations begin among some tokens."""
        return sum(start <= begin < end for begin, _ in self.negated)

    def is_negation(self, at: int) -> bool:
        """Return whether a token is of a negation."""
        return any(begin <= at < until for begin, until in self.negated)


def scopes_of(
    tokens: Sequence[ClaimToken],
    known: Language,
    hits: Mapping[str, Sequence[ModalityHit[Any]]],
    masked: Set[int],
) -> Scopes:
    """Return the scopes of a sentence; `masked` tokens are of a phrase that is known whole."""
    segments = _segments(tokens)
    clauses = _clauses(tokens)
    blocked: set[int] = set()
    for kind, reach in _REACHES:
        for hit in hits.get(kind, ()):
            if any(at in masked for at in range(hit.start, hit.end)):
                continue
            blocked |= _reached(tokens, hit.start, reach, segments, clauses, known)
    blocked |= _of_years(tokens, clauses)
    blocked |= _of_headings(tokens, segments)
    found = [
        (hit.start, hit.end)
        for hit in hits.get("negations", ())
        if not any(at in masked for at in range(hit.start, hit.end))
    ]
    return Scopes(frozenset(blocked), tuple(found))


def _reached(
    tokens: Sequence[ClaimToken],
    at: int,
    reach: str,
    segments: Sequence[range],
    clauses: Sequence[range],
    known: Language,
) -> set[int]:
    segment = next(one for one in segments if at in one)
    clause = next(one for one in clauses if at in one)
    if reach == "segment":
        return set(segment)
    if reach == "clause":
        return set(clause)
    if reach == "rest of clause":
        return set(range(at, clause.stop))
    if reach == "report":
        if at and tokens[at - 1].text in known.self:
            return set()
        if tokens[at].text in _TRAILING:
            return set(segment)
    return set(range(at, segment.stop))


def _segments(tokens: Sequence[ClaimToken]) -> list[range]:
    """Return independent parts: apart by `;`, dashes, or a "but"."""
    starts = [0]
    for at, token in enumerate(tokens):
        if token.text in _SEMICOLON or token.text in _BUTS:
            starts.append(at + 1 if token.text in _SEMICOLON else at)
    return _ranges(sorted(set(starts)), len(tokens))


def _clauses(tokens: Sequence[ClaimToken]) -> list[range]:
    starts = [0]
    for at, token in enumerate(tokens):
        if token.text in ",;:—–()" or token.text in _BUTS:
            starts.append(at)
    return _ranges(sorted(set(starts)), len(tokens))


def _ranges(starts: Sequence[int], size: int) -> list[range]:
    ends = [*starts[1:], size]
    return [range(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _of_years(tokens: Sequence[ClaimToken], clauses: Sequence[range]) -> set[int]:
    """Return the clauses that name a year: what was so then is not about now."""
    found: set[int] = set()
    for clause in clauses:
        for at in clause:
            word = tokens[at].text
            is_year = len(word) == 4 and word.isdigit() and word.startswith(_YEARS)
            if is_year and at and tokens[at - 1].text in ("in", "since", "im", "en", "of"):
                found |= set(clause)
    return found


def _of_headings(tokens: Sequence[ClaimToken], segments: Sequence[range]) -> set[int]:
    """Return what follows "Plan:" and the like on one line."""
    for at, token in enumerate(tokens[:5]):
        if token.text == ":":
            if is_of_plans(" ".join(one.text for one in tokens[:at])):
                return set(range(len(tokens)))
            break
    return set()

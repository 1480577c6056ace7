"""Phrases found in tokens: a table by first words, so that a text costs its length.

A phrase is words with spaces between them. `a|b` is either, `fail*` what begins so (not as its
first word), `word?` a word that may be left out, `~` up to three words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from hansard_collector.evaluation.sentences import Token

T = TypeVar("T")
_GAP: Final = "~"
_MOST_GAP: Final = 3
_MARKS: Final = frozenset(",;:()–—|-")


class Hit(NamedTuple, Generic[T]):
    """A phrase that stands at tokens `start` up to, and without, `end`."""

    start: int
    end: int
    value: T


@dataclass(slots=True)
class PhraseTable(Generic[T]):
    """Phrases of several kinds, and what each stands for."""

    _by_word: dict[str, list[tuple[tuple[str, ...], str, T]]] = field(default_factory=dict)

    def add(self, kind: str, phrases: Iterable[str], value: T) -> None:
        """Add phrases of a kind that stand for a value."""
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

    def find(self, tokens: Sequence[Token]) -> dict[str, list[Hit[T]]]:
        """Return by kind the longest phrase at each place, then those behind it.

        One pass finds all kinds: most words begin no phrase.
        """
        found: dict[str, list[Hit[T]]] = {}
        known = self._by_word
        for at, token in enumerate(tokens):
            entries = known.get(token.text)
            if entries is None:
                continue
            best: dict[str, list[Hit[T]]] = {}
            for rest, kind, value in entries:
                before = found.get(kind)
                if before and before[-1].end > at:
                    continue
                end = _matched(tokens, at + 1, rest) if rest else at + 1
                if end is None:
                    continue
                hits = best.get(kind)
                if hits is None or end > hits[0].end:
                    best[kind] = [Hit(at, end, value)]
                elif end == hits[0].end and all(value != one.value for one in hits):
                    hits.append(Hit(at, end, value))
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


def _matched(tokens: Sequence[Token], at: int, words: Sequence[str]) -> int | None:
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

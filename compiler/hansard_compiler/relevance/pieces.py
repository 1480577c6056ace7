"""Words and pieces of words: BM25 over stems, and beside it what words are made of.

A question asks about `rotating` and the text says `rotation`, `delivered` and `delivery`,
`unsubscribe` and `subscription`: no ending that could be cut makes them one word, but most runs of
four letters are the same. Each word of a query is taken apart into them; a text rates by the share
of a word's pieces that it holds, rare pieces before common ones. All in whole numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hansard_compiler.compile.items import MICRO
from hansard_compiler.redaction.prefilter import pattern_set
from hansard_compiler.relevance.bm25 import Bm25, idf, utf8
from hansard_compiler.words import WORD, is_dense, terms_of

_SIZE: Final = 4  # letters of a piece
_MOST_WORDS: Final = 32
_LONGEST: Final = 24  # letters of a word that are taken apart
_ENOUGH_PCT: Final = 40  # of a word's pieces: fewer are there by chance
_WORDS_PCT: Final = 50  # what whole words count, of the whole


@dataclass(frozen=True, slots=True)
class Pieces:
    """The default relevance: whole words for half of the rating, pieces for the other."""

    words: Bm25 = field(default_factory=Bm25)

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return 0 to 1,000,000 for each text."""
        by_word = self.words(query, texts)
        by_piece = _by_piece(query, texts)
        if by_piece is None:
            return by_word
        return [
            (_WORDS_PCT * word + (100 - _WORDS_PCT) * piece) // 100
            for word, piece in zip(by_word, by_piece, strict=True)
        ]


def _by_piece(query: str, texts: Sequence[str]) -> list[int] | None:
    """Return the share of the query's words, by weight, that a text holds pieces of."""
    wanted = _wanted(query)
    if not wanted or not texts:
        return None
    pieces = list(dict.fromkeys(piece for word in wanted for piece in word))
    number_of = {piece: number for number, piece in enumerate(pieces)}
    spotter = pattern_set(utf8(piece) for piece in pieces)
    found = [frozenset(spotter.Match(utf8(text.lower())) or ()) for text in texts]
    texts_with = Counter(number for one in found for number in one)
    # A piece that no text holds tells no text from another.
    rarity = [
        idf(len(texts), texts_with[number]) if texts_with[number] else 0
        for number in range(len(pieces))
    ]
    taken = [[number_of[piece] for piece in word] for word in wanted]
    whole = max(1, sum(rarity[number] for word in taken for number in word))
    return [MICRO * _held(one, taken, rarity) // whole if one else 0 for one in found]


def _held(found: frozenset[int], taken: Sequence[Sequence[int]], rarity: Sequence[int]) -> int:
    """Return the weight of the pieces that a text holds of the words it holds enough of."""
    held = 0
    for word in taken:
        there = [rarity[number] for number in word if number in found]
        if 100 * len(there) >= _ENOUGH_PCT * len(word):
            held += sum(there)
    return held


def _wanted(query: str) -> list[list[str]]:
    """Return the pieces of each word of a query that is long enough to have some."""
    words = dict.fromkeys(
        word.lower()[:_LONGEST]
        for word in WORD.findall(query)
        if len(word) > _SIZE and word.isalpha() and terms_of(word) and not is_dense(word)
    )
    return [
        list(dict.fromkeys(word[at : at + _SIZE] for at in range(len(word) - _SIZE + 1)))
        for word in list(words)[:_MOST_WORDS]
    ]

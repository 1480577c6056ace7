"""Embedders that need no network: hashed pieces of words, and the word vectors of an extra."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import Final

from hansard_collector.interests.topics import stems_of
from hansard_compiler.relevance import Vector
from hansard_compiler.words import WORD, is_dense

PIECES: Final = "hashed-pieces/1"
_DIMENSIONS: Final = 512
_SIZES: Final = (3, 4)  # letters of a piece
_PIECES_SHARE: Final = 0.5  # what the pieces of a word weigh together; the word itself weighs 1
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class HashedPieces:
    """The offline embedder: words and their pieces, each at a place that its hash names.

    Texts are near that share words, or words with common parts: it knows no synonyms. Sums are
    rounded, so that every machine has the same vectors.
    """

    name: str = PIECES
    dimensions: int = _DIMENSIONS

    def __call__(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector of length 1 for each text; zeros for one without words."""
        return [_vector(text) for text in texts]


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The word vectors that the extra `embeddings` brings (`wordllama/1`).

    Raises ScorerUnavailable without the extra. Sums are of whole numbers: two processes agree.
    """

    name: str = "wordllama/1"
    dimensions: int = 256

    def __call__(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector of length 1 for each text; zeros for one without words."""
        from hansard_compiler.relevance import text_vectors

        found = text_vectors(texts)
        return [unit(one) if one else (0.0,) * self.dimensions for one in found]


def unit(vector: Sequence[float]) -> Vector:
    """Return a vector at length 1, rounded to nine digits; one of zeros as it is."""
    length = math.sqrt(math.fsum(one * one for one in vector if one))
    if not length:
        return tuple(0.0 for _ in vector)
    return tuple(round(one / length, _DIGITS) if one else 0.0 for one in vector)


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two unit vectors, -1 to 1; 0 where one has no words."""
    total: float = sum(map(mul, a, b), 0.0)
    return total


def _vector(text: str) -> Vector:
    sums: dict[int, float] = {}
    words = Counter(one for word in WORD.findall(text) for one in stems_of(word))
    # In a fixed order: sums of floats depend on it.
    for word, times in sorted(words.items()):
        weight = math.sqrt(times)
        for index, share in _places(word):
            sums[index] = sums.get(index, 0.0) + weight * share
    return unit([sums.get(index, 0.0) for index in range(_DIMENSIONS)])


@lru_cache(maxsize=65_536)
def _places(word: str) -> tuple[tuple[int, float], ...]:
    """Return the dimensions of a word and its pieces, each with its weight and sign."""
    found = [_dimension(f"={word}", 1.0)]
    if not is_dense(word):
        padded = f"^{word}$"
        pieces = [padded[at : at + size] for size in _SIZES for at in range(len(padded) - size + 1)]
        found += [_dimension(piece, math.sqrt(_PIECES_SHARE / len(pieces))) for piece in pieces]
    return tuple(found)


def _dimension(piece: str, weight: float) -> tuple[int, float]:
    digest = hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return number % _DIMENSIONS, weight if number >> 63 else -weight

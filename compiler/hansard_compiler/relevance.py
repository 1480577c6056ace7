"""How well a text answers a query: Okapi BM25 in whole numbers, so that every machine agrees.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
inverse document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

from hansard_compiler.items import MICRO
from hansard_compiler.words import WORD, terms, terms_of

_EXACT = Context(prec=20)
_MOST_TERMS = 64  # of a query: the rarest count
_TWICE = 2  # a word said more often than this in the query counts no more
_WEAK = 4  # the best match counts as 1 when it reaches a fourth of the best thinkable


@dataclass(frozen=True, slots=True)
class Bm25:
    """The built-in relevance: rates texts against each other."""

    k1_milli: int = 1200
    b_milli: int = 750

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return 0 to 1,000,000 for each text; the best match has 1,000,000 unless it is weak."""
        wanted = Counter(terms(query))
        if not wanted or not texts:
            return [0] * len(texts)
        index = _Terms(wanted)
        counts = [_count(index, text) for text in texts]
        weights = self._weights(index, wanted, counts, of=len(texts))
        total_length = max(1, sum(length for length, _ in counts))
        raw = [
            self._rate(hits, weights, length * len(texts), total_length) for length, hits in counts
        ]
        ideal = sum(weights) * (self.k1_milli + 1000) // 1000
        best = max(max(raw), ideal // _WEAK, 1)
        return [one * MICRO // best for one in raw]

    def _weights(
        self,
        index: _Terms,
        wanted: Counter[str],
        counts: Sequence[tuple[int, Counter[int]]],
        *,
        of: int,
    ) -> list[int]:
        """Return each query term's weight in millionths: rarity, and how often it was said."""
        texts_with = Counter(number for _, hits in counts for number in hits)
        found = [
            _idf(of, texts_with[number]) * min(wanted[term], _TWICE)
            for number, term in enumerate(index.terms)
        ]
        if len(found) > _MOST_TERMS:
            least = sorted(found, reverse=True)[_MOST_TERMS - 1]
            found = [one if one >= least else 0 for one in found]
        return found

    def _rate(
        self, hits: Counter[int], weights: Sequence[int], length_by_n: int, total_length: int
    ) -> int:
        if not hits:
            return 0
        longer = (1000 - self.b_milli) * total_length + self.b_milli * length_by_n
        norm = self.k1_milli * longer // (1000 * total_length)
        return sum(
            weights[number] * times * (self.k1_milli + 1000) // (times * 1000 + norm)
            for number, times in hits.items()
        )


class _Terms(dict[str, tuple[int, ...]]):
    """Raw word -> numbers of the query's terms it holds, worked out once for each word."""

    def __init__(self, wanted: Counter[str]) -> None:
        super().__init__()
        self.terms = list(wanted)
        self._number = {term: number for number, term in enumerate(self.terms)}

    def __missing__(self, word: str) -> tuple[int, ...]:
        number = self._number
        found = tuple(number[term] for term in terms_of(word) if term in number)
        self[word] = found
        return found


def _count(index: _Terms, text: str) -> tuple[int, Counter[int]]:
    """Return a text's length in words, and how often each term of the query is in it."""
    words = WORD.findall(text)
    hits: Counter[int] = Counter()
    for found in filter(None, map(index.__getitem__, words)):
        hits.update(found)
    return len(words), hits


def _idf(texts: int, with_term: int) -> int:
    """Return the inverse document frequency in millionths; Decimal's ln is the same everywhere."""
    rarity = Decimal(2 * (texts - with_term) + 1) / Decimal(2 * with_term + 1)
    return int(_EXACT.ln(1 + rarity) * MICRO)

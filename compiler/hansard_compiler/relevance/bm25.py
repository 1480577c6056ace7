"""How well a text answers a query: Okapi BM25 in whole numbers, so that every machine agrees.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
inverse document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import re2

from hansard_compiler.compile.items import MICRO
from hansard_compiler.redaction.prefilter import pattern_set
from hansard_compiler.words import is_dense, stem, terms

_EXACT = Context(prec=20)
_MOST_TERMS = 64
_TWICE = 2  # a word said more often than this in the query counts no more
_MOST_HITS = 64
_SUSPECTED_CHARACTERS = 16
_NO_HITS: Mapping[int, int] = {}
_WEAK = 4  # the best match counts as 1 when it reaches a fourth of the best thinkable


@dataclass(frozen=True, slots=True)
class Bm25:
    """The built-in relevance: rates texts against each other."""

    k1_milli: int = 1200
    b_milli: int = 750

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return 0 to 1,000,000 for each text; the best match has 1,000,000 unless it is weak."""
        said = _said(query)
        if not said or not texts:
            return [0] * len(texts)
        wanted = [_Wanted(term) for term in said]
        spotter = pattern_set(one.begins for one in wanted)
        hits = [_hits(wanted, spotter, text) for text in texts]
        weights = _weights(said, hits)
        total_length = max(1, sum(map(len, texts)))
        raw = [
            self._rate(found, weights, len(text) * len(texts), total_length) if found else 0
            for text, found in zip(texts, hits, strict=True)
        ]
        ideal = sum(weights) * (self.k1_milli + 1000) // 1000
        best = max(max(raw), ideal // _WEAK, 1)
        return [one * MICRO // best for one in raw]

    def _rate(
        self, hits: Mapping[int, int], weights: Sequence[int], length_by_n: int, total_length: int
    ) -> int:
        longer = (1000 - self.b_milli) * total_length + self.b_milli * length_by_n
        norm = self.k1_milli * longer // (1000 * total_length)
        return sum(
            weights[number] * times * (self.k1_milli + 1000) // (times * 1000 + norm)
            for number, times in hits.items()
        )


def _said(query: str) -> Counter[str]:
    """Return a query's terms and how often each is said; of very many those said first."""
    said = Counter(terms(query))
    return said if len(said) <= _MOST_TERMS else Counter(dict(list(said.items())[:_MOST_TERMS]))


class _Wanted:
    """A term of the query, and how it is found in a text without taking the text apart.

    Most texts hold few of a query's terms, and `str.find` is ten times as fast as a tokenizer.
    """

    __slots__ = ("_forms", "_is_dense", "_needle", "_term", "begins")

    def __init__(self, term: str) -> None:
        self._term = term
        # A stem begins its words, but for `currency` and `currencies`.
        self._needle = term[:-1] if term.endswith("y") and len(term) > 3 else term
        # Enough to suspect it by, as a pattern over UTF-8: a word can be as long as a query.
        self.begins = re2.escape(utf8(self._needle[:_SUSPECTED_CHARACTERS]))
        self._is_dense = is_dense(term)
        self._forms: dict[str, bool] = {}

    def count(self, text: str, lower: str) -> int:
        """Return how often the term stands in a text; 64 times is often enough to know."""
        if self._is_dense:
            return lower.count(self._needle)
        found, at = 0, lower.find(self._needle)
        while at >= 0 and found < _MOST_HITS:
            if _begins_word(text, at):
                part = _LETTERS.match(text, at)
                found += self._is_form(lower[at : part.end() if part else at])
            at = lower.find(self._needle, at + 1)
        return found

    def _is_form(self, part: str) -> bool:
        known = self._forms.get(part)
        if known is None:
            known = self._forms[part] = stem(part) == self._term or part == self._term
        return known


# One part of an identifier: `Cents` of `toCents`, `CENTS` of `TO_CENTS`, `404`.
_LETTERS = re.compile(r"[A-Z]+(?![a-z])|[^\W\d_A-Z]+|[A-Z][^\W\d_A-Z]*|[0-9]+")


def _begins_word(text: str, at: int) -> bool:
    if at == 0:
        return True
    before, first = text[at - 1], text[at]
    if first.isdigit():
        return not before.isdigit()
    return not before.isalpha() or (first.isupper() and before.islower())


def _hits(wanted: Sequence[_Wanted], spotter: Any, text: str) -> Mapping[int, int]:
    """Return how often each term of the query, by number, is in a text; only those that are.

    One automaton looks for the beginnings of all terms at once: most texts hold none of them.
    """
    lower = text.lower()
    spotted = spotter.Match(utf8(lower))
    if not spotted:
        return _NO_HITS
    if len(lower) != len(text):  # a few letters grow: then the places differ
        text = lower
    counted = [(number, wanted[number].count(text, lower)) for number in spotted]
    return {number: times for number, times in counted if times}


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _weights(said: Counter[str], hits: Sequence[Mapping[int, int]]) -> list[int]:
    """Return each query term's weight in millionths: rarity, and how often it was said."""
    texts_with = Counter(number for found in hits for number in found)
    return [
        idf(len(hits), texts_with[number]) * min(times, _TWICE)
        for number, times in enumerate(said.values())
    ]


def idf(texts: int, with_term: int) -> int:
    """Return the inverse document frequency in millionths; Decimal's ln is the same everywhere."""
    rarity = Decimal(2 * (texts - with_term) + 1) / Decimal(2 * with_term + 1)
    return int(_EXACT.ln(1 + rarity) * MICRO)

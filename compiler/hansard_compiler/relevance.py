"""How well a text matches a query: one module for each scorer, and the list of them by name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache
from importlib.util import find_spec
from math import isqrt
from typing import Any, Final, Protocol

import re2

from hansard_compiler.compile.config import BM25, EMBEDDINGS, PIECES, Relevance, scorer_name
from hansard_compiler.compile.errors import ScorerUnavailable
from hansard_compiler.compile.items import MICRO
from hansard_compiler.compile.passes.layout import latest_user_request
from hansard_compiler.compile.ports import RelevancePort as Scorer
from hansard_compiler.compile.state import CompileState, Guarded
from hansard_compiler.redaction.prefilter import pattern_set
from hansard_compiler.words import WORD, is_dense, stem, terms, terms_of

# How well a text matches a query: Okapi BM25 in whole numbers, so that every machine agrees.
#
# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
# inverse document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.

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
        sought = _query_terms(query)
        if not sought or not texts:
            return [0] * len(texts)
        spotted = [_SpottedTerm(term) for term in sought]
        spotter = pattern_set(one.begins for one in spotted)
        hits = [_hits(spotted, spotter, text) for text in texts]
        weights = _weights(sought, hits)
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


def _query_terms(query: str) -> Counter[str]:
    """Return a query's terms and how often each is said; of very many those said first."""
    found = Counter(terms(query))
    return found if len(found) <= _MOST_TERMS else Counter(dict(list(found.items())[:_MOST_TERMS]))


class _SpottedTerm:
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
        """Return how often the term is in a text; 64 times is often enough to know."""
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


def _hits(sought: Sequence[_SpottedTerm], spotter: Any, text: str) -> Mapping[int, int]:
    """Return how often each term of the query, by number, is in a text; only those that are.

    One automaton looks for the beginnings of all terms at once: most texts hold none of them.
    """
    lower = text.lower()
    spotted = spotter.Match(utf8(lower))
    if not spotted:
        return _NO_HITS
    if len(lower) != len(text):  # a few letters grow: then the places differ
        text = lower
    counted = [(number, sought[number].count(text, lower)) for number in spotted]
    return {number: times for number, times in counted if times}


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _weights(query_terms: Counter[str], hits: Sequence[Mapping[int, int]]) -> list[int]:
    """Return each query term's weight in millionths: rarity, and how often it was said."""
    texts_with = Counter(number for found in hits for number in found)
    return [
        idf(len(hits), texts_with[number]) * min(times, _TWICE)
        for number, times in enumerate(query_terms.values())
    ]


def idf(texts: int, with_term: int) -> int:
    """Return the inverse document frequency in millionths; Decimal's ln is the same everywhere."""
    rarity = Decimal(2 * (texts - with_term) + 1) / Decimal(2 * with_term + 1)
    return int(_EXACT.ln(1 + rarity) * MICRO)


# Every scorer by the name that stands in a request, in its hash and in its receipts.


def scorer_named(name: str, settings: Relevance | None = None) -> Scorer:
    """Return a scorer by its name, short or with its version: `embeddings`, `bm25/1`.

    Raises ScorerUnavailable when it needs an extra that is not installed, and ValueError for a
    name that is none.
    """
    settings = settings or Relevance()
    words = Bm25(round(settings.k1 * 1000), round(settings.b * 1000))
    found = scorer_name(name)
    if found == BM25:
        return words
    return Pieces(words) if found == PIECES else Embeddings.load(Pieces(words))


__all__ = ["Bm25", "scorer_named"]


# What relevance is measured against: the task, and the current request.

_QUERY_KINDS = frozenset({"task"})


def query_of(state: CompileState, guarded: Mapping[str, Guarded]) -> str:
    """Return what relevance is measured against, without secrets: a compressor gets it too."""
    latest = latest_user_request(state.live)
    requests = [
        guarded[item.id].text for item in state.live if item is latest or item.kind in _QUERY_KINDS
    ]
    task = state.ports.redactor.redact_text(state.request.task_summary).text
    return "\n".join([task, *requests])


# One embedder interface: texts to vectors whose products say how near they are in meaning.
#
# The offline default is deterministic and needs nothing; the extra `embeddings` brings word
# vectors; a provider's model may stand in their place. The caller stores the embedder's name with
# each vector: vectors of two embedders are never compared.

Vector = Sequence[float]  # of length 1, so that a product of two is their cosine; all 0: no words


class Embedder(Protocol):
    """Returns a vector for each text. Raises HansardError where it cannot."""

    @property
    def name(self) -> str:
        """Its name and version, stored with each vector."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    def __call__(self, texts: Sequence[str]) -> Sequence[Vector]: ...


# Words and pieces of words: BM25 over stems, and beside it what words are made of.
#
# A question asks about `rotating` and the text says `rotation`, `delivered` and `delivery`,
# `unsubscribe` and `subscription`: no ending that could be cut makes them one word, but most runs
# of four letters are the same. Each word of a query is taken apart into them; a text rates by the
# share of a word's pieces that it holds, rare pieces before common ones. All in whole numbers.

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
    query_words = _query_words(query)
    if not query_words or not texts:
        return None
    pieces = list(dict.fromkeys(piece for word in query_words for piece in word))
    number_of = {piece: number for number, piece in enumerate(pieces)}
    spotter = pattern_set(utf8(piece) for piece in pieces)
    found = [frozenset(spotter.Match(utf8(text.lower())) or ()) for text in texts]
    texts_with = Counter(number for one in found for number in one)
    # A piece that no text holds separates no texts.
    rarity = [
        idf(len(texts), texts_with[number]) if texts_with[number] else 0
        for number in range(len(pieces))
    ]
    taken = [[number_of[piece] for piece in word] for word in query_words]
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


def _query_words(query: str) -> list[list[str]]:
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


# Meaning by word vectors: a text rates by how near its words are to those of the query.
#
# The vectors are those that the package `wordllama` ships, with their tokenizer: 32,000 word
# pieces, 256 numbers each, 16 MB, MIT licence. Its files are read where they are installed; none
# of its code is run, and nothing is ever downloaded. A text is the sum of its pieces' vectors.
#
# Every number is a whole one: vectors are rounded once, when they are loaded, and sums and products
# of whole numbers below 2**53 come out the same in any order, with any number of threads, on any
# machine. The weights are part of what the scorer's name means: others are refused.

_PACKAGE: Final = "wordllama"
_EXTRA: Final = "embeddings"
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_DIGESTS: Final = {
    _WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    _TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_SCALE: Final = 1024  # what a number of a vector is multiplied by before it is rounded
_PASSAGE: Final = 96  # word pieces rated together: in the mean of a long text every topic drowns
_MOST_PASSAGES: Final = 64
_MEANING_PCT: Final = 85  # what meaning counts beside words
_BATCH: Final = 256
_MOST_OF_QUERY: Final = 2**22
_MOST_OF_TEXT: Final = 4096  # word pieces of a text that its one vector stands for


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Relevance by meaning, with whole words beside it for names and numbers."""

    words: Pieces
    model: _Model

    @classmethod
    def load(cls, words: Pieces) -> Embeddings:
        """Return the scorer; raises ScorerUnavailable without the extra, or with other weights."""
        return cls(words, _model())

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return 0 to 1,000,000 for each text."""
        by_word = self.words(query, texts)
        meant = self.model.nearness(query, texts)
        return [
            (_MEANING_PCT * near + (100 - _MEANING_PCT) * word) // 100
            for near, word in zip(meant, by_word, strict=True)
        ]


class _Model:
    """The vectors and the tokenizer, loaded once in a process."""

    def __init__(self, vectors: Any, tokenizer: Any) -> None:
        self._vectors = vectors
        self._tokenizer = tokenizer

    def nearness(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the cosine of each text's nearest passage and the query, 0 to 1,000,000."""
        vectors = self._sums([query], most=1_000_000)[1]
        if not len(vectors):
            return [0] * len(texts)
        target, found = _bounded(vectors[0]), [0] * len(texts)
        length = int((target * target).sum())
        for begin in range(0, len(texts), _BATCH):
            owners, sums = self._sums(texts[begin : begin + _BATCH], most=_PASSAGE)
            if not len(owners):
                continue
            products = (sums @ target).tolist()
            squares = (sums * sums).sum(axis=1).tolist()
            for owner, product, square in zip(owners, products, squares, strict=True):
                near = _cosine(int(product), int(square), length)
                found[begin + owner] = max(found[begin + owner], near)
        return found

    def vectors(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the sum of each text's vectors, whole numbers; an empty list where it has none."""
        found: list[list[int]] = [[] for _ in texts]
        for begin in range(0, len(texts), _BATCH):
            owners, sums = self._sums(texts[begin : begin + _BATCH], most=_MOST_OF_TEXT)
            for owner, vector in zip(owners, sums.astype("int64").tolist(), strict=True):
                found[begin + owner] = found[begin + owner] or vector
        return found

    def _sums(self, texts: Sequence[str], *, most: int) -> tuple[list[int], Any]:
        """Return the vector of each passage of `most` pieces, and which text it is of."""
        import numpy

        owners: list[int] = []
        ids: list[int] = []
        begins: list[int] = []
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encoded = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        for owner, one in enumerate(encoded):
            pieces = one.ids[: most * _MOST_PASSAGES]
            for at in range(0, len(pieces), most):
                owners.append(owner)
                begins.append(len(ids))
                ids += pieces[at : at + most]
        if not ids:
            return [], numpy.zeros((0, 0))
        rows = self._vectors[numpy.array(ids)]
        # Whole numbers in floats: exact below 2**53, and quicker to multiply than integers.
        sums = numpy.add.reduceat(rows, begins, axis=0, dtype=numpy.int64)
        return owners, sums.astype(numpy.float64)


def text_vectors(texts: Sequence[str]) -> list[list[int]]:
    """Return one vector of 256 whole numbers for each text, the sum of its pieces'.

    An empty list stands for a text without words. Raises ScorerUnavailable without the extra.
    """
    return _model().vectors(texts)


def _bounded(vector: Any) -> Any:
    """Return the vector of a long query halved until its products are exact: its direction counts.

    A passage's numbers are below 2**20, so that 256 products with numbers below 2**22 are.
    """
    whole = vector.astype("int64")
    while abs(whole).max() >= _MOST_OF_QUERY:
        whole //= 2
    return whole.astype("float64")


def _cosine(product: int, square: int, other: int) -> int:
    """Return a cosine in millionths, in whole numbers; nothing is less than unrelated."""
    return max(0, MICRO * product // max(1, isqrt(square * other)))


@lru_cache(maxsize=1)
def _model() -> _Model:
    try:
        import numpy
        from safetensors.numpy import load
        from tokenizers import Tokenizer
    except ImportError as missing:
        why = f"{missing.name} is missing"
        raise ScorerUnavailable(EMBEDDINGS, extra=_EXTRA, why=why) from None
    spec = find_spec(_PACKAGE)  # does not run the package
    if spec is None or not spec.submodule_search_locations:
        raise ScorerUnavailable(EMBEDDINGS, extra=_EXTRA, why=f"{_PACKAGE} is missing")
    folder = spec.submodule_search_locations[0]
    weights = load(_checked(folder, _WEIGHTS))
    (vectors,) = weights.values()
    tokenizer = Tokenizer.from_str(_checked(folder, _TOKENIZER).decode("utf-8"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # The largest is 7,736; a product of a half float and a power of two is exact.
    whole = numpy.rint(vectors.astype(numpy.float32) * numpy.float32(_SCALE)).astype(numpy.int16)
    return _Model(whole, tokenizer)


def _checked(folder: str, name: str) -> bytes:
    try:
        with open(f"{folder}/{name}", "rb") as file:
            data = file.read()
    except OSError as error:
        why = f"{name} of {_PACKAGE} cannot be read: {type(error).__name__}"
        raise ScorerUnavailable(EMBEDDINGS, extra=_EXTRA, why=why) from None
    if hashlib.sha256(data).hexdigest() != _DIGESTS[name]:
        why = f"{name} of {_PACKAGE} is another one than this scorer's"
        raise ScorerUnavailable(EMBEDDINGS, extra=_EXTRA, why=why)
    return data

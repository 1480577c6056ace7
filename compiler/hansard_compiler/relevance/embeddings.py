"""Meaning by word vectors: a text rates by how near its words are to those of the query.

The vectors are those that the package `wordllama` ships, with their tokenizer: 32,000 word pieces,
256 numbers each, 16 MB, MIT licence. Its files are read where they are installed; none of its code
is run, and nothing is ever downloaded. A text is the sum of its pieces' vectors.

Every number is a whole one: vectors are rounded once, when they are loaded, and sums and products
of whole numbers below 2**53 come out the same in any order, with any number of threads, on any
machine. The weights are part of what the scorer's name means: others are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import isqrt
from typing import Any, Final

from hansard_compiler.compile.config import EMBEDDINGS
from hansard_compiler.compile.errors import ScorerUnavailable
from hansard_compiler.compile.items import MICRO
from hansard_compiler.relevance.pieces import Pieces

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
        asked = self._sums([query], most=1_000_000)[1]
        if not len(asked):
            return [0] * len(texts)
        target, found = _bounded(asked[0]), [0] * len(texts)
        length = _square(target)
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
        """Return the vector of each passage of `most` pieces, and which text it belongs to."""
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


def _square(vector: Any) -> int:
    return int((vector * vector).sum())


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

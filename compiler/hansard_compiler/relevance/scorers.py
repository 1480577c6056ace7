"""Every scorer by the name that stands in a request, in its hash and in its receipts."""

from __future__ import annotations

from hansard_compiler.compile.config import BM25, PIECES, Relevance, scorer_name
from hansard_compiler.compile.ports import Relevance as Scorer
from hansard_compiler.relevance.bm25 import Bm25
from hansard_compiler.relevance.embeddings import Embeddings
from hansard_compiler.relevance.pieces import Pieces


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

"""How well a text answers a query: one module for each scorer, and the list of them by name."""

from hansard_compiler.relevance.bm25 import Bm25
from hansard_compiler.relevance.scorers import scorer_named

__all__ = ["Bm25", "scorer_named"]

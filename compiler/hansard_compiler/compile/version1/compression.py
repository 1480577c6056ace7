"""Shortening as 0.1 did it: for compiles that 0.1 made.

It charges a gap mark for every piece it keeps, written or not, and so leaves room unused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hansard_compiler.compile.compression.extract import in_stretches, joined, mark
from hansard_compiler.compile.ports import TokenCounter
from hansard_compiler.words import terms

_PIECE = re.compile(r"[^\n]*?[.!?](?=\s)\s*|[^\n]+\n*|\n+")
_FIRST_BONUS = 3  # the opening says what a text is about


@dataclass(frozen=True, slots=True)
class ExtractV1:
    """0.1's compressor: keeps the pieces that match the query best."""

    def __call__(
        self, text: str, *, query: str, target_tokens: int, counter: TokenCounter
    ) -> str | None:
        """Return an extract of at most `target_tokens`, or None when not one piece fits."""
        pieces = in_stretches(_PIECE.findall(text))
        sought = frozenset(terms(query))
        ranked = sorted(range(len(pieces)), key=lambda at: (-_weight(pieces[at], at, sought), at))
        costs = [counter.count(piece) for piece in pieces]
        gap_cost = counter.count(mark(len(text)))
        chosen: set[int] = set()
        left = target_tokens
        for at in ranked:
            cost = costs[at] + gap_cost
            if cost <= left and pieces[at].strip():
                chosen.add(at)
                left -= cost
        while chosen:
            made = joined(pieces, chosen)
            if counter.count(made) <= target_tokens:
                return made
            # Joined pieces may count for more than their sum: give up the least of them.
            chosen.discard(next(at for at in reversed(ranked) if at in chosen))
        return None


def _weight(piece: str, at: int, sought: frozenset[str]) -> int:
    """Return how well a piece matches, in hundredths: words of the query against its length."""
    found = terms(piece)
    hits = len(sought.intersection(found))
    return 100 * (hits + (_FIRST_BONUS if at == 0 else 0)) - min(len(found), 60)

"""Shortening without a model: whole sentences and lines, chosen and kept in their order.

Which items may be shortened is a closed list; everything else is taken whole or left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hansard_compiler.items import Item
from hansard_compiler.ports import TokenCounter
from hansard_compiler.state import State
from hansard_compiler.words import terms

# Only these kinds, and of them not what is marked as evidence, blocking, an approval or pinned.
COMPRESSIBLE = frozenset({"retrieval_doc", "user_msg", "assistant_msg", "artifact", "summary",
                          "tool_result"})  # fmt: skip
_CONVERSATION = frozenset({"user_msg", "assistant_msg", "tool_result"})
_NEVER = frozenset({"evidence", "approval", "blocking", "verbatim"})

_PIECE = re.compile(r"[^\n]*?[.!?](?=\s)\s*|[^\n]+\n*|\n+")
_MOST_PIECES = 5_000
_FIRST_BONUS = 3  # the opening says what a text is about


def may_compress(state: State) -> Callable[[Item], bool]:
    """Return the rule of one compile: which of its items may be shortened."""
    settings = state.request.compile_config.compression
    asked = sorted(
        (item.created_us for item in state.live if item.kind == "user_msg"), reverse=True
    )
    turns = settings.fresh_turns
    current_us = asked[min(turns, len(asked)) - 1] if asked and turns else None

    def may(item: Item) -> bool:
        if not settings.enabled or item.kind not in COMPRESSIBLE or item.id in state.required:
            return False
        if item.tags & _NEVER or not _is_text(item):
            return False
        if item.source is not None and item.source.source_type == "human_approval":
            return False
        if item.kind in _CONVERSATION:
            # Without a user's turn to count from, everything said is old.
            return current_us is None or item.created_us < current_us
        return True

    return may


def _is_text(item: Item) -> bool:
    """Say whether an item is one text: not a call, not reasoning, not media, not JSON."""
    if isinstance(item.content, str):
        return len(item.answers) < 2
    parts = item.content.get("parts")
    if item.kind not in _CONVERSATION or not isinstance(parts, list):
        return False
    types = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return types == ["tool_result"] or all(one == "text" for one in types)


@dataclass(frozen=True, slots=True)
class Extract:
    """The built-in compressor: keeps the pieces that say most about the query."""

    def __call__(
        self, text: str, *, query: str, target_tokens: int, counter: TokenCounter
    ) -> str | None:
        """Return an extract of at most `target_tokens`, or None when not one piece fits."""
        pieces = _pieces(text)
        wanted = frozenset(terms(query))
        ranked = sorted(range(len(pieces)), key=lambda at: (-_weight(pieces[at], at, wanted), at))
        costs = [counter.count(piece) for piece in pieces]
        gap_cost = counter.count(_mark(len(text)))
        kept: set[int] = set()
        left = target_tokens
        for at in ranked:
            cost = costs[at] + gap_cost
            if cost <= left and pieces[at].strip():
                kept.add(at)
                left -= cost
        while kept:
            made = _joined(pieces, kept)
            if counter.count(made) <= target_tokens:
                return made
            # Joined pieces may count for more than their sum: give up the least of them.
            kept.discard(next(at for at in reversed(ranked) if at in kept))
        return None


def _pieces(text: str) -> list[str]:
    found = _PIECE.findall(text)
    if len(found) <= _MOST_PIECES:
        return found
    # A text of very many lines is cut into as many stretches of equal length.
    step = -(-len(found) // _MOST_PIECES)
    return ["".join(found[at : at + step]) for at in range(0, len(found), step)]


def _weight(piece: str, at: int, wanted: frozenset[str]) -> int:
    """Return how much a piece says, in hundredths: words of the query against its length."""
    said = terms(piece)
    hits = len(wanted.intersection(said))
    return 100 * (hits + (_FIRST_BONUS if at == 0 else 0)) - min(len(said), 60)


def _joined(pieces: list[str], kept: set[int]) -> str:
    """Join the kept pieces; each gap says how many characters are left out."""
    out: list[str] = []
    gap = 0
    for at, piece in enumerate(pieces):
        if at in kept:
            out += [_mark(gap), piece] if gap else [piece]
            gap = 0
        else:
            gap += len(piece)
    if gap:
        out.append(_mark(gap))
    return "".join(out).strip()


def _mark(characters: int) -> str:
    return f"[… {characters} characters left out]\n"

"""What changed between two texts, word by word, for people: short stretches of context around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hansard_compiler.diff import TextOp, text_diff

_HAS_WORD = re.compile(r"\w").search
_CONTEXT_CHARS = 160  # kept of equal text on either side of a change
_LONGEST = 6_000  # characters of one piece


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text: in both, only in the old one, only in the new one, or left out."""

    kind: Literal["same", "del", "ins", "gap"]
    text: str  # of a gap: how much is left out


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Return the pieces of both texts in order; equal stretches are shortened."""
    if old == new:
        return (Piece("same", old[:_LONGEST]),)
    return shown_pieces(text_diff(old, new))


def shown_pieces(ops: Sequence[TextOp]) -> tuple[Piece, ...]:
    """Return a comparison as people read it: whole exchanges, what is the same shortened."""
    return tuple(_shortened(list(_joined([Piece(op.kind, op.text) for op in ops]))))


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Let nothing but words part two changes: a shared space between them says nothing."""
    old: list[str] = []
    new: list[str] = []
    for at, piece in enumerate(pieces):
        inside = 0 < at < len(pieces) - 1
        if piece.kind == "same" and not (inside and (old or new) and not _HAS_WORD(piece.text)):
            yield from _exchange(old, new)
            yield piece
            continue
        if piece.kind in ("same", "del"):
            old.append(piece.text)
        if piece.kind in ("same", "ins"):
            new.append(piece.text)
    yield from _exchange(old, new)


def _exchange(old: list[str], new: list[str]) -> Iterator[Piece]:
    """Yield what was collected of both sides as one exchange, and forget it."""
    if old:
        yield Piece("del", "".join(old))
    if new:
        yield Piece("ins", "".join(new))
    old.clear()
    new.clear()


def _shortened(pieces: list[Piece]) -> Iterator[Piece]:
    for at, piece in enumerate(pieces):
        if piece.kind != "same":
            yield _cut(piece)
            continue
        before = _CONTEXT_CHARS if at else 0
        after = _CONTEXT_CHARS if at + 1 < len(pieces) else 0
        left_out = len(piece.text) - before - after
        if left_out < _CONTEXT_CHARS:
            yield piece
            continue
        if before:
            yield Piece("same", piece.text[:before])
        yield Piece("gap", f"{left_out:,} more characters, the same")
        if after:
            yield Piece("same", piece.text[-after:])


def _cut(piece: Piece) -> Piece:
    if len(piece.text) <= _LONGEST:
        return piece
    return Piece(piece.kind, f"{piece.text[:_LONGEST]}… ({len(piece.text):,} characters)")

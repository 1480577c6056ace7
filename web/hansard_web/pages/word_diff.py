"""What changed between two texts, word by word, for people: short stretches of context around."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_HAS_WORD = re.compile(r"\w").search
_MOST_WORDS = 3_000  # of the part that differs; more is shown as one exchange
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
    left, right = _WORD.findall(old), _WORD.findall(new)
    head, tail = _common_ends(left, right)
    pieces = [Piece("same", "".join(left[:head]))]
    pieces += _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    pieces.append(Piece("same", "".join(left[len(left) - tail :]) if tail else ""))
    shown = list(_joined([piece for piece in pieces if piece.text]))
    return tuple(_shortened(shown))


def _common_ends(left: list[str], right: list[str]) -> tuple[int, int]:
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    most = min(len(left), len(right)) - head
    while tail < most and left[len(left) - 1 - tail] == right[len(right) - 1 - tail]:
        tail += 1
    return head, tail


def _middle(left: list[str], right: list[str]) -> list[Piece]:
    # The matcher is quadratic at worst; recorded texts may be megabytes.
    if len(left) > _MOST_WORDS or len(right) > _MOST_WORDS:
        return [Piece("del", "".join(left)), Piece("ins", "".join(right))]
    found = []
    for kind, i, j, k, end in SequenceMatcher(a=left, b=right, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Piece("same", "".join(left[i:j])))
            continue
        found.append(Piece("del", "".join(left[i:j])))
        found.append(Piece("ins", "".join(right[k:end])))
    return found


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

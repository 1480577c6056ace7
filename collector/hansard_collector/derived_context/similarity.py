"""How two versions of a text are related: cut short, or similar in their words. All linear."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

_WORD = re.compile(r"\w+|[^\w\s]")
_MARKER_CHARS = 200  # what a sender may put where it cut: "… [12,000 characters removed]"
_LEAST_KEPT_CHARS = 20  # less in common than this is chance
_LARGEST_PART = 0.9  # a text that lost less than a tenth was edited, not cut
_SAMPLE_CHARS = 20_000  # of each end of a long text, when words are counted


@dataclass(frozen=True, slots=True)
class Cut:
    """What remains of a text that was cut short."""

    kept: Literal["beginning", "end", "both ends"]
    characters: int


def cut_of(old: str, new: str) -> Cut | None:
    """Return what the new text keeps of the old one, or None when it is not a cut of it.

    A short remark of the sender at the cut is allowed for.
    """
    if not old or len(new) > len(old) * _LARGEST_PART:
        return None
    head = common_prefix(old, new)
    tail = common_suffix(old[head:], new[head:])
    # Of a real cut most of what is left must be old text; a remark may not outweigh it.
    kept = head + tail
    remark = len(new) - kept
    if kept < _LEAST_KEPT_CHARS or remark > min(_MARKER_CHARS, kept):
        return None
    if tail < _LEAST_KEPT_CHARS:
        return Cut("beginning", head)
    if head < _LEAST_KEPT_CHARS:
        return Cut("end", tail)
    return Cut("both ends", kept)


def common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common.

    By halving with slices, which compare at memory speed; a loop over characters would take
    seconds for megabytes.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: str, other: str) -> int:
    """Return how many characters two texts end with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def similarity(one: str, other: str) -> float:
    """Return the share of words two texts have in common, from 0 to 1 (Dice, by count)."""
    left, right = _words(one), _words(other)
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0


def _words(text: str) -> Counter[str]:
    if len(text) > 2 * _SAMPLE_CHARS:
        text = text[:_SAMPLE_CHARS] + " " + text[-_SAMPLE_CHARS:]
    return Counter(_WORD.findall(text))

"""Scores and who gave them, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from hansard_store.annotations.queries import RunMarks, ScoreSum

SOURCES: Final = {"human": "a person", "code": "a program", "llm": "a model"}
_UNTOLD: Final = "a program"
_MOST_PLAIN: Final = 1e9


@dataclass(frozen=True, slots=True)
class ScoreChip:
    """A score in few words, with its tooltip."""

    name: str
    words: str
    title: str
    href: str


def number(value: float) -> str:
    """Return a value with at most three decimals, and none that say nothing."""
    if abs(value) >= _MOST_PLAIN or 0 < abs(value) < 0.001:
        return f"{value:.3g}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def score_words(value: float | None, label: str | None) -> str:
    """Return number and word of a score, as far as it has them."""
    return " ".join(filter(None, ["" if value is None else number(value), label or ""]))


def source_words(source: str | None) -> str:
    """Return the kind of its author."""
    return SOURCES.get(source or "", _UNTOLD)


def share_pct(value: float | None) -> float | None:
    """Return how much of a bar a score fills; None for one that is not between 0 and 1."""
    return round(value * 100, 1) if value is not None and 0 <= value <= 1 else None


def list_href(**query: str) -> str:
    """Return the address of the runs list, narrowed."""
    return f"/?{urlencode(query)}"


def score_chips(marks: RunMarks) -> tuple[ScoreChip, ...]:
    """Return the scores of a run as chips."""
    return tuple(_chip(one) for one in marks.scores)


def _chip(one: ScoreSum) -> ScoreChip:
    words = score_words(one.value, one.label) or "mixed"
    many = f", the mean of {one.count}" if one.count > 1 and one.value is not None else ""
    title = f"{one.name} {words}{many}"
    return ScoreChip(one.name, words, title, list_href(score=one.name))


def sums(counts: Iterable[tuple[int, str]]) -> str:
    """Return `2 scores, 1 note`; "" for nothing."""
    found = [f"{many} {word}{'' if many == 1 else 's'}" for many, word in counts if many]
    return ", ".join(found)

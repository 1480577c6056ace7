"""Where in a sentence something is meant otherwise than it is said: planned, doubted, reported.

Each kind has its reach. What stands in it is no claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from hansard_collector.evaluation.languages import Language, is_of_plans
from hansard_collector.evaluation.phrases import Hit
from hansard_collector.evaluation.sentences import Token

_split: Final = str.split

_BUTS: Final = frozenset({"but", "aber", "jedoch", "mais", "pero", "sondern", "sin embargo"})
_SEMICOLON: Final = frozenset({";", "—", "–", "|"})
_TRAILING: Final = frozenset(
    _split(
        """
        according said says claims laut sagt sagte zufolge selon según dijo dice dit
        reported
        """
    )
)
_YEARS: Final = ("19", "20")


_REACHES: Final = (
    ("conditions", "segment"),
    ("doubts", "segment"),
    ("plans", "after"),
    ("reports", "report"),
    ("other_times", "clause"),
    ("elsewhere", "segment"),
    ("subordinate", "rest of clause"),
)


@dataclass(frozen=True, slots=True)
class Scopes:
    """Tokens of a sentence that are not meant as they stand, and those that negate."""

    blocked: frozenset[int]
    negated: tuple[tuple[int, int], ...]

    def is_blocked(self, start: int, end: int) -> bool:
        """Say whether any of some tokens is not meant as it stands."""
        return any(at in self.blocked for at in range(start, end))

    def negations(self, start: int, end: int) -> int:
        """Return how many negations begin among some tokens."""
        return sum(start <= begin < end for begin, _ in self.negated)

    def is_negation(self, at: int) -> bool:
        """Say whether a token is of a negation."""
        return any(begin <= at < until for begin, until in self.negated)


def scopes_of(
    tokens: Sequence[Token],
    known: Language,
    hits: Mapping[str, Sequence[Hit[Any]]],
    masked: Set[int],
) -> Scopes:
    """Return the scopes of a sentence; `masked` tokens are of a phrase that is known whole."""
    segments = _segments(tokens)
    clauses = _clauses(tokens)
    blocked: set[int] = set()
    for kind, reach in _REACHES:
        for hit in hits.get(kind, ()):
            if any(at in masked for at in range(hit.start, hit.end)):
                continue
            blocked |= _reached(tokens, hit.start, reach, segments, clauses, known)
    blocked |= _of_years(tokens, clauses)
    blocked |= _of_headings(tokens, segments)
    found = [
        (hit.start, hit.end)
        for hit in hits.get("negations", ())
        if not any(at in masked for at in range(hit.start, hit.end))
    ]
    return Scopes(frozenset(blocked), tuple(found))


def _reached(
    tokens: Sequence[Token],
    at: int,
    reach: str,
    segments: Sequence[range],
    clauses: Sequence[range],
    known: Language,
) -> set[int]:
    segment = next(one for one in segments if at in one)
    clause = next(one for one in clauses if at in one)
    if reach == "segment":
        return set(segment)
    if reach == "clause":
        return set(clause)
    if reach == "rest of clause":
        return set(range(at, clause.stop))
    if reach == "report":
        if at and tokens[at - 1].text in known.self:
            return set()
        if tokens[at].text in _TRAILING:
            return set(segment)
    return set(range(at, segment.stop))


def _segments(tokens: Sequence[Token]) -> list[range]:
    """Return parts that stand for themselves: apart by `;`, dashes, or a "but"."""
    starts = [0]
    for at, token in enumerate(tokens):
        if token.text in _SEMICOLON or token.text in _BUTS:
            starts.append(at + 1 if token.text in _SEMICOLON else at)
    return _ranges(sorted(set(starts)), len(tokens))


def _clauses(tokens: Sequence[Token]) -> list[range]:
    starts = [0]
    for at, token in enumerate(tokens):
        if token.text in ",;:—–()" or token.text in _BUTS:
            starts.append(at)
    return _ranges(sorted(set(starts)), len(tokens))


def _ranges(starts: Sequence[int], size: int) -> list[range]:
    ends = [*starts[1:], size]
    return [range(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _of_years(tokens: Sequence[Token], clauses: Sequence[range]) -> set[int]:
    """Return the clauses that name a year: what was so then is not about now."""
    found: set[int] = set()
    for clause in clauses:
        for at in clause:
            word = tokens[at].text
            is_year = len(word) == 4 and word.isdigit() and word.startswith(_YEARS)
            if is_year and at and tokens[at - 1].text in ("in", "since", "im", "en", "of"):
                found |= set(clause)
    return found


def _of_headings(tokens: Sequence[Token], segments: Sequence[range]) -> set[int]:
    """Return what stands behind "Plan:" and the like on one line."""
    for at, token in enumerate(tokens[:5]):
        if token.text == ":":
            if is_of_plans(" ".join(one.text for one in tokens[:at])):
                return set(range(len(tokens)))
            break
    return set()

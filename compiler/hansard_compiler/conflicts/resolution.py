"""Which of two items that contradict each other is believed.

Believed is what is required, then what is more trusted, then what is fresher. A correction replaces
what it corrects unless it is much less trusted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hansard_compiler.compile.items import CandidateItem


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two items that cannot both hold, and how that shows."""

    first: str
    second: str
    how: str  # "value", "number", "negation"
    correction: str | None = None  # the id of the one that corrects the other
    is_certain: bool = True  # False: they may both hold, so both stay and are marked


def pair(
    a: CandidateItem,
    b: CandidateItem,
    how: str,
    correction: str | None = None,
    *,
    is_certain: bool = True,
) -> Contradiction:
    """Return the contradiction of two items, the first of the request first."""
    first, second = sorted((a, b), key=lambda item: item.position)
    return Contradiction(first.id, second.id, how, correction, is_certain)


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of an item in a contradiction."""

    winner: str
    how: str
    superseded: bool = False
    open: bool = False  # neither may be dropped


def settle(
    items: Sequence[CandidateItem],
    found: Sequence[Contradiction],
    *,
    required: Iterable[str],
    trust_gap: int,
) -> dict[str, Settled]:
    """Decide every contradiction; items that lose, or that stay contradicted, are in the result.

    Goes from the most believed item down, so that a loser makes nothing else lose.
    """
    known = {item.id: item for item in items}
    safe = set(required)
    rivals: dict[str, list[tuple[str, Contradiction]]] = defaultdict(list)
    for one in found:
        rivals[one.first].append((one.second, one))
        rivals[one.second].append((one.first, one))
    replaced = _replaced(known, found, safe, trust_gap)
    settled = {loser: Settled(winner, how, True) for loser, (winner, how) in replaced.items()}
    winners: set[str] = set()
    for item_id in sorted(rivals, key=lambda one: belief(known[one], one in safe)):
        if item_id in settled:
            continue
        over = [(other, one.how) for other, one in rivals[item_id] if other in winners]
        if over:
            best = min(over, key=lambda pair: belief(known[pair[0]], pair[0] in safe))
            settled[item_id] = Settled(*best, open=item_id in safe)
        if not over or item_id in safe:
            winners.add(item_id)
    return settled


def belief(item: CandidateItem, is_safe: bool) -> tuple[bool, int, int, int, int]:
    return not is_safe, -item.trust, -item.fresh_us, -item.importance, item.position


def _replaced(
    known: Mapping[str, CandidateItem],
    found: Sequence[Contradiction],
    safe: set[str],
    trust_gap: int,
) -> dict[str, tuple[str, str]]:
    """Return what corrections replace; the latest correction first, so that it wins a chain."""
    replaced: dict[str, tuple[str, str]] = {}
    corrections = [one for one in found if one.correction]
    for one in sorted(corrections, key=lambda one: -known[str(one.correction)].fresh_us):
        by = str(one.correction)
        old = one.second if one.first == by else one.first
        trusted = known[by].trust >= known[old].trust - trust_gap
        later = known[by].fresh_us >= known[old].fresh_us
        if by not in replaced and old not in safe and trusted and later:
            replaced.setdefault(old, (by, one.how))
    return replaced

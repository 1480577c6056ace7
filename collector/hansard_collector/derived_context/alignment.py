"""Laying two lists side by side: which elements are in both, in the same order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Element = TypeVar("_Element", bound=Hashable)

_PAIRS_LIMIT = 200_000  # equal pairs an exact alignment may look at before it settles for less


def equal_run(left: Sequence[_Element], right: Sequence[_Element]) -> int:
    """Return how many elements two lists begin with in common."""
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return length


def common_subsequence(
    left: Sequence[_Element], right: Sequence[_Element]
) -> list[tuple[int, int]]:
    """Pair the positions of a longest common subsequence, rising on both sides.

    Common beginnings and ends, nearly everything in consecutive prompts, cost one look each; the
    middle O(pairs log n), where pairs are its equal positions.
    """
    start = equal_run(left, right)
    tail = equal_run(left[start:][::-1], right[start:][::-1])
    head = [(at, at) for at in range(start)]
    middle = _longest_rising(
        _equal_pairs(left[start : len(left) - tail], right[start : len(right) - tail])
    )
    end = [(len(left) - tail + at, len(right) - tail + at) for at in range(tail)]
    return head + [(one + start, other + start) for one, other in middle] + end


def _equal_pairs(left: Sequence[_Element], right: Sequence[_Element]) -> Iterable[tuple[int, int]]:
    """Pairs in the order Hunt and Szymanski's method wants: falling places for each left one.

    Elements that repeat without end ("ok", "ok", …) would make every pair equal; past a limit the
    n-th of one side is paired with the n-th of the other only.
    """
    places: defaultdict[_Element, list[int]] = defaultdict(list)
    for at, value in enumerate(right):
        places[value].append(at)
    if sum(len(places.get(value, ())) for value in left) > _PAIRS_LIMIT:
        return _nth_pairs(left, places)
    return (
        (at, other) for at, value in enumerate(left) for other in reversed(places.get(value, []))
    )


def _nth_pairs(
    left: Sequence[_Element], places: Mapping[_Element, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    seen: Counter[_Element] = Counter()
    for at, value in enumerate(left):
        nth = seen[value]
        seen[value] += 1
        if nth < len(places.get(value, ())):
            yield at, places[value][nth]


@dataclass(frozen=True, slots=True)
class _Link:
    left: int
    right: int
    before: _Link | None


def _longest_rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    ends: list[int] = []  # smallest right place that ends a chain of each length
    chains: list[_Link] = []
    for one, other in pairs:
        length = bisect_left(ends, other)
        link = _Link(one, other, chains[length - 1] if length else None)
        if length == len(ends):
            ends.append(other)
            chains.append(link)
        else:
            ends[length] = other
            chains[length] = link
    found = []
    link_or_end = chains[-1] if chains else None
    while link_or_end is not None:
        found.append((link_or_end.left, link_or_end.right))
        link_or_end = link_or_end.before
    return found[::-1]

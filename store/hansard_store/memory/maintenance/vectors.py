"""A small vector index: one vector a record and embedder, compared in this process.

Vectors are stored as 32-bit floats. Products are summed in a fixed order, so that every machine
ranks alike.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter, mul
from typing import Final

_DIGITS: Final = 6  # of a similarity
_ROUNDING: Final = 2 * 10**-_DIGITS  # what rounding may change between two
_FEWEST_PLACES: Final = 2  # a vector with fewer numbers has no direction to speak of


@dataclass(frozen=True, slots=True)
class NearMemory:
    """A record, by number, and the cosine of its vector and the one that was requested."""

    number: int
    similarity: float


def nearest(
    target: Sequence[float], vectors: Mapping[int, Sequence[float]], *, most: int = 2
) -> list[NearMemory]:
    """Return the records whose vectors are nearest, the nearest first, then the later one."""
    # Most numbers of a short text's vector are 0, and say nothing.
    places = [position for position, number in enumerate(target) if number]
    if len(places) < _FEWEST_PLACES:
        return []
    taken, chosen = itemgetter(*places), [target[position] for position in places]
    rated = {number: sum(map(mul, chosen, taken(vector))) for number, vector in vectors.items()}
    # Only what may be among the nearest is rounded and put in order.
    least = min(nlargest(most, rated.values()), default=0.0) - _ROUNDING
    near = [
        NearMemory(number, round(one, _DIGITS)) for number, one in rated.items() if one >= least
    ]
    return sorted(near, key=lambda one: (-one.similarity, -one.number))[:most]


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector as it is stored."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(stored: bytes) -> Sequence[float]:
    """Return the vector that `packed` made bytes of."""
    numbers = array("f", stored)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers

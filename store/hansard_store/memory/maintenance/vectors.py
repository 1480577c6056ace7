"""A small vector index: one vector a record and embedder, compared in this process.

Vectors are stored as 32-bit floats. Products are summed in a fixed order, so that every machine
ranks alike. Every function runs in the caller's transaction, or reads.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter, mul
from typing import Any, Final

import apsw
import orjson

from hansard_store.memory.maintenance.candidate_pairs import COMPARED_TYPES, LEFT_ORIGINS

_ADD: Final = (
    "INSERT OR REPLACE INTO memory_embedding (memory, embedder, embedding) VALUES (?, ?, ?)"
)
_READ: Final = """
SELECT memory, embedding FROM memory_embedding
WHERE embedder = ? AND memory IN (SELECT value FROM json_each(?))
"""
# What a correction may correct: what stands in its namespace.
_CORRECTABLE: Final = """
SELECT memory.id, memory.freshness_ns FROM memory INDEXED BY memory_state
CROSS JOIN memory_body AS body ON body.memory = memory.id
WHERE memory.state = 'current' AND memory.memory_type IN (SELECT value FROM json_each(:types))
  AND memory.project = :project AND memory.user = :user AND memory.agent = :agent
  AND body.scope = :scope
  AND (memory.expires_ns IS NULL OR memory.expires_ns > :now)
  AND coalesce(json_extract(body.metadata, '$.origin'), '') NOT IN (
    SELECT value FROM json_each(:origins))
ORDER BY memory.id
"""
# Corrections that stand, name nothing that they correct, and were not looked at by an embedder.
_UNLINKED: Final = """
SELECT memory.id FROM memory INDEXED BY memory_state
JOIN memory_body AS body ON body.memory = memory.id
WHERE memory.state = 'current' AND memory.memory_type = 'correction'
  AND (memory.expires_ns IS NULL OR memory.expires_ns > :now)
  AND json_extract(body.metadata, '$.corrects') IS NULL
  AND coalesce(json_extract(body.metadata, '$.origin'), '') NOT IN ('diagnostic', 'external')
  AND NOT EXISTS (
    SELECT 1 FROM memory_supersession AS link INDEXED BY memory_supersession_newer
    WHERE link.newer = memory.id AND link.cause = 'correction')
  AND NOT EXISTS (
    SELECT 1 FROM memory_compared AS done WHERE done.memory = memory.id AND done.judge = :judge)
ORDER BY memory.id LIMIT :most
"""


_DIGITS: Final = 6  # of a similarity
_ROUNDING: Final = 2 * 10**-_DIGITS  # what rounding may change between two
_FEWEST_PLACES: Final = 2  # a vector with fewer numbers has no direction to speak of


@dataclass(frozen=True, slots=True)
class Near:
    """A record, by number, and the cosine of its vector and the one that was requested."""

    number: int
    similarity: float


def unlinked_corrections(
    connection: apsw.Connection, *, judge: str, now_ns: int, most: int
) -> list[int]:
    """Return numbers of corrections without a link, the oldest first."""
    parameters = {"judge": judge, "now": now_ns, "most": most}
    rows: Any = connection.execute(_UNLINKED, parameters)
    return [number for (number,) in rows]


def correctable(
    connection: apsw.Connection,
    namespace: tuple[str, str, str],
    *,
    scope: str,
    now_ns: int,
) -> dict[int, int]:
    """Return the records of a namespace that a correction may be about, and as of when each is so.

    One look at all that stands: some 50 ms of 10,000 records.
    """
    project, user, agent = namespace
    parameters = {
        "project": project,
        "user": user,
        "agent": agent,
        "scope": scope,
        "now": now_ns,
        "types": orjson.dumps(COMPARED_TYPES).decode(),
        "origins": orjson.dumps(LEFT_ORIGINS).decode(),
    }
    rows: Any = connection.execute(_CORRECTABLE, parameters)
    return dict(rows.fetchall())


def read_vectors(
    connection: apsw.Connection, numbers: Sequence[int], *, embedder: str
) -> dict[int, Sequence[float]]:
    """Return the stored vectors of records, by their numbers."""
    rows: Any = connection.execute(_READ, (embedder, orjson.dumps(list(numbers)).decode()))
    return {number: _unpacked(vector) for number, vector in rows}


def add_vectors(
    connection: apsw.Connection, vectors: Mapping[int, Sequence[float]], *, embedder: str
) -> None:
    """Store vectors by the numbers of their records."""
    connection.executemany(
        _ADD, [(number, embedder, _packed(vector)) for number, vector in vectors.items()]
    )


def nearest(
    target: Sequence[float], vectors: Mapping[int, Sequence[float]], *, most: int = 2
) -> list[Near]:
    """Return the records whose vectors are nearest, the nearest first, then the later one."""
    # Most numbers of a short text's vector are 0, and say nothing.
    places = [position for position, number in enumerate(target) if number]
    if len(places) < _FEWEST_PLACES:
        return []
    taken, chosen = itemgetter(*places), [target[position] for position in places]
    rated = {number: sum(map(mul, chosen, taken(vector))) for number, vector in vectors.items()}
    # Only what may be among the nearest is rounded and put in order.
    least = min(nlargest(most, rated.values()), default=0.0) - _ROUNDING
    near = [Near(number, round(one, _DIGITS)) for number, one in rated.items() if one >= least]
    return sorted(near, key=lambda one: (-one.similarity, -one.number))[:most]


def _packed(vector: Sequence[float]) -> bytes:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(stored: bytes) -> Sequence[float]:
    numbers = array("f", stored)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers

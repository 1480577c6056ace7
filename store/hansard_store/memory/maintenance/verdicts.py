"""Verdicts that are remembered: of pairs, and which records a judge is through with.

Every function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw
import orjson

PairOutcome = Literal["superseded", "review", "waiting", "none"]

_KNOWN: Final = """
SELECT pair.first, pair.second FROM json_each(:pairs) AS wanted
CROSS JOIN memory_pair AS pair
  ON pair.first = wanted.value ->> 0 AND pair.second = wanted.value ->> 1
  AND pair.classifier = :classifier
"""
_ADD: Final = """
INSERT OR REPLACE INTO memory_pair (
  first, second, classifier, label, score, reason, outcome, judged_ns
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_WAITING: Final = """
SELECT first, second, score, reason FROM memory_pair INDEXED BY memory_pair_waiting
WHERE classifier = ? AND outcome = 'waiting' ORDER BY judged_ns LIMIT ?
"""
_FORGET: Final = (
    "DELETE FROM memory_pair WHERE first = ?",
    "DELETE FROM memory_pair WHERE second = ?",
)
_COMPARED: Final = """
INSERT OR REPLACE INTO memory_compared (memory, judge, compared_ns)
SELECT value, ?, ? FROM json_each(?)
"""
_AGAIN: Final = "DELETE FROM memory_compared WHERE memory = ?"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A doubtful pair for which no task was opened yet."""

    pair: tuple[int, int]
    score: float
    reason: str


def known_pairs(
    connection: apsw.Connection, classifier: str, pairs: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Return those of the pairs that a classifier has judged."""
    pairs_json = orjson.dumps([list(pair) for pair in pairs]).decode()
    rows: Any = connection.execute(_KNOWN, {"pairs": pairs_json, "classifier": classifier})
    return {(first, second) for first, second in rows}


def add_verdict(
    connection: apsw.Connection,
    pair: tuple[int, int],
    *,
    classifier: str,
    label: str | None,
    score: float,
    outcome: PairOutcome,
    now_ns: int,
    reason: str = "",
) -> None:
    """Store a classifier's verdict on a pair with its outcome."""
    first, second = sorted(pair)
    connection.execute(_ADD, (first, second, classifier, label, score, reason, outcome, now_ns))


def waiting(connection: apsw.Connection, classifier: str, *, most: int) -> list[Waiting]:
    """Return the pairs of which a task is still to be opened, those that wait longest first."""
    rows: Any = connection.execute(_WAITING, (classifier, most))
    return [Waiting((first, second), score, reason) for first, second, score, reason in rows]


def forget_pairs(connection: apsw.Connection, number: int) -> None:
    """Remove the verdicts on a record that is purged."""
    for sql in _FORGET:
        connection.execute(sql, (number,))


def set_compared(
    connection: apsw.Connection, numbers: Sequence[int], *, judge: str, now_ns: int
) -> None:
    """Remember that a judge is through with these records."""
    connection.execute(_COMPARED, (judge, now_ns, orjson.dumps(list(numbers)).decode()))


def compare_again(connection: apsw.Connection, number: int) -> None:
    """Let a record that stands again be compared by every judge; judged pairs stay so."""
    connection.execute(_AGAIN, (number,))

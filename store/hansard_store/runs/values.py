"""The values of a filter in the whole store: for completion, and for facets with many values.

A walk jumps from value to value in an index, so its cost follows the number of values, not of runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import RECEIPT_WORDS, RUN_KINDS, RUN_STATUSES

MOST_LOOKED_AT: Final = 5_000  # values of one filter that are looked through: 25 ms
MOST_COUNTED: Final = 1_000  # runs of one value that are counted
_FIXED: Final = {"status": RUN_STATUSES, "kind": RUN_KINDS, "receipts": tuple(RECEIPT_WORDS)}
# Key -> an index that begins with its values: (table, column, condition).
_FACET: Final = "run_facet", "value"
_INDEXED: Final = {
    "agent": (*_FACET, "kind = 'agent'"),
    "model": (*_FACET, "kind = 'model'"),
    "tool": (*_FACET, "kind = 'tool'"),
    "service": (*_FACET, "kind = 'service'"),
    "role": (*_FACET, "kind = 'role'"),
    "user": ("run INDEXED BY run_user", "user_id", "user_id IS NOT NULL"),
    "conversation": (
        "run INDEXED BY run_conversation", "conversation_id", "conversation_id IS NOT NULL"
    ),
    "tag": (
        "annotation INDEXED BY annotation_name", "name", "kind = 'tag' AND ended_ns IS NULL"
    ),
    "score": (
        "annotation INDEXED BY annotation_name", "name", "kind = 'score' AND ended_ns IS NULL"
    ),
}  # fmt: skip
VALUE_KEYS: Final = (*_FIXED, *_INDEXED)
_WALK: Final = """
WITH RECURSIVE found (value, number) AS (
  SELECT (SELECT {column} FROM {table} WHERE {condition} AND {column} >= :start
          ORDER BY {column} LIMIT 1), 1
  UNION ALL
  SELECT (SELECT {column} FROM {table} WHERE {condition} AND {column} > found.value
          ORDER BY {column} LIMIT 1), number + 1
  FROM found WHERE found.value IS NOT NULL AND number < :most
)
SELECT value FROM found WHERE value IS NOT NULL
"""
_COUNT: Final = """
SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} AND {column} = :value LIMIT :most)
"""


@dataclass(frozen=True, slots=True)
class FilterValue:
    """A value and how many runs have it: marks, of a tag or score; MOST_COUNTED at most."""

    value: str
    runs: int | None  # None where nobody counts: a word of a closed list


@dataclass(frozen=True, slots=True)
class FilterValues:
    """Values that hold some letters, those of most runs first."""

    items: tuple[FilterValue, ...]
    is_complete: bool  # False: there are more


def filter_values(
    connection: apsw.Connection, key: str, *, like: str = "", limit: int = 20
) -> FilterValues:
    """Return the values of a filter that hold `like`, in either case.

    Of more than MOST_LOOKED_AT values the first in alphabetical order are looked through, and those
    that begin with `like`. Raises InvalidQueryError for a filter without values to list.
    """
    if key in _FIXED:
        words = [word for word in _FIXED[key] if like.lower() in word]
        return FilterValues(tuple(FilterValue(word, None) for word in words), is_complete=True)
    if key not in _INDEXED:
        known = ", ".join(VALUE_KEYS)
        raise InvalidQueryError("key", f"{key[:40]!r} has no values to list; known are {known}")
    table, column, condition = _INDEXED[key]
    words_of = {"table": table, "column": column, "condition": condition}
    found = _walk(connection, words_of, start="", most=MOST_LOOKED_AT)
    matching = dict.fromkeys(value for value in found if like.lower() in value.lower())
    is_complete = len(found) < MOST_LOOKED_AT
    if like and not is_complete:
        near = _walk(connection, words_of, start=like, most=limit)
        matching |= dict.fromkeys(value for value in near if value.startswith(like))
    # Those that begin with what was typed come first, if only some can be counted.
    order = sorted(matching, key=lambda value: not value.lower().startswith(like.lower()))
    counted = [
        FilterValue(value, _count(connection, words_of, value)) for value in order[: 5 * limit]
    ]
    counted.sort(key=lambda one: (-(one.runs or 0), one.value))
    return FilterValues(tuple(counted[:limit]), is_complete and len(order) <= limit)


def _walk(
    connection: apsw.Connection, words: dict[str, str], *, start: str, most: int
) -> list[str]:
    rows = connection.execute(_WALK.format(**words), {"start": start, "most": most})
    return [value for (value,) in rows]


def _count(connection: apsw.Connection, words: dict[str, str], value: str) -> int:
    bindings: dict[str, Any] = {"value": value, "most": MOST_COUNTED}
    return int(connection.execute(_COUNT.format(**words), bindings).get)

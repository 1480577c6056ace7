"""Runs that meet a text search or carry an attribute, newest first, as far as they are requested.

Both conditions are about spans and texts; a list of runs needs their runs, each once, in the order
of run.id, without reading every hit of a common word. The streams below are lazy and exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import RunFilter
from hansard_store.search.attributes import MAX_VALUE_CHARS, attribute_token, key_token
from hansard_store.search.match_query import parse_match

_FEW = 4000  # hits that are simply all read and sorted: 6 ms
_MANY_USES = 20_000  # of few texts; above, runs are looked through instead
_RUNS_AT_ONCE = 100
# Texts asked about at a time: finding the place in the index costs 0.5 ms, each hit 0.2 µs.
_TEXTS_AT_ONCE = 4096
_MAX = (1 << 63) - 1


def candidate_runs(connection: apsw.Connection, filters: RunFilter) -> Iterator[int] | None:
    """Yield the numbers of the runs that meet `q` and all attributes, highest first.

    None when the filter has neither. Raises InvalidQueryError for what cannot be searched.
    """
    streams = [
        _runs_with_token(connection, _token(key, value)) for key, value in filters.attributes
    ]
    if filters.q:
        streams.append(_runs_with_text(connection, parse_match(filters.q).expression))
    if not streams:
        return None
    return _in_all(streams)


def _token(key: str, value: str | None) -> str:
    if value is None:
        return key_token(key)
    if len(value) > MAX_VALUE_CHARS:
        raise InvalidQueryError(
            "attribute",
            f"values over {MAX_VALUE_CHARS} characters are found by q, not by attribute",
        )
    return attribute_token(key, value)


def _in_all(streams: Sequence[Iterator[int]]) -> Iterator[int]:
    """Yield the numbers that every falling stream yields."""
    heads = [next(stream, None) for stream in streams]
    while True:
        lowest = None
        for head in heads:
            if head is None:
                return
            lowest = head if lowest is None else min(lowest, head)
        assert lowest is not None
        if all(head == lowest for head in heads):
            yield lowest
            lowest -= 1
        for index, stream in enumerate(streams):
            heads[index] = _down_to(stream, heads[index], lowest)


def _down_to(stream: Iterator[int], head: int | None, limit: int) -> int | None:
    while head is not None and head > limit:
        head = next(stream, None)
    return head


# ---- attributes: hits are spans

_SPANS_WITH = """
SELECT attribute_fts.rowid, span.run
FROM attribute_fts CROSS JOIN span ON span.id = attribute_fts.rowid
WHERE attribute_fts MATCH :token AND attribute_fts.rowid < :before
ORDER BY attribute_fts.rowid DESC LIMIT :limit
"""
_FIRST_SPAN = """
SELECT run.id, (SELECT min(span.id) FROM span WHERE span.trace_id = run.trace_id)
FROM run WHERE run.id <= :run ORDER BY run.id DESC LIMIT 1
"""
_LAST_RUN = "SELECT coalesce(max(id), 0) FROM run"


def _runs_with_token(connection: apsw.Connection, token: str) -> Iterator[int]:
    seen: set[int] = set()
    waiting: set[int] = set()
    before = _MAX
    while True:
        page = {"token": token, "before": before, "limit": _FEW}
        hits: list[Any] = connection.execute(_SPANS_WITH, page).fetchall()
        new = {run for _, run in hits} - seen
        seen |= new
        waiting |= new
        if len(hits) < _FEW:
            yield from sorted(waiting, reverse=True)
            return
        before = hits[-1][0]
        # A run above this one has all its spans behind us, so it is here or meets nothing.
        settled = _newest_run_before(connection, before)
        ready = sorted((run for run in waiting if run >= settled), reverse=True)
        waiting.difference_update(ready)
        yield from ready


def _newest_run_before(connection: apsw.Connection, span: int) -> int:
    """Return the newest run that may have spans below a span.id.

    Runs are numbered when their first span is stored, so their first spans rise with them.
    """
    low, high = 0, int(connection.execute(_LAST_RUN).get)
    while low < high:
        middle = (low + high + 1) // 2
        found: Any = connection.execute(_FIRST_SPAN, {"run": middle}).fetchone()
        if found is None or found[1] is None or found[1] < span:
            low = middle
        else:
            high = found[0] - 1
    return low


# ---- text: hits are texts, used by runs through text_use or, messages, through calls

_TEXTS = "SELECT rowid FROM text_fts WHERE text_fts MATCH :match LIMIT :limit"
_RUNS_USING = """
SELECT DISTINCT text_use.run
FROM json_each(:texts) AS wanted CROSS JOIN text_use ON text_use.text = wanted.value
LIMIT :limit
"""
# Every list of messages that passes through one of the texts.
_NODES_BELOW = """
WITH RECURSIVE down (id) AS (
  SELECT message_prefix.id
  FROM json_each(:texts) AS wanted
    CROSS JOIN message_prefix ON message_prefix.text = wanted.value
  UNION
  SELECT child.id
  FROM down CROSS JOIN message_prefix AS child ON child.parent = down.id
  LIMIT :limit
)
SELECT id FROM down
"""
_RUNS_CALLING = """
SELECT DISTINCT call.run
FROM json_each(:nodes) AS wanted CROSS JOIN call ON call.input_prefix = wanted.value
UNION
SELECT DISTINCT call.run
FROM json_each(:nodes) AS wanted CROSS JOIN call ON call.output_prefix = wanted.value
LIMIT :limit
"""


def _runs_with_text(connection: apsw.Connection, match: str) -> Iterator[int]:
    texts = _numbers(connection, _TEXTS, match=match, limit=_FEW + 1)
    found = _runs_of_few(connection, texts) if len(texts) <= _FEW else None
    if found is None:
        yield from _Walk(connection, match).runs()
    else:
        yield from sorted(found, reverse=True)


def _runs_of_few(connection: apsw.Connection, texts: Sequence[int]) -> set[int] | None:
    """Return all runs that use some texts, None when that is too much to read."""
    some = json.dumps(texts)
    users = _numbers(connection, _RUNS_USING, texts=some, limit=_MANY_USES)
    nodes = _numbers(connection, _NODES_BELOW, texts=some, limit=_MANY_USES)
    callers = _numbers(connection, _RUNS_CALLING, nodes=json.dumps(nodes), limit=_MANY_USES)
    if max(len(users), len(nodes), len(callers)) >= _MANY_USES:
        return None
    return {*users, *callers}


_RUNS_DOWN = "SELECT id FROM run WHERE id < :before ORDER BY id DESC LIMIT :limit"
_TEXTS_OF = """
SELECT text_use.run, text_use.text
FROM json_each(:runs) AS wanted CROSS JOIN text_use ON text_use.run = wanted.value
"""
_LISTS_OF = """
SELECT call.run, call.input_prefix, call.output_prefix
FROM json_each(:runs) AS wanted CROSS JOIN call ON call.run = wanted.value
"""
_NODES_ABOVE = """
WITH RECURSIVE up (id, parent, text) AS (
  SELECT node.id, node.parent, node.text
  FROM json_each(:nodes) AS wanted CROSS JOIN message_prefix AS node ON node.id = wanted.value
  UNION
  SELECT node.id, node.parent, node.text
  FROM up CROSS JOIN message_prefix AS node ON node.id = up.parent
)
SELECT id, parent, text FROM up
"""
_MEETS = """
SELECT rowid FROM text_fts WHERE text_fts MATCH :match AND rowid BETWEEN :first AND :last
"""


class _Walk:
    """Looks through runs, newest first, for one of many texts."""

    def __init__(self, connection: apsw.Connection, match: str) -> None:
        self._connection = connection
        self._match = match
        self._blocks: dict[int, frozenset[int]] = {}  # of texts, those that match
        self._lists: dict[int, bool] = {0: False}  # message_prefix.id -> a match on the way to it

    def runs(self) -> Iterator[int]:
        before = _MAX
        while True:
            runs = _numbers(self._connection, _RUNS_DOWN, before=before, limit=_RUNS_AT_ONCE)
            if not runs:
                return
            before = runs[-1]
            found = self._matching(json.dumps(runs))
            yield from (run for run in runs if run in found)

    def _matching(self, runs: str) -> set[int]:
        found = {run for run, text in self._rows(_TEXTS_OF, runs=runs) if self._is_match(text)}
        calls = [(run, lists) for run, *lists in self._rows(_LISTS_OF, runs=runs)]
        self._learn(node for _, lists in calls for node in lists if node is not None)
        for run, lists in calls:
            if any(node is not None and self._lists[node] for node in lists):
                found.add(run)
        return found

    def _learn(self, nodes: Iterable[int]) -> None:
        new = {node for node in nodes if node not in self._lists}
        # Parents have lower numbers than their children.
        for node, parent, text in sorted(self._rows(_NODES_ABOVE, nodes=json.dumps(list(new)))):
            if node not in self._lists:
                self._lists[node] = self._lists[parent] or self._is_match(text)

    def _is_match(self, text: int) -> bool:
        number = text // _TEXTS_AT_ONCE
        block = self._blocks.get(number)
        if block is None:
            first = number * _TEXTS_AT_ONCE
            last = first + _TEXTS_AT_ONCE - 1
            found = _numbers(self._connection, _MEETS, match=self._match, first=first, last=last)
            block = self._blocks[number] = frozenset(found)
        return text in block

    def _rows(self, sql: str, **bindings: object) -> list[Any]:
        return self._connection.execute(sql, bindings).fetchall()


def _numbers(connection: apsw.Connection, sql: str, **bindings: object) -> list[int]:
    return [row[0] for row in connection.execute(sql, bindings)]

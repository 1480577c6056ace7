"""Sums of tokens and cost over parts of a run's tree: what is counted below each step.

Only rows that are in the run's own totals are summed (hansard_store/calls/usage_rollup.py), so a
call that two spans report, or that an agent repeats as its sum, is in each sum once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any

import apsw

from hansard_store.runs.status import TokenSums, token_sums
from hansard_store.steps.tree import Tree

_COLUMNS = """
tokens_input, tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano
"""
_COUNTED = f"""
SELECT span, 1, {_COLUMNS} FROM call INDEXED BY call_run WHERE run = :run AND counted = 1
UNION ALL
SELECT span, 0, {_COLUMNS} FROM usage_sum INDEXED BY usage_sum_run
WHERE run = :run AND counted = 1
"""


@dataclass(frozen=True, slots=True)
class UsageBelow:
    """What a step and all below it used; None: nothing of it reports any."""

    calls: int  # counted model calls
    tokens: TokenSums | None
    cost_usd_nano: int | None


class SubtreeUsage:
    """The counted usage of a run by row of its tree; a sum costs two searches."""

    def __init__(self, tree: Tree, counted: Sequence[Sequence[Any]]) -> None:
        rows = {node.id: row for row, node in enumerate(tree.nodes)} if counted else {}
        placed = sorted(
            ((rows[one[0]], one) for one in counted if one[0] in rows), key=itemgetter(0)
        )
        self._sizes = tree.sizes
        self._rows = [row for row, _ in placed]
        columns = list(zip(*(one for _, one in placed), strict=True))[1:]
        # Two running sums a column: of the numbers, and of how many there are.
        self._sums = [
            (
                [0, *accumulate([value or 0 for value in column])],
                [0, *accumulate([value is not None for value in column])],
            )
            for column in columns
        ]

    def below(self, row: int) -> UsageBelow | None:
        """Return what a row's subtree used, None where nothing in it is counted."""
        return self.between(row, row + self._sizes[row])

    def between(self, first: int, end: int) -> UsageBelow | None:
        """Return what the rows from `first` up to `end` used."""
        low, high = bisect_left(self._rows, first), bisect_left(self._rows, end)
        if low == high:
            return None
        calls, *tokens, cost = (
            sums[high] - sums[low] if known[high] > known[low] else None
            for sums, known in self._sums
        )
        return UsageBelow(calls or 0, token_sums(tokens), cost)


def usage_sums(connection: apsw.Connection, run: int, tree: Tree) -> SubtreeUsage:
    """Return the sums of one run (by run.id). Reads its counted calls."""
    return SubtreeUsage(tree, connection.execute(_COUNTED, {"run": run}).fetchall())

"""Cycles among the steps of a run: what an agent does again and again. Pure, linear in the steps.

A cycle is a sequence of one to four siblings that stands three times or more in a row. A loop is a
cycle whose steps do the same each time, arguments included; prompts of model calls are left out,
since they grow from turn to turn.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from hansard_store.steps.tree import Tree

LEAST_TIMES: Final = 3
LONGEST_PERIOD: Final = 4
_HAS_ARGUMENTS: Final = 1  # the lowest bit of a likeness
# Steps that only hold others: their names tell turns apart ("turn 1", "turn 2"), not what is done.
_HOLDERS: Final = frozenset({"other", "workflow", "chain", "task"})


@dataclass(frozen=True, slots=True)
class Cycle:
    """Rows of siblings that repeat; the first `period` of them are one time round."""

    members: tuple[int, ...]
    period: int

    @property
    def times(self) -> int:
        return len(self.members) // self.period


def repeats(kinds: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return (start, period, times) of what repeats in a sequence, in order, none overlapping.

    At each place the period that covers most is taken, of equal ones the shortest. O(kinds).
    """
    if len(kinds) < LEAST_TIMES or len(set(kinds)) == len(kinds):
        return []
    runs = [_equal_ahead(kinds, period) for period in range(1, LONGEST_PERIOD + 1)]
    found, at = [], 0
    while at < len(kinds):
        best = (0, 0, 0)
        for period, ahead in enumerate(runs, 1):
            times = ahead[at] // period + 1
            if times >= LEAST_TIMES and times * period > best[0]:
                best = (times * period, period, times)
        if best[0]:
            found.append((at, best[1], best[2]))
        at += best[0] or 1
    return found


def _equal_ahead(kinds: Sequence[Hashable], period: int) -> list[int]:
    """Return for each place how many from there on equal the one `period` behind it."""
    ahead = [0] * (len(kinds) + 1)
    for at in range(len(kinds) - period - 1, -1, -1):
        if kinds[at] == kinds[at + period]:
            ahead[at] = ahead[at + 1] + 1
    return ahead


def find_cycles(
    tree: Tree, kinds: Sequence[Hashable], *, only: Collection[int] | None = None
) -> dict[int, Cycle]:
    """Return the cycles among siblings by their first row; `kinds` has one entry a row.

    `only` are the rows that count: what a filter hides neither joins a cycle nor breaks one.
    """
    siblings: dict[int, list[int]] = {}
    for row, parent in enumerate(tree.parents):
        if only is None or row in only:
            siblings.setdefault(parent, []).append(row)
    found = {}
    for rows in siblings.values():
        if len(rows) < LEAST_TIMES:
            continue
        for start, period, times in repeats([kinds[row] for row in rows]):
            members = tuple(rows[start : start + period * times])
            found[members[0]] = Cycle(members, period)
    return found


def find_loops(tree: Tree) -> dict[int, Cycle]:
    """Return the loops of a run by their first row: cycles that have arguments, always the same.

    Steps that were derived before a likeness was stored are in none. 50 ms for 50,000 steps.
    """
    kinds, with_arguments = _likenesses(tree)
    return {
        first: cycle
        for first, cycle in find_cycles(tree, kinds).items()
        if any(with_arguments[row] for row in cycle.members[: cycle.period])
    }


def _likenesses(tree: Tree) -> tuple[list[Hashable], bytearray]:
    """Return what each row is like, with all that is below it, and whether that has arguments."""
    kinds: list[Hashable] = [None] * len(tree)
    with_arguments = bytearray(len(tree))
    below: dict[int, list[Hashable]] = {}
    known: dict[Hashable, int] = {}  # a number for each subtree, or equality would cost its size
    parents, sizes = tree.parents, tree.sizes
    for row in range(len(tree) - 1, -1, -1):
        node = tree.nodes[row]
        kind: Hashable = ("step", node.id) if node.likeness is None else node.likeness
        if node.likeness is not None and node.likeness & _HAS_ARGUMENTS:
            with_arguments[row] = 1
        if sizes[row] > 1:
            inside = tuple(below.pop(row))
            own = node.role if node.role in _HOLDERS else kind
            kind = ("tree", known.setdefault((own, inside), len(known)))
        kinds[row] = kind
        parent = parents[row]
        if parent >= 0:
            below.setdefault(parent, []).append(kind)
            if with_arguments[row]:
                with_arguments[parent] = 1
    return kinds, with_arguments

"""The tree of a run, from its flat spans: pure, iterative, O(n log n).

A tree is held as parallel lists in the order it is shown, so that a window of 200 rows out of
50,000 costs 200 rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from hansard_store.steps.flags import SpanFlag

_TOP = -1
# Plain ints: `int & IntFlag` makes an enum member each time, a third of a second for 50,000 spans.
_FOLDED = int(SpanFlag.FOLDED)
_ORPHAN, _LOOP = 1, 2  # Mark, below


class Node(NamedTuple):
    """The few columns that place a span in its tree and draw its bar."""

    id: int  # span.id
    span_id: bytes
    side: int  # 1: the SERVER half of an id shared with a CLIENT
    parent_span_id: bytes | None
    resource: int
    start_ns: int | None
    end_ns: int | None  # None while open
    sort_ns: int
    status: int
    role: str
    flags: int
    likeness: int | None = None  # one for steps that do the same; the lowest bit: with arguments


class TreeMark(IntFlag):
    """What is odd about a place in the tree."""

    ORPHAN = _ORPHAN  # its parent was named but is not here; it stands at the top
    LOOP = _LOOP  # it is its own ancestor; the loop was cut here, it stands at the top


_ORPHAN, _LOOP = int(TreeMark.ORPHAN), int(TreeMark.LOOP)


@dataclass(frozen=True, slots=True)
class Tree:
    """Spans depth-first by start; the lists have one entry a row."""

    nodes: Sequence[Node]
    depths: Sequence[int]
    parents: Sequence[int]  # row of the parent, -1 at the top
    sizes: Sequence[int]  # rows of the subtree, itself included
    marks: Sequence[int]  # Mark bits

    def __len__(self) -> int:
        return len(self.nodes)

    def has_children(self, row: int) -> bool:
        return self.sizes[row] > 1

    def row_of(self, span: int) -> int | None:
        """Return the row of a span.id, None when it is hidden or of another run. O(n)."""
        return next((row for row, node in enumerate(self.nodes) if node.id == span), None)

    def window(self, *, first: int, count: int) -> range:
        """Return `count` rows from the `first`-th on, as far as there are any."""
        first = min(max(first, 0), len(self))
        return range(first, min(first + count, len(self)))


_BY_START = attrgetter("sort_ns", "id")


def build_tree(nodes: Sequence[Node]) -> Tree:
    """Order the spans of one run depth-first by start.

    A span whose parent is absent stands at the top, marked; a loop is cut at its earliest span,
    which stands at the top, marked. Folded spans are hidden: their children move up to what the
    folded one stands for. About 100 ms for 50,000 spans.
    """
    ordered = sorted(nodes, key=_BY_START)
    parents, marks = _parents(ordered)
    _cut_loops(parents, marks)
    return _depth_first(ordered, parents, marks)


def _parents(nodes: Sequence[Node]) -> tuple[list[int], list[int]]:
    rows = {node.span_id: index for index, node in enumerate(nodes)}
    shared = {} if len(rows) == len(nodes) else _shared(nodes)
    parents, marks = [_TOP] * len(nodes), [0] * len(nodes)
    for index, node in enumerate(nodes):
        parent = node.parent_span_id
        if parent is None:
            continue
        found = rows.get(parent)
        if found is None:
            marks[index] = _ORPHAN
        elif parent in shared:
            halves = shared[parent]
            own = (half for half in halves if nodes[half].resource == node.resource)
            parents[index] = next(own, halves[0])
        else:
            parents[index] = found
    return parents, marks


def _shared(nodes: Sequence[Node]) -> dict[bytes, list[int]]:
    """Return the spans of each id that more than one has, the CLIENT half first."""
    halves: dict[bytes, list[int]] = {}
    for index, node in enumerate(nodes):
        halves.setdefault(node.span_id, []).append(index)
    return {
        span_id: sorted(found, key=lambda index: nodes[index].side)
        for span_id, found in halves.items()
        if len(found) > 1
    }


def _cut_loops(parents: list[int], marks: list[int]) -> None:
    """Put the earliest span of each loop at the top; indices are in order of start."""
    done = bytearray(len(parents))  # 0 not seen, 1 on the way up, 2 known to end at the top
    for start in range(len(parents)):
        way = []
        index = start
        while index != _TOP and not done[index]:
            done[index] = 1
            way.append(index)
            index = parents[index]
        if index != _TOP and done[index] == 1:
            earliest = min(way[way.index(index) :])
            parents[earliest] = _TOP
            marks[earliest] |= _LOOP
        for passed in way:
            done[passed] = 2


def _depth_first(nodes: Sequence[Node], parents: list[int], marks: list[int]) -> Tree:
    children: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        if node.flags & _FOLDED:
            continue
        parent = parents[index]
        while parent != _TOP and nodes[parent].flags & _FOLDED:
            marks[index] |= marks[parent]
            parent = parents[parent]
        children.setdefault(parent, []).append(index)

    shown: list[Node] = []
    depths: list[int] = []
    above: list[int] = []
    shown_marks: list[int] = []
    waiting = [(index, _TOP, 0) for index in reversed(children.get(_TOP, ()))]
    while waiting:
        index, parent_row, depth = waiting.pop()
        row = len(shown)
        shown.append(nodes[index])
        depths.append(depth)
        above.append(parent_row)
        shown_marks.append(marks[index])
        if index in children:
            waiting += [(child, row, depth + 1) for child in reversed(children[index])]
    return Tree(tuple(shown), tuple(depths), tuple(above), tuple(_sizes(above)), tuple(shown_marks))


def _sizes(parents: Sequence[int]) -> list[int]:
    """Return how many rows each subtree has; parents stand before their children."""
    sizes = [1] * len(parents)
    for row in range(len(parents) - 1, -1, -1):
        if parents[row] != _TOP:
            sizes[parents[row]] += sizes[row]
    return sizes


class TreeCache:
    """The trees of the runs looked at last, bounded by their rows; one version a run."""

    def __init__(self, max_rows: int = 300_000) -> None:
        self._max_rows = max_rows
        self._trees: OrderedDict[int, tuple[int, Tree]] = OrderedDict()
        self._rows = 0
        self._lock = Lock()  # guards the two above; any request thread reads and fills them

    def find(self, run: int, version: int) -> Tree | None:
        with self._lock:
            cached = self._trees.get(run)
            if cached is None or cached[0] != version:
                return None
            self._trees.move_to_end(run)
            return cached[1]

    def keep(self, run: int, version: int, tree: Tree) -> None:
        with self._lock:
            if (old := self._trees.pop(run, None)) is not None:
                self._rows -= len(old[1])
            self._trees[run] = (version, tree)
            self._rows += len(tree)
            while self._rows > self._max_rows and len(self._trees) > 1:
                _, (_, dropped) = self._trees.popitem(last=False)
                self._rows -= len(dropped)

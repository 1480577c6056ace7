"""Which rows of a tree are shown, and in which order: folds, filters, groups of repeats. Pure.

One pass over the tree makes two lists, so that a window of 200 rows costs 200 rows whatever is
shut or filtered. Every row left out is counted under the reason that hides it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from hansard_store.steps.cycles import Cycle
from hansard_store.steps.tree import Tree

NO_CYCLES: Mapping[int, Cycle] = {}


@dataclass(frozen=True, slots=True)
class _Group:
    """Siblings that repeat, one after another, as one row above them."""

    cycle: Cycle  # its first row gives the group its name
    end: int  # the row behind it and all below it
    is_shut: bool
    is_loop: bool  # with the same arguments each time

    @property
    def members(self) -> tuple[int, ...]:
        return self.cycle.members


@dataclass(frozen=True, slots=True)
class Hidden:
    """Why rows are not shown; each is counted once."""

    filtered: int = 0
    folded: int = 0
    grouped: int = 0

    @property
    def total(self) -> int:
        return self.filtered + self.folded + self.grouped


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is shown, one entry a line. A group's line has the row of its first member."""

    rows: Sequence[int]
    depths: Sequence[int]
    groups: Mapping[int, _Group]  # by line
    hidden: Hidden

    def __len__(self) -> int:
        return len(self.rows)

    def line_of(self, row: int) -> int | None:
        """Return the line of a row itself, not of a group it begins; None when not shown."""
        line = bisect_right(self.rows, row) - 1  # a group's line stands before its first row's
        is_it = line >= 0 and self.rows[line] == row and line not in self.groups
        return line if is_it else None

    def line_showing(self, row: int) -> int | None:
        """Return the line of a row or of the group or shut row that holds it."""
        found = self.line_of(row)
        if found is not None:
            return found
        holding = bisect_right(self.rows, row) - 1
        group = self.groups.get(holding)
        return holding if group is not None and group.is_shut and row < group.end else None


def arrange(
    tree: Tree,
    *,
    is_shut: Callable[[int], bool] | None = None,
    only: Collection[int] | None = None,
    cycles: Mapping[int, Cycle] = NO_CYCLES,
    loops: Set[int] = frozenset(),
    is_group_shut: Callable[[Cycle], bool] = lambda cycle: True,
) -> Arrangement:
    """Lay out a tree.

    `only` holds the rows a filter keeps, ancestors included; `cycles` are what is grouped, by
    first row, and `loops` those that repeat with the same arguments. O(rows).
    """
    rows: list[int] = []
    depths: list[int] = []
    groups: dict[int, _Group] = {}
    deeper: dict[int, int] = {}  # rows inside open groups stand one level further in
    grouped: set[int] = set()
    filtered = folded = in_groups = 0
    row = 0
    while row < len(tree):
        size = tree.sizes[row]
        if only is not None and row not in only:
            filtered += size
            row += size
            continue
        extra = deeper.get(tree.parents[row], 0) + (row in grouped)
        cycle = None if row in grouped else cycles.get(row)
        if cycle is not None:
            end = cycle.members[-1] + tree.sizes[cycle.members[-1]]
            group = _Group(cycle, end, is_group_shut(cycle), row in loops)
            groups[len(rows)] = group
            rows.append(row)
            depths.append(tree.depths[row] + extra)
            if group.is_shut:
                in_groups += end - row
                row = end
            else:
                grouped.update(cycle.members)
            continue
        if extra:
            deeper[row] = extra
        rows.append(row)
        depths.append(tree.depths[row] + extra)
        if size > 1 and is_shut is not None and is_shut(row):
            folded += size - 1
            row += size
        else:
            row += 1
    return Arrangement(rows, depths, groups, Hidden(filtered, folded, in_groups))


def with_ancestors(tree: Tree, rows: Collection[int]) -> set[int]:
    """Return rows and everything above them: what a filter must keep to stay a tree."""
    found: set[int] = set()
    for row in rows:
        while row >= 0 and row not in found:
            found.add(row)
            row = tree.parents[row]
    return found

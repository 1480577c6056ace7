"""Which rows of a tree are shown, and in which order: folds, filters, groups of repeats. Pure.

One pass over the tree makes two lists, so that a window of 200 rows costs 200 rows whatever is
shut or filtered. Every row left out is counted under the reason that hides it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hansard_store.steps.tree import Tree

LEAST_REPEATS = 3  # siblings of one name that make a group


@dataclass(frozen=True, slots=True)
class _Group:
    """Siblings of one role and name that stand one after another, as one row above them."""

    members: tuple[int, ...]  # rows of the tree; the first one gives the group its name
    is_shut: bool


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
        for line, shown in enumerate(self.rows):
            if shown == row and line not in self.groups:
                return line
        return None

    def line_showing(self, row: int) -> int | None:
        """Return the line of a row or of the group or shut row that holds it."""
        found = self.line_of(row)
        if found is not None:
            return found
        holding = (line for line, group in self.groups.items() if row in group.members)
        return next(holding, None)


def arrange(
    tree: Tree,
    *,
    is_shut: Callable[[int], bool] | None = None,
    only: Collection[int] | None = None,
    kinds: Sequence[object] | None = None,
    is_group_shut: Callable[[int], bool] = lambda first: True,
) -> Arrangement:
    """Lay out a tree.

    `only` holds the rows a filter keeps, ancestors included; `kinds` gives rows of one kind the
    same value where repeats are to be grouped. O(rows).
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
        members = () if kinds is None or row in grouped else _repeats(tree, row, kinds, only)
        if members:
            group = _Group(members, is_group_shut(row))
            groups[len(rows)] = group
            rows.append(row)
            depths.append(tree.depths[row] + extra)
            if group.is_shut:
                end = members[-1] + tree.sizes[members[-1]]
                in_groups += end - row
                row = end
            else:
                grouped.update(members)
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


def _repeats(
    tree: Tree, row: int, kinds: Sequence[object], only: Collection[int] | None
) -> tuple[int, ...]:
    """Return the siblings from `row` on that are of its kind, () when too few to group."""
    kind, parent = kinds[row], tree.parents[row]
    end = len(tree) if parent < 0 else parent + tree.sizes[parent]
    found = []
    while row < end and kinds[row] == kind:
        # What a filter hides neither joins a group nor breaks one.
        if only is None or row in only:
            found.append(row)
        row += tree.sizes[row]
    return tuple(found) if len(found) >= LEAST_REPEATS else ()


def with_ancestors(tree: Tree, rows: Collection[int]) -> set[int]:
    """Return rows and everything above them: what a filter must keep to stay a tree."""
    found: set[int] = set()
    for row in rows:
        while row >= 0 and row not in found:
            found.add(row)
            row = tree.parents[row]
    return found

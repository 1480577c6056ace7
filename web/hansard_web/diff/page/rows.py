"""The aligned steps of two runs as rows: a window of them, what is the same folded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_store.steps.queries import StepSkeleton
from hansard_web.diff.labels import STATES, signed, what_text
from hansard_web.diff.page.state import DiffState
from hansard_web.diff.runs import AlignedStep
from hansard_web.ui.format import duration, plural

WINDOW: Final = 200
_MOST_NAMED = 4
_HALF_PCT = 48.0  # of the cell, for the longest step
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One row of the aligned tree. Bars are on a square-root scale, in per cent of their cell."""

    number: int
    state: str  # same changed left right
    say: str
    depth: int
    role: str
    name: str
    sub: str
    is_error: bool
    left: str
    right: str
    left_pct: float
    right_pct: float
    tokens: str
    why: str
    href: str
    is_selected: bool
    step_href: str  # of the step itself


@dataclass(frozen=True, slots=True)
class Fold:
    """Steps that are the same, one after another."""

    number: int
    depth: int
    say: str
    names: str
    href: str


@dataclass(frozen=True, slots=True)
class ShownSteps:
    """A window of the rows."""

    rows: tuple[ShownStep | Fold, ...]
    total: int
    first: int
    earlier_href: str | None
    later_href: str | None
    counts: tuple[tuple[str, int], ...]  # state, steps


def shown_steps(
    steps: Sequence[AlignedStep],
    state: DiffState,
    *,
    selected: int | None,
    most: int = WINDOW,
) -> ShownSteps:
    """Return a window of the rows; unless everything is asked for, what is the same is folded."""
    groups = _groups(steps, everything=state.everything)
    first = min(state.first, max(len(groups) - 1, 0))
    window = groups[first : first + most]
    longest = max((_longest(group) for group in window), default=0)
    end = first + len(window)
    counts = Counter(one.state for one in steps)
    return ShownSteps(
        tuple(_row(group, state, longest, selected) for group in window),
        len(groups),
        first,
        state.href(first=max(first - WINDOW, 0)) if first else None,
        state.href(first=end) if end < len(groups) else None,
        tuple((name, counts[name]) for name in STATES if counts[name]),
    )


def _groups(steps: Sequence[AlignedStep], *, everything: bool) -> list[list[AlignedStep]]:
    if everything:
        return [[one] for one in steps]
    kept = _kept(steps)
    groups: list[list[AlignedStep]] = []
    for one, is_kept in zip(steps, kept, strict=True):
        if not is_kept and groups and not kept[groups[-1][0].number - steps[0].number]:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _kept(steps: Sequence[AlignedStep]) -> list[bool]:
    """Return which rows are shown: what differs, and what stands above it in the tree."""
    kept = [False] * len(steps)
    wanted = -1  # the next row that is less deep than this is an ancestor
    for at in range(len(steps) - 1, -1, -1):
        depth = steps[at].row.depth
        if steps[at].state != "same" or (0 <= depth < wanted):
            kept[at] = True
            wanted = depth
    return kept


def _row(
    group: Sequence[AlignedStep], state: DiffState, longest: int, selected: int | None
) -> ShownStep | Fold:
    one = group[0]
    if len(group) > 1:
        return _fold(group, state)
    return _shown(one, state, longest, selected)


def _fold(group: Sequence[AlignedStep], state: DiffState) -> Fold:
    names = Counter(one.row.step.tool_name or one.row.step.name for one in group)
    said = [f"{name} × {count}" if count > 1 else name for name, count in names.items()]
    rest = "" if len(said) <= _MOST_NAMED else ", …"
    return Fold(
        group[0].number,
        min(group[0].row.depth, _DEEPEST),
        f"{plural(len(group), 'step')} the same",
        ", ".join(said[:_MOST_NAMED]) + rest,
        f"{state.href(everything=True, first=group[0].number)}#a-{group[0].number}",
    )


def _shown(one: AlignedStep, state: DiffState, longest: int, selected: int | None) -> ShownStep:
    left = None if one.left is None else one.left.step
    right = None if one.right is None else one.right.step
    step = one.row.step
    return ShownStep(
        number=one.number,
        state={"only_left": "left", "only_right": "right"}.get(one.state, one.state),
        say=STATES[one.state],
        depth=min(one.row.depth, _DEEPEST),
        role=step.role,
        name=step.name,
        sub=_sub(left, right),
        is_error=step.status == "error",
        left=_took(left),
        right=_took(right),
        left_pct=_width(left, longest),
        right_pct=_width(right, longest),
        tokens=signed(_tokens_delta(left, right)),
        why=what_text(one.what),
        href=f"{state.href(row=one.number)}#detail",
        is_selected=one.number == selected,
        step_href=f"/steps/{step.step_id}",
    )


def _sub(left: StepSkeleton | None, right: StepSkeleton | None) -> str:
    """Return what stands behind the name: the other name, else the summary of the only side."""
    if left is not None and right is not None:
        return "" if left.name == right.name else f"in A: {left.name}"
    only = left or right
    return "" if only is None or only.summary is None else only.summary


def _took(step: StepSkeleton | None) -> str:
    if step is None:
        return ""
    return "open" if step.duration_ns is None else duration(step.duration_ns)


def _longest(group: Sequence[AlignedStep]) -> int:
    both = (group[0].left, group[0].right)
    return max((one.step.duration_ns or 0 for one in both if one is not None), default=0)


def _width(step: StepSkeleton | None, longest: int) -> float:
    if step is None or not step.duration_ns or not longest:
        return 0.0
    return round(max(_HALF_PCT * math.sqrt(step.duration_ns / longest), 0.5), 2)


def _tokens_delta(left: StepSkeleton | None, right: StepSkeleton | None) -> int | None:
    totals = [
        0 if one is None else None if one.tokens is None else one.tokens.total
        for one in (left, right)
    ]
    before, after = totals
    return None if before is None or after is None else after - before

"""A comparison as a page shows it, saved or served."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_compiler.diff import Delta
from hansard_store.runs.queries import RunItem
from hansard_store.steps.queries import StepSkeleton
from hansard_web.diff.labels import STATES, FigureText, parted_text, say, signed, what_text
from hansard_web.diff.page.context import ItemRow
from hansard_web.diff.page.detail import Detail, detail_of
from hansard_web.diff.page.media import PayloadLookup
from hansard_web.diff.page.state import DiffState
from hansard_web.diff.runs import AlignedStep, RunDiff
from hansard_web.diff.steps import StepDiff, StepSide
from hansard_web.steps.names import step_title
from hansard_web.ui.format import agent_words, duration, plural

# The aligned steps of two runs as rows: a window of them, what is the same folded.

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
class _Fold:
    """Steps that are the same, one after another."""

    number: int
    depth: int
    say: str
    names: str
    href: str


@dataclass(frozen=True, slots=True)
class ShownSteps:
    """A window of the rows."""

    rows: tuple[ShownStep | _Fold, ...]
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
    most: int,
) -> ShownSteps:
    """Return a window of the rows; unless everything is requested, what is the same is folded."""
    groups = _groups(steps, everything=state.everything)
    first = min(state.first, max(len(groups) - 1, 0))
    window = groups[first : first + most]
    longest = max((_longest(group) for group in window), default=0)
    end = first + len(window)
    counts = Counter(one.state for one in steps)
    return ShownSteps(
        tuple(
            _fold(group, state) if len(group) > 1 else _shown(group[0], state, longest, selected)
            for group in window
        ),
        len(groups),
        first,
        state.href(first=max(first - WINDOW, 0)) if first else None,
        state.href(first=end) if end < len(groups) else None,
        tuple((name, counts[name]) for name in STATES if counts[name]),
    )


def _groups(steps: Sequence[AlignedStep], *, everything: bool) -> list[list[AlignedStep]]:
    if everything:
        return [[one] for one in steps]
    shown = _are_shown(steps)
    groups: list[list[AlignedStep]] = []
    for one, is_kept in zip(steps, shown, strict=True):
        if not is_kept and groups and not shown[groups[-1][0].number - steps[0].number]:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _are_shown(steps: Sequence[AlignedStep]) -> list[bool]:
    """Return which rows are shown: what differs, and what stands above it in the tree."""
    shown = [False] * len(steps)
    ancestor_depth = -1  # the next row that is less deep than this is an ancestor
    for at in range(len(steps) - 1, -1, -1):
        depth = steps[at].row.depth
        if steps[at].state != "same" or (0 <= depth < ancestor_depth):
            shown[at] = True
            ancestor_depth = depth
    return shown


def _fold(group: Sequence[AlignedStep], state: DiffState) -> _Fold:
    names = Counter(one.row.step.tool_name or step_title(one.row.step) for one in group)
    texts = [f"{name} × {count}" if count > 1 else name for name, count in names.items()]
    rest = "" if len(texts) <= _MOST_NAMED else ", …"
    return _Fold(
        group[0].number,
        min(group[0].row.depth, _DEEPEST),
        f"{plural(len(group), 'step')} the same",
        ", ".join(texts[:_MOST_NAMED]) + rest,
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
        name=step_title(step),
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
        return "" if left.name == right.name else f"in A: {step_title(left)}"
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


_MOST_SAVED = 2_000  # rows of steps in a file
_ABSENT = "not a candidate"


@dataclass(frozen=True, slots=True)
class ShownSide:
    """One of the two things compared."""

    side: str  # left or right
    name: str
    short_id: str
    started_ns: int
    status: str
    status_sentence: str
    href: str
    about: str  # of a step: the run it is of


@dataclass(frozen=True, slots=True)
class DiffView:
    """Everything a comparison shows."""

    title: str
    kind: str  # runs or steps
    sides: tuple[ShownSide, ShownSide]
    figures: tuple[FigureText, ...]
    figures_same: str  # names of those that are the same and not shown
    lede: str
    lede_href: str
    is_empty: bool
    steps: ShownSteps | None
    detail: Detail | None
    detail_title: str
    state: DiffState
    notes: tuple[str, ...]
    pick_href: str
    is_saved: bool = False


def run_diff_view(
    diff: RunDiff,
    state: DiffState,
    *,
    selected: AlignedStep | None,
    focus: StepDiff | None,
    payloads: PayloadLookup | None = None,
    is_saved: bool = False,
) -> DiffView:
    """Return two runs side by side, with the detail of one pair of their steps."""
    detail = (
        None if focus is None else detail_of(focus, state, payloads=payloads, is_saved=is_saved)
    )
    number = None if selected is None else selected.number
    return DiffView(
        title=_title(diff),
        kind="runs",
        sides=(_run_side("left", diff.left), _run_side("right", diff.right)),
        figures=_figures(diff.figures, state),
        figures_same=_same_figures(diff.figures, state),
        lede=parted_text(diff) + _reason(detail),
        lede_href="#detail" if detail is not None else "",
        is_empty=diff.is_empty,
        steps=shown_steps(
            diff.steps, state, selected=number, most=_MOST_SAVED if is_saved else WINDOW
        ),
        detail=detail,
        detail_title=_detail_title(state, selected),
        state=state,
        notes=diff.notes,
        pick_href=f"/?compare={diff.left.run_id}&compare={diff.right.run_id}",
        is_saved=is_saved,
    )


def step_diff_view(
    diff: StepDiff,
    state: DiffState,
    *,
    payloads: PayloadLookup | None = None,
    is_saved: bool = False,
) -> DiffView:
    """Return two steps side by side."""
    differing = what_text(diff.what)
    detail = detail_of(diff, state, payloads=payloads, is_saved=is_saved)
    lede = f"They differ in {differing}." if differing else "Nothing differs but times."
    return DiffView(
        title="Two steps of one run" if diff.left.run.id == diff.right.run.id else "Two steps",
        kind="steps",
        sides=_step_sides(diff.left, diff.right),
        figures=_figures(diff.figures, state),
        figures_same=_same_figures(diff.figures, state),
        lede=lede + _reason(detail),
        lede_href="#detail" if not diff.is_empty else "",
        is_empty=diff.is_empty,
        steps=None,
        detail=detail,
        detail_title="",
        state=state,
        notes=(),
        pick_href=f"/diff?left={diff.left.step.step_id}",
        is_saved=is_saved,
    )


def _figures(figures: Sequence[Delta], state: DiffState) -> tuple[FigureText, ...]:
    """Return the figures that differ, and the outcome; all of them where all are requested."""
    return tuple(say(one) for one in figures if state.everything or _is_shown(one))


def _same_figures(figures: Sequence[Delta], state: DiffState) -> str:
    hidden = () if state.everything else [one for one in figures if not _is_shown(one)]
    return ", ".join(say(one).label for one in hidden)


def _is_shown(one: Delta) -> bool:
    return one.name == "status" or one.direction != "same"


def _title(diff: RunDiff) -> str:
    if diff.left.first_input and diff.left.first_input == diff.right.first_input:
        return "Two runs of one task"
    return "Two runs"


def _detail_title(state: DiffState, selected: AlignedStep | None) -> str:
    if selected is None:
        return ""
    return "The step you chose" if state.row is not None else "The first call that differs"


def _reason(detail: Detail | None) -> str:
    """Name the first flip with its cause: of two decisions, before what is merely new or gone."""
    rows = detail.context.rows if detail is not None and detail.context is not None else ()
    reasons = [(_labels(row), row) for row in rows if row.detail and row.kind]
    reasons.sort(key=lambda one: (one[0][0] == one[0][1], _ABSENT in one[0]))
    for (before, after), row in reasons[:1]:
        return f" {row.name} was {before}, now {after}: {row.detail}."
    return ""


def _labels(row: ItemRow) -> tuple[str, str]:
    left, right = row.left, row.right
    return left.label if left else _ABSENT, right.label if right else _ABSENT


def _run_side(side: str, run: RunItem) -> ShownSide:
    note = ": its figures can still grow" if run.status == "open" else ""
    return ShownSide(
        side,
        run.agent_name or run.name,
        run.run_id[:8],
        run.started_ns,
        run.status,
        run.status.replace("_", " ") + note,
        f"/runs/{run.run_id}",
        "" if run.agent_name in (None, agent_words(run.name)) else agent_words(run.name),
    )


def _step_sides(left: StepSide, right: StepSide) -> tuple[ShownSide, ShownSide]:
    """Return both sides under names that tell them apart.

    Calls of one model share a name: the step that they are in is named, unless it is the run, and
    where that is one as well, which calls of their runs they are.
    """
    names = [_placed_name(one) for one in (left, right)]
    if names[0] == names[1]:
        names = [
            name if one.place is None else f"{name}, call {one.place}"
            for name, one in zip(names, (left, right), strict=True)
        ]
    return _step_side("left", left, names[0]), _step_side("right", right, names[1])


def _placed_name(one: StepSide) -> str:
    is_placed = one.parent not in ("", one.run.name)
    return f"{one.step.name} in {one.parent}" if is_placed else one.step.name


def _step_side(side: str, one: StepSide, name: str) -> ShownSide:
    step = one.step
    return ShownSide(
        side,
        name,
        step.span_id,
        step.sort_ns,
        step.status,
        "" if step.status == "unset" else step.status.replace("_", " "),
        f"/steps/{step.step_id}",
        f"{step.role} of {one.run.agent_name or one.run.name}",
    )

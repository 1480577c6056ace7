"""The tree and waterfall of a run as rows to be rendered: text, links and bars. Pure.

Lengths are percentages of the shown stretch of time and go into SVG attributes, so the page needs
no style attribute and the client no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hansard_store.runs.details import EventTime
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton
from hansard_store.steps.tree import Mark
from hansard_web.run_page.arrangement import Arrangement
from hansard_web.run_page.picture import TINY_PCT, Picture, Scale, Span, span_key
from hansard_web.run_page.state import RunState
from hansard_web.ui.format import WAITS, duration, plural

DEEPEST = 24  # levels of indent that the stylesheet has
_LONGEST_NAME = 200  # characters in a row; the pane has the whole


@dataclass(frozen=True, slots=True)
class Rect:
    """A piece of a bar; `width` has its unit: tiny bars are 2 px whatever their share."""

    css: str
    x_pct: float
    width: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A span event."""

    x_pct: float
    failed: bool


@dataclass(frozen=True, slots=True)
class Bar:
    rects: tuple[Rect, ...] = ()
    dots: tuple[Dot, ...] = ()
    open_at_pct: float | None = None  # a chevron: no end was received
    before: bool = False  # the span lies left of the shown stretch
    after: bool = False  # or right of it


@dataclass(frozen=True, slots=True)
class WaterRow:
    """One line of the tree."""

    key: str  # the span's name in addresses
    line: int  # number of the line among all visible ones, from 0
    level: int  # depth + 1, as aria-level counts
    indent: int
    role: str
    title: str
    sub: str
    href: str  # the page with this step selected
    toggle_href: str | None  # None: nothing to open or shut
    is_open: bool
    is_group: bool
    is_orphan: bool
    is_selected: bool
    is_match: bool
    status: str
    marks: tuple[RowMark, ...]
    tokens_in: int | None
    cost_usd_nano: int | None
    start_ns: int | None  # after the start of the run
    duration: str
    bar: Bar
    zoom_href: str | None = None


@dataclass(frozen=True, slots=True)
class RowMark:
    """Something odd about a step: an icon with its word."""

    icon: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Canvas:
    """What all rows of one rendering share."""

    picture: Picture
    scale: Scale  # the shown stretch
    origin_ns: int  # start of the run
    until_ns: int  # where open spans end
    state: RunState
    path: str  # address of the run's page
    matches: frozenset[int] = frozenset()  # span.id

    def address(self, state: RunState) -> str:
        query = state.query()
        return f"{self.path}?{query}" if query else self.path


def water_rows(
    canvas: Canvas,
    events: Mapping[int, Sequence[EventTime]],
    arrangement: Arrangement,
    lines: Sequence[int],
    steps: Mapping[int, StepSkeleton],
) -> list[WaterRow]:
    """Return the given lines; one whose span was deleted meanwhile is left out.

    `events` are the span events to draw, by span.id.
    """
    rows = []
    for line in lines:
        step = steps.get(canvas.picture.tree.nodes[arrangement.rows[line]].id)
        if step is None:
            continue
        if line in arrangement.groups:
            rows.append(_group_row(canvas, arrangement, line, step))
        else:
            rows.append(_step_row(canvas, arrangement, line, step, events.get(step.id, ())))
    return rows


def _step_row(
    canvas: Canvas,
    arrangement: Arrangement,
    line: int,
    step: StepSkeleton,
    events: Sequence[EventTime],
) -> WaterRow:
    tree, row = canvas.picture.tree, arrangement.rows[line]
    node, state = tree.nodes[row], canvas.state
    key = span_key(node)
    depth = arrangement.depths[line]
    has_children = tree.has_children(row)
    is_shut = has_children and state.shut.is_shut(key)
    times = canvas.picture.times(row, canvas.until_ns)
    orphan = bool(tree.marks[row] & (Mark.ORPHAN | Mark.LOOP))
    marks = _marks(step, tree.marks[row])
    odd = [mark.text for mark in marks if not mark.is_error]
    return WaterRow(
        key=key,
        line=line,
        level=depth + 1,
        indent=min(depth, DEEPEST),
        role=step.role,
        title=step.name[:_LONGEST_NAME],
        sub=step.summary or ", ".join(odd),
        href=canvas.address(state.but(span=key)),
        toggle_href=canvas.address(state.but(shut=state.shut.toggled(key)))
        if has_children
        else None,
        is_open=has_children and not is_shut,
        is_group=False,
        is_orphan=orphan,
        is_selected=key == state.span,
        is_match=node.id in canvas.matches,
        status=step.status,
        marks=marks,
        tokens_in=step.tokens.input if step.tokens else None,
        cost_usd_nano=step.cost_usd_nano,
        start_ns=None if step.start_ns is None else step.start_ns - canvas.origin_ns,
        duration=_duration(step, times),
        bar=_bar(canvas, row, step, events),
        zoom_href=_zoom(canvas, times),
    )


def _group_row(canvas: Canvas, arrangement: Arrangement, line: int, step: StepSkeleton) -> WaterRow:
    tree, state = canvas.picture.tree, canvas.state
    group = arrangement.groups[line]
    key = span_key(tree.nodes[group.members[0]])
    spans = [canvas.picture.times(row, canvas.until_ns) for row in group.members]
    failed = sum(bool(tree.nodes[row].flags & SpanFlag.ERROR) for row in group.members)
    together = f"{plural(len(group.members), 'step')}, {duration(_sum(spans))} in all"
    depth = arrangement.depths[line]
    whole = Span(min(one.start_ns for one in spans), max(one.end_ns for one in spans))
    return WaterRow(
        key=f"g{key}",
        line=line,
        level=depth + 1,
        indent=min(depth, DEEPEST),
        role=step.role,
        title=f"{step.name[:_LONGEST_NAME]} × {len(group.members)}",
        sub=f"{together}, {failed} failed" if failed else together,
        href=canvas.address(state.but(span=key)),
        toggle_href=canvas.address(state.but(repeats=state.repeats.toggled(key))),
        is_open=not group.is_shut,
        is_group=True,
        is_orphan=False,
        is_selected=False,
        is_match=any(tree.nodes[row].id in canvas.matches for row in group.members),
        status="error" if failed else "ok",
        marks=(RowMark("error", f"{failed} failed", is_error=True),) if failed else (),
        tokens_in=None,
        cost_usd_nano=None,
        start_ns=whole.start_ns - canvas.origin_ns,
        duration=duration(whole.length_ns),
        bar=_group_bar(canvas, group.members, spans),
        zoom_href=_zoom(canvas, whole),
    )


def _sum(spans: Sequence[Span]) -> int:
    return sum(span.length_ns for span in spans)


def _duration(step: StepSkeleton, times: Span) -> str:
    if step.status in ("open", "blocked") and step.end_ns is None:
        return f"{duration(times.length_ns)} …"
    if step.status == "no_end":
        return "no end"
    return "" if step.duration_ns is None else duration(step.duration_ns)


def _marks(step: StepSkeleton, tree_marks: int) -> tuple[RowMark, ...]:
    found = []
    if step.status == "error":
        found.append(RowMark("error", "error", is_error=True))
    if step.status == "cancelled":
        found.append(RowMark("cancelled", "cancelled before it was done"))
    if step.status == "no_end":
        found.append(RowMark("no_end", "no end received"))
    if step.status == "blocked":
        found.append(RowMark("blocked", WAITS))
    if tree_marks & Mark.ORPHAN:
        found.append(RowMark("missing", "parent span not received"))
    if tree_marks & Mark.LOOP:
        found.append(RowMark("replay", "its own ancestor; the loop was cut here"))
    if step.flags & SpanFlag.DUPLICATE:
        found.append(RowMark("copy", "a second report of one call, not counted"))
    elif step.flags & SpanFlag.REPORTED_ELSEWHERE:
        found.append(RowMark("copy", "another trace reports this call as well, and counts it"))
    if step.flags & (SpanFlag.TIME_ODD | SpanFlag.TIME_HUGE):
        found.append(RowMark("clock", "its clock is odd"))
    return tuple(found)


def _zoom(canvas: Canvas, times: Span) -> str | None:
    if times.length_ns == 0:
        return None
    # A little air on both sides, or the bar would touch the edges.
    air = max(times.length_ns // 20, 1)
    start = max(times.start_ns - air - canvas.origin_ns, 0)
    return canvas.address(
        canvas.state.but(from_ns=start, to_ns=times.end_ns + air - canvas.origin_ns)
    )


# ------------------------------------------------------------------------------ bars


def _bar(canvas: Canvas, row: int, step: StepSkeleton, events: Sequence[EventTime]) -> Bar:
    times = canvas.picture.times(row, canvas.until_ns)
    if not canvas.scale.overlaps(times):
        return _outside(canvas.scale, times)
    failed = step.status == "error"
    if canvas.picture.tree.marks[row]:
        rects = [_rect(canvas.scale, times, "orphan-err" if failed else "orphan")]
    elif step.role == "approval":
        rects = [_rect(canvas.scale, times, "human")]
    else:
        rects = [_rect(canvas.scale, times, "err-total" if failed else "total")]
        css = "err" if failed else "self"
        own = canvas.picture.own_time(row, canvas.until_ns) or ((times.start_ns, times.start_ns),)
        pieces = (Span(*piece) for piece in own)
        rects += [_rect(canvas.scale, one, css) for one in pieces if canvas.scale.overlaps(one)]
    is_open = step.end_ns is None and step.status in ("open", "no_end", "blocked")
    return Bar(
        rects=tuple(rects),
        dots=tuple(
            Dot(round(canvas.scale.at(event.time_ns), 3), event.failed)
            for event in events
            if canvas.scale.start_ns <= event.time_ns <= canvas.scale.end_ns
        ),
        open_at_pct=round(canvas.scale.at(times.end_ns), 3) if is_open else None,
    )


def _group_bar(canvas: Canvas, members: Sequence[int], spans: Sequence[Span]) -> Bar:
    nodes = canvas.picture.tree.nodes
    whole = Span(min(one.start_ns for one in spans), max(one.end_ns for one in spans))
    if not canvas.scale.overlaps(whole):
        return _outside(canvas.scale, whole)
    rects = [_rect(canvas.scale, whole, "total")]
    drawn: dict[tuple[float, bool], Rect] = {}
    for row, span in zip(members, spans, strict=True):
        if canvas.scale.overlaps(span):
            failed = bool(nodes[row].flags & SpanFlag.ERROR)
            rect = _rect(canvas.scale, span, "err" if failed else "self")
            # A thousand members on one pixel are one mark.
            drawn.setdefault((round(rect.x_pct, 1), failed), rect)
    rects += sorted(drawn.values(), key=lambda rect: rect.css == "err")
    return Bar(tuple(rects))


def _outside(scale: Scale, times: Span) -> Bar:
    return Bar(before=times.end_ns < scale.start_ns, after=times.start_ns > scale.end_ns)


def _rect(scale: Scale, span: Span, css: str) -> Rect:
    left, right = scale.at(span.start_ns), scale.at(span.end_ns)
    width = right - left
    return Rect(css, round(left, 3), "2" if width < TINY_PCT else f"{width:.3f}%")

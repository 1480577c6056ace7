"""The tree reading of a run: which lines, which window of them, as text, links and bars.

Lengths are percentages of the shown stretch of time and go into SVG attributes, so the page needs
no style attribute and the client no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import apsw

from hansard_collector.derived_context.context import RunBreaks
from hansard_store.runs.details import EventTime, find_steps, list_event_times, step_kinds
from hansard_store.runs.queries import RunItem
from hansard_store.steps.cycles import Cycle, find_cycles
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton, steps_by_number
from hansard_store.steps.tree import Tree, TreeMark
from hansard_store.steps.usage_sums import SubtreeUsage, UsageBelow
from hansard_web.run_page.arrangement import Arrangement, Hidden, arrange, with_ancestors
from hansard_web.run_page.cache_breaks import AT_ONCE, BreaksNote, known_breaks
from hansard_web.run_page.geometry import (
    TINY_PCT,
    Picture,
    Scale,
    ShownRun,
    Span,
    Tick,
    span_key,
    ticks,
)
from hansard_web.run_page.marks import (
    Facts,
    RowMark,
    Wait,
    break_mark,
    decided,
    facts_of,
    memory_marks,
    subject_of,
    waits_of_run,
)
from hansard_web.run_page.state import WINDOW_ROWS, RunPageState, address_of
from hansard_web.steps.names import step_title
from hansard_web.ui.format import WAITS, duration, plural

_ERROR = int(SpanFlag.ERROR)  # a plain int: see geometry.py
SEND_ALL = 300  # rows below which there is no windowing
_MOST_EVENTS = 4_000  # dots in one window
DEEPEST = 24  # levels of indent that the stylesheet has
_LONGEST_NAME = 200  # characters in a row; the pane has the whole
_LONGEST_LOOP_NAME = 40
_ANY_SPAN = "f" * 16  # stands for a span in an address that many rows share
_MOST_WAITS = 3  # of one step, said in its row


@dataclass(frozen=True)
class Look:
    """A run as one request reads it: in the state of its address, at one moment."""

    connection: apsw.Connection
    run: RunItem
    shown: ShownRun
    state: RunPageState
    now_ns: int

    @property
    def path(self) -> str:
        return f"/runs/{self.run.run_id}"

    @property
    def fragments(self) -> str:
        return f"/fragments{self.path}"

    @property
    def picture(self) -> Picture:
        return self.shown.picture

    @property
    def is_running(self) -> bool:
        return self.run.status == "open"

    @property
    def until_ns(self) -> int:
        """Where open spans end: now, or the last news of a run that went silent."""
        return self.now_ns if self.is_running else self.run.last_received_ns

    @cached_property
    def whole(self) -> Scale:
        return self.picture.bounds(self.until_ns)

    @cached_property
    def scale(self) -> Scale:
        """The stretch of time that the waterfall shows: the whole run, or what was zoomed to."""
        state, whole = self.state, self.whole
        start_ns = whole.start_ns + (state.from_ns or 0)
        end_ns = whole.end_ns if state.to_ns is None else whole.start_ns + state.to_ns
        scale = Scale(start_ns, end_ns) if end_ns > start_ns else whole
        if self.picture.has_open and state.to_ns is None:
            # Air behind the last moment, so that what is still open can be seen to point onwards.
            scale = Scale(scale.start_ns, scale.end_ns + (scale.end_ns - scale.start_ns) * 3 // 50)
        return scale

    @cached_property
    def matches(self) -> frozenset[int]:
        """The spans (span.id) that the find box matches; none when it is empty."""
        find, trace_id = self.state.find, bytes.fromhex(self.run.run_id)
        if not find:
            return frozenset()
        return self.shown.matches.get(
            find, lambda: frozenset(find_steps(self.connection, trace_id, find))
        )

    @cached_property
    def arrangement(self) -> Arrangement:
        """The visible lines; cached per state, as scrolling needs them again and again."""
        state, tree = self.state, self.picture.tree
        zoom = (state.from_ns, state.to_ns)
        layout = (state.shut, state.errors, state.critical, state.group, zoom)
        plain = layout == (RunPageState().shut, False, False, False, (None, None))
        if plain and not self.shown.loops:
            return Arrangement(range(len(tree)), tree.depths, {}, Hidden())
        if self.is_running and (state.critical or zoom != (None, None)):
            return self._arranged()  # what is open moves with the clock
        return self.shown.arrangements.get((layout, state.repeats, self.chosen_row), self._arranged)

    def _arranged(self) -> Arrangement:
        state, tree = self.state, self.picture.tree
        only = self._kept_rows()
        cycles, loops = self._cycles(only)
        return arrange(
            tree,
            is_shut=lambda row: state.shut.is_shut(span_key(tree.nodes[row])),
            only=only,
            cycles=cycles,
            loops=loops,
            is_group_shut=self._is_group_shut,
        )

    def _cycles(self, only: set[int] | None) -> tuple[Mapping[int, Cycle], Set[int]]:
        """Return what is grouped, and which of it are loops: they are, unless a filter is on."""
        loops = self.shown.loops
        if not self.state.group:
            return (loops if only is None else {}), loops.keys()
        by_span = step_kinds(self.connection, bytes.fromhex(self.run.run_id))
        kinds = [by_span.get(node.id) for node in self.picture.tree.nodes]
        cycles = find_cycles(self.picture.tree, kinds, only=only)
        return cycles, {first for first in cycles if cycles[first] == loops.get(first)}

    def _is_group_shut(self, cycle: Cycle) -> bool:
        """A group is open when it was opened, or when the chosen step is in it."""
        row, tree = self.chosen_row, self.picture.tree
        last = cycle.members[-1]
        if row is not None and cycle.members[0] <= row < last + tree.sizes[last]:
            return False
        return self.state.repeats.is_shut(span_key(tree.nodes[cycle.members[0]]))

    def _kept_rows(self) -> set[int] | None:
        """Return the rows that every filter keeps, ancestors included; None without a filter."""
        state, tree = self.state, self.picture.tree
        kept = []
        if state.errors:
            failed = [row for row, node in enumerate(tree.nodes) if node.flags & _ERROR]
            kept.append(with_ancestors(tree, failed))
        if state.critical:
            kept.append(self.picture.critical_path(self.until_ns))
        if state.from_ns is not None or state.to_ns is not None:
            rows = range(len(tree))
            inside = [row for row in rows if self.scale.overlaps(self.times(row))]
            kept.append(with_ancestors(tree, inside))
        return set.intersection(*kept) if kept else None

    def times(self, row: int) -> Span:
        return self.picture.times(row, self.until_ns)

    @cached_property
    def waits(self) -> Mapping[str, Sequence[Wait]]:
        """When steps waited for people, by step id."""
        return waits_of_run(self.connection, self.run.run_id)

    @property
    def sums(self) -> SubtreeUsage:
        """The counted usage of the run, by row."""
        return self.shown.sums(self.connection)

    @property
    def breaks(self) -> RunBreaks | None:
        """The cache breaks of the run; None while nothing found them: see `cache_breaks.py`."""
        return known_breaks(self.connection, self.shown, self.run)

    @cached_property
    def breaks_note(self) -> BreaksNote:
        """What the head says of the cache breaks."""
        breaks = self.breaks
        if breaks is None:
            is_pending = self.run.model_calls > AT_ONCE and not self.shown.readings.has("breaks")
            query = f"v={self.shown.tree.version}"
            return BreaksNote(pending_href=f"{self.fragments}/breaks?{query}" if is_pending else "")
        if not breaks.breaks:
            return BreaksNote()
        worst = max(breaks.lost_by_span, key=lambda span: breaks.lost_by_span[span])
        row = self.picture.tree.row_of(worst)
        key = None if row is None else span_key(self.picture.tree.nodes[row])
        return BreaksNote(
            count=breaks.breaks,
            lost_tokens=breaks.lost_tokens,
            href=self.address(span=key, tab="context"),
            why="The prompt of these calls changed before its end, so the provider's cache could "
            "not be used behind it; tokens are estimates. Opens the call that paid most again",
        )

    @cached_property
    def broken(self) -> Mapping[int, int]:
        """The tokens that calls paid again, by span.id."""
        return self.breaks.lost_by_span if self.breaks is not None else {}

    @property
    def chosen_row(self) -> int | None:
        """The row of the step that the address names."""
        return None if self.state.span is None else self.picture.row_of(self.state.span)

    @property
    def selected_row(self) -> int | None:
        """The row of the step that the pane shows: the chosen one, else where the page opened."""
        if self.state.span is None and self.state.at is not None:
            return self.picture.row_of(self.state.at)
        return self.chosen_row

    def opening(self) -> str | None:
        """Return the step that a page opens on when its address names none."""
        row = self.shown.opening_row
        return None if row is None else span_key(self.picture.tree.nodes[row])

    def address(self, **changes: Any) -> str:
        """Return the address of this page with some of its state changed."""
        return address_of(self.path, self.state.but(**changes))

    def pages(self, first: int, size: int, total: int) -> tuple[str | None, str | None]:
        """Return the addresses of the windows before and after one that begins at `first`."""
        return (
            self.address(first=max(first - size, 0)) if first else None,
            self.address(first=first + size) if first + size < total else None,
        )

    def span_address(self, key: str) -> str:
        """Return the address with a step selected; of 200 rows in a fifth of the time."""
        return self._span_template.replace(f"span={_ANY_SPAN}", f"span={key}")

    @cached_property
    def _span_template(self) -> str:
        return self.address(span=_ANY_SPAN)

    def zoom_address(self, from_ns: int, to_ns: int) -> str:
        """Return the address with the shown stretch of time narrowed."""
        return self._zoom_template.replace("from=1&to=2", f"from={from_ns}&to={to_ns}")

    @cached_property
    def _zoom_template(self) -> str:
        return self.address(from_ns=1, to_ns=2)

    def row_address(self, row: int) -> str:
        """Return the address with the step of a row selected."""
        return self.span_address(span_key(self.picture.tree.nodes[row]))

    def line_address(self, line: int) -> str:
        """Return the address with the step of a visible line selected."""
        return self.row_address(self.arrangement.rows[line])


@dataclass(frozen=True, slots=True)
class TreeView:
    """What the tree's templates read."""

    rows: tuple[WaterRow, ...]
    first: int
    total: int
    step: int
    focus: str  # the row that Tab reaches
    ticks: tuple[Tick, ...]
    now_pct: float | None
    length_ns: int  # of the run
    from_ns: int
    to_ns: int
    is_zoomed: bool
    window_href: str
    minimap_href: str
    unzoom_href: str
    previous_href: str | None
    next_href: str | None
    hidden: Hidden


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
class _Bar:
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
    name: str  # of the span, as sent
    chip: str  # of a loop: what repeats
    times: int  # of a group
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
    usage: RowUsage
    start_ns: int | None  # after the start of the run
    duration: str
    bar: _Bar
    zoom_href: str | None = None


@dataclass(frozen=True, slots=True)
class RowUsage:
    """The figures of a row; of a step with others below it the sums of what is counted there."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    cost_usd_nano: int | None = None
    why: str = ""  # title of the figures where they are sums


def tree_view(look: Look) -> TreeView:
    """Read and draw one window of the tree."""
    state, scale, arrangement = look.state, look.scale, look.arrangement
    total = len(arrangement)
    first, count = _window(look)
    lines = range(first, min(first + count, total))
    nodes = look.picture.tree.nodes
    spans = [nodes[row].id for line in lines for row in _told_rows(arrangement, line)]
    steps = steps_by_number(look.connection, spans, now_ns=look.now_ns)
    with_events = [span for span, step in steps.items() if step.flags & SpanFlag.HAS_EVENTS]
    events = list_event_times(look.connection, with_events, limit=_MOST_EVENTS)
    about = facts_of(look.connection, look.run.run_id, list(steps.values()), look.waits)
    rows = _water_rows(look, events, lines, steps, about)
    origin_ns = look.whole.start_ns
    now_pct = _now_pct(look)
    query = state.but(span=None, first=None).query()
    return TreeView(
        rows=tuple(rows),
        first=first,
        total=total,
        step=WINDOW_ROWS,
        focus=_focus(rows),
        ticks=tuple(tick for tick in ticks(scale, origin_ns) if _is_clear(tick, now_pct)),
        now_pct=now_pct,
        length_ns=look.whole.end_ns - origin_ns,
        from_ns=scale.start_ns - origin_ns,
        to_ns=scale.end_ns - origin_ns,
        is_zoomed=state.from_ns is not None or state.to_ns is not None,
        window_href=f"{look.fragments}/tree?{query}",
        minimap_href=f"{look.fragments}/minimap?v={look.shown.tree.version}",
        unzoom_href=look.address(from_ns=None, to_ns=None),
        previous_href=look.address(first=max(first - WINDOW_ROWS, 0)) if first else None,
        next_href=look.address(first=first + count) if first + count < total else None,
        hidden=arrangement.hidden,
    )


def _told_rows(arrangement: Arrangement, line: int) -> Sequence[int]:
    """Return the rows whose steps a line shows: of a group one time round."""
    group = arrangement.groups.get(line)
    if group is None:
        return (arrangement.rows[line],)
    return group.members[: group.cycle.period]


def _window(look: Look) -> tuple[int, int]:
    """Return the first line and how many: around the selected step when none is named.

    The selected row stands two fifths down, as people read on from it.
    """
    total = len(look.arrangement)
    if total <= SEND_ALL:
        return 0, total
    first = look.state.first
    if first is None:
        row = look.selected_row
        line = None if row is None else look.arrangement.line_showing(row)
        first = 0 if line is None else min(line - WINDOW_ROWS * 2 // 5, total - WINDOW_ROWS)
    return min(max(first, 0), max(total - 1, 0)), WINDOW_ROWS


def _focus(rows: Sequence[WaterRow]) -> str:
    selected = next((row.key for row in rows if row.is_selected), None)
    return selected or (rows[0].key if rows else "")


def _now_pct(look: Look) -> float | None:
    if not look.is_running or not look.scale.start_ns <= look.now_ns <= look.scale.end_ns:
        return None
    return round(look.scale.at(look.now_ns), 2)


def _is_clear(tick: Tick, now_pct: float | None) -> bool:
    """A label under the word "now" would not be read."""
    return now_pct is None or abs(tick.at_pct - now_pct) > 6


def shown_text(view: TreeView, steps: int) -> tuple[str, str]:
    """Say how many steps are shown, and why not all."""
    hidden = view.hidden
    shown = steps - hidden.total
    if not hidden.total:
        return plural(steps, "step"), ""
    reasons = (
        (hidden.filtered, "left out by the filter or outside the shown time"),
        (hidden.folded, "inside steps that are shut"),
        (hidden.grouped, "inside groups of repeats"),
    )
    why = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
    return f"{shown:,} of {plural(steps, 'step')} shown", why


# ------------------------------------------------------------------------------ rows


def _water_rows(
    look: Look,
    events: Mapping[int, Sequence[EventTime]],
    lines: Sequence[int],
    steps: Mapping[int, StepSkeleton],
    about: Facts,
) -> list[WaterRow]:
    """Return the given lines; one whose span was deleted meanwhile is left out.

    `events` are the span events to draw, by span.id.
    """
    rows = []
    for line in lines:
        step = steps.get(look.picture.tree.nodes[look.arrangement.rows[line]].id)
        if step is None:
            continue
        if line in look.arrangement.groups:
            rows.append(_group_row(look, line, step, steps))
        else:
            rows.append(_step_row(look, line, step, events.get(step.id, ()), about))
    return rows


def _step_row(
    look: Look, line: int, step: StepSkeleton, events: Sequence[EventTime], about: Facts
) -> WaterRow:
    tree, row = look.picture.tree, look.arrangement.rows[line]
    node, state = tree.nodes[row], look.state
    key = span_key(node)
    depth = look.arrangement.depths[line]
    has_children = tree.has_children(row)
    is_shut = has_children and state.shut.is_shut(key)
    times = look.times(row)
    waits = about.waits.get(step.step_id, ())
    marks = [*_marks(step, tree.marks[row]), *memory_marks(step, about), *_break(look, row, key)]
    odd = [mark.text for mark in marks if not mark.is_error and not mark.tone]
    said = ", ".join(wait.text for wait in waits[-_MOST_WAITS:]) or decided(step, about)
    return WaterRow(
        key=key,
        line=line,
        level=depth + 1,
        indent=min(depth, DEEPEST),
        role=step.role,
        title=_title(step, about),
        name=step.span_name[:_LONGEST_NAME],
        chip="",
        times=1,
        sub=" · ".join(part for part in (said, step.summary or "") if part) or ", ".join(odd),
        href=look.span_address(key),
        toggle_href=look.address(shut=state.shut.toggled(key)) if has_children else None,
        is_open=has_children and not is_shut,
        is_group=False,
        is_orphan=bool(tree.marks[row] & (TreeMark.ORPHAN | TreeMark.LOOP)),
        is_selected=row == look.selected_row,
        is_match=node.id in look.matches,
        status=step.status,
        marks=tuple(marks),
        usage=_usage(look, row, step),
        start_ns=None if step.start_ns is None else step.start_ns - look.whole.start_ns,
        duration=_duration(step, times),
        bar=_bar(look, row, step, events, waits),
        zoom_href=_zoom(look, times),
    )


def _title(step: StepSkeleton, about: Facts) -> str:
    """Return the name of a step; a policy check is named after the tool it is about."""
    subject = subject_of(step, about) if step.role == "policy" else ""
    return f"check {subject}" if subject else step_title(step)[:_LONGEST_NAME]


def _usage(look: Look, row: int, step: StepSkeleton) -> RowUsage:
    """Return the figures of a step: its own, or where others stand below it the sums of all."""
    if not look.picture.tree.has_children(row):
        tokens = step.tokens
        return RowUsage(
            input=tokens.input if tokens else None,
            cached=tokens.cache_read if tokens else None,
            output=tokens.output if tokens else None,
            cost_usd_nano=step.cost_usd_nano,
        )
    return _sum(look.sums.below(row))


def _sum(below: UsageBelow | None) -> RowUsage:
    if below is None:
        return RowUsage()
    tokens = below.tokens
    return RowUsage(
        input=tokens.input if tokens else None,
        cached=tokens.cache_read if tokens else None,
        output=tokens.output if tokens else None,
        cost_usd_nano=below.cost_usd_nano,
        why=f"Sum of {plural(below.calls, 'model call')}" if below.calls else "As reported",
    )


def _break(look: Look, row: int, key: str) -> list[RowMark]:
    lost = look.broken.get(look.picture.tree.nodes[row].id)
    return [] if lost is None else [break_mark(lost, look.address(span=key, tab="context"))]


def _group_row(
    look: Look, line: int, step: StepSkeleton, steps: Mapping[int, StepSkeleton]
) -> WaterRow:
    tree = look.picture.tree
    group = look.arrangement.groups[line]
    cycle = group.cycle
    key = span_key(tree.nodes[cycle.members[0]])
    spans = [look.times(row) for row in cycle.members]
    failed = sum(bool(tree.nodes[row].flags & _ERROR) for row in range(cycle.members[0], group.end))
    in_all = duration(sum(span.length_ns for span in spans))
    together = f"{plural(group.end - cycle.members[0], 'step')}, {in_all} in all"
    depth = look.arrangement.depths[line]
    whole = Span(min(one.start_ns for one in spans), max(one.end_ns for one in spans))
    names = [
        step_title(found)[:_LONGEST_NAME]
        for row in cycle.members[: cycle.period]
        if (found := steps.get(tree.nodes[row].id)) is not None
    ]
    what = ", ".join(dict.fromkeys(names)) or step_title(step)[:_LONGEST_NAME]
    chosen = look.selected_row
    return WaterRow(
        key=f"g{key}",
        line=line,
        level=depth + 1,
        indent=min(depth, DEEPEST),
        role=step.role,
        title=what if group.is_loop else f"{what} × {cycle.times}",
        name=step.span_name[:_LONGEST_NAME],
        chip=_loop_text(tree, cycle, steps) if group.is_loop else "",
        times=cycle.times,
        sub=f"{together}, {failed} failed" if failed else together,
        href=look.span_address(key),
        toggle_href=look.address(repeats=look.state.repeats.toggled(key)),
        is_open=not group.is_shut,
        is_group=True,
        is_orphan=False,
        is_selected=group.is_shut and chosen is not None and cycle.members[0] <= chosen < group.end,
        is_match=any(
            tree.nodes[row].id in look.matches for row in range(cycle.members[0], group.end)
        ),
        status="error" if failed else "ok",
        marks=(RowMark("error", f"{failed} failed", is_error=True),) if failed else (),
        usage=_sum(look.sums.between(cycle.members[0], group.end)),
        start_ns=whole.start_ns - look.whole.start_ns,
        duration=duration(whole.length_ns),
        bar=_group_bar(look, cycle.members, spans, whole),
        zoom_href=_zoom(look, whole),
    )


def _loop_text(tree: Tree, cycle: Cycle, steps: Mapping[int, StepSkeleton]) -> str:
    """Return `loop: get_stock ×40, same arguments`: what has arguments, else all of one round."""
    once = [
        (tree.nodes[row], steps.get(tree.nodes[row].id)) for row in cycle.members[: cycle.period]
    ]
    telling = [
        step_title(step)[:_LONGEST_LOOP_NAME]
        for node, step in once
        if step is not None and (node.likeness or 0) & 1
    ]
    every = [step_title(step)[:_LONGEST_LOOP_NAME] for _, step in once if step is not None]
    names = ", ".join(dict.fromkeys(telling or every))
    return f"loop: {names} ×{cycle.times}, same arguments"


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
    if tree_marks & TreeMark.ORPHAN:
        found.append(RowMark("missing", "parent span not received"))
    if tree_marks & TreeMark.LOOP:
        found.append(RowMark("replay", "its own ancestor; the loop was cut here"))
    if step.flags & SpanFlag.DUPLICATE:
        found.append(RowMark("copy", "a second report of one call, not counted"))
    elif step.flags & SpanFlag.REPORTED_ELSEWHERE:
        found.append(RowMark("copy", "another trace reports this call as well, and counts it"))
    if step.flags & (SpanFlag.TIME_ODD | SpanFlag.TIME_HUGE):
        found.append(RowMark("clock", "its clock is odd"))
    return tuple(found)


def _zoom(look: Look, times: Span) -> str | None:
    if times.length_ns == 0:
        return None
    # A little air on both sides, or the bar would touch the edges.
    air = max(times.length_ns // 20, 1)
    origin_ns = look.whole.start_ns
    start = max(times.start_ns - air - origin_ns, 0)
    return look.zoom_address(start, times.end_ns + air - origin_ns)


# ------------------------------------------------------------------------------ bars


def _bar(
    look: Look,
    row: int,
    step: StepSkeleton,
    events: Sequence[EventTime],
    waits: Sequence[Wait],
) -> _Bar:
    scale, times = look.scale, look.times(row)
    if not scale.overlaps(times):
        return _outside(scale, times)
    failed = step.status == "error"
    if look.picture.tree.marks[row]:
        rects = [_rect(scale, times, "orphan-err" if failed else "orphan")]
    elif step.role == "approval":
        rects = [_rect(scale, times, "human")]
    else:
        rects = [_rect(scale, times, "err-total" if failed else "total")]
        css = "err" if failed else "self"
        own = look.picture.drawn_own_time(row, look.until_ns, scale)
        if not own and look.picture.own_time(row, look.until_ns) == ():
            own = [Span(times.start_ns, times.start_ns)]
        rects += [_rect(scale, one, css) for one in own if scale.overlaps(one)]
    held = (Span(wait.start_ns, wait.end_ns or look.until_ns) for wait in waits)
    rects += [_rect(scale, one, "human") for one in held if scale.overlaps(one)]
    is_open = step.end_ns is None and step.status in ("open", "no_end", "blocked")
    return _Bar(
        rects=tuple(rects),
        dots=tuple(
            Dot(round(scale.at(event.time_ns), 3), event.failed)
            for event in events
            if scale.start_ns <= event.time_ns <= scale.end_ns
        ),
        open_at_pct=round(scale.at(times.end_ns), 3) if is_open else None,
    )


def _group_bar(look: Look, members: Sequence[int], spans: Sequence[Span], whole: Span) -> _Bar:
    scale, nodes = look.scale, look.picture.tree.nodes
    if not scale.overlaps(whole):
        return _outside(scale, whole)
    rects = [_rect(scale, whole, "total")]
    drawn: dict[tuple[float, bool], Rect] = {}
    for row, span in zip(members, spans, strict=True):
        if scale.overlaps(span):
            failed = bool(nodes[row].flags & SpanFlag.ERROR)
            rect = _rect(scale, span, "err" if failed else "self")
            # A thousand members on one pixel are one mark.
            drawn.setdefault((round(rect.x_pct, 1), failed), rect)
    rects += sorted(drawn.values(), key=lambda rect: rect.css == "err")
    return _Bar(tuple(rects))


def _outside(scale: Scale, times: Span) -> _Bar:
    return _Bar(before=times.end_ns < scale.start_ns, after=times.start_ns > scale.end_ns)


def _rect(scale: Scale, span: Span, css: str) -> Rect:
    left, right = scale.at(span.start_ns), scale.at(span.end_ns)
    width = right - left
    return Rect(css, round(left, 3), "2" if width < TINY_PCT else f"{width:.3f}%")

"""The tree reading of a run: which lines, which window of them, what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from hansard_store.runs.details import find_steps, list_event_times, step_kinds
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import steps_by_number
from hansard_web.run_page.arrangement import Arrangement, Hidden, arrange, with_ancestors
from hansard_web.run_page.picture import Scale, ShownRun, Tick, span_key, ticks
from hansard_web.run_page.state import WINDOW_ROWS, RunState
from hansard_web.run_page.waterfall import Canvas, WaterRow, water_rows
from hansard_web.ui.format import plural

_ERROR = int(SpanFlag.ERROR)  # a plain int: see picture.py
SEND_ALL = 300  # rows below which there is no windowing
_MOST_EVENTS = 4_000  # dots in one window


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
class Moment:
    """The clock of one rendering."""

    now_ns: int
    until_ns: int  # where open spans end: now, or the last news of a run that went silent
    is_running: bool


def lay_out(
    connection: apsw.Connection, shown: ShownRun, state: RunState, moment: Moment
) -> Arrangement:
    """Return the visible lines; cached per state, as scrolling needs them again and again."""
    tree = shown.tree.tree
    zoom = (state.from_ns, state.to_ns)
    layout = (state.shut, state.errors, state.critical, state.group, state.repeats, zoom)
    if layout == (RunState().shut, False, False, False, state.repeats, (None, None)):
        return Arrangement(range(len(tree)), tree.depths, {}, Hidden())

    def make() -> Arrangement:
        kinds = None
        if state.group:
            by_span = step_kinds(connection, bytes.fromhex(shown.tree.run_id))
            kinds = [by_span.get(node.id) for node in tree.nodes]
        return arrange(
            tree,
            is_shut=lambda row: state.shut.is_shut(span_key(tree.nodes[row])),
            only=_kept_rows(shown, state, moment),
            kinds=kinds,
            is_group_shut=lambda row: state.repeats.is_shut(span_key(tree.nodes[row])),
        )

    if moment.is_running and (state.critical or zoom != (None, None)):
        return make()  # what is open moves with the clock
    return shown.arrangements.get(layout, make)


def _kept_rows(shown: ShownRun, state: RunState, moment: Moment) -> set[int] | None:
    tree = shown.tree.tree
    rows: set[int] | None = None
    if state.errors:
        failed = [row for row, node in enumerate(tree.nodes) if node.flags & _ERROR]
        rows = with_ancestors(tree, failed)
    if state.critical:
        path = shown.picture.critical_path(moment.until_ns)
        rows = path if rows is None else rows & path
    if state.from_ns is not None or state.to_ns is not None:
        scale = _shown_time(shown, state, moment)
        inside = [
            row
            for row in range(len(tree))
            if scale.overlaps(shown.picture.times(row, moment.until_ns))
        ]
        ran = with_ancestors(tree, inside)
        rows = ran if rows is None else rows & ran
    return rows


def _shown_time(shown: ShownRun, state: RunState, moment: Moment) -> Scale:
    """Return the stretch of time that the waterfall shows: the whole run, or what was zoomed to."""
    whole = shown.picture.bounds(moment.until_ns)
    start_ns = whole.start_ns + (state.from_ns or 0)
    end_ns = whole.end_ns if state.to_ns is None else whole.start_ns + state.to_ns
    scale = Scale(start_ns, end_ns) if end_ns > start_ns else whole
    if shown.picture.has_open and state.to_ns is None:
        # Air behind the last moment, so that what is still open can be seen to point onwards.
        scale = Scale(scale.start_ns, scale.end_ns + (scale.end_ns - scale.start_ns) * 3 // 50)
    return scale


def find_matches(connection: apsw.Connection, shown: ShownRun, state: RunState) -> frozenset[int]:
    """Return the spans (span.id) that the find box matches; none when it is empty."""
    if not state.find:
        return frozenset()
    trace_id = bytes.fromhex(shown.tree.run_id)
    return shown.matches.get(
        state.find, lambda: frozenset(find_steps(connection, trace_id, state.find))
    )


def tree_view(
    connection: apsw.Connection,
    shown: ShownRun,
    arrangement: Arrangement,
    state: RunState,
    moment: Moment,
    *,
    path: str,
    fragments: str,
) -> TreeView:
    """Read and draw one window of the tree."""
    total = len(arrangement)
    first, count = _window(arrangement, shown, state)
    canvas = _canvas(connection, shown, state, moment, path)
    lines = range(first, min(first + count, total))
    nodes = shown.tree.tree.nodes
    spans = [nodes[arrangement.rows[line]].id for line in lines]
    steps = steps_by_number(connection, spans, now_ns=moment.now_ns)
    with_events = [span for span, step in steps.items() if step.flags & SpanFlag.HAS_EVENTS]
    events = list_event_times(connection, with_events, limit=_MOST_EVENTS)
    rows = water_rows(canvas, events, arrangement, lines, steps)
    whole = shown.picture.bounds(moment.until_ns)
    now_pct = _now_pct(canvas.scale, moment)
    query = state.but(span=None, first=None).query()
    return TreeView(
        rows=tuple(rows),
        first=first,
        total=total,
        step=WINDOW_ROWS,
        focus=_focus(rows, state),
        ticks=tuple(
            tick for tick in ticks(canvas.scale, whole.start_ns) if _is_clear(tick, now_pct)
        ),
        now_pct=now_pct,
        length_ns=whole.end_ns - whole.start_ns,
        from_ns=canvas.scale.start_ns - whole.start_ns,
        to_ns=canvas.scale.end_ns - whole.start_ns,
        is_zoomed=state.from_ns is not None or state.to_ns is not None,
        window_href=f"{fragments}/tree?{query}",
        minimap_href=f"{fragments}/minimap?v={shown.tree.version}",
        unzoom_href=canvas.address(state.but(from_ns=None, to_ns=None)),
        previous_href=_page_href(canvas, state, first - WINDOW_ROWS) if first else None,
        next_href=_page_href(canvas, state, first + count) if first + count < total else None,
        hidden=arrangement.hidden,
    )


def _canvas(
    connection: apsw.Connection, shown: ShownRun, state: RunState, moment: Moment, path: str
) -> Canvas:
    return Canvas(
        picture=shown.picture,
        scale=_shown_time(shown, state, moment),
        origin_ns=shown.picture.bounds(moment.until_ns).start_ns,
        until_ns=moment.until_ns,
        state=state,
        path=path,
        matches=find_matches(connection, shown, state),
    )


def _window(arrangement: Arrangement, shown: ShownRun, state: RunState) -> tuple[int, int]:
    """Return the first line and how many: around the selected step when none is named.

    The selected row stands two fifths down, as people read on from it.
    """
    total = len(arrangement)
    if total <= SEND_ALL:
        return 0, total
    first = state.first
    if first is None:
        row = None if state.span is None else shown.picture.row_of(state.span)
        line = None if row is None else arrangement.line_showing(row)
        first = 0 if line is None else line - WINDOW_ROWS * 2 // 5
    return min(max(first, 0), max(total - 1, 0)), WINDOW_ROWS


def _focus(rows: Sequence[WaterRow], state: RunState) -> str:
    selected = next((row.key for row in rows if row.is_selected), None)
    return selected or (rows[0].key if rows else "")


def _now_pct(scale: Scale, moment: Moment) -> float | None:
    if not moment.is_running or not scale.start_ns <= moment.now_ns <= scale.end_ns:
        return None
    return round(scale.at(moment.now_ns), 2)


def _is_clear(tick: Tick, now_pct: float | None) -> bool:
    """A label under the word "now" would not be read."""
    return now_pct is None or abs(tick.at_pct - now_pct) > 6


def _page_href(canvas: Canvas, state: RunState, first: int) -> str:
    return canvas.address(state.but(first=max(first, 0)))


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

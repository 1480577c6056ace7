"""The run page: one run in three readings, with the selected step beside it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Literal
from urllib.parse import parse_qsl

import apsw
from anyio import to_thread
from fastapi import APIRouter, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from hansard_compiler.errors import NotFoundError
from hansard_store.runs.details import list_events, list_log_lines
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.runs.usage import silent_calls
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton, steps_by_number
from hansard_web.annotations import panel as annotating
from hansard_web.app.site import Site, SiteDep
from hansard_web.evaluation import panel as evaluating
from hansard_web.memory.panel import MemoryPanel, panel_of_run
from hansard_web.run_page.cache_breaks import BreaksNote, find_breaks
from hansard_web.run_page.conversation import ConversationReading, conversation_view
from hansard_web.run_page.geometry import draw_minimap, span_key
from hansard_web.run_page.graph import GraphView, graph_view
from hansard_web.run_page.head import Note, RunHead, run_head, run_notes
from hansard_web.run_page.state import (
    ALL_SHUT,
    LINES,
    TABS,
    RunPageState,
    View,
    address_of,
    parse_state,
)
from hansard_web.run_page.waterfall import Look, TreeView, shown_text, tree_view
from hansard_web.steps.names import step_title
from hansard_web.steps.page import Around, Pane, pane_of, step_key
from hansard_web.ui.format import clock, count, duration, iso_time, plural

# The log reading of a run: steps, span events and log records in order of time.

_ERROR = int(SpanFlag.ERROR)  # a plain int: see geometry.py
_HAS_EVENTS = int(SpanFlag.HAS_EVENTS)
LINES_A_PAGE = 300
_MOST_EVENT_SPANS = 5_000
_MOST_LOGS = 20_000
_ERROR_SEVERITY = 17
_LONGEST_DETAIL = 300

Kind = Literal["steps", "events", "logs"]


@dataclass(frozen=True, slots=True)
class _Line:
    """One entry before it is read in full."""

    time_ns: int
    kind: Kind
    span: int | None  # span.id
    what: str = ""
    detail: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class _Everything:
    lines: list[_Line]
    lacks_logs: bool  # the run has more log records than are read


@dataclass(frozen=True, slots=True)
class _LogRow:
    """One line of the log as it is shown."""

    time_ns: int
    clock: str  # to the millisecond, UTC
    after: str  # since the line before
    role: str
    icon: str
    what: str
    detail: str
    href: str | None
    key: str | None  # of the step, where this line is one
    is_error: bool
    is_selected: bool


@dataclass(frozen=True, slots=True)
class _LogView:
    rows: tuple[_LogRow, ...]
    summary: str
    not_shown: str
    first: int
    total: int
    previous_href: str | None
    next_href: str | None
    counts: dict[str, int]


def log_view(look: Look) -> _LogView:
    """Return one window of the log; steps are read in full for its lines only."""
    read: _Everything = look.shown.readings.get("log", lambda: _read_lines(look))
    everything = read.lines
    lines = [line for line in everything if line.kind not in look.state.hide]
    if look.state.errors:
        failed = failed_spans(look)
        lines = [line for line in lines if line.is_error or (line.span in failed)]
    first = _first(lines, look)
    previous_href, next_href = look.pages(first, LINES_A_PAGE, len(lines))
    window = lines[first : first + LINES_A_PAGE]
    spans = [line.span for line in window if line.span is not None]
    steps = steps_by_number(look.connection, spans, now_ns=look.now_ns)
    rows = []
    before = lines[first - 1].time_ns if first else None
    for line in window:
        step = None if line.span is None else steps.get(line.span)
        rows.append(_row(look, line, step, before))
        before = line.time_ns
    return _LogView(
        rows=tuple(rows),
        summary=f"{plural(len(lines), 'line')}, newest last",
        not_shown=_not_shown(look, read),
        first=first,
        total=len(lines),
        previous_href=previous_href,
        next_href=next_href,
        counts={kind: sum(line.kind == kind for line in everything) for kind in LINES},
    )


def _read_lines(look: Look) -> _Everything:
    connection, nodes = look.connection, look.picture.tree.nodes
    found = [
        _Line(node.sort_ns, "steps", node.id, is_error=bool(node.flags & _ERROR)) for node in nodes
    ]
    by_key = {(node.span_id, node.side): node.id for node in nodes}
    logs = list_log_lines(connection, bytes.fromhex(look.run.run_id), limit=_MOST_LOGS + 1)
    for log in logs[:_MOST_LOGS]:
        span = None if log.span_id is None else by_key.get((log.span_id, 0))
        failed = log.severity >= _ERROR_SEVERITY
        what = log.event_name or "log record"
        found.append(_Line(log.time_ns, "logs", span, what, log.body_text or "", failed))
    with_events = [node.id for node in nodes if node.flags & _HAS_EVENTS]
    for event in list_events(connection, with_events[:_MOST_EVENT_SPANS]):
        failed = event.name == "exception"
        found.append(
            _Line(event.time_ns, "events", event.span, event.name or "event", event.text, failed)
        )
    # A step before what happened in it, where both have the same time.
    lines = sorted(found, key=lambda line: (line.time_ns, LINES.index(line.kind)))
    return _Everything(lines, lacks_logs=len(logs) > _MOST_LOGS)


def _first(lines: list[_Line], look: Look) -> int:
    if look.state.first is not None:
        return min(look.state.first, max(len(lines) - 1, 0))
    row = look.selected_row
    if row is None:
        return 0
    step_number = look.picture.tree.nodes[row].id
    places = (
        at for at, line in enumerate(lines) if line.span == step_number and line.kind == "steps"
    )
    at = next(places, 0)
    return at // LINES_A_PAGE * LINES_A_PAGE


def _row(look: Look, line: _Line, step: StepSkeleton | None, before_ns: int | None) -> _LogRow:
    is_step = line.kind == "steps"
    key = None if step is None else step_key(step)
    tab = look.state.tab if is_step else "events"
    name = step_title(step) if is_step and step else line.what
    detail = (step.summary or "") if is_step and step else _detail(line, step)
    return _LogRow(
        time_ns=line.time_ns,
        clock=f"{clock(line.time_ns)}{iso_time(line.time_ns)[19:23]}",
        after=_after(line.time_ns, before_ns),
        role=step.role if is_step and step else "other",
        icon=step.role if is_step and step else "event" if line.kind == "events" else "log",
        what=name,
        detail=detail[:_LONGEST_DETAIL],
        href=None if key is None else look.address(span=key, tab=tab),
        key=key if is_step else None,
        is_error=line.is_error,
        is_selected=is_step and key is not None and key == look.state.span,
    )


def _after(time_ns: int, before_ns: int | None) -> str:
    if before_ns is None or time_ns <= before_ns:
        return ""
    return f"+{duration(time_ns - before_ns)}"


def _detail(line: _Line, step: StepSkeleton | None) -> str:
    where = f"in {step_title(step)}" if step else ""
    return ": ".join(part for part in (where, line.detail) if part)


def _not_shown(look: Look, read: _Everything) -> str:
    with_events = sum(bool(node.flags & _HAS_EVENTS) for node in look.picture.tree.nodes)
    more = with_events - _MOST_EVENT_SPANS
    notices = [
        f"The events of {count(more)} further steps are not shown here." if more > 0 else "",
        f"Log records after the first {count(_MOST_LOGS)} are not shown here."
        if read.lacks_logs
        else "",
    ]
    return " ".join(filter(None, notices))


# What stands between a run's header and its reading: the readings, the find box, the filters.


_READINGS: tuple[tuple[View, str], ...] = (
    ("tree", "Tree"),
    ("conversation", "Messages"),
    ("log", "Log"),
    ("graph", "Graph"),
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One of the ways to read a run."""

    label: str
    icon: str
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Pill:
    """A filter that is on or off by following its address."""

    label: str
    href: str
    is_on: bool
    icon: str = ""
    count: int | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Find:
    """The find box of the run."""

    text: str
    count: int
    previous_href: str | None
    next_href: str | None
    clear_href: str
    hidden: tuple[tuple[str, str], ...]  # the rest of the state, as hidden fields


def readings_of(look: Look) -> tuple[_Reading, ...]:
    return tuple(
        _Reading(label, view, look.address(view=view), view == look.state.view)
        for view, label in _READINGS
    )


def pills_of(look: Look, log: _LogView | None) -> tuple[Pill, ...]:
    state, errors = look.state, look.run.error_count
    if state.view in ("conversation", "graph"):
        return ()
    pills = []
    if errors or state.errors:
        title = "Only steps that failed, and what leads to them"
        href = look.address(errors=not state.errors)
        pills.append(Pill("errors", href, state.errors, "error", errors, title))
    if log is not None:
        return (
            *pills,
            *(
                Pill(kind, look.address(hide=state.hide ^ {kind}), kind not in state.hide,
                     count=log.counts[kind])
                for kind in LINES
                if log.counts[kind]
            ),
        )  # fmt: skip
    return (
        *pills,
        Pill(
            "critical path",
            look.address(critical=not state.critical),
            state.critical,
            title="Only the steps that the length of the run hangs on",
        ),
        Pill(
            "group repeats",
            look.address(group=not state.group, repeats=ALL_SHUT),
            state.group,
            title="Steps that repeat three times or more, alone or in turns of up to four, become "
            "one line. Loops with the same arguments are one line already",
        ),
    )


def find_of(look: Look) -> Find:
    state = look.state
    before, after = (next_row(look, look.matches, is_back=is_back) for is_back in (True, False))
    return Find(
        text=state.find,
        count=len(look.matches),
        previous_href=None if before is None else look.row_address(before),
        next_href=None if after is None else look.row_address(after),
        clear_href=look.address(find=""),
        hidden=tuple(parse_qsl(state.but(find="").query())),
    )


def failed_spans(look: Look) -> frozenset[int]:
    return frozenset(node.id for node in look.picture.tree.nodes if node.flags & _ERROR)


def next_row(look: Look, spans: Collection[int], *, is_back: bool) -> int | None:
    """Return the next row with one of these spans, going round at the end.

    Rows inside shut groups count, as choosing one opens its group; those that a filter leaves out
    or that are folded away do not.
    """
    if not spans:
        return None
    arrangement, nodes = look.arrangement, look.picture.tree.nodes
    rows: list[int] = []
    for line, row in enumerate(arrangement.rows):
        group = arrangement.groups.get(line)
        inside = range(row, row + 1) if group is None else range(row, group.end)
        if group is None or group.is_shut:
            rows += [one for one in inside if nodes[one].id in spans]
    if not rows:
        return None
    here = look.selected_row
    if is_back:
        before = [row for row in rows if here is not None and row < here]
        return before[-1] if before else rows[-1]
    return next((row for row in rows if here is None or row > here), rows[0])


router = APIRouter()


_PANE_AT_ONCE = 1_000  # steps of a run whose page comes with the pane it opens with
_A_YEAR_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything run.html and its partials read; of the four views one is set."""

    head: RunHead
    state: RunPageState
    path: str
    here: str  # the address of this state
    fragments: str  # where parts of the page are read
    readings: tuple[_Reading, ...]
    pills: tuple[Pill, ...]
    find: Find
    shown: str
    shown_why: str
    notes: tuple[Note, ...]
    tree: TreeView | None
    conversation: ConversationReading | None
    log: _LogView | None
    graph: GraphView | None
    step: Pane | None
    step_href: str | None  # where the pane comes from, when it is not here yet
    live_href: str | None
    memory: MemoryPanel | None
    claims: evaluating.ClaimPanel | None
    annotations: annotating.AnnotationPanel
    breaks: BreaksNote


@router.get("/runs/{run_id}")
def run(request: Request, site: SiteDep, run_id: str) -> Response:
    state = parse_state(request.query_params)
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        if found.run_id != run_id:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/runs/{found.run_id}{query}", 303)
        look = _look(site, connection, found, state, now_ns)
        if state.view == "tree" and state.span is None and not state.closed:
            look = replace(look, state=replace(state, at=look.opening()))
        page = _page(look, request.query_params)
    return site.renderer.page(request, "run.html", here="runs", page=page)


@router.get("/fragments/runs/{run_id}/tree")
def tree_window(request: Request, site: SiteDep, run_id: str) -> Response:
    """Rows of the tree; with what stands around them unless `part=rows`."""
    requested = parse_state(request.query_params)
    state = requested.but(first=requested.first, view="tree")
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(address_of(f"/runs/{run_id}", state), 303)
    is_scroll = request.query_params.get("part") == "rows"
    with _looking(site, run_id, state) as look:
        if is_scroll:
            rows = {"tree": tree_view(look)}
            return site.renderer.fragment(request, "run/_rows.html", page=rows)
        page = _page(look, request.query_params, with_step=False)
    return site.renderer.fragment(request, "run/_window.html", page=page)


@router.get("/fragments/runs/{run_id}/step")
def step_pane(request: Request, site: SiteDep, run_id: str) -> Response:
    """The pane of the selected step; empty when none is."""
    state = parse_state(request.query_params)
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(address_of(f"/runs/{run_id}", state), 303)
    with _looking(site, run_id, state) as look:
        pane = _pane(look, request.query_params)
    return site.renderer.fragment(request, "step/_pane_only.html", page={"step": pane})


@router.get("/fragments/runs/{run_id}/minimap")
def minimap(request: Request, site: SiteDep, run_id: str, v: int = 0) -> Response:
    """The version in the address makes it cacheable: a finished run's picture never changes."""
    with _looking(site, run_id, RunPageState()) as look:
        drawn = draw_minimap(look.picture, look.until_ns)
    is_final = look.run.open_count == 0 and v == look.run.version
    cache_control = f"private, max-age={_A_YEAR_S}, immutable" if is_final else "no-store"
    return site.renderer.fragment(
        request, "run/_minimap.html", page=drawn, headers={"Cache-Control": cache_control}
    )


@router.get("/fragments/runs/{run_id}/breaks")
def breaks(request: Request, site: SiteDep, run_id: str) -> Response:
    """Find the cache breaks of a run with many calls; the tree then shows them, too."""
    with _looking(site, run_id, RunPageState()) as look:
        find_breaks(look.connection, look.shown, look.run)
        note = look.breaks_note
    return site.renderer.fragment(
        request,
        "run/_breaks.html",
        page={"breaks": note},
        headers={"HX-Trigger": "run-marks"} if note.count else {},
    )


@router.get("/fragments/runs/{run_id}/jump")
def jump(
    request: Request, site: SiteDep, run_id: str, to: str = "error", back: int = 0
) -> Response:
    """Tell the client where the next failed step or match stands among the visible lines."""
    state = parse_state(request.query_params)
    with _looking(site, run_id, state) as look:
        matches = look.matches if to == "match" else failed_spans(look)
        row = next_row(look, matches, is_back=bool(back))
        if row is None:
            return JSONResponse({"line": None, "key": None})
        key = span_key(look.picture.tree.nodes[row])
        there = replace(look, state=state.but(span=key))  # what holds it is open there
        line = there.arrangement.line_showing(row)
    return JSONResponse({"line": line, "key": key})


@router.get("/live/runs/{run_id}", response_class=EventSourceResponse)
async def live_run(
    site: SiteDep,
    run_id: str,
    seq: int = 0,
    v: int = 0,
    last_event_id: Annotated[str | None, Header()] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Tell an open page that its run has news; the page asks for what it shows.

    `run-marks` where only what is said of the run changed, and no step: its version is still `v`;
    `run-change` where the run has ended: what changed need not be a new step.
    """
    after = int(last_event_id) if last_event_id and last_event_id.isdigit() else seq
    async for batch in site.feed.follow(after=after):
        item = next((item for item in batch.runs if item.run_id == run_id), None)
        if item is None and not batch.is_resync:
            continue
        item = item or await to_thread.run_sync(_find, site, run_id)
        version = -1 if item is None else item.version
        is_open = item is not None and item.status in ("open", "blocked")
        name = "run-marks" if version == v else "run-news" if is_open else "run-change"
        v = version
        yield ServerSentEvent(id=str(batch.seq), event=name, raw_data="-")


def _find(site: Site, run_id: str) -> RunItem | None:
    """Return the run as it is now, None when it is gone."""
    with site.readers.read() as connection, suppress(NotFoundError):
        return get_run(connection, run_id, now_ns=time.time_ns())
    return None


def _look(
    site: Site, connection: apsw.Connection, found: RunItem, state: RunPageState, now_ns: int
) -> Look:
    return Look(connection, found, site.pictures.get(connection, found.run_id), state, now_ns)


@contextmanager
def _looking(site: Site, run_id: str, state: RunPageState) -> Iterator[Look]:
    """Lend a look at a run by its id; raises NotFoundError or AmbiguousIdError."""
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        found = get_run(connection, run_id, now_ns=now_ns)
        yield _look(site, connection, found, state, now_ns)


def _page(look: Look, query: Mapping[str, str], *, with_step: bool = True) -> RunPage:
    connection, found, state, now_ns = look.connection, look.run, look.state, look.now_ns
    tree = conversation = log = graph = None
    why = ""
    if state.view == "tree":
        tree = tree_view(look)
        text, why = shown_text(tree, len(look.picture.tree))
    elif state.view == "conversation":
        conversation = conversation_view(look)
        text = conversation.summary
    elif state.view == "graph":
        graph = graph_view(look)
        text = graph.summary
    else:
        log = log_view(look)
        text = log.summary
    here = look.address(first=state.first)
    # In a long run the pane reads thousands of calls: the tree does not wait for it.
    is_late = state.at is not None and len(look.picture.tree) > _PANE_AT_ONCE
    return RunPage(
        head=run_head(
            found,
            silent_calls(connection, found.id),
            length_ns=look.whole.end_ns - look.whole.start_ns,
            now_ns=now_ns,
        ),
        state=state,
        path=look.path,
        here=here,
        fragments=look.fragments,
        readings=readings_of(look),
        pills=pills_of(look, log),
        find=find_of(look),
        shown=text,
        shown_why=why,
        notes=run_notes(connection, found, look.picture.tree, now_ns=now_ns),
        tree=tree,
        conversation=conversation,
        log=log,
        graph=graph,
        step=_pane(look, query) if with_step and not is_late else None,
        step_href=f"{look.fragments}/step?{look.state.but(span=state.at).query()}"
        if is_late
        else None,
        live_href=f"/live/runs/{found.run_id}?seq={found.change_seq}&v={found.version}",
        memory=panel_of_run(connection, found.run_id, now_ns=now_ns),
        claims=evaluating.panel_of_run(connection, found.run_id),
        annotations=annotating.panel_of_run(connection, found.run_id, back=here),
        breaks=look.breaks_note,
    )


def _pane(look: Look, query: Mapping[str, str]) -> Pane | None:
    """Return the selected step with the ways to its neighbours; None when none is selected."""
    row = look.selected_row
    if row is None:
        return None
    node = look.picture.tree.nodes[row]
    step = steps_by_number(look.connection, [node.id], now_ns=look.now_ns).get(node.id)
    if step is None:
        return None
    line = look.arrangement.line_showing(row)
    return pane_of(
        look.connection,
        look.run,
        step,
        tab=look.state.tab,
        around=Around(
            address=f"{look.path}?{look.state.but(tab=TABS[0], span=span_key(node)).query()}&",
            close_href=look.address(span=None, closed=True),
            previous_href=_neighbour(look, line, -1),
            next_href=_neighbour(look, line, 1),
        ),
        now_ns=look.now_ns,
        query=query,
    )


def _neighbour(look: Look, line: int | None, way: int) -> str | None:
    if line is None or not 0 <= line + way < len(look.arrangement):
        return None
    return look.line_address(line + way)

"""The run page: one run in three readings, with the selected step beside it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import apsw
from anyio import to_thread
from fastapi import APIRouter, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from hansard_compiler.errors import NotFoundError
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.runs.usage import silent_calls
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import steps_by_number
from hansard_web.annotations import panel as annotating
from hansard_web.app.site import Site, SiteDep
from hansard_web.evaluation import panel as evaluating
from hansard_web.memory.panel import MemoryPanel, panel_of_run
from hansard_web.run_page.arrangement import Arrangement
from hansard_web.run_page.bar import (
    Find,
    Pill,
    Reading,
    failed_spans,
    find_of,
    next_line,
    pills_of,
    readings_of,
)
from hansard_web.run_page.conversation import Conversation, conversation_view
from hansard_web.run_page.head import Note, RunHead, run_head, run_notes
from hansard_web.run_page.log import LogView, log_view
from hansard_web.run_page.minimap import draw_minimap
from hansard_web.run_page.picture import span_key
from hansard_web.run_page.picture_cache import ShownRun
from hansard_web.run_page.state import TABS, RunState, address_of, parse_state
from hansard_web.run_page.tree import (
    Moment,
    TreeView,
    find_matches,
    lay_out,
    shown_text,
    tree_view,
)
from hansard_web.steps.page import Around, Pane, pane_of

router = APIRouter()

_ERROR = int(SpanFlag.ERROR)  # a plain int: see picture.py
_A_YEAR_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything run.html and its partials read; of the three views one is set."""

    head: RunHead
    state: RunState
    path: str
    here: str  # the address of this state
    fragments: str
    readings: tuple[Reading, ...]
    pills: tuple[Pill, ...]
    find: Find
    shown: str
    shown_why: str
    notes: tuple[Note, ...]
    tree: TreeView | None
    conversation: Conversation | None
    log: LogView | None
    step: Pane | None
    live_href: str | None
    memory: MemoryPanel | None
    claims: evaluating.ClaimPanel | None
    annotations: annotating.AnnotationPanel


@dataclass(frozen=True, slots=True)
class TreeOnly:
    """A window of rows without anything around it: all that a scroll needs."""

    tree: TreeView


@dataclass(frozen=True, slots=True)
class PaneOnly:
    """The pane without the page around it."""

    step: Pane | None


@router.get("/runs/{run_id}")
def run(request: Request, site: SiteDep, run_id: str) -> Response:
    state = parse_state(request.query_params)
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        if found.run_id != run_id:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/runs/{found.run_id}{query}", 303)
        page = _page(site, connection, found, state, request.query_params, now_ns=now_ns)
    return site.renderer.page(request, "run.html", here="runs", page=page)


@router.get("/fragments/runs/{run_id}/tree")
def tree_window(request: Request, site: SiteDep, run_id: str) -> Response:
    """Rows of the tree; with what stands around them unless `part=rows`."""
    asked = parse_state(request.query_params)
    state = asked.but(first=asked.first, view="tree")
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(address_of(f"/runs/{run_id}", state), 303)
    is_scroll = request.query_params.get("part") == "rows"
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        if is_scroll:
            rows = TreeOnly(_tree(site, connection, found, state, now_ns=now_ns))
            return site.renderer.fragment(request, "run/_rows.html", page=rows)
        page = _page(
            site, connection, found, state, request.query_params, now_ns=now_ns, with_step=False
        )
    return site.renderer.fragment(request, "run/_window.html", page=page)


@router.get("/fragments/runs/{run_id}/step")
def step_pane(request: Request, site: SiteDep, run_id: str) -> Response:
    """The pane of the selected step; empty when none is."""
    state = parse_state(request.query_params)
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(address_of(f"/runs/{run_id}", state), 303)
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        shown = site.pictures.get(connection, run_id)
        arrangement = lay_out(connection, shown, state, _moment(found, now_ns))
        pane = _pane(
            connection,
            found,
            shown,
            arrangement,
            state,
            f"/runs/{found.run_id}",
            request.query_params,
            now_ns=now_ns,
        )
    return site.renderer.fragment(request, "step/_pane_only.html", page=PaneOnly(pane))


@router.get("/fragments/runs/{run_id}/minimap")
def minimap(request: Request, site: SiteDep, run_id: str, v: int = 0) -> Response:
    """The version in the address makes it cacheable: a finished run's picture never changes."""
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        shown = site.pictures.get(connection, run_id)
        drawn = draw_minimap(shown.picture, _moment(found, now_ns).until_ns)
    is_final = found.open_count == 0 and v == found.version
    kept = f"private, max-age={_A_YEAR_S}, immutable" if is_final else "no-store"
    return site.renderer.fragment(
        request, "run/_minimap.html", page=drawn, headers={"Cache-Control": kept}
    )


@router.get("/fragments/runs/{run_id}/jump")
def jump(
    request: Request, site: SiteDep, run_id: str, to: str = "error", back: int = 0
) -> Response:
    """Tell the client where the next failed step or match stands among the visible lines."""
    state = parse_state(request.query_params)
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_run(connection, run_id, now_ns=now_ns)
        shown = site.pictures.get(connection, run_id)
        arrangement = lay_out(connection, shown, state, _moment(found, now_ns))
        matches = find_matches(connection, shown, state) if to == "match" else failed_spans(shown)
    line = next_line(shown, arrangement, matches, after=state.span, is_back=bool(back))
    if line is None:
        return JSONResponse({"line": None, "key": None})
    node = shown.tree.tree.nodes[arrangement.rows[line]]
    return JSONResponse({"line": line, "key": span_key(node)})


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


def _page(
    site: Site,
    connection: apsw.Connection,
    found: RunItem,
    state: RunState,
    query: Mapping[str, str],
    *,
    now_ns: int,
    with_step: bool = True,
) -> RunPage:
    shown = site.pictures.get(connection, found.run_id)
    moment = _moment(found, now_ns)
    path, fragments = f"/runs/{found.run_id}", f"/fragments/runs/{found.run_id}"
    whole = shown.picture.bounds(moment.until_ns)
    arrangement = lay_out(connection, shown, state, moment)
    tree = conversation = log = None
    why = ""
    if state.view == "tree":
        tree = tree_view(
            connection, shown, arrangement, state, moment, path=path, fragments=fragments
        )
        text, why = shown_text(tree, len(shown.tree.tree))
    elif state.view == "conversation":
        conversation = conversation_view(connection, shown, state, run=found, path=path)
        text = conversation.summary
    else:
        log = log_view(connection, shown, state, path=path, now_ns=now_ns)
        text = log.summary
    step = None
    if with_step:
        step = _pane(connection, found, shown, arrangement, state, path, query, now_ns=now_ns)
    return RunPage(
        head=run_head(
            found,
            silent_calls(connection, found.id),
            length_ns=whole.end_ns - whole.start_ns,
            now_ns=now_ns,
        ),
        state=state,
        path=path,
        here=address_of(path, state),
        fragments=fragments,
        readings=readings_of(path, state),
        pills=pills_of(path, state, found, log),
        find=find_of(connection, shown, arrangement, state, path=path),
        shown=text,
        shown_why=why,
        notes=run_notes(connection, found, shown.tree.tree, now_ns=now_ns),
        tree=tree,
        conversation=conversation,
        log=log,
        step=step,
        live_href=f"/live/runs/{found.run_id}?seq={found.change_seq}&v={found.version}",
        memory=panel_of_run(connection, found.run_id, now_ns=now_ns),
        claims=evaluating.panel_of_run(connection, found.run_id),
        annotations=annotating.panel_of_run(connection, found.run_id, back=address_of(path, state)),
    )


def _tree(
    site: Site, connection: apsw.Connection, found: RunItem, state: RunState, *, now_ns: int
) -> TreeView:
    shown = site.pictures.get(connection, found.run_id)
    moment = _moment(found, now_ns)
    return tree_view(
        connection,
        shown,
        lay_out(connection, shown, state, moment),
        state,
        moment,
        path=f"/runs/{found.run_id}",
        fragments=f"/fragments/runs/{found.run_id}",
    )


def _moment(found: RunItem, now_ns: int) -> Moment:
    is_running = found.status == "open"
    return Moment(now_ns, now_ns if is_running else found.news_ns, is_running)


def _pane(
    connection: apsw.Connection,
    found: RunItem,
    shown: ShownRun,
    arrangement: Arrangement,
    state: RunState,
    path: str,
    query: Mapping[str, str],
    *,
    now_ns: int,
) -> Pane | None:
    """Return the selected step with the ways to its neighbours; None when none is selected."""
    row = None if state.span is None else shown.picture.row_of(state.span)
    if row is None:
        return None
    node = shown.tree.tree.nodes[row]
    step = steps_by_number(connection, [node.id], now_ns=now_ns).get(node.id)
    if step is None:
        return None
    without_tab = state.but(tab=TABS[0]).query()
    line = arrangement.line_showing(row)
    return pane_of(
        connection,
        found,
        step,
        tab=state.tab,
        around=Around(
            address=f"{path}?{without_tab}&",
            close_href=address_of(path, state.but(span=None)),
            previous_href=_neighbour(shown, arrangement, state, path, line, -1),
            next_href=_neighbour(shown, arrangement, state, path, line, 1),
        ),
        now_ns=now_ns,
        query=query,
    )


def _neighbour(
    shown: ShownRun,
    arrangement: Arrangement,
    state: RunState,
    path: str,
    line: int | None,
    way: int,
) -> str | None:
    if line is None or not 0 <= line + way < len(arrangement):
        return None
    node = shown.tree.tree.nodes[arrangement.rows[line + way]]
    return address_of(path, state.but(span=span_key(node)))

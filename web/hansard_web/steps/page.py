"""A step: the pane beside a run's readings, and its own page, with the same tabs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import apsw
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.derived_context.context import PlacedCall, place_call
from hansard_collector.payloads.named import NamedPayload, named_payloads
from hansard_store.compilations.queries import ID_KEY, Compilation
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import (
    Redaction,
    StepSkeleton,
    count_losers,
    get_step,
    list_redactions,
    recent_durations,
    steps_by_number,
)
from hansard_web.annotations import panel as annotating
from hansard_web.app.site import SiteDep
from hansard_web.approvals.step_history import Gated, gated
from hansard_web.capture import Uncaptured, uncaptured
from hansard_web.compile_view.record import compilation_for
from hansard_web.compile_view.state import parse_context_state
from hansard_web.compile_view.view import NativeView, native_view
from hansard_web.context.page import ContextView, context_view
from hansard_web.evaluation import panel as evaluating
from hansard_web.memory.panel import MemoryPanel, panel_of_step
from hansard_web.replay_page.marks import ReplayMark, replay_mark
from hansard_web.run_page.state import TABS
from hansard_web.steps.comparisons import step_comparisons
from hansard_web.steps.conversation import (
    ConversationTab,
    conversation_tab,
    is_unwritten,
    unwritten_tab,
)
from hansard_web.steps.copy_as import FORMS
from hansard_web.steps.events import EventsTab, RawTab, events_tab, hook_warnings, raw_tab
from hansard_web.steps.facts import Among, Figure, Problem, among, problem_of, step_figures
from hansard_web.steps.payloads import PayloadRow, payload_notes, payload_rows
from hansard_web.steps.values import (
    AttributesTab,
    Section,
    attributes_tab,
    io_sections,
)
from hansard_web.ui.format import plural

router = APIRouter()

_LABELS: Final = {
    "conversation": "Conversation",
    "context": "Context",
    "io": "Input/Output",
    "attributes": "Attributes",
    "events": "Events",
    "raw": "Raw",
}
COPY_LABELS: Final = {"curl": "curl", "python": "Python", "json": "messages as JSON"}


@dataclass(frozen=True, slots=True)
class Tab:
    key: str
    label: str
    href: str
    is_current: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Pane:
    """A step with one tab open; of the tab contexts one is set."""

    step: StepSkeleton
    tab: str
    tabs: tuple[Tab, ...]
    figures: tuple[Figure, ...]
    among: Among | None
    problem: Problem | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]  # of hooks, before the call
    redactions: tuple[Redaction, ...]
    gated: Gated | None
    copies: tuple[tuple[str, str], ...]  # (label, address)
    address: str  # of this step with this tab
    address_pairs: tuple[tuple[str, str], ...]  # its query, as hidden fields
    page_href: str
    run_href: str
    close_href: str | None  # None: this is the step's own page
    previous_href: str | None
    next_href: str | None
    replay: ReplayMark
    annotations: annotating.AnnotationPanel
    claims: evaluating.ClaimPanel | None = None
    conversation: ConversationTab | None = None
    context: ContextView | None = None
    native: NativeView | None = None
    uncaptured: Uncaptured | None = None  # with `io` or `conversation`: no prompt, and why
    io: tuple[Section, ...] | None = None
    payloads: tuple[PayloadRow, ...] = ()  # with `io`
    attributes: AttributesTab | None = None
    events: EventsTab | None = None
    raw: RawTab | None = None
    memory: MemoryPanel | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """Where a pane stands: its address without the tab, and the ways out of it."""

    address: str  # ends so that "tab=…" can be added
    context_address: str = ""  # of the Context tab, where that has a page of its own
    close_href: str | None = None
    previous_href: str | None = None
    next_href: str | None = None

    def tab(self, name: str) -> str:
        """Return the address with a tab open."""
        if name == "context" and self.context_address:
            return self.context_address
        return self.address + urlencode({"tab": name})


def _memory(
    connection: apsw.Connection,
    step: StepSkeleton,
    compiled: Compilation | None,
    *,
    now_ns: int,
) -> MemoryPanel | None:
    """Return what memory a step read or wrote, and what its compile did with memory."""
    found = {} if compiled is None else steps_by_number(connection, [compiled.span], now_ns=now_ns)
    made_by = next(iter(found.values()), None)
    compile_step = made_by.step_id if made_by else ""
    return panel_of_step(connection, step.run_id, step.step_id, compile_step, now_ns=now_ns)


def pane_of(
    connection: apsw.Connection,
    run: RunItem,
    step: StepSkeleton,
    *,
    tab: str,
    around: Around,
    now_ns: int,
    query: Mapping[str, str] | None = None,
) -> Pane:
    """Read a step as far as its open tab needs it."""
    reading = read_step(connection, step.id)
    placed = place_call(connection, run=run.id, span=step.id, conversation_id=run.conversation_id)
    named_compile = reading.view.attributes.get(ID_KEY)
    compiled = compilation_for(connection, step, run.id, named_compile)
    talks = placed is not None or is_unwritten(reading)
    knows = placed is not None or compiled is not None
    tab = _possible(tab, talks=talks, knows=knows)
    address = around.tab(tab)
    events = events_tab(connection, step, reading, now_ns=now_ns)
    named = named_payloads(connection, reading.view, reading.normal, with_items=tab == "io")
    content = _content(
        connection, run, step, reading, placed, compiled, tab, address, query or {}, events, named,
        now_ns=now_ns, is_page=around.close_href is None,
    )  # fmt: skip
    return Pane(
        step=step,
        tab=tab,
        tabs=_tabs(tab, placed, around, events, talks=talks, compiled=compiled),
        figures=step_figures(step, reading),
        among=among(step, recent_durations(connection, step)),
        problem=problem_of(reading),
        notes=_notes(connection, step, reading, named),
        warnings=hook_warnings(reading),
        redactions=tuple(list_redactions(connection, step.id)),
        gated=gated(connection, step, reading),
        copies=_copies(step, reading),
        address=address,
        address_pairs=tuple(parse_qsl(address.partition("?")[2])),
        page_href=_page_href(step, tab, compiled),
        run_href=f"/runs/{step.run_id}?span={_key(step)}",
        close_href=around.close_href,
        previous_href=around.previous_href,
        next_href=around.next_href,
        memory=_memory(connection, step, compiled, now_ns=now_ns),
        replay=replay_mark(connection, step),
        uncaptured=uncaptured(reading, flags=step.flags),
        claims=evaluating.panel_of_step(connection, step.run_id, step.step_id),
        annotations=annotating.panel_of_step(connection, step, back=address),
        **content,
    )


def _page_href(step: StepSkeleton, tab: str, compiled: Compilation | None) -> str:
    if tab == "context" and compiled is not None:
        return f"/steps/{step.step_id}/context"
    return f"/steps/{step.step_id}?tab={tab}"


def _content(
    connection: apsw.Connection,
    run: RunItem,
    step: StepSkeleton,
    reading: StepReading,
    placed: PlacedCall | None,
    compiled: Compilation | None,
    tab: str,
    address: str,
    query: Mapping[str, str],
    events: EventsTab,
    named: Sequence[NamedPayload],
    *,
    now_ns: int,
    is_page: bool,
) -> dict[str, Any]:
    if tab == "conversation" and placed is not None:
        return {
            "conversation": conversation_tab(
                connection,
                placed,
                reading,
                run=run,
                show_all=query.get("all") == "1",
                all_href=f"{address}&all=1",
            )
        }
    if tab == "conversation":
        return {"conversation": unwritten_tab(reading)}
    if tab == "context" and compiled is not None:
        state = parse_context_state(query)
        return {"native": native_view(connection, compiled, step, state, now_ns=now_ns)}
    if tab == "context" and placed is not None:
        view = context_view(
            connection,
            placed,
            step,
            reading,
            run=run.id,
            address=address,
            only=query.get("change", ""),
            item=query.get("item", ""),
            with_run=is_page,
        )
        return {"context": view}
    if tab == "attributes":
        return {"attributes": attributes_tab(reading, find=query.get("find", "").strip())}
    if tab == "events":
        return {"events": events}
    if tab == "raw":
        return {"raw": raw_tab(step, reading)}
    return {"io": io_sections(step, reading), "payloads": payload_rows(connection, named)}


def _possible(tab: str, *, talks: bool, knows: bool) -> str:
    """Steps that are no model call have no conversation: what went in and out comes nearest."""
    if (tab == "conversation" and not talks) or (tab == "context" and not knows):
        return "io"
    return tab


def _tabs(
    current: str,
    placed: PlacedCall | None,
    around: Around,
    events: EventsTab,
    *,
    talks: bool,
    compiled: Compilation | None,
) -> tuple[Tab, ...]:
    counts = {"events": events.count or None}
    if compiled is not None:
        counts["context"] = compiled.row.item_total
    elif placed is not None:
        counts["context"] = len(placed.messages)
    knows = placed is not None or compiled is not None
    return tuple(
        Tab(
            tab,
            _LABELS[tab],
            around.tab(tab),
            tab == current,
            counts.get(tab),
        )
        for tab in TABS
        if _possible(tab, talks=talks, knows=knows) == tab
    )


def _notes(
    connection: apsw.Connection,
    step: StepSkeleton,
    reading: StepReading,
    named: Sequence[NamedPayload],
) -> tuple[str, ...]:
    notes = [*reading.stored.notes, *reading.normal.notes, *payload_notes(named)]
    if step.flags & SpanFlag.REPORTED_ELSEWHERE:
        notes.append("Another trace reports the same call; it is counted there.")
    elif step.duplicate:
        notes.append("Another step reports the same call; this one is not counted.")
    losers = count_losers(connection, step.id)
    if losers:
        notes.append(f"{plural(losers, 'poorer report')} of the same span came as well.")
    return tuple(dict.fromkeys(note[:1].upper() + note[1:] for note in notes if note))


def _copies(step: StepSkeleton, reading: StepReading) -> tuple[tuple[str, str], ...]:
    if reading.normal.call is None or step.role != "llm":
        return ()
    return tuple((COPY_LABELS[form], f"/steps/{step.step_id}/copy/{form}") for form in FORMS)


def _key(step: StepSkeleton) -> str:
    return step.span_id + (".server" if step.side else "")


# ------------------------------------------------------------------------------ routes


@dataclass(frozen=True, slots=True)
class StepPage:
    """A step's own page."""

    step: Pane
    run: RunItem
    previous_call_href: str | None
    comparisons: tuple[tuple[str, str], ...]  # (label, address): with the calls around it


@router.get("/steps/{step_id}")
def step(request: Request, site: SiteDep, step_id: str) -> Response:
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_step(connection, step_id, now_ns=now_ns)
        if found.step_id != step_id:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/steps/{found.step_id}{query}", 303)
        page = step_page(connection, found, request.query_params, now_ns=now_ns)
    return site.renderer.page(request, "step.html", here="runs", page=page)


@router.get("/fragments/steps/{step_id}")
def step_body(request: Request, site: SiteDep, step_id: str) -> Response:
    """The open tab of a step's own page."""
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(f"/steps/{step_id}?{request.url.query}", 303)
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_step(connection, step_id, now_ns=now_ns)
        page = step_page(connection, found, request.query_params, now_ns=now_ns)
    return site.renderer.fragment(request, "step/_main.html", page=page)


def step_page(
    connection: apsw.Connection,
    found: StepSkeleton,
    query: Mapping[str, str],
    *,
    now_ns: int,
    tab: str = "",
) -> StepPage:
    """Read a step for its own page; `tab` where the path says which one is open."""
    run = get_run(connection, found.run_id, now_ns=now_ns)
    tab = tab or query.get("tab", "")
    pane = pane_of(
        connection,
        run,
        found,
        tab=tab if tab in TABS else TABS[0],
        around=Around(f"/steps/{found.step_id}?", f"/steps/{found.step_id}/context"),
        now_ns=now_ns,
        query=query,
    )
    previous = pane.native.previous_href if pane.native else None
    if pane.context and pane.context.baseline_href:
        previous = f"{pane.context.baseline_href}?tab={pane.tab}"
    return StepPage(pane, run, previous, step_comparisons(connection, found, run, now_ns=now_ns))

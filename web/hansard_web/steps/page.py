"""A step: the pane beside a run's readings, and its own page, with the same tabs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import apsw
from fastapi import APIRouter
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from hansard_collector.derivation.rows import plain_text
from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.derived_context.context import PlacedCall, place_call, text_of
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_collector.dialects.engine.values import real
from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.payloads import OF_ITEMS, NamedPayload, PayloadStanding, named_payloads
from hansard_compiler.errors import NotFoundError
from hansard_store.compilations.queries import Compilation
from hansard_store.content.messages import find_text
from hansard_store.content.payloads import Payload, folder_of, peek_payload
from hansard_store.errors import PayloadAlteredError, StoreCorruptError
from hansard_store.heartbeat import WARNED
from hansard_store.ingest.redactions import RemovedSecret, redactions_of
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import (
    StepSkeleton,
    count_other_reports,
    get_step,
    links_from,
    links_to_step,
    recent_durations,
    steps_by_number,
)
from hansard_web.annotations import panel as annotating
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.step_history import Gated, gated
from hansard_web.capture import Uncaptured, uncaptured
from hansard_web.compile_view.state import parse_context_state
from hansard_web.compile_view.view import NativeView, native_view
from hansard_web.context.bodies import native_compilation
from hansard_web.context.page import ContextView, context_view
from hansard_web.diff.compaction import find_compaction, says_compaction
from hansard_web.diff.neighbours import neighbours_of
from hansard_web.evaluation import panel as evaluating
from hansard_web.memory.panel import MemoryPanel, panel_of_step
from hansard_web.replay_page.labels import ReplayMark, replay_mark
from hansard_web.run_page.state import TABS
from hansard_web.steps.conversation import (
    ConversationTab,
    conversation_tab,
    is_unwritten,
    unwritten_tab,
)
from hansard_web.steps.copy_as import FORMS, copy_as
from hansard_web.steps.facts import Among, Figure, StepProblem, among, problem_of, step_figures
from hansard_web.steps.values import (
    AttributesTab,
    ValueSection,
    attributes_tab,
    io_sections,
    io_value,
)
from hansard_web.ui.format import duration, file_size, plural
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

# The Events and Raw tabs of a step: what happened during it, and the record as it came.

_SHOWN_CHARS = 20_000
_RULE_CHARS: Final = 400
_SEVERITIES: Final = (
    (21, "fatal"), (17, "error"), (13, "warning"), (9, "info"), (5, "debug"), (1, "trace"),
)  # fmt: skip
_ERROR_SEVERITY = 17


@dataclass(frozen=True, slots=True)
class _EventRow:
    """A span event or log record; `after` is since the span's start."""

    what: str
    kind: str  # "event" or "log"
    time_ns: int
    after: str
    severity: str
    is_error: bool
    text: str
    tree: JsonNode | None


@dataclass(frozen=True, slots=True)
class LinkRow:
    """The other end of a link between spans."""

    name: str
    href: str | None  # None: that span is not stored here
    where: str


@dataclass(frozen=True, slots=True)
class EventsTab:
    rows: tuple[_EventRow, ...]
    links: tuple[LinkRow, ...]
    linked_from: tuple[LinkRow, ...]

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.links) + len(self.linked_from)


def events_tab(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, *, now_ns: int
) -> EventsTab:
    """Return events and log records in order of time, and links both ways."""
    start_ns = reading.view.start_ns
    rows = [_event(event, start_ns) for event in reading.view.events]
    rows += [_log(log, start_ns) for log in reading.view.logs]
    return EventsTab(
        rows=tuple(sorted(rows, key=lambda row: row.time_ns)),
        links=tuple(
            LinkRow(
                name=end.step.name if end.step else f"span {end.span_id}",
                href=f"/steps/{end.step.step_id}" if end.step else None,
                where=f"run {end.run_id[:8]}" if end.step else f"of trace {end.run_id}, not here",
            )
            for end in links_from(connection, [step.id], now_ns=now_ns)
        ),
        linked_from=tuple(
            LinkRow(one.name, f"/steps/{one.step_id}", f"run {one.run_id[:8]}")
            for one in links_to_step(connection, step, now_ns=now_ns)
        ),
    )


def hook_warnings(reading: StepReading) -> tuple[str, ...]:
    """Return what hooks warned of before the call, each in a sentence."""
    return tuple(_warning(log.attributes) for log in reading.view.logs if log.event_name == WARNED)


def _warning(warning: Mapping[str, Any]) -> str:
    score, threshold = (
        real(warning.get("hansard.hook.score")),
        real(warning.get("hansard.hook.threshold")),
    )
    figures = "" if score is None else f" (score {score:.2f}"
    if figures:
        figures += ")" if threshold is None else f", warnings from {threshold:.2f})"
    rule = str(warning.get("hansard.hook.rule", ""))[:_RULE_CHARS]
    return f"may not be undone{figures}" + (f": {rule}" if rule else "")


def _event(event: EventView, start_ns: int) -> _EventRow:
    attributes = dict(event.attributes)
    is_error = event.name == "exception"
    text = _exception(attributes) if is_error else ""
    return _EventRow(
        what=event.name or "event",
        kind="event",
        time_ns=event.time_ns,
        after=_after(event.time_ns, start_ns),
        severity="",
        is_error=is_error,
        text=text[:_SHOWN_CHARS],
        tree=json_tree(attributes) if attributes else None,
    )


def _exception(attributes: dict[str, Any]) -> str:
    """Take what says what went wrong out of an exception's attributes, as one text."""
    kind, message, trace = (
        str(attributes.pop(f"exception.{key}", "")) for key in ("type", "message", "stacktrace")
    )
    head = ": ".join(part for part in (kind, message) if part)
    return "\n\n".join(part for part in (head, trace) if part)


def _log(log: LogView, start_ns: int) -> _EventRow:
    severity = log.severity_text or next(
        (word for least, word in _SEVERITIES if log.severity_number >= least), ""
    )
    body = parsed(log.body)
    is_text = isinstance(body, str)
    extra = dict(log.attributes) if is_text or body is None else {"body": body, **log.attributes}
    return _EventRow(
        what=log.event_name or "log record",
        kind="log",
        time_ns=log.time_ns,
        after=_after(log.time_ns, start_ns),
        severity=severity.lower(),
        is_error=log.severity_number >= _ERROR_SEVERITY,
        text=body[:_SHOWN_CHARS] if is_text else "",
        tree=json_tree(extra) if extra else None,
    )


def _after(time_ns: int, start_ns: int) -> str:
    if not start_ns or not time_ns:
        return ""
    sign = "+" if time_ns >= start_ns else "−"
    return sign + duration(abs(time_ns - start_ns))


@dataclass(frozen=True, slots=True)
class RawTab:
    """What came in, encoded again as OTLP JSON."""

    text: str
    characters: int
    is_cut: bool
    href: str


def raw_tab(step: StepSkeleton, reading: StepReading) -> RawTab:
    """Return the span as OTLP JSON; the download has all of it."""
    text = json.dumps(encode_json(raw_message(reading)), ensure_ascii=False, indent=2)
    return RawTab(
        text=text[:_SHOWN_CHARS],
        characters=len(text),
        is_cut=len(text) > _SHOWN_CHARS,
        href=f"/v1/steps/{step.step_id}/raw",
    )


def raw_message(reading: StepReading) -> TracesData:
    """Return one span in the envelope it came in."""
    data = TracesData()
    resource = data.resource_spans.add()
    resource.MergeFrom(reading.stored.resource)
    scope = resource.scope_spans.add()
    scope.MergeFrom(reading.stored.scope)
    scope.spans.add().CopyFrom(reading.stored.message)
    return data


# The payloads of a step: what each is, whether its bytes are here, and how they begin.

_PREVIEW_BYTES: Final = 4_000
_MOST_NOTES: Final = 3
_SHORT_REF: Final = len("sha256:") + 12

_SAY: Final = {
    PayloadStanding.STORED: "",
    PayloadStanding.REDACTED: "Secrets were taken out before it was stored: it is not what was "
    "sent, byte for byte.",
    PayloadStanding.MISSING: "Its bytes are not here: they are still on their way, were lost, or "
    "were deleted.",
    PayloadStanding.WITHHELD: "Neither its bytes nor its digest were kept: the retention mode is "
    "metadata_only.",
}
_ALTERED: Final = (
    "Its stored bytes were altered: they are not those of its digest, and are shown nowhere."
)


@dataclass(frozen=True, slots=True)
class PayloadRow:
    """One payload on the Input/Output tab."""

    name: str
    attribute: str | None
    ref: str
    short_ref: str
    standing: str  # "stored", "redacted", "missing", "withheld", "altered"
    facts: tuple[str, ...]  # media type, size
    say: str
    href: str | None  # of the bytes; None where they are not given out
    preview: str | None  # how a text begins
    is_cut: bool


def payload_rows(
    connection: apsw.Connection, named: Iterable[NamedPayload]
) -> tuple[PayloadRow, ...]:
    """Return the payloads for display; of texts the beginning is read."""
    return tuple(_row(connection, one) for one in named)


def payload_notes(named: Iterable[NamedPayload]) -> Iterator[str]:
    """Yield what a person should know before believing that a step has no content."""
    named = list(named)
    missing = [
        one
        for one in named
        # What left a compile early is never stored; its receipt says so where it stands.
        if one.standing is PayloadStanding.MISSING
        and not (one.attribute or "").startswith(OF_ITEMS)
    ]
    for one in missing[:_MOST_NOTES]:
        size = "" if one.size is None else f", {file_size(one.size)}"
        yield f"A payload is missing: {one.name} ({one.ref[:_SHORT_REF]}…{size}) is not here."
    if len(missing) > _MOST_NOTES:
        yield f"{plural(len(missing) - _MOST_NOTES, 'more payload')} of this step are missing."
    for one in named:
        if one.payload is not None and one.payload.size > READ_BYTES:
            size = file_size(one.payload.size)
            yield f"A payload is too large to be read here: {one.name} ({size})."


def _row(connection: apsw.Connection, named: NamedPayload) -> PayloadRow:
    stored = named.payload
    standing, say, preview = named.standing.value, _SAY[named.standing], None
    try:
        preview = None if stored is None else _preview(connection, stored)
    except PayloadAlteredError:
        standing, say = "altered", _ALTERED
    size = None if named.size is None else file_size(named.size)
    if stored is None and size is not None:
        size = f"{size}, as reported"
    facts = (None if stored is None else stored.media_type, size)
    return PayloadRow(
        name=named.name,
        attribute=named.attribute,
        ref=named.ref,
        short_ref=f"{named.ref[:_SHORT_REF]}…",
        standing=standing,
        facts=tuple(fact for fact in facts if fact),
        say=say,
        href=f"/v1/payloads/{named.ref}" if stored is not None and standing != "altered" else None,
        preview=preview,
        is_cut=stored is not None and preview is not None and stored.size > _PREVIEW_BYTES,
    )


def _preview(connection: apsw.Connection, payload: Payload) -> str | None:
    """Return how a text begins; None of anything else. Raises PayloadAlteredError."""
    try:
        head = peek_payload(folder_of(connection), payload, most_bytes=_PREVIEW_BYTES)
    except PayloadAlteredError:
        raise
    except StoreCorruptError:
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        if payload.size <= _PREVIEW_BYTES or error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8")
    return None if "\0" in text or not text else text


# What a step is compared with most: the calls around it, and both sides of a compaction.


def step_comparisons(
    connection: apsw.Connection, step: StepSkeleton, run: RunItem, *, now_ns: int
) -> tuple[tuple[str, str], ...]:
    """Return the comparisons that a step offers, each with its address."""
    around = neighbours_of(connection, step, run=run.id)
    found = []
    if around.before is not None:
        found.append(("previous call", f"/diff/{around.before.step_id}/{step.step_id}"))
    if around.after is not None:
        found.append(("next call", f"/diff/{step.step_id}/{around.after.step_id}"))
    compaction = find_compaction(connection, step, now_ns=now_ns) if says_compaction(step) else None
    if compaction is not None:
        href = f"/diff/{compaction.before}/{compaction.after}"
        found.append(("before and after it", href))
    return (*found, ("another step…", f"/diff?left={step.step_id}"))


router = APIRouter()

_LABELS: Final = {
    "conversation": "Messages",
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
    problem: StepProblem | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]  # of hooks, before the call
    redactions: tuple[RemovedSecret, ...]
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
    io: tuple[ValueSection, ...] | None = None
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
    compiled = native_compilation(connection, step, reading, run=run.id, with_below=False)
    talks = placed is not None or is_unwritten(reading)
    knows = placed is not None or compiled is not None
    tab = _possible(tab, talks=talks, knows=knows, decides=step.role == "compile")
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
        redactions=tuple(redactions_of(connection, "traces", step.id)),
        gated=gated(connection, step, reading),
        copies=_copies(step, reading),
        address=address,
        address_pairs=tuple(parse_qsl(address.partition("?")[2])),
        page_href=_page_href(step, tab, compiled),
        run_href=f"/runs/{step.run_id}?span={step_key(step)}",
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


def _possible(tab: str, *, talks: bool, knows: bool, decides: bool = False) -> str:
    """Steps that are no model call have no conversation: what went in and out comes nearest, and
    of a step that compiled a context what it decided.
    """
    if tab == "conversation" and decides and knows and not talks:
        return "context"
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
    others = count_other_reports(connection, step.id)
    if others:
        notes.append(f"{plural(others, 'poorer report')} of the same span came as well.")
    return tuple(dict.fromkeys(note[:1].upper() + note[1:] for note in notes if note))


def _copies(step: StepSkeleton, reading: StepReading) -> tuple[tuple[str, str], ...]:
    if reading.normal.call is None or step.role != "llm":
        return ()
    return tuple((COPY_LABELS[form], f"/steps/{step.step_id}/copy/{form}") for form in FORMS)


def step_key(step: StepSkeleton) -> str:
    """Return a step's name in addresses of its run's page."""
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


# The context of a step as a page of its own: what the agent knew, and why.


@router.get("/steps/{step_id}/context")
def context(request: Request, site: SiteDep, step_id: str) -> Response:
    page = _page(request, site, step_id)
    if isinstance(page, str):
        return RedirectResponse(page, 303)
    return site.renderer.page(request, "step.html", here="runs", page=page)


@router.get("/fragments/steps/{step_id}/context")
def context_body(request: Request, site: SiteDep, step_id: str) -> Response:
    """What changes on the page of a context when a filter, a page or an item is chosen."""
    page = _page(request, site, step_id)
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(f"/steps/{step_id}/context?{request.url.query}", 303)
    if isinstance(page, str) or page.step.native is None:
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    return site.renderer.fragment(request, "step/_body.html", page=page)


def _page(request: Request, site: Site, step_id: str) -> StepPage | str:
    """Return the page, or where it stands: by the step's whole id, and only if it has a context."""
    query = f"?{request.url.query}" if request.url.query else ""
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        found = get_step(connection, step_id, now_ns=now_ns)
        if found.step_id != step_id:
            return f"/steps/{found.step_id}/context{query}"
        page = step_page(connection, found, request.query_params, now_ns=now_ns, tab="context")
    return page if page.step.tab == "context" else f"/steps/{found.step_id}"


# The input and output of a step, each piece whole, as plain text: copies, inputs, messages.


@router.get("/steps/{step_id}/copy/{form}")
def copy(site: SiteDep, step_id: str, form: str) -> Response:
    found, reading = _read(site, step_id)
    call = reading.normal.call
    if call is None or form not in COPY_LABELS:
        raise NotFoundError("copy", f"{form} of {found.step_id}")
    with site.readers.read() as connection:
        removed = sum(one.count for one in redactions_of(connection, "traces", found.id))
    notes = [f"{plural(removed, 'value')} was redacted before storing"] if removed else []
    text = copy_as(call, next(one for one in FORMS if one == form), notes=notes)
    return _plain_text(text)


@router.get("/steps/{step_id}/io/{part}")
def io_part(site: SiteDep, step_id: str, part: str) -> Response:
    found, reading = _read(site, step_id)
    value = io_value(reading, part)
    if value is None:
        raise NotFoundError("part", f"{part} of {found.step_id}")
    return _plain_text(value)


@router.get("/texts/{digest}")
def text(site: SiteDep, digest: str) -> Response:
    """One message whole, as text: what "show all" leads to."""
    with site.readers.read() as connection:
        message = find_text(connection, digest)
    if message is None:
        raise NotFoundError("message", digest)
    return _plain_text(text_of(message))


def _read(site: Site, step_id: str) -> tuple[StepSkeleton, StepReading]:
    with site.readers.read() as connection:
        found = get_step(connection, step_id, now_ns=time.time_ns())
        return found, read_step(connection, found.id)


def _plain_text(value: Any) -> Response:
    # nosniff comes with every answer (security.py): a browser shows this as text and nothing else.
    content = plain_text(value).encode("utf-8", "backslashreplace")
    return PlainTextResponse(content)

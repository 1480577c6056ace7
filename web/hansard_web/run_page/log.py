"""The log reading of a run: steps, span events and log records in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import apsw

from hansard_store.runs.details import list_events, list_log_lines
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton, steps_by_number
from hansard_web.run_page.picture_cache import ShownRun
from hansard_web.run_page.state import RunState, address_of
from hansard_web.ui.format import clock, count, duration, iso_time, plural

_ERROR = int(SpanFlag.ERROR)  # a plain int: see picture.py
_HAS_EVENTS = int(SpanFlag.HAS_EVENTS)
LINES_A_PAGE = 300
_MOST_EVENT_SPANS = 5_000
_MOST_LOGS = 20_000
_ERROR_SEVERITY = 17
_LONGEST_DETAIL = 300

Kind = Literal["steps", "events", "logs"]


@dataclass(frozen=True, slots=True)
class Line:
    """One entry before it is read in full."""

    time_ns: int
    kind: Kind
    span: int | None  # span.id
    what: str = ""
    detail: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class _Everything:
    lines: list[Line]
    lacks_logs: bool  # the run has more log records than are read


@dataclass(frozen=True, slots=True)
class LogRow:
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
class LogView:
    rows: tuple[LogRow, ...]
    summary: str
    not_shown: str
    first: int
    total: int
    previous_href: str | None
    next_href: str | None
    counts: dict[str, int]


def log_view(
    connection: apsw.Connection,
    shown: ShownRun,
    state: RunState,
    *,
    path: str,
    now_ns: int,
) -> LogView:
    """Return one window of the log; steps are read in full for its lines only."""
    read: _Everything = shown.readings.get("log", lambda: _read_lines(connection, shown))
    everything = read.lines
    lines = [line for line in everything if line.kind not in state.hide]
    if state.errors:
        failed = {node.id for node in shown.tree.tree.nodes if node.flags & _ERROR}
        lines = [line for line in lines if line.is_error or (line.span in failed)]
    first = _first(lines, shown, state)
    window = lines[first : first + LINES_A_PAGE]
    spans = [line.span for line in window if line.span is not None]
    steps = steps_by_number(connection, spans, now_ns=now_ns)
    rows = []
    before = lines[first - 1].time_ns if first else None
    for line in window:
        step = None if line.span is None else steps.get(line.span)
        rows.append(_row(line, step, before, state, path))
        before = line.time_ns
    return LogView(
        rows=tuple(rows),
        summary=f"{plural(len(lines), 'line')}, newest last",
        not_shown=_not_shown(shown, read),
        first=first,
        total=len(lines),
        previous_href=address_of(path, state.but(first=max(first - LINES_A_PAGE, 0)))
        if first
        else None,
        next_href=address_of(path, state.but(first=first + LINES_A_PAGE))
        if first + LINES_A_PAGE < len(lines)
        else None,
        counts={kind: sum(line.kind == kind for line in everything) for kind in
                ("steps", "events", "logs")},
    )  # fmt: skip


def _read_lines(connection: apsw.Connection, shown: ShownRun) -> _Everything:
    nodes = shown.tree.tree.nodes
    found = [
        Line(node.sort_ns, "steps", node.id, is_error=bool(node.flags & _ERROR)) for node in nodes
    ]
    by_key = {(node.span_id, node.side): node.id for node in nodes}
    logs = list_log_lines(connection, bytes.fromhex(shown.tree.run_id), limit=_MOST_LOGS + 1)
    for log in logs[:_MOST_LOGS]:
        span = None if log.span_id is None else by_key.get((log.span_id, 0))
        failed = log.severity >= _ERROR_SEVERITY
        what = log.event_name or "log record"
        found.append(Line(log.time_ns, "logs", span, what, log.body_text or "", failed))
    with_events = [node.id for node in nodes if node.flags & _HAS_EVENTS]
    for event in list_events(connection, with_events[:_MOST_EVENT_SPANS]):
        failed = event.name == "exception"
        found.append(
            Line(event.time_ns, "events", event.span, event.name or "event", event.text, failed)
        )
    # A step before what happened in it, where both have the same time.
    order = {"steps": 0, "events": 1, "logs": 2}
    lines = sorted(found, key=lambda line: (line.time_ns, order[line.kind]))
    return _Everything(lines, lacks_logs=len(logs) > _MOST_LOGS)


def _first(lines: list[Line], shown: ShownRun, state: RunState) -> int:
    if state.first is not None:
        return min(state.first, max(len(lines) - 1, 0))
    row = None if state.span is None else shown.picture.row_of(state.span)
    if row is None:
        return 0
    wanted = shown.tree.tree.nodes[row].id
    places = (at for at, line in enumerate(lines) if line.span == wanted and line.kind == "steps")
    at = next(places, 0)
    return at // LINES_A_PAGE * LINES_A_PAGE


def _row(
    line: Line, step: StepSkeleton | None, before_ns: int | None, state: RunState, path: str
) -> LogRow:
    is_step = line.kind == "steps"
    key = None if step is None else _key(step)
    tab = state.tab if is_step else "events"
    name = step.name if is_step and step else line.what
    detail = (step.summary or "") if is_step and step else _detail(line, step)
    return LogRow(
        time_ns=line.time_ns,
        clock=f"{clock(line.time_ns)}{iso_time(line.time_ns)[19:23]}",
        after=_after(line.time_ns, before_ns),
        role=step.role if is_step and step else "other",
        icon=step.role if is_step and step else "event" if line.kind == "events" else "log",
        what=name,
        detail=detail[:_LONGEST_DETAIL],
        href=None if key is None else address_of(path, state.but(span=key, tab=tab)),
        key=key if is_step else None,
        is_error=line.is_error,
        is_selected=is_step and key is not None and key == state.span,
    )


def _after(time_ns: int, before_ns: int | None) -> str:
    if before_ns is None or time_ns <= before_ns:
        return ""
    return f"+{duration(time_ns - before_ns)}"


def _detail(line: Line, step: StepSkeleton | None) -> str:
    where = f"in {step.name}" if step else ""
    return ": ".join(part for part in (where, line.detail) if part)


def _key(step: StepSkeleton) -> str:
    return step.span_id + (".server" if step.side else "")


def _not_shown(shown: ShownRun, read: _Everything) -> str:
    nodes = shown.tree.tree.nodes
    with_events = sum(bool(node.flags & _HAS_EVENTS) for node in nodes)
    more = with_events - _MOST_EVENT_SPANS
    told = [
        f"The events of {count(more)} further steps are not shown here." if more > 0 else "",
        f"Log records after the first {count(_MOST_LOGS)} are not shown here."
        if read.lacks_logs
        else "",
    ]
    return " ".join(filter(None, told))

"""Reports: the newest one, who has read it, and what it is made of."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final

import apsw
from fastapi import APIRouter, Form
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_collector.reports import PendingWork, recorded_trends
from hansard_collector.trends.model import Trend, trend_text
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.heartbeat import CycleRecord, PhaseRecord, list_cycles, phase_history
from hansard_store.memory.records import words_of
from hansard_store.memory.rows import get_memory
from hansard_store.principals.model import person_text
from hansard_store.reports.files import InvalidAcknowledgement, Report
from hansard_store.reports.state import Correction, recent_corrections
from hansard_store.tasks.rows import Task, count_tasks, list_tasks
from hansard_web.app.site import Site, SiteDep
from hansard_web.reports.api import ReportsDep
from hansard_web.reports.service import ReportService, readers_text
from hansard_web.ui.format import day_time, plural, shorten
from hansard_web.ui.forms import OwnForm
from hansard_web.ui.markdown import to_html

# Everything the page of reports shows beside the report itself.

_TASKS, _CORRECTIONS, _TRENDS, _REPORTS = 8, 8, 12, 30
_RUNS: Final = 96  # of maintenance in its picture
_WIDTH, _HEIGHT = 100, 24
_MAINTENANCE: Final = (
    ("contradictions", ("contradictions_found", "contradictions")),
    ("corrections linked", ("corrections_linked", "linked")),
    ("superseded", ("supersessions_applied", "superseded")),
    ("stale", ("stale_entries", "stale")),
)


@dataclass(frozen=True, slots=True)
class AckRow:
    """A person to whom a report goes, and whether it was read."""

    who: str
    at_ns: int | None  # None: not acknowledged
    state: str  # in words, where it was not


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report in the list."""

    report: Report
    is_shown: bool
    mark: str
    word: str
    readers: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """The report that is shown."""

    report: Report
    text: str
    acks: tuple[AckRow, ...]
    waits_for: str  # "" nobody
    may_acknowledge: bool  # this reader has not yet


@dataclass(frozen=True, slots=True)
class PhaseRow:
    phase: PhaseRecord
    mark: str  # ok error cancelled
    figures: str


@dataclass(frozen=True, slots=True)
class _Spark:
    """A figure of maintenance over its runs, as a path in a box of 100 by 24."""

    label: str
    last: int
    most: int
    line: str
    area: str
    says: str


@dataclass(frozen=True, slots=True)
class CorrectionRow:
    correction: Correction
    claim: str  # what it corrects, as far as it is stored
    says: str


@dataclass(frozen=True, slots=True)
class TrendRow:
    text: str
    step_id: str | None
    is_worse: bool


@dataclass(frozen=True, slots=True)
class Board:
    """The page."""

    reports: tuple[ReportRow, ...]
    more: str
    shown: _Shown | None
    tasks: tuple[Task, ...]
    blocked: int
    cycle: CycleRecord | None
    phases: tuple[PhaseRow, ...]
    sparks: tuple[_Spark, ...]
    maintenance_runs: int
    corrections: tuple[CorrectionRow, ...]
    trends: tuple[TrendRow, ...]


def read_board(
    connection: apsw.Connection, service: ReportService, name: str, *, now_ns: int
) -> Board:
    """Read the page with one report, the newest unless named. Raises NotFoundError."""
    reports = service.reports.list()
    shown = service.reports.get(name) if name else next(iter(reports), None)
    cycles = list_cycles(connection, limit=1)
    runs = [one for one in phase_history(connection, "maintenance", limit=_RUNS)
            if one.status == "done"]  # fmt: skip
    corrections = recent_corrections(connection, now_ns=now_ns, limit=_CORRECTIONS)
    listed = reports[:_REPORTS]
    return Board(
        reports=tuple(_row(one, service, shown) for one in listed),
        more=plural(len(reports) - len(listed), "older report") if len(reports) > _REPORTS else "",
        shown=None if shown is None else _shown(shown, service),
        tasks=tuple(list_tasks(connection, state="blocked", limit=_TASKS).items),
        blocked=count_tasks(connection)["blocked"],
        cycle=cycles[0] if cycles else None,
        phases=tuple(map(_phase, cycles[0].phases)) if cycles else (),
        sparks=tuple(_sparks(runs[::-1])),
        maintenance_runs=len(runs),
        corrections=tuple(_correction(connection, one, now_ns) for one in corrections),
        trends=tuple(map(_trend, recorded_trends(connection, now_ns=now_ns)[:_TRENDS])),
    )


def _row(one: Report, service: ReportService, shown: Report | None) -> ReportRow:
    waiting = service.waiting(one)
    if waiting is None:
        mark, word = "ok", "read"
    elif waiting.passed_over:
        mark, word = "error", f"passed to {waiting.recipient}"
    else:
        mark, word = "awaiting", f"waits for {waiting.recipient or 'a reader'}"
    return ReportRow(
        report=one,
        is_shown=shown is not None and shown.name == one.name,
        mark=mark,
        word=word,
        readers=readers_text(one),
    )


def _shown(one: Report, service: ReportService) -> _Shown:
    waiting = service.waiting(one)
    acks = [AckRow(person_text(ack.who, ack.method), ack.at_ns, "") for ack in one.acks]
    acks += [AckRow(ack.who, None, "not recorded") for ack in one.unrecorded]
    acks += [
        AckRow(who, None, _absence(who, waiting))
        for who in service.recipients
        if not one.is_read_by(who)
    ]
    return _Shown(
        report=one,
        text=service.reports.text(one.name),
        acks=tuple(acks),
        waits_for="" if waiting is None else waiting.recipient or "a reader",
        may_acknowledge=not service.is_read(one),
    )


def _absence(who: str, waiting: PendingWork | None) -> str:
    if waiting is None:
        return "not needed"
    if who in waiting.passed_over:
        return "did not answer in time"
    return "it waits for this one" if who == waiting.recipient else "comes later"


_MARKS: Final[Mapping[str, str]] = {"done": "ok", "failed": "error", "skipped": "cancelled"}


def _phase(one: PhaseRecord) -> PhaseRow:
    return PhaseRow(one, _MARKS[one.status], _figures(one.figures))


def _figures(figures: Mapping[str, Any]) -> str:
    """Return the plain numbers of a phase in one line."""
    texts = [
        f"{name.replace('_', ' ')} {value:,}"
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return shorten(" · ".join(texts), 160)


def _sparks(runs: Sequence[PhaseRecord]) -> list[_Spark]:
    """Return a picture of each figure that maintenance tells, the oldest run first."""
    if len(runs) < 2:
        return []
    found = []
    for label, names in _MAINTENANCE:
        values = [_figure(one.figures, names) for one in runs]
        if any(value is not None for value in values):
            found.append(_spark(label, [value or 0 for value in values]))
    return found


def _figure(figures: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Return what a run of maintenance tells under one of its names; of a list, how many."""
    values = (figures[name] for name in names if name in figures)
    counts = (len(one) if isinstance(one, list) else one for one in values)
    return next((int(one) for one in counts if isinstance(one, int)), None)


def _spark(label: str, values: Sequence[int]) -> _Spark:
    most, step = max(*values, 1), _WIDTH / (len(values) - 1)
    places = [
        f"{number * step:.2f} {_HEIGHT - 1 - (_HEIGHT - 2) * value / most:.2f}"
        for number, value in enumerate(values)
    ]
    line = "M" + " L".join(places)
    says = f"{label} in the last {plural(len(values), 'run')}: now {values[-1]:,}, most {most:,}"
    area = f"{line} L{_WIDTH} {_HEIGHT} L0 {_HEIGHT} Z"
    return _Spark(label, values[-1], max(values), line, area, says)


def _correction(connection: apsw.Connection, one: Correction, now_ns: int) -> CorrectionRow:
    claim = ""
    if one.claim_id:
        try:
            found = get_memory(connection, one.claim_id, now_ns=now_ns)
            claim = " ".join(words_of(found.content))
        except (NotFoundError, AmbiguousIdError):
            claim = ""
    return CorrectionRow(one, shorten(claim, 200), shorten(one.says, 300))


def _trend(one: Trend) -> TrendRow:
    day = "" if one.since_ns is None else day_time(one.since_ns)[:10]
    text = trend_text(one, shorten(one.subject, 60), since=day)
    return TrendRow(text[:1].upper() + text[1:], one.step_id, one.is_worse)


# A report as the page shows it: its Markdown with links to what it names.

# Code spans come first: recorded words stand in them, and nothing in them becomes a link but the
# command that shows a task.
_LINKED: Final = re.compile(
    r"(?P<task>`hansard tasks show (?P<task_id>[0-9a-f]{8})`)"
    r"|(?P<code>`[^`\n]*`)"
    r"|\bstep (?P<step>[0-9a-f]{8}-[0-9a-f]{8})\b"
    r"|\brun (?P<run>[0-9a-f]{8})\b"
    r"|\bmemory (?P<memory>[0-9a-f]{8})\b"
)
_PATHS: Final = {"step": "/steps/", "run": "/runs/", "memory": "/memory/"}


def with_links(text: str) -> str:
    """Return a report without its own title, with links to steps, runs, memories and tasks."""
    lines = text.splitlines()
    body = lines[1:] if lines and lines[0].startswith("# ") else lines
    return _LINKED.sub(_link, "\n".join(body).strip())


def _link(found: re.Match[str]) -> str:
    if found["task"]:
        return f"[review {found['task_id']}](/tasks/{found['task_id']})"
    for kind, path in _PATHS.items():
        if found[kind]:
            return f"[{kind} {found[kind][:8]}]({path}{found[kind]})"
    return found[0]


router = APIRouter()


@dataclass(frozen=True, slots=True)
class ReportsPage:
    """The page with one report."""

    board: Board
    html: Markup | None  # the report; None where there is none
    problem: str  # why it was not acknowledged
    needs_name: bool  # anyone may acknowledge here, and says under which name


@router.get("/reports")
def reports(request: Request, site: SiteDep, service: ReportsDep) -> Response:
    return _page(request, site, service)


@router.get("/reports/{name}")
def report(request: Request, site: SiteDep, service: ReportsDep, name: str) -> Response:
    return _page(request, site, service, name)


@router.post("/reports/{name}/ack", dependencies=[OwnForm])
def acknowledge(
    request: Request,
    site: SiteDep,
    service: ReportsDep,
    name: str,
    by: Annotated[str, Form()] = "",
) -> Response:
    """Acknowledge a report, and come back to it."""
    try:
        made = service.acknowledge(name, by=by.strip())
    except InvalidAcknowledgement as error:
        return _page(
            request, site, service, name, problem=str(error), status=HTTPStatus.BAD_REQUEST
        )
    return RedirectResponse(f"/reports/{made.name}", HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    service: ReportService,
    name: str = "",
    *,
    problem: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    with site.readers.read() as connection:
        board = read_board(connection, service, name, now_ns=time.time_ns())
    page = ReportsPage(
        board=board,
        html=None if board.shown is None else to_html(with_links(board.shown.text)),
        problem=problem,
        needs_name=not service.reader,
    )
    return site.renderer.page(request, "reports.html", here="reports", page=page, status=status)

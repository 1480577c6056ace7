"""Reports: the newest one, who has read it, and what it is made of."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Form
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.reports.errors import BadAck
from hansard_web.app.site import Site, SiteDep
from hansard_web.principals.requests import may_not_decide, must_sign_in
from hansard_web.reports.board import Board, read_board
from hansard_web.reports.service import ReportsDep, ReportService
from hansard_web.ui.forms import OwnForm
from hansard_web.ui.markdown import to_html

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
    may_not: str  # why this reader cannot acknowledge; "" who can
    must_sign_in: bool


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
    except BadAck as error:
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
        may_not=may_not_decide(request, site.settings),
        must_sign_in=must_sign_in(request, site.settings),
    )
    return site.renderer.page(request, "reports.html", here="reports", page=page, status=status)

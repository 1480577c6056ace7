"""Reports: the newest one, who has read it, and what it is made of."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.reports.errors import BadAck
from hansard_web.app.site import Site, SiteDep
from hansard_web.principals.requests import may_not_decide, must_sign_in
from hansard_web.reports.board import Board, read_board
from hansard_web.reports.rendering import with_links
from hansard_web.reports.service import ReportsDep, ReportService
from hansard_web.ui.forms import OwnForm
from hansard_web.ui.markdown import to_html

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

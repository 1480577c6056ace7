"""Reviews: what goes wrong again and again, and deciding about it by plain forms."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.tasks.errors import BadDecision, TaskRefused
from hansard_web.app.site import Site, SiteDep
from hansard_web.principals.requests import may_not_decide, must_sign_in
from hansard_web.tasks.detail import Detail, read_detail
from hansard_web.tasks.listing import Listing, read_listing, read_state
from hansard_web.tasks.service import TasksDep
from hansard_web.ui.forms import OwnForm

router = APIRouter()


@dataclass(frozen=True, slots=True)
class TasksPage:
    """The list, and beside it the task that was chosen or stands first."""

    listing: Listing
    detail: Detail | None
    problem: str  # why a decision was not taken
    note: str  # what was written with it
    may_not: str  # why this reader cannot decide; "" who can
    must_sign_in: bool  # and it is that nobody is signed in


@router.get("/tasks")
def tasks(request: Request, site: SiteDep) -> Response:
    return _page(request, site)


@router.get("/tasks/{task_id}")
def task(request: Request, site: SiteDep, task_id: str) -> Response:
    return _page(request, site, task_id)


@router.post("/tasks/{task_id}", dependencies=[OwnForm])
def decide(
    request: Request,
    site: SiteDep,
    book: TasksDep,
    task_id: str,
    decision: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
) -> Response:
    """Decide, and come back to the task; 409 with how it stands where somebody was first."""
    told = {"decision": decision, "note": note.strip() or None}
    try:
        made = book.through("page").decide_json(task_id, told, by=by.strip())
    except TaskRefused as error:
        is_bad = isinstance(error, BadDecision)
        status = HTTPStatus.BAD_REQUEST if is_bad else HTTPStatus.CONFLICT
        return _page(request, site, task_id, problem=str(error), note=note, status=status)
    there = read_state(request.query_params).address(made.task_id)
    return RedirectResponse(there, HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    task_id: str = "",
    *,
    problem: str = "",
    note: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    with site.readers.read() as connection:
        listing = read_listing(connection, read_state(request.query_params))
        wanted = task_id or listing.first_id
        detail = read_detail(connection, wanted) if wanted else None
    refused = may_not_decide(request, site.settings)
    is_out = must_sign_in(request, site.settings)
    page = TasksPage(listing, detail, problem, note, refused, is_out)
    return site.renderer.page(request, "tasks.html", here="tasks", page=page, status=status)

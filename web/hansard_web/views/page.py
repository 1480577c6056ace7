"""The addresses of saved views, and what the forms of the run list's menu do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.runs.saved_views import get_view
from hansard_web.app.site import SiteDep
from hansard_web.approvals.worker import person
from hansard_web.runs.filters import read_state
from hansard_web.ui.forms import OwnForm
from hansard_web.views.api import ViewsDep
from hansard_web.views.state import parts_of, state_of

router = APIRouter()


@router.get("/views/{name:path}")
def view(site: SiteDep, name: str) -> Response:
    """Open a saved view: the run list with its filters, order and columns."""
    with site.readers.read() as connection:
        return RedirectResponse(state_of(get_view(connection, name)).url, 303)


@router.post("/views", dependencies=[OwnForm])
def save(
    request: Request,
    views: ViewsDep,
    name: Annotated[str, Form()] = "",
    query: Annotated[str, Form()] = "",
) -> Response:
    """Save the list as it stands, and come back to it."""
    made = views.save(name, **parts_of(query)._asdict(), by=person(request, None))
    return RedirectResponse(state_of(made).url, 303)


@router.post("/views/rename", dependencies=[OwnForm])
def rename(
    request: Request,
    views: ViewsDep,
    view: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
) -> Response:
    """Give a view another name, and open it."""
    made = views.rename(view, name, by=person(request, None))
    return RedirectResponse(state_of(made).url, 303)


@router.post("/views/delete", dependencies=[OwnForm])
def delete(
    views: ViewsDep, view: Annotated[str, Form()] = "", query: Annotated[str, Form()] = ""
) -> Response:
    """Delete a view; the list stays as it stands."""
    views.delete(view)
    return RedirectResponse(replace(read_state(parse_qsl(query)), view="").url, 303)

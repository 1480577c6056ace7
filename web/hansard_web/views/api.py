"""Saved views of the run list, over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from starlette.requests import Request

from hansard_store.runs.saved_views import SavedViews, list_views, view_body
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.approvals.worker import person
from hansard_web.principals.dependencies import of_app
from hansard_web.views.bodies import DeleteView, RenameView, SaveView
from hansard_web.views.state import parts_of

ViewsDep = Annotated[SavedViews, of_app("views")]
router = NounRouter("views", route_class=JsonRoute)


@router.get("/v1/views", "views.bodies.ViewList")
def all_views(site: SiteDep) -> ApiResponse:
    """List the saved views of the run list, by name."""
    with site.readers.read() as connection:
        return ApiResponse({"items": [view_body(view) for view in list_views(connection)]})


@router.post("/v1/views", "views.bodies.ViewAnswer", status=201)
def save_view(request: Request, views: ViewsDep, body: SaveView) -> ApiResponse:
    """Save a view of the run list: filters, order and columns."""
    parts = parts_of(body.query, sort=body.sort, columns=body.columns)
    made = views.save(body.name, **parts._asdict(), by=person(request, None))
    return ApiResponse({"view": view_body(made)}, status_code=HTTPStatus.CREATED)


@router.post("/v1/views/rename", "views.bodies.ViewAnswer")
def rename_view(request: Request, views: ViewsDep, body: RenameView) -> ApiResponse:
    """Give a saved view another name."""
    made = views.rename(body.name, body.to, by=person(request, None))
    return ApiResponse({"view": view_body(made)})


@router.post("/v1/views/delete", "views.bodies.ViewAnswer")
def delete_view(views: ViewsDep, body: DeleteView) -> ApiResponse:
    """Delete a saved view, and answer with it as it was."""
    return ApiResponse({"view": view_body(views.delete(body.name))})

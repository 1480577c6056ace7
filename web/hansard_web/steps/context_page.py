"""The context of a step as a page of its own: what the agent knew, and why."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.steps.queries import get_step
from hansard_web.app.site import Site, SiteDep
from hansard_web.steps.page import StepPage, step_page

router = APIRouter()


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

"""The runs list: the first page people see, with everything that narrows it in its address."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import apsw
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard._clients.instrumentor_packages import NODE, PYTHON, Setup
from hansard_collector.log_sessions.unread import UnreadLogs, unread_logs
from hansard_store.runs.filters import parse_group
from hansard_store.runs.queries import last_change
from hansard_web.app.config import WebSettings
from hansard_web.app.site import SiteDep
from hansard_web.diff.headline import compare_runs
from hansard_web.runs.filters import ListState, read_state
from hansard_web.runs.list import counts_of, members_page, rows_page, runs_page, values_page

# The page of an empty store: how to send the first span, and a wait for it.


@dataclass(frozen=True, slots=True)
class Greeting:
    """Addresses for the snippets; `grpc` is None where this process has no gRPC endpoint."""

    http: str
    grpc: str | None
    needs_token: bool
    unread: tuple[UnreadLogs, ...] = ()  # agents whose log records made no run
    setups: tuple[Setup, ...] = (PYTHON, NODE)
    live_url: str = "/live/runs?after=0&newest=0"


def greeting_of(connection: apsw.Connection, settings: WebSettings) -> Greeting | None:
    """Return the greeting of an empty store, None as soon as it holds a run."""
    if last_change(connection):
        return None
    return Greeting(
        http=f"{'https' if settings.secure_cookies else 'http'}://{settings.http_address}",
        grpc=settings.grpc_address,
        needs_token=bool(settings.tokens),
        unread=tuple(unread_logs(connection)),
    )


router = APIRouter()


# async: reading the address is no work for a worker thread.
async def list_state(request: Request) -> ListState:
    """Return the state of the list that the address of a page or fragment describes."""
    return read_state(request.query_params.multi_items())


StateDep = Annotated[ListState, Depends(list_state)]


def is_fragment_request(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


@router.get("/")
def runs(request: Request, site: SiteDep, state: StateDep) -> Response:
    if request.url.query.startswith("view=") and len(request.query_params) == 1:
        return RedirectResponse(f"/views/{quote(state.view, safe='')}", 303)
    with site.readers.read() as connection:
        greeting = greeting_of(connection, site.settings)
        if greeting is not None:
            return site.renderer.page(request, "greeting.html", here="runs", page=greeting)
        page = runs_page(connection, state, now_ns=time.time_ns())
    return site.renderer.page(request, "runs.html", here="runs", page=page)


@router.get("/fragments/runs")
def runs_fragment(request: Request, site: SiteDep, state: StateDep) -> Response:
    """The list and all that is counted over it, for what is being typed into the filter box."""
    if not is_fragment_request(request):
        return RedirectResponse(state.url, 303)
    with site.readers.read() as connection:
        page = runs_page(connection, state, now_ns=time.time_ns())
    return site.renderer.fragment(
        request, "runs/_typed.html", page=page, headers={"HX-Replace-Url": state.url}
    )


@router.get("/fragments/runs/counts")
def run_counts(request: Request, site: SiteDep, state: StateDep) -> Response:
    """What is counted over a list that stands open: it follows the rows that come and change."""
    if not is_fragment_request(request):
        return RedirectResponse(state.url, 303)
    with site.readers.read() as connection:
        counts = counts_of(connection, state, now_ns=time.time_ns())
    return site.renderer.fragment(request, "runs/_counts.html", page={"counts": counts})


@router.get("/fragments/runs/more")
def more_runs(
    request: Request, site: SiteDep, state: StateDep, depth: Annotated[int, Query(ge=1)] = 2
) -> Response:
    """The next rows, in place of the link that requested them."""
    if not is_fragment_request(request):
        return RedirectResponse(state.url, 303)
    with site.readers.read() as connection:
        page = rows_page(connection, state, now_ns=time.time_ns(), depth=depth)
    return site.renderer.fragment(request, "runs/_more.html", page=page)


@router.get("/fragments/values/{key}")
def facet_values(
    request: Request, site: SiteDep, state: StateDep, key: str, like: str | None = None
) -> Response:
    """All values of a facet, in the whole store."""
    if not is_fragment_request(request):
        return RedirectResponse(state.url, 303)
    with site.readers.read() as connection:
        page = values_page(connection, state, key, like=like)
    return site.renderer.fragment(request, "runs/_values.html", page=page)


@router.get("/fragments/groups/{group_id}")
def group_members(request: Request, site: SiteDep, state: StateDep, group_id: str) -> Response:
    """The traces of a prompt, to be set below its row."""
    if not is_fragment_request(request):
        return RedirectResponse(state.setting("group", group_id).url, 303)
    group = parse_group(group_id)
    with site.readers.read() as connection:
        page = members_page(connection, group or b"", state, now_ns=time.time_ns())
    return site.renderer.fragment(request, "runs/_members.html", page=page)


@router.get("/fragments/compare")
def comparison(request: Request, site: SiteDep, state: StateDep) -> Response:
    """The bar over the list that sets the selected runs side by side."""
    if not is_fragment_request(request):
        return RedirectResponse(state.url, 303)
    with site.readers.read() as connection:
        page = compare_runs(connection, state, now_ns=time.time_ns())
    return site.renderer.fragment(
        request, "runs/_compare.html", page=page, headers={"HX-Replace-Url": state.url}
    )

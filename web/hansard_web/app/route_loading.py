"""The routes of an app in two parts: what the first page needs, and all others, loaded after it.

Importing and making all routes takes two thirds of a cold start. A server answers its first page
without; the others are loaded in a thread, soon after the start or with the first request for one.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from importlib import import_module
from typing import Final, Literal

from anyio import to_thread
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from hansard_compiler.errors import NotFoundError
from hansard_web.api.router import NounRouter
from hansard_web.health.api import router as ledger_router
from hansard_web.principals import signin
from hansard_web.runs import live as live_runs
from hansard_web.runs import page as runs
from hansard_web.ui.assets import package_assets

# The route of static files.

_A_YEAR = "public, max-age=31536000, immutable"


def static_route() -> Route:
    """Return the route below /static; the files are in memory, so it answers on the loop."""
    assets = package_assets()

    async def static(request: Request) -> Response:
        path = request.path_params["path"]
        asset = assets.find(path)
        if asset is None:
            raise NotFoundError("file", path)
        # A page of an older build may still ask: it gets today's file, but must ask again.
        is_current = request.path_params["build"] == assets.build
        etag = f'"{assets.build}"'
        headers = {"Cache-Control": _A_YEAR if is_current else "no-cache", "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers={"Content-Type": asset.media_type, **headers})

    return Route("/static/{build}/{path:path}", static, include_in_schema=False)


OPENAPI: Final = "/v1/openapi.json"
_OPENAPI_ALIAS: Final = "/openapi.json"  # where generators of clients look for it
_AFTER_S: Final = (
    2.0  # from the start until the rest is loaded, unless something asks for it before
)
Loads = Literal["now", "later"]


# Where routes are: the `router` of a module, or another, in the order in which they are tried.
_API: Final = (
    "runs.api", "steps.api", "runs.api:export_router", "search.api", "usage.api", "overview.api",
    "users.api",
    "conversations.api", "payloads.api", "media.api",
    "policy.api", "approvals.api", "audit.api", "tasks.api", "error_groups.api",
    "evaluation.api", "heartbeat.api",
    "reports.api", "memory.api", "annotations.api", "sidecar.api", "context.api", "health.api",
    "notifications.api", "diff.api", "receipts.api", "transcripts.api", "replay_page.api",
    "exports.api", "views.api", "palette.api",
)  # fmt: skip
_PAGES: Final = (
    "runs.page", "steps.page", "run_page.page", "runs.live", "approvals.page", "approvals.live",
    "audit.page", "conversations.page", "users.page", "transcripts.page", "diff.page.routes",
    "replay_page.form_page", "replay_page.result_page", "search.page", "memory.page",
    "annotations.forms", "tasks.page", "error_groups.page", "notifications.page", "reports.page",
    "receipts.page", "usage.page", "overview.page", "latency.page", "health.page",
    "health.metrics", "views.page", "palette.page", "ui.theme", "principals.signin",
)  # fmt: skip


def api_routes() -> list[APIRoute]:
    """Return all routes of the API."""
    return [route for route in _routes_of(_API) if isinstance(route, APIRoute)]


def page_routes() -> list[BaseRoute]:
    """Return the routes of every page."""
    return list(_routes_of(_PAGES))


def _routes_of(modules: Sequence[str]) -> Iterator[BaseRoute]:
    """Yield routes; their modules are imported here, as a server's first page is shown without."""
    for entry in modules:
        module, _, name = entry.partition(":")
        found = import_module(f"hansard_web.{module}")
        router: APIRouter | NounRouter = getattr(found, name or "router")
        yield from router.routes


def first_routes() -> list[BaseRoute]:
    """Return what an open browser and a health check ask for first."""
    pages = (route for page in (runs, live_runs, signin) for route in page.router.routes)
    return [*ledger_router.routes, static_route(), *pages]


@cache
def shown_routes() -> tuple[BaseRoute, ...]:
    """Return what every app of this process shows.

    Routes hold nothing of an app, and FastAPI takes a quarter of a second to work them out.
    """
    from hansard_web.mcp.route import mcp_route

    static = static_route()
    described = Route(_OPENAPI_ALIAS, _to_openapi, methods=["GET"], include_in_schema=False)
    return (*api_routes(), described, mcp_route(), static, *page_routes())


def _to_openapi(_: Request) -> Response:
    return RedirectResponse(OPENAPI, HTTPStatus.TEMPORARY_REDIRECT)


class RouteLoading(BaseRoute):
    """Stands for the routes that are not loaded yet, as the last one of its router.

    The lock lets one thread load them; the router gets a new list, so that a thread that walks over
    the old one goes on.
    """

    def __init__(self, router: APIRouter, all_routes: Callable[[], Sequence[BaseRoute]]) -> None:
        self._router = router
        self._all_routes = all_routes
        self._lock = threading.Lock()
        self._end = threading.Event()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match what no route that is loaded answers."""
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Load the routes, and have the request find its own among them."""
        await to_thread.run_sync(self.load)
        await self._router(scope, receive, send)

    def load(self) -> None:
        """Put all routes in the place of those that are there; once."""
        with self._lock:
            if self in self._router.routes:
                self._router.routes = list(self._all_routes())
                gc.freeze()  # they stay, and need not be walked for garbage

    @contextmanager
    def working(self) -> Iterator[None]:
        """Load them in a thread a little later, unless the block ends before."""
        thread = threading.Thread(target=self._load_later, name="hansard-routes", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _load_later(self) -> None:
        if not self._end.wait(_AFTER_S):
            self.load()

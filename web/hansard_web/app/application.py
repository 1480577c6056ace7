"""The web application: one HTTP port for OTLP, the JSON API and the pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard_collector.pipeline.group_commit import Courtesy
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.requests import Ingest, RequestSender
from hansard_collector.receivers.export_response import ExportRefusal, RejectReason, report
from hansard_collector.receivers.http import HttpSettings, otlp_routes
from hansard_collector.receivers.http_responses import status_response
from hansard_collector.receivers.paths import find_target, is_otlp_path
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.service import Principals
from hansard_web.api.openapi import openapi_of
from hansard_web.app.config import WebSettings
from hansard_web.app.problems import Problem, add_handlers, answer_problem, is_for_programs
from hansard_web.app.readers import Readers
from hansard_web.app.route_loading import (
    OPENAPI,
    Loads,
    RouteLoading,
    api_routes,
    first_routes,
    shown_routes,
)
from hansard_web.app.security import Refuse, Refused, Security
from hansard_web.app.site import Site
from hansard_web.approvals.worker import make_accounts
from hansard_web.audit.chain_state import Chains
from hansard_web.health.api import router as ledger_router
from hansard_web.live import RunFeed
from hansard_web.mcp.sessions import keeping_sessions
from hansard_web.policy.decider import make_decider
from hansard_web.principals.attempts import Attempts
from hansard_web.principals.dependencies import FormTokens
from hansard_web.sidecar.request import make_sidecar
from hansard_web.ui.render import Renderer

# Pages and the API before ingest: a request of a person asks the pipeline to yield.

_ENDLESS = "/live/"  # streams wait for news, not for the processor


class PeopleFirst:
    """The middleware; OTLP requests and streams go through as they are."""

    def __init__(self, app: ASGIApp, *, courtesy: Courtesy) -> None:
        self._app = app
        self._courtesy = courtesy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_somebody_else(scope):
            await self._app(scope, receive, send)
            return
        waiting = True
        self._courtesy.ask()

        async def send_on(message: Message) -> None:
            nonlocal waiting
            # A download is long; its reader waits for the network from its first bytes on.
            if waiting and message["type"] == "http.response.body":
                waiting = False
                self._courtesy.release()
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            if waiting:
                self._courtesy.release()

    def _is_somebody_else(self, scope: Scope) -> bool:
        path = scope["path"]
        return path.startswith(_ENDLESS) or is_otlp_path(path, scope["method"])


# HEAD wherever there is GET: the same answer without its body, as RFC 9110 §9.3.2 asks.

_NO_HEAD = ("/live/", "/signin/link/")  # endless streams, and what a GET uses up


class AnswerHead:
    """The middleware; outermost, so that everything inside sees a GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        if not is_head or scope["path"].startswith(_NO_HEAD):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # A copy: the server looks at its own to know that no body may follow.
        await self._app({**scope, "method": "GET"}, receive, send_head)


def create_app(
    store: DataFolder,
    ingest: Ingest | None,
    settings: WebSettings,
    *,
    shows: bool = True,
    attempts: Attempts | None = None,
    loads: Loads = "now",
) -> FastAPI:
    """Return the application over a migrated store; `ingest` None makes it read-only.

    `attempts`: failures to authenticate, where others count theirs with it.
    `loads`: whether its routes are there at once, or after the first page (`state.loading`).
    Where it does not show anything, only health and the ledger are left beside OTLP.

    It follows the store from now on: close `app.state.site` when it is not run by a server.
    """
    configured = ((one.secret, one.scopes) for one in settings.tokens)
    site = Site(
        folder=store,
        settings=settings,
        readers=Readers(store),
        renderer=Renderer(),
        form_tokens=FormTokens(store.key()),
        principals=Principals(store, configured=configured),
        attempts=attempts or Attempts(),
        feed=RunFeed(store),
        started_ns=time.time_ns(),
        instance=secrets.token_hex(8),
        ingest=ingest,
    )
    app = FastAPI(
        title="Hansard",
        version=version("hansard"),
        summary="The official record of what your agents saw, decided and did.",
        openapi_url=OPENAPI,
        docs_url=None,  # the bundled documentation pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # exporters take a 3xx for success and lose their data
        lifespan=_lifespan,
    )
    _add_services(app, site)
    _add_routes(app, site, shows=shows, loads=loads)
    add_handlers(app)
    _add_middleware(app, site)
    return app


def _add_services(app: FastAPI, site: Site) -> None:
    """Put what routes ask for into the application's state."""
    app.state.site = site
    app.state.sidecar = make_sidecar(site)
    app.state.decider = make_decider(site)
    outlet = None if app.state.sidecar is None else app.state.sidecar.outlet
    app.state.accounts = make_accounts(site, app.state.decider, outlet)
    app.state.chains = Chains()
    app.state.services = ExitStack()


def _add_loaded_services(app: FastAPI, site: Site) -> None:
    """Put there what only routes use that are loaded later; imported when they are."""
    from hansard_store.annotations.service import AnnotationService
    from hansard_store.error_groups.service import ErrorGroupService
    from hansard_store.memory.service import MemoryService
    from hansard_store.runs.saved_views import SavedViews
    from hansard_store.tasks.service import TaskService
    from hansard_web.health.metrics import UsageSums
    from hansard_web.replay.service import make_replays

    state, store = app.state, site.folder
    mode, decide = RetentionMode(site.settings.retention), site.settings.decide_mode
    state.memory = MemoryService(store, mode, origin="api", decide=decide)
    state.annotations = AnnotationService(store, mode)
    state.views = SavedViews(store, mode)
    state.tasks = TaskService(store, mode, decide=decide)
    state.errors = ErrorGroupService(store, mode, decide=decide)
    state.usage_sums = UsageSums()
    state.replays = make_replays(state.sidecar, state.decider, state.accounts.store)
    for one in (state.tasks, state.errors, state.annotations, state.views, state.memory):
        state.services.callback(one.close)
    if state.replays is not None:
        state.services.callback(state.replays.close)


def _add_routes(app: FastAPI, site: Site, *, shows: bool, loads: Loads) -> None:
    """Have the app answer OTLP, if it receives any, and what it shows."""
    router, described = app.router, list(app.router.routes)
    http = HttpSettings(cors_origins=site.settings.cors_origins)
    otlp = [] if site.ingest is None else otlp_routes(site.ingest, http)

    def all_routes() -> list[BaseRoute]:
        if shows:
            _add_loaded_services(app, site)
        return [*otlp, *described, *(shown_routes() if shows else ledger_router.routes)]

    app.state.loading = None
    if shows and loads == "later":
        app.state.loading = loading = RouteLoading(router, all_routes)
        router.routes = [*otlp, *first_routes(), loading]
    else:
        router.routes = all_routes()
    # Worked out when it is requested, in a way of its own.
    app.openapi = partial(_openapi, app, shows=shows)  # type: ignore[method-assign]


def _openapi(app: FastAPI, *, shows: bool) -> dict[str, Any]:
    return openapi_of(app, api_routes() if shows else ledger_router.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with keeping_sessions() as app.state.mcp_sessions:
        yield
    app.state.services.close()
    app.state.accounts.close()
    app.state.site.close()


def _add_middleware(app: FastAPI, site: Site) -> None:
    app.add_middleware(Security, site=site, refuse=_refuse_with(app, site.ingest, site.settings))
    if isinstance(site.ingest, Pipeline):
        app.add_middleware(PeopleFirst, courtesy=site.ingest.courtesy)
    app.add_middleware(AnswerHead)


def _refuse_with(app: FastAPI, ingest: Ingest | None, settings: WebSettings) -> Refuse:
    """Answer what security refuses: a Status to OTLP senders, an error object or page to others."""

    def refuse(scope: Scope, refused: Refused) -> Response:
        if is_otlp_path(scope["path"], scope["method"]):
            return _refuse_sender(scope, refused, ingest, settings)
        is_unknown = refused.status is HTTPStatus.UNAUTHORIZED
        # A program sent a wrong token: a form to sign in would tell it nothing.
        if is_unknown and not refused.was_sent and not is_for_programs(scope["path"]):
            return _sign_in_first(scope)
        problem = Problem(
            refused.status,
            refused.code,
            refused.message,
            headers={"WWW-Authenticate": "Bearer"} if is_unknown else {},
            link=_address(scope) if refused.is_link else None,
        )
        return answer_problem(Request({**scope, "app": app}), problem)

    return refuse


def _sign_in_first(scope: Scope) -> Response:
    if Headers(scope=scope).get("hx-request") == "true":
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": "/signin"})
    back = quote(_address(scope), safe="/") if scope["method"] == "GET" else "/"
    return RedirectResponse(f"/signin?next={back}", HTTPStatus.SEE_OTHER)


def _refuse_sender(
    scope: Scope, refused: Refused, ingest: Ingest | None, settings: WebSettings
) -> Response:
    headers = Headers(scope=scope)
    is_unknown = refused.status is HTTPStatus.UNAUTHORIZED
    reason = RejectReason.UNAUTHENTICATED if is_unknown else RejectReason.FORBIDDEN
    if ingest is not None:
        target = find_target(scope["path"])
        client = scope.get("client")
        sender = RequestSender(
            address=f"{client[0]}:{client[1]}" if client else "unix",
            user_agent=headers.get("user-agent", ""),
            transport="http",
        )
        report(
            ingest,
            ExportRefusal(reason, refused.message),
            signal=target.signal if target else None,
            sender=sender,
            size_bytes=0,
        )
    return status_response(
        headers,
        http_code=reason.http,
        grpc_code=reason.grpc,
        message=refused.message,
        headers={"www-authenticate": "Bearer"} if is_unknown else {},
        cors_origins=settings.cors_origins,
    )


def _address(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])

"""The web application: one HTTP port for OTLP, the JSON API and the pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from http import HTTPStatus
from importlib.metadata import version
from urllib.parse import quote

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from hansard_collector.ingest import Ingest, Sender
from hansard_collector.pipeline import Pipeline
from hansard_collector.receivers.http import HttpSettings, otlp_routes
from hansard_collector.receivers.http_answers import status_response
from hansard_collector.receivers.paths import find_target, is_otlp_path
from hansard_collector.receivers.status import Reason, Refusal, report
from hansard_compiler.retention import RetentionMode
from hansard_store.annotation_book import AnnotationBook
from hansard_store.database import DataFolder
from hansard_store.memory_book import MemoryBook
from hansard_store.principals.service import Principals
from hansard_store.task_book import TaskBook
from hansard_web.accounts import make_accounts
from hansard_web.api.described import openapi_of
from hansard_web.api.ledger import router as ledger_router
from hansard_web.api.routes import api_routes
from hansard_web.approving.chain import Chains
from hansard_web.assets import package_assets
from hansard_web.first import PeopleFirst
from hansard_web.heads import AnswerHead
from hansard_web.live import RunFeed
from hansard_web.mcp_server.door import mcp_route
from hansard_web.mcp_server.sessions import keeping_sessions
from hansard_web.pages import page_routers
from hansard_web.policy_asking import make_desk
from hansard_web.principals.attempts import Attempts
from hansard_web.problems import Problem, add_handlers, answer_problem, is_for_programs
from hansard_web.readers import Readers
from hansard_web.render import Renderer, make_environment
from hansard_web.replaying.desk import make_replays
from hansard_web.security import Refuse, Refused, Security
from hansard_web.sessions import FormTokens
from hansard_web.settings import WebSettings
from hansard_web.sidecar.door import make_door
from hansard_web.site import Site
from hansard_web.statics import static_router

_OPENAPI = "/v1/openapi.json"
_OPENAPI_ALIAS = "/openapi.json"  # where generators of clients look for it


def create_app(
    store: DataFolder,
    ingest: Ingest | None,
    settings: WebSettings,
    *,
    shows: bool = True,
    link: str | None = None,
) -> FastAPI:
    """Return the application over a migrated store; `ingest` None makes it read-only.

    `link`: the code of an address that signs the server's own user in, as long as it runs.
    Where it does not show anything, only health and the ledger are left beside OTLP.

    It follows the store from now on: close `app.state.site` when it is not run by a server.
    """
    site = _site_of(store, ingest, settings, link)
    app = FastAPI(
        title="Hansard",
        version=version("hansard"),
        summary="The official record of what your agents saw, decided and did.",
        openapi_url=_OPENAPI,
        docs_url=None,  # the bundled documentation pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # exporters take a 3xx for success and lose their data
        lifespan=_lifespan,
    )
    _add_services(app, site)
    if ingest is not None:
        app.router.routes[:0] = otlp_routes(
            ingest, HttpSettings(cors_origins=settings.cors_origins)
        )
    app.router.routes.extend(_shown() if shows else ledger_router.routes)
    described = api_routes() if shows else ledger_router.routes
    app.openapi = partial(openapi_of, app, described)  # type: ignore[method-assign] # its own way
    add_handlers(app)
    _add_middleware(app, site)
    return app


def _site_of(
    store: DataFolder, ingest: Ingest | None, settings: WebSettings, link: str | None
) -> Site:
    return Site(
        folder=store,
        settings=settings,
        readers=Readers(store),
        renderer=Renderer(make_environment(package_assets())),
        form_tokens=FormTokens(store.key()),
        principals=Principals(
            store, configured=((one.secret, one.scopes) for one in settings.tokens)
        ),
        attempts=Attempts(),
        feed=RunFeed(store),
        started_ns=time.time_ns(),
        instance=secrets.token_hex(8),
        ingest=ingest,
        link=link,
    )


def _add_services(app: FastAPI, site: Site) -> None:
    """Put what routes ask for into the application's state."""
    store, settings = site.folder, site.settings
    app.state.site = site
    app.state.door = make_door(site)
    app.state.desk = make_desk(site)
    outlet = None if app.state.door is None else app.state.door.sidecar.outlet
    app.state.accounts = make_accounts(site, app.state.desk, outlet)
    app.state.chains = Chains()
    mode, decide = RetentionMode(settings.retention), settings.decide_mode
    app.state.memory = MemoryBook(store, mode, door="api", decide=decide)
    app.state.annotations = AnnotationBook(store, mode)
    app.state.tasks = TaskBook(store, mode, decide=decide)
    app.state.replays = make_replays(app.state.door, app.state.desk, app.state.accounts.store)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with keeping_sessions() as app.state.mcp_sessions:
        yield
    if app.state.replays is not None:
        app.state.replays.close()
    app.state.accounts.close()
    app.state.memory.close()
    app.state.annotations.close()
    app.state.tasks.close()
    app.state.site.close()


def _add_middleware(app: FastAPI, site: Site) -> None:
    app.add_middleware(
        Security,
        settings=site.settings,
        principals=site.principals,
        attempts=site.attempts,
        form_tokens=site.form_tokens,
        is_otlp=is_otlp_path,
        refuse=_refuse_with(app, site.ingest, site.settings),
    )
    if isinstance(site.ingest, Pipeline):
        app.add_middleware(PeopleFirst, courtesy=site.ingest.courtesy, is_otlp=is_otlp_path)
    app.add_middleware(AnswerHead)


@cache
def _shown() -> tuple[BaseRoute, ...]:
    """Return what every app of this process shows.

    Routes hold nothing of an app, and FastAPI takes a quarter of a second to work them out.
    """
    static = static_router(package_assets())
    pages = (route for router in page_routers() for route in router.routes)
    described = Route(_OPENAPI_ALIAS, _to_openapi, methods=["GET"], include_in_schema=False)
    return (*api_routes(), described, mcp_route(), *static.routes, *pages)


def _to_openapi(_: Request) -> Response:
    return RedirectResponse(_OPENAPI, HTTPStatus.TEMPORARY_REDIRECT)


def _refuse_with(app: FastAPI, ingest: Ingest | None, settings: WebSettings) -> Refuse:
    """Answer what security refuses: a Status to OTLP senders, an error object or page to others."""

    def refuse(scope: Scope, refused: Refused) -> Response:
        if is_otlp_path(scope["path"], scope["method"]):
            return _refuse_sender(scope, refused, ingest, settings)
        is_unknown = refused.status is HTTPStatus.UNAUTHORIZED
        if is_unknown and not is_for_programs(scope["path"]):
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
    reason = Reason.UNAUTHENTICATED if is_unknown else Reason.FORBIDDEN
    if ingest is not None:
        target = find_target(scope["path"])
        client = scope.get("client")
        sender = Sender(
            address=f"{client[0]}:{client[1]}" if client else "unix",
            user_agent=headers.get("user-agent", ""),
            transport="http",
        )
        report(
            ingest,
            Refusal(reason, refused.message),
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

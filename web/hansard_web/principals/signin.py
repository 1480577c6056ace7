"""Signing in, for browsers, which cannot send a token themselves: by a form, or by a link."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

from anyio import to_thread
from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.principals.service import SESSION_S, SignedIn
from hansard_web.app.addresses import way_back
from hansard_web.app.security import address_of, hold_back
from hansard_web.app.site import Site, SiteDep
from hansard_web.principals.dependencies import SESSION_COOKIE
from hansard_web.ui.forms import OwnForm

router = APIRouter()
_WRONG_TOKEN: Final = "That is not a token of this server."
_WRONG_LINK: Final = (
    "This link is used up, or is of a server that has stopped. `hansard open` makes a new one."
)


@dataclass(frozen=True, slots=True)
class SignInPage:
    next: str
    needs_token: bool  # nothing is shown before, as the server was started with a token
    problem: str = ""


@router.get("/signin")
def sign_in_page(request: Request, site: SiteDep, next: Annotated[str, Query()] = "") -> Response:
    """Return the form; to who is signed in, where they wanted to go, or else that they are."""
    if request.state.signed_in and next:
        return RedirectResponse(way_back(next), HTTPStatus.SEE_OTHER)
    return _page(request, site, way_back(next or "/"))


@router.post("/signin", dependencies=[OwnForm])
async def sign_in(
    request: Request,
    site: SiteDep,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Begin a session for the holder of a token; a wrong one is answered ever more slowly."""
    found = await to_thread.run_sync(site.principals.sign_in, token.strip())
    if found is None:
        await hold_back(site.attempts, address_of(request.scope))
        return await to_thread.run_sync(_page, request, site, way_back(next), _WRONG_TOKEN)
    return _begun(site, found, way_back(next))


@router.get("/signin/link/{code}")
async def sign_in_by_link(
    request: Request, site: SiteDep, code: str, next: Annotated[str, Query()] = "/"
) -> Response:
    """Begin a session by a link of this server, and leave the address with the code in it."""
    use_link = partial(site.principals.use_link, code, server=site.instance)
    found = await to_thread.run_sync(use_link)
    if found is None:
        await hold_back(site.attempts, address_of(request.scope))
        response = await to_thread.run_sync(_page, request, site, way_back(next), _WRONG_LINK)
    else:
        response = _begun(site, found, way_back(next))
    # The next request must not tell where it came from.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response


@router.post("/signout", dependencies=[OwnForm])
def sign_out(request: Request, site: SiteDep) -> Response:
    """End the session: its cookie opens nothing any more, wherever it was copied to."""
    site.principals.sign_out(request.state.session)
    response = RedirectResponse("/signin", HTTPStatus.SEE_OTHER)
    response.delete_cookie(
        SESSION_COOKIE, secure=site.settings.secure_cookies, httponly=True, samesite="strict"
    )
    return response


def _begun(site: Site, found: SignedIn, there: str) -> Response:
    response = RedirectResponse(there, HTTPStatus.SEE_OTHER)
    response.set_cookie(
        SESSION_COOKIE,
        found.cookie,
        max_age=SESSION_S,
        secure=site.settings.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return response


def _page(request: Request, site: Site, there: str, problem: str = "") -> Response:
    page = SignInPage(there, bool(site.settings.tokens), problem)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    return site.renderer.page(request, "signin.html", here="", page=page, status=status)

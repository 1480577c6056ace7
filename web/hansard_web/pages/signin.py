"""Signing in with a token, for browsers, which cannot send one themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_web.forms import OwnForm, way_back
from hansard_web.sessions import SESSION_COOKIE, SESSION_S
from hansard_web.settings import find_token
from hansard_web.site import SiteDep

router = APIRouter()


@dataclass(frozen=True, slots=True)
class SignInPage:
    next: str
    problem: str = ""


@router.get("/signin")
def sign_in_page(request: Request, site: SiteDep, next: Annotated[str, Query()] = "/") -> Response:
    if not site.settings.tokens or request.state.signed_in:
        return RedirectResponse(way_back(next), HTTPStatus.SEE_OTHER)
    page = SignInPage(way_back(next))
    return site.renderer.page(request, "signin.html", here="", page=page)


@router.post("/signin", dependencies=[OwnForm])
def sign_in(
    request: Request,
    site: SiteDep,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
) -> Response:
    found = find_token(site.settings.tokens, token.strip())
    if found is None:
        page = SignInPage(way_back(next), "That is not a token of this server.")
        return site.renderer.page(
            request, "signin.html", here="", page=page, status=HTTPStatus.UNPROCESSABLE_ENTITY
        )
    answer = RedirectResponse(way_back(next), HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        SESSION_COOKIE,
        site.sessions.cookie_for(found, now_s=int(time.time())),
        max_age=SESSION_S,
        secure=site.settings.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/signout", dependencies=[OwnForm])
def sign_out(site: SiteDep) -> Response:
    answer = RedirectResponse("/signin", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(
        SESSION_COOKIE, secure=site.settings.secure_cookies, httponly=True, samesite="strict"
    )
    return answer

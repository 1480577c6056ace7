"""What a reader chooses of the look of pages, in cookies: theme, zone of times, messages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse

from hansard_web.app.addresses import way_back
from hansard_web.app.site import Site, SiteDep
from hansard_web.ui.forms import OwnForm
from hansard_web.ui.render import MESSAGES_COOKIE, THEME_COOKIE, TIMES_COOKIE

router = APIRouter()
_A_YEAR_S = 365 * 86_400


@router.post("/theme", dependencies=[OwnForm])
def choose_theme(
    site: SiteDep,
    theme: Annotated[Literal["system", "light", "dark"], Form()],
    next: Annotated[str, Form()] = "/",
) -> RedirectResponse:
    return _chosen(site, THEME_COOKIE, theme, next)


@router.post("/times", dependencies=[OwnForm])
def choose_times(
    site: SiteDep,
    times: Annotated[Literal["local", "utc"], Form()],
    next: Annotated[str, Form()] = "/",
) -> RedirectResponse:
    """Choose the zone in which a browser shows times: its own, or UTC."""
    return _chosen(site, TIMES_COOKIE, times, next)


@router.post("/messages", dependencies=[OwnForm])
def choose_messages(
    site: SiteDep,
    messages: Annotated[Literal["markdown", "plain"], Form()],
    next: Annotated[str, Form()] = "/",
) -> RedirectResponse:
    """Choose what answers of models are shown as, on every page, until it is chosen again."""
    return _chosen(site, MESSAGES_COOKIE, messages, next)


def _chosen(site: Site, cookie: str, value: str, next: str) -> RedirectResponse:
    response = RedirectResponse(way_back(next), HTTPStatus.SEE_OTHER)
    response.set_cookie(
        cookie,
        value,
        max_age=_A_YEAR_S,
        secure=site.settings.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return response

"""The choice of a theme, kept in a cookie so that the server can write it into the page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse

from hansard_web.addresses import way_back
from hansard_web.forms import OwnForm
from hansard_web.render import THEME_COOKIE
from hansard_web.site import SiteDep

router = APIRouter()
_A_YEAR_S = 365 * 86_400


@router.post("/theme", dependencies=[OwnForm])
def choose_theme(
    site: SiteDep,
    theme: Annotated[Literal["system", "light", "dark"], Form()],
    next: Annotated[str, Form()] = "/",
) -> RedirectResponse:
    answer = RedirectResponse(way_back(next), HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        THEME_COOKIE,
        theme,
        max_age=_A_YEAR_S,
        secure=site.settings.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return answer

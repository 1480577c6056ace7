"""The list under the field of the palette."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_web.app.addresses import address
from hansard_web.app.site import SiteDep
from hansard_web.palette.results import MOST_CHARS, FoundName, find_names
from hansard_web.runs.page import is_fragment_request

router = APIRouter()
_RUN: Final = re.compile("[0-9a-f]{32}")
_TITLES: Final = {
    "page": "Pages",
    "run": "Runs",
    "step": "Steps",
    "user": "Users",
    "conversation": "Conversations",
    "view": "Saved views",
    "setting": "Settings",
}
_ICONS: Final = {
    "page": "right",
    "run": "tree",
    "step": "log",
    "user": "user",
    "conversation": "conversation",
    "view": "filter",
    "setting": "terminal",
}


@dataclass(frozen=True, slots=True)
class PaletteGroup:
    title: str
    icon: str
    items: Sequence[tuple[int, FoundName]]  # numbered over all groups


@dataclass(frozen=True, slots=True)
class PaletteList:
    query: str
    groups: Sequence[PaletteGroup]
    search_href: str


@router.get("/palette")
def palette(
    request: Request,
    site: SiteDep,
    q: Annotated[str, Query()] = "",
    run: Annotated[str, Query()] = "",
) -> Response:
    """Find by name; a browser without scripts is led to the search."""
    if not is_fragment_request(request):
        return RedirectResponse(address("/search", {"q": q}), HTTPStatus.SEE_OTHER)
    with site.readers.read() as connection:
        run_id = run if _RUN.fullmatch(run) else ""
        found = find_names(connection, q, run_id=run_id, values=site.settings.values)
    numbered = list(enumerate(found))
    groups = [
        PaletteGroup(_TITLES[kind], _ICONS[kind], list(items))
        for kind, items in groupby(numbered, key=lambda one: one[1]["kind"])
    ]
    query = q.strip()[:MOST_CHARS]
    page = PaletteList(query, groups, address("/search", {"q": query}))
    return site.renderer.fragment(request, "_palette.html", page=page)

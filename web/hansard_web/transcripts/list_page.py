"""Transcripts: the list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.transcripts.queries import TranscriptItem, list_transcripts
from hansard_web.app.site import SiteDep

router = APIRouter()

_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    item: TranscriptItem
    href: str
    since_fold: int  # messages after the newest fold


@dataclass(frozen=True, slots=True)
class TranscriptsPage:
    rows: tuple[TranscriptRow, ...]
    more_href: str | None
    is_first: bool


@router.get("/transcripts")
def transcripts(request: Request, site: SiteDep, cursor: Annotated[str, Query()] = "") -> Response:
    with site.readers.read() as connection:
        found = list_transcripts(connection, limit=_ROWS, cursor=cursor or None)
    more = urlencode({"cursor": found.next_cursor}) if found.next_cursor else ""
    page = TranscriptsPage(
        rows=tuple(_row(item) for item in found.items),
        more_href=f"/transcripts?{more}" if more else None,
        is_first=not cursor,
    )
    return site.renderer.page(request, "transcripts.html", here="transcripts", page=page)


def _row(item: TranscriptItem) -> TranscriptRow:
    folded = 0 if item.folded_until is None else item.folded_until + 1
    return TranscriptRow(item, f"/transcripts/{item.conversation.id}", item.messages - folded)

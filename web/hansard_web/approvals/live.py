"""The live stream of the inbox, and the count of what waits in the head of every page."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from typing import Annotated, Final

import apsw
from anyio import sleep, to_thread
from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from hansard_compiler.errors import NotFoundError
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.page import StateDep, page_of
from hansard_web.approvals.page_state import InboxState, read_badge
from hansard_web.approvals.worker import Accounts, AccountsDep

router = APIRouter()

_PLACE: Final = re.compile(r"(\d{1,18})-([01])", re.ASCII)
_LOOK_EVERY_S: Final = 10.0  # times run out without a commit
_REST_S: Final = 0.5  # so a page gets at most two messages a second under a flood of commits
_EACH_S: Final = 0.05  # and all pages together twenty, however many are open


@router.get("/fragments/waiting")
def waiting(request: Request, site: SiteDep, shown: Annotated[int, Query(ge=0)] = 0) -> Response:
    """Return the count when it is another one than is shown."""
    badge = read_badge(site.readers)
    if badge.count == shown:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})
    return site.renderer.fragment(request, "approvals/_waiting.html", page=badge)


@router.get("/live/approvals", response_class=EventSourceResponse)
async def live_approvals(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    state: StateDep,
    id: Annotated[str, Query(max_length=32)] = "",
    seen: Annotated[str, Query()] = "",
    last_event_id: Annotated[str, Header()] = "",
) -> AsyncIterator[ServerSentEvent]:
    match = _PLACE.fullmatch(last_event_id) or _PLACE.fullmatch(seen)
    stream = _Stream(request, site, accounts, state, id, match)
    async with accounts.watch.watching() as watching:
        while not accounts.watch.is_closing:
            message = await to_thread.run_sync(stream.message)
            if message is not None:
                yield message
            await watching.changed(within_s=_LOOK_EVERY_S)
            if not accounts.watch.is_closing:
                await sleep(max(_REST_S, _EACH_S * accounts.watch.streams))


class _Stream:
    """What one open page has received."""

    def __init__(
        self,
        request: Request,
        site: Site,
        accounts: Accounts,
        state: InboxState,
        approval_id: str,
        match: re.Match[str] | None,
    ) -> None:
        self._request = request
        self._site = site
        self._store = accounts.store
        self._state = state
        self._id = approval_id
        self._mark = int(match[1]) if match else 0
        self._is_read = match is not None and match[2] == "1"
        self._told = ""
        self._head = -1
        self._looked_s = 0.0

    def message(self) -> ServerSentEvent | None:
        """Return what is new since the last one: the list, and what became of what is shown."""
        if not self._may_be_new():
            return None
        try:
            page = page_of(self._request, self._site, self._store, self._state, self._id or None)
        except (NotFoundError, apsw.Error):
            return None
        text = self._render("approvals/_live.html", page)
        ask = page.ask
        if ask is not None and not self._id:  # the first one that an empty page has to show
            self._id = ask.approval.approval_id
        is_other = ask is not None and ask.mark != self._mark
        news = ""
        if ask is not None and is_other:
            # What is being decided on is never taken from under the reader's hands.
            name = "approvals/_news.html" if self._is_read else "approvals/_pane.html"
            news = self._render(name, page)
            self._mark = ask.mark
            self._is_read = self._is_read or ask.is_open
        if text == self._told and not news:
            return None
        self._told = text
        event_id = f"{self._mark}-{int(self._is_read)}"
        return ServerSentEvent(id=event_id, raw_data=text + news)

    def _may_be_new(self) -> bool:
        """Say whether to look closely: each change has an event, and times run out alone."""
        head, now_s = self._store.head().seq, time.monotonic()
        if head == self._head and now_s - self._looked_s < _LOOK_EVERY_S:
            return False
        self._head, self._looked_s = head, now_s
        return True

    def _render(self, template: str, page: object) -> str:
        body = self._site.renderer.fragment(self._request, template, page=page).body
        return bytes(body).decode()

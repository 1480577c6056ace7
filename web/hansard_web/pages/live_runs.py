"""The live stream of the runs list: rows that changed, rows that are new, or "load afresh"."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from hansard_store.run_queries import RunItem, list_runs
from hansard_web.filters import ListState, newest_first, to_filter
from hansard_web.live import Batch
from hansard_web.pages.runs import StateDep
from hansard_web.run_list import PAGE_ROWS
from hansard_web.run_rows import RunRow, run_rows
from hansard_web.site import Site, SiteDep

router = APIRouter()
_PLACE = re.compile(r"(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True, slots=True)
class LiveRows:
    rows: tuple[RunRow, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a stream continues: the id of its last message, "change-run"."""

    seq: int
    newest: int  # the highest run.id the page shows or was told of

    @property
    def text(self) -> str:
        return f"{self.seq}-{self.newest}"


@router.get("/live/runs", response_class=EventSourceResponse)
async def live_runs(
    site: SiteDep,
    state: StateDep,
    after: Annotated[int, Query(ge=0)] = 0,
    newest: Annotated[int, Query(ge=0)] = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> AsyncIterator[ServerSentEvent]:
    resumed = _PLACE.fullmatch(last_event_id)
    place = _Place(int(resumed[1]), int(resumed[2])) if resumed else _Place(after, newest)
    stream = _RunStream(site, state, place)
    async for batch in site.feed.follow(after=place.seq):
        for message in await to_thread.run_sync(stream.messages, batch):
            yield message


class _RunStream:
    """What one open page has been told, and so what is new to it."""

    def __init__(self, site: Site, state: ListState, place: _Place) -> None:
        self._site = site
        self._state = state
        self._place = place
        self._told: set[int] = set()

    def messages(self, batch: Batch) -> list[ServerSentEvent]:
        """Return the messages for a batch: changed rows, then new ones."""
        if batch.is_resync:
            self._place = _Place(batch.seq, self._place.newest)
            return [ServerSentEvent(id=self._place.text, event="resync", raw_data="")]
        now_ns = time.time_ns()
        new = self._new(batch.runs, now_ns=now_ns)
        numbers = {run.id for run in new}
        changed = [run for run in batch.runs if run.id not in numbers]
        self._told |= numbers
        self._place = _Place(batch.seq, max(self._place.newest, *numbers, 0))
        messages = []
        if changed:
            messages.append(self._rows("runs/_changed.html", changed, now_ns=now_ns))
        if new and newest_first(self._state):
            messages.append(self._rows("runs/_new.html", new, now_ns=now_ns))
        elif new:
            messages.append(
                ServerSentEvent(id=self._place.text, event="more", raw_data=str(len(new)))
            )
        return messages

    def _new(self, runs: Iterable[RunItem], *, now_ns: int) -> list[RunItem]:
        """Return runs that the page does not show and should, the oldest first.

        A run may come to meet a filter late (its status, its model), so with a filter the first
        page of the list decides, and not only the order of arrival.
        """
        unseen = [run for run in runs if run.id not in self._told]
        wanted = to_filter(self._state, now_ns=now_ns).filter
        if not self._state.terms and not self._state.words:
            return sorted(
                (run for run in unseen if run.id > self._place.newest), key=lambda run: run.id
            )
        if not unseen:
            return []
        with self._site.readers.read() as connection:
            first = list_runs(connection, wanted, now_ns=now_ns, limit=PAGE_ROWS).items
        meeting = {run.id for run in first}
        return sorted((run for run in unseen if run.id in meeting), key=lambda run: run.id)

    def _rows(self, template: str, runs: Iterable[RunItem], *, now_ns: int) -> ServerSentEvent:
        with self._site.readers.read() as connection:
            page = LiveRows(run_rows(connection, runs, now_ns=now_ns))
        text = self._site.renderer.text(template, page=page, now_ns=now_ns)
        return ServerSentEvent(id=self._place.text, raw_data=text)

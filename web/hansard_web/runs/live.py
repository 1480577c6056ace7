"""The live stream of the runs list: rows that changed, rows that are new, or "load afresh"."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import apsw
from anyio import to_thread
from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from hansard_store.runs.filters import RunFilter
from hansard_store.runs.groups import RunGroup, get_groups
from hansard_store.runs.queries import RunItem, list_runs
from hansard_web.app.site import Site, SiteDep
from hansard_web.live import LiveBatch
from hansard_web.runs.filters import ListState, newest_first, to_filter
from hansard_web.runs.list import PAGE_ROWS
from hansard_web.runs.page import StateDep
from hansard_web.runs.rows import RunRow, group_row, mixed_rows, run_rows

router = APIRouter()
_PLACE = re.compile(r"(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True, slots=True)
class _Change:
    """A row, and where it stands if the page shows it."""

    target: str  # a selector
    row: RunRow
    swap: str = "outerMorph"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a stream continues: the id of its last message, "change-run"."""

    seq: int
    newest: int  # the highest run.id that the page shows or was sent

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
    position = _Place(int(resumed[1]), int(resumed[2])) if resumed else _Place(after, newest)
    stream = _RunStream(site, state, position)
    await to_thread.run_sync(stream.begin)
    async for batch in site.feed.follow(after=position.seq):
        for message in await to_thread.run_sync(stream.messages, batch):
            yield message


class _RunStream:
    """What one open page has received, and so what is new to it."""

    def __init__(self, site: Site, state: ListState, position: _Place) -> None:
        self._site = site
        self._state = state
        self._place = position
        self._told: set[int] = set()

    def begin(self) -> None:
        """Learn what a page with a filter shows already: a run that changes is not new to it."""
        if not self._is_filtered:
            return
        now_ns = time.time_ns()
        filters = to_filter(self._state, now_ns=now_ns).filter
        position = self._place
        with self._site.readers.read() as connection:
            first = _first_runs(connection, filters, now_ns=now_ns)
        self._told |= {
            run.id for run in first if run.change_seq <= position.seq or run.id <= position.newest
        }

    @property
    def _is_filtered(self) -> bool:
        return bool(self._state.terms or self._state.words)

    def messages(self, batch: LiveBatch) -> list[ServerSentEvent]:
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
            messages.append(self._changed(changed, now_ns=now_ns))
        if new and newest_first(self._state):
            messages.append(self._added(new, now_ns=now_ns))
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
        filters = to_filter(self._state, now_ns=now_ns).filter
        unseen = [run for run in runs if run.id not in self._told]
        if filters.kind is not None:
            unseen = [run for run in unseen if run.kind == filters.kind]
        if not self._is_filtered:
            return sorted(
                (run for run in unseen if run.id > self._place.newest), key=lambda run: run.id
            )
        if not unseen:
            return []
        with self._site.readers.read() as connection:
            first = _first_runs(connection, filters, now_ns=now_ns)
        meeting = {run.id for run in first}
        return sorted((run for run in unseen if run.id in meeting), key=lambda run: run.id)

    def _added(self, new: Sequence[RunItem], *, now_ns: int) -> ServerSentEvent:
        """Return rows for the top of the list; the traces of one prompt are one row."""
        with self._site.readers.read() as connection:
            groups = self._groups(connection, new, now_ns=now_ns)
            items = {run.group_id or run.run_id: groups.get(run.group_id, run) for run in new}
            page = {
                "rows": mixed_rows(
                    connection, items.values(), now_ns=now_ns, columns=self._state.shown_columns
                )
            }
        return self._message("runs/_new.html", page, now_ns=now_ns)

    def _changed(self, runs: Sequence[RunItem], *, now_ns: int) -> ServerSentEvent:
        columns = self._state.shown_columns
        with self._site.readers.read() as connection:
            groups = self._groups(connection, runs, now_ns=now_ns)
            changes = [
                _Change(
                    f"#group-{group.group_id}", group_row(group, now_ns=now_ns, columns=columns)
                )
                for group in groups.values()
            ]
            for row in run_rows(connection, runs, now_ns=now_ns, columns=columns):
                changes += _changes(row, groups.get(row.run.group_id), now_ns=now_ns)
        return self._message("runs/_changed.html", {"changes": changes}, now_ns=now_ns)

    def _groups(
        self, connection: apsw.Connection, runs: Sequence[RunItem], *, now_ns: int
    ) -> Mapping[str | None, RunGroup]:
        """Return the groups of some runs that the list shows as one row, by group_id."""
        if self._state.value("group"):
            return {}
        group_ids = [bytes.fromhex(run.group_id) for run in runs if run.group_id]
        found = get_groups(connection, group_ids, now_ns=now_ns)
        return {group.group_id: group for group in found.values()}

    def _message(self, template: str, page: object, *, now_ns: int) -> ServerSentEvent:
        text = self._site.renderer.text(template, page=page, now_ns=now_ns)
        return ServerSentEvent(id=self._place.text, raw_data=text)


def _changes(row: RunRow, group: RunGroup | None, *, now_ns: int) -> list[_Change]:
    """Return where the row of a changed run may stand: for itself, or below that of its group.

    A run that was alone when the page was read becomes the row of its group.
    """
    target = f"#run-{row.run.run_id}"
    if group is None:
        return [_Change(target, row)]
    return [
        _Change(f"{target}[data-of]", replace(row, of=group.group_id)),
        _Change(
            f"{target}:not([data-of])",
            group_row(group, now_ns=now_ns, columns=row.columns),
            swap="outerHTML",
        ),
    ]


def _first_runs(
    connection: apsw.Connection, filters: RunFilter, *, now_ns: int
) -> Sequence[RunItem]:
    return list_runs(connection, filters, now_ns=now_ns, limit=PAGE_ROWS).items

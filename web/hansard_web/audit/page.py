"""The audit log: who did what when, each entry sealed with the one before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, EventFilter, EventType, StoredEvent
from hansard_store.errors import InvalidQueryError
from hansard_store.steps.queries import get_step
from hansard_web.api.queries import read_times, trace_id_of
from hansard_web.app.addresses import address
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.labels import clean
from hansard_web.approvals.worker import AccountsDep
from hansard_web.audit.chain_state import Chain, Chains, read_chain
from hansard_web.audit.rows import EventRow, body_of, event_row, step_of
from hansard_web.principals.dependencies import of_app
from hansard_web.runs.page import is_fragment_request
from hansard_web.ui.json_tree import JsonNode, json_tree

router = APIRouter()
ChainsDep = Annotated[Chains, of_app("chains")]

_ROWS: Final = 100
_LONGEST: Final = 200
_FIELDS: Final = (
    "type", "actor", "who", "action", "subject", "approval", "run", "since", "until", "seals",
)  # fmt: skip
_MOST_SEALS: Final = 10_000  # that are counted for a page
_PILLS: Final = (
    ("approved", "action.approved"),
    ("rejected", "action.rejected"),
    ("executed", "action.executed"),
    ("blocked", "policy.blocked"),
    ("failures", "failure"),
)


@dataclass(frozen=True, slots=True)
class EventsPage:
    fields: Mapping[str, str]
    rows: tuple[EventRow, ...]
    chain: Chain
    problem: str
    is_asked: bool
    more_href: str | None
    types: tuple[str, ...]
    actors: tuple[str, ...]
    pills: tuple[tuple[str, str, bool], ...]  # label, address, is it on
    verify_href: str
    seals: Seals


@dataclass(frozen=True, slots=True)
class Seals:
    """Sealing events that meet the filter and are not listed: every few seconds there is one."""

    count: int  # 0 where they are listed, or none is left out
    is_more: bool  # counting ended there
    show_href: str
    hide_href: str | None  # where they are listed because a reader wanted them


@dataclass(frozen=True, slots=True)
class EventPage:
    """One entry, whole."""

    row: EventRow
    action: str
    source: str
    subject: str
    subject_href: str  # of a memory record; "" for what has a line of its own, or no page
    body: JsonNode
    contents: tuple[tuple[str, str, JsonNode | None], ...]  # name, text, or what it is made of
    previous_href: str | None
    next_href: str | None


@router.get("/events")
def events(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    chains: ChainsDep,
    verify: Annotated[str, Query()] = "",
) -> Response:
    query = request.query_params
    fields = {name: query.get(name, "").strip()[:_LONGEST] for name in _FIELDS}
    filters = {name: value for name, value in fields.items() if value}
    found, seals, problem = _found(
        site, accounts.store, filters, before=_before(query.get("before", ""))
    )
    chain = read_chain(chains, site.readers, accounts.store, verify=bool(verify))
    page = EventsPage(
        fields=fields,
        rows=_rows(site, found),
        chain=chain,
        problem=problem,
        is_asked=bool(filters.keys() - {"seals"}),
        more_href=address("/events", {**filters, "before": str(found[-1].seq)})
        if len(found) == _ROWS
        else None,
        types=tuple(EventType),
        actors=tuple(Actor),
        pills=(
            ("all", "/events", not filters.keys() - {"seals"}),
            *(
                (label, address("/events", {"type": type}), filters == {"type": type})
                for label, type in _PILLS
            ),
        ),
        verify_href=address("/events", {**filters, "verify": "1"}),
        seals=seals,
    )
    return site.renderer.page(request, "events.html", here="events", page=page)


@router.get("/fragments/events/chain")
def chain(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    chains: ChainsDep,
    again: Annotated[str, Query()] = "",
) -> Response:
    """Check the chain, unless it was checked a moment ago."""
    if not is_fragment_request(request):
        return RedirectResponse("/events?verify=1", HTTPStatus.SEE_OTHER)
    found = read_chain(chains, site.readers, accounts.store, verify=True, again=bool(again))
    return site.renderer.fragment(request, "events/_chain.html", page=ChainPart(found))


@dataclass(frozen=True, slots=True)
class ChainPart:
    chain: Chain
    verify_href: str = "/events?verify=1"


@router.get("/events/{seq}")
def event(request: Request, site: SiteDep, accounts: AccountsDep, seq: str) -> Response:
    number = int(seq) if seq.isascii() and seq.isdecimal() and len(seq) < 19 else 0
    found = accounts.store.events(EventFilter(with_seals=True), before=number + 1, limit=1)
    if not found or found[0].seq != number:
        raise NotFoundError("event", seq)
    page = _event_page(site, found[0], last_seq=accounts.store.head().seq)
    return site.renderer.page(request, "event.html", here="events", page=page)


def _found(
    site: Site, store: ApprovalService, fields: Mapping[str, str], *, before: int | None
) -> tuple[list[StoredEvent], Seals, str]:
    try:
        filters = _filter(site, store, fields)
    except (NotFoundError, AmbiguousIdError, InvalidQueryError) as error:
        return [], Seals(0, is_more=False, show_href="", hide_href=None), str(error)
    found = list(store.events(filters, before=before, limit=_ROWS))
    return found, _seals(store, filters, fields), ""


def _seals(store: ApprovalService, filters: EventFilter, fields: Mapping[str, str]) -> Seals:
    """Return how many seals a list leaves out: their numbers are missing in it."""
    hidden = 0
    if filters.type is None and not filters.with_seals:
        only = replace(filters, type=EventType.RECORD_SEALED)
        hidden = store.count_events(only, at_most=_MOST_SEALS + 1)
    without = {name: value for name, value in fields.items() if name != "seals"}
    return Seals(
        count=min(hidden, _MOST_SEALS),
        is_more=hidden > _MOST_SEALS,
        show_href=address("/events", {**fields, "seals": "1"}),
        hide_href=address("/events", without) if filters.with_seals else None,
    )


def _filter(site: Site, store: ApprovalService, fields: Mapping[str, str]) -> EventFilter:
    since_ns, until_ns = read_times(fields.get("since"), fields.get("until"))
    plain: dict[str, Any] = {
        name: fields[name]
        for name in ("type", "actor", "who", "action", "subject")
        if name in fields
    }
    return EventFilter(
        **plain,
        approval_id=store.approval(fields["approval"]).key if "approval" in fields else None,
        trace_id=trace_id_of(fields["run"], site.readers.read) if "run" in fields else None,
        since_ns=since_ns,
        until_ns=until_ns,
        with_seals="seals" in fields,
    )


def _memory_href(subject: str) -> str:
    kind, _, memory_id = subject.partition(":")
    return f"/memory/{memory_id}" if kind == "memory" and memory_id.isalnum() else ""


def _rows(site: Site, found: Sequence[StoredEvent]) -> tuple[EventRow, ...]:
    """Return entries as rows, their steps by name where they are stored."""
    steps, now_ns = {}, time.time_ns()
    with site.readers.read() as connection:
        for step_id in {step_of(one) for one in found} - {""}:
            with suppress(NotFoundError):
                steps[step_id] = get_step(connection, step_id, now_ns=now_ns)
    return tuple(event_row(one, steps) for one in found)


def _event_page(site: Site, found: StoredEvent, *, last_seq: int) -> EventPage:
    return EventPage(
        row=_rows(site, [found])[0],
        action=clean(found.action),
        source=clean(found.source),
        subject=clean(found.subject),
        subject_href=_memory_href(found.subject),
        body=json_tree(body_of(found)),
        contents=tuple(
            (name, clean(value), None)
            if isinstance(value, str)
            else (name, "", json_tree(_cleaned(value)))
            for name, value in found.contents.items()
        ),
        previous_href=f"/events/{found.seq - 1}" if found.seq > 1 else None,
        next_href=f"/events/{found.seq + 1}" if found.seq < last_seq else None,
    )


def _cleaned(value: Any) -> Any:
    """Return JSON in which no text holds anything invisible."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(name): _cleaned(one) for name, one in value.items()}
        case list():
            return [_cleaned(one) for one in value]
    return value


def _before(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

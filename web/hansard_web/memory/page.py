"""The memory explorer: what agents are to know, who wrote it, who read it, what does not hold."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import quote

import apsw
from fastapi import APIRouter, Form
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.models.memory import AcceptMemory, EndMemory, UnsupersedeMemory
from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidQueryError
from hansard_store.heartbeat import HEARTBEAT_AGENT
from hansard_store.memory.errors import MemoryRefused
from hansard_store.memory.queries import Facets, Sort, facets, has_memory_of, list_memories
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import get_memory
from hansard_store.principals.authority import ME
from hansard_web.app.addresses import address
from hansard_web.app.site import Site, SiteDep
from hansard_web.memory.api import MemoryDep
from hansard_web.memory.labels import (
    STATES,
    WRITERS,
    place_of,
    standing_of,
    title_of,
    type_words,
    writer_words,
)
from hansard_web.memory.record import MemoryPageRecord, read_record
from hansard_web.memory.service import read_memory_filter
from hansard_web.ui.format import plural
from hansard_web.ui.forms import OwnForm

# What the address of the memory page says: filters, sort, and where it is read on.

FIELDS: Final = (
    "q", "layer", "state", "type", "project", "user", "agent", "writer", "slot", "tag", "run",
    "approval", "min_confidence", "fresh_since", "unread_since", "sort", "cursor",
)  # fmt: skip
_LONGEST: Final = 512
# `kind:constraint` typed among the words is the filter of that name.
_TYPED: Final = re.compile(
    r"\b(kind|type|writer|project|user|agent|tag|state|run|approval|slot|confidence):>?(\"[^\"]*\"|\S+)"
)
_NAMES: Final = {"kind": "type", "confidence": "min_confidence"}


@dataclass(frozen=True, slots=True)
class _MemoryState:
    """The filters that are on, by their names in the address."""

    fields: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.fields.get(name, "")

    def address(self, memory_id: str = "", verb: str = "") -> str:
        """Return the page with these filters, and a record beside it; or where its form goes."""
        path = "/".join(("/memory", *(quote(one) for one in (memory_id, verb) if one)))
        return address(path, self.fields)

    def having(self, **changes: str) -> _MemoryState:
        """Return the same from its first page, with filters put on, or taken off by ""."""
        fields = {**self.fields, "cursor": "", **changes}
        return replace(self, fields={key: value for key, value in fields.items() if value})


def read_state(query: Mapping[str, str]) -> _MemoryState:
    """Return the state that an address tells; filters typed among the words are taken out."""
    fields = {name: query.get(name, "").strip()[:_LONGEST] for name in FIELDS}
    for name, value in _TYPED.findall(fields["q"]):
        fields[_NAMES.get(name, name)] = value.strip('"')
    fields["q"] = " ".join(_TYPED.sub(" ", fields["q"]).split())
    return _MemoryState({name: value for name, value in fields.items() if value})


# The list of the memory page, with what it can be narrowed by.

_ROWS: Final = 50
_MOST_CHOICES: Final = 12


@dataclass(frozen=True, slots=True)
class _Choice:
    """One value of a facet; chosen again it is taken off."""

    label: str
    count: int | None
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Facet:
    title: str
    choices: tuple[_Choice, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A record as the list shows it."""

    memory: Memory
    href: str
    is_selected: bool
    is_gone: bool
    icon: str
    title: str
    about: str  # its sort and whose it is
    standing: str
    tone: str
    writer: str


@dataclass(frozen=True, slots=True)
class _Chip:
    """A filter that is on."""

    name: str
    value: str
    off_href: str


@dataclass(frozen=True, slots=True)
class _Listing:
    """Everything to the left of the record."""

    state: _MemoryState
    say: str
    problem: str
    rows: tuple[_Row, ...]
    facets: tuple[Facet, ...]
    chips: tuple[_Chip, ...]
    layers: tuple[_Choice, ...]
    all_href: str  # with what does not stand, or without
    is_all: bool
    read_href: str
    is_by_read: bool
    first_href: str | None
    more_href: str | None
    is_narrowed: bool
    notes_href: str | None  # the heartbeat's notes about itself, where they are not listed


def read_listing(
    connection: apsw.Connection, state: _MemoryState, *, selected: str, now_ns: int
) -> _Listing:
    """Read the list; an invalid filter is shown as a message over an empty list."""
    is_narrowed = bool(set(state.fields) - {"sort", "cursor"})
    has_notes = not is_narrowed and has_memory_of(connection, HEARTBEAT_AGENT)
    without = HEARTBEAT_AGENT if has_notes else None
    found, problem = _found(connection, state, now_ns=now_ns, without_agent=without)
    counted = facets(connection, now_ns=now_ns, state=state.get("state") or "current")
    total = sum(counted.states.values())
    sort = "" if state.get("sort") == "read" else "read"
    return _Listing(
        state=state,
        say=f"{plural(total, 'record')}, {counted.states.get('current', 0):,} current",
        problem=problem,
        rows=tuple(_row(one, state, selected) for one in found.items),
        facets=tuple(_facets(state, counted)),
        chips=tuple(_chips(state)),
        layers=tuple(_layers(state)),
        all_href=state.having(state="" if state.get("state") == "all" else "all").address(),
        is_all=state.get("state") == "all",
        read_href=state.having(sort=sort).address(),
        is_by_read=state.get("sort") == "read",
        first_href=state.having().address() if state.get("cursor") else None,
        more_href=_more(state, found.next_cursor),
        is_narrowed=is_narrowed,
        notes_href=state.having(agent=HEARTBEAT_AGENT).address() if has_notes else None,
    )


def _found(
    connection: apsw.Connection, state: _MemoryState, *, now_ns: int, without_agent: str | None
) -> tuple[Page[Memory], str]:
    fields = state.fields
    try:
        filters = read_memory_filter(
            connection,
            text=state.get("q"),
            memory_type=state.get("type"),
            min_confidence=_confidence(state.get("min_confidence")),
            without_agent=without_agent,
            **{name: fields.get(name) for name in _PLAIN},
        )
        sort: Sort = "read" if state.get("sort") == "read" else "written"
        cursor = fields.get("cursor")
        page = list_memories(
            connection, filters, now_ns=now_ns, sort=sort, limit=_ROWS, cursor=cursor
        )
    except (NotFoundError, AmbiguousIdError, InvalidQueryError) as error:
        return Page((), None), str(error)
    return page, ""


_PLAIN: Final = (
    "state", "layer", "tag", "project", "user", "agent", "writer", "slot", "run", "approval",
    "fresh_since", "unread_since",
)  # fmt: skip


def _confidence(text: str) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError:
        found = -1.0
    if found is not None and not 0 <= found <= 1:
        raise InvalidQueryError(
            "min_confidence", f"confidence is {text!r}; it is a number of 0 to 1"
        )
    return found


def _row(one: Memory, state: _MemoryState, selected: str) -> _Row:
    standing, tone = standing_of(one)
    return _Row(
        memory=one,
        href=state.address(one.memory_id),
        is_selected=one.memory_id == selected,
        is_gone=one.state in ("invalidated", "purged", "superseded"),
        icon="summary" if one.memory_type == "session_summary" else "memory",
        title=title_of(one),
        about=f"{type_words(one.memory_type)} · {place_of(one)}",
        standing=standing,
        tone=tone,
        writer=writer_words(one),
    )


def _facets(state: _MemoryState, counted: Facets) -> list[Facet]:
    plain: Mapping[str, str] = {}
    groups = (
        ("Kind", "type", counted.types, plain),
        ("Project", "project", counted.projects, plain),
        ("Writer", "writer", counted.writers, WRITERS),
        ("State", "state", counted.states, STATES),
    )
    return [
        Facet(title, _choices(state, name, counts, words))
        for title, name, counts, words in groups
        if counts
    ]


def _choices(
    state: _MemoryState, name: str, counts: Mapping[str, int], words: Mapping[str, str]
) -> tuple[_Choice, ...]:
    on = state.get(name) or ("current" if name == "state" else "")
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_CHOICES]
    return tuple(
        _Choice(
            label=words.get(value) or (type_words(value) if name == "type" else value),
            count=count,
            href=state.having(**{name: "" if value == on else value}).address(),
            is_on=value == on,
        )
        for value, count in ranked
    )


def _layers(state: _MemoryState) -> list[_Choice]:
    on = state.get("layer")
    return [
        _Choice(label, None, state.having(layer=value).address(), on == value)
        for label, value in (("All", ""), ("Durable", "durable"), ("Working", "working"))
    ]


def _chips(state: _MemoryState) -> list[_Chip]:
    names = {"q": "words", "min_confidence": "confidence from", "type": "kind"}
    return [
        _Chip(names.get(name, name.replace("_", " ")), value, state.having(**{name: ""}).address())
        for name, value in state.fields.items()
        if name not in ("q", "sort", "cursor", "layer")
    ]


def _more(state: _MemoryState, cursor: str | None) -> str | None:
    return _MemoryState({**state.fields, "cursor": cursor}).address() if cursor else None


router = APIRouter()
_NO_REASON: Final = "Say why, in up to 2,000 characters: later readers will ask."


@dataclass(frozen=True, slots=True)
class MemoryPage:
    listing: _Listing
    record: MemoryPageRecord | None
    problem: str  # of a decision that was not taken
    reason: str  # what was written with it


@router.get("/memory")
def memory(request: Request, site: SiteDep) -> Response:
    return _page(request, site, read_state(request.query_params))


@router.get("/memory/{memory_id}")
def record(request: Request, site: SiteDep, memory_id: str) -> Response:
    state = read_state(request.query_params)
    with site.readers.read() as connection:
        found = get_memory(connection, memory_id, now_ns=time.time_ns())
    if found.memory_id != memory_id:
        return RedirectResponse(state.address(found.memory_id), HTTPStatus.SEE_OTHER)
    return _page(request, site, state, memory_id)


@router.post("/memory/{memory_id}/invalidate", dependencies=[OwnForm])
def invalidate(
    request: Request,
    site: SiteDep,
    service: MemoryDep,
    memory_id: str,
    reason: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
) -> Response:
    """Say that a record does not hold, and come back to it."""

    def act() -> None:
        body = EndMemory(memory_id=memory_id, reason=reason.strip(), by=by.strip() or ME)
        service.through("page").invalidate(body)

    return _decided(request, site, memory_id, act, reason=reason, invalid=_NO_REASON)


@router.post("/memory/{memory_id}/accept", dependencies=[OwnForm])
def accept(
    request: Request,
    site: SiteDep,
    service: MemoryDep,
    memory_id: str,
    by: Annotated[str, Form()] = "",
) -> Response:
    """Let a record that waits for a person stand, and come back to it."""

    def act() -> None:
        service.through("page").accept(AcceptMemory(memory_id=memory_id, by=by.strip() or ME))

    return _decided(request, site, memory_id, act)


@router.post("/memory/{memory_id}/unsupersede", dependencies=[OwnForm])
def unsupersede(
    request: Request,
    site: SiteDep,
    service: MemoryDep,
    memory_id: str,
    by: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    newer: Annotated[str, Form()] = "",
) -> Response:
    """Let a superseded record stand again, and come back to it."""

    def act() -> None:
        body = UnsupersedeMemory(
            memory_id=memory_id, by=by.strip() or ME, reason=reason.strip(),
            superseded_by=newer or None,
        )  # fmt: skip
        service.through("page").unsupersede(body)

    return _decided(request, site, memory_id, act)


def _decided(
    request: Request,
    site: Site,
    memory_id: str,
    act: Callable[[], None],
    *,
    reason: str = "",
    invalid: str = "",
) -> Response:
    """Decide, and come back to the record; a refusal is shown with what was written."""
    state = read_state(request.query_params)
    try:
        act()
    except (MemoryRefused, ValidationError) as error:
        is_invalid = bool(invalid) and isinstance(error, ValidationError)
        return _page(
            request,
            site,
            state,
            memory_id,
            problem=invalid if is_invalid else str(error),
            reason=reason,
            status=HTTPStatus.BAD_REQUEST if is_invalid else HTTPStatus.CONFLICT,
        )
    return RedirectResponse(state.address(memory_id), HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    state: _MemoryState,
    memory_id: str = "",
    *,
    problem: str = "",
    reason: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        listing = read_listing(connection, state, selected=memory_id, now_ns=now_ns)
        one = read_record(connection, memory_id, now_ns=now_ns) if memory_id else None
    page = MemoryPage(listing, one, problem, reason)
    return site.renderer.page(request, "memory.html", here="memory", page=page, status=status)

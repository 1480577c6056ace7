"""The list of the memory page, with what it can be narrowed by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.detection.components import HEARTBEAT_AGENT
from hansard_store.errors import BadQueryError
from hansard_store.memory.queries import Facets, Sort, facets, has_memory_of, list_memories
from hansard_store.memory.queries import MemoryPage as Found
from hansard_store.memory.records import Memory
from hansard_web.memory.api import read_memory_filter
from hansard_web.memory.labels import (
    STATES,
    WRITERS,
    place_of,
    standing_of,
    title_of,
    type_words,
    writer_words,
)
from hansard_web.memory.page_state import MemoryState
from hansard_web.ui.format import plural

_ROWS: Final = 50
_MOST_CHOICES: Final = 12


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a facet; chosen again it is taken off."""

    label: str
    count: int | None
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Facet:
    title: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A record as the list shows it."""

    href: str
    is_selected: bool
    is_gone: bool
    icon: str
    title: str
    about: str  # its sort and whose it is
    standing: str
    tone: str
    writer: str
    written_ns: int
    confidence: float
    reads: int
    last_read_ns: int | None


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on."""

    name: str
    value: str
    off_href: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything to the left of the record."""

    state: MemoryState
    say: str
    problem: str
    rows: tuple[Row, ...]
    facets: tuple[Facet, ...]
    chips: tuple[Chip, ...]
    layers: tuple[Choice, ...]
    all_href: str  # with what does not stand, or without
    is_all: bool
    read_href: str
    is_by_read: bool
    first_href: str | None
    more_href: str | None
    is_narrowed: bool
    notes_href: str | None  # the heartbeat's notes about itself, where they are not listed


def read_listing(
    connection: apsw.Connection, state: MemoryState, *, selected: str, now_ns: int
) -> Listing:
    """Read the list; what cannot be meant is told in words, over an empty list."""
    is_narrowed = bool(set(state.given) - {"sort", "cursor"})
    has_notes = not is_narrowed and has_memory_of(connection, HEARTBEAT_AGENT)
    without = HEARTBEAT_AGENT if has_notes else None
    found, problem = _found(connection, state, now_ns=now_ns, without_agent=without)
    counted = facets(connection, now_ns=now_ns, state=state.get("state") or "current")
    total = sum(counted.states.values())
    sort = "" if state.get("sort") == "read" else "read"
    return Listing(
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
    connection: apsw.Connection, state: MemoryState, *, now_ns: int, without_agent: str | None
) -> tuple[Found, str]:
    given = state.given
    try:
        wanted = read_memory_filter(
            connection,
            text=state.get("q"),
            memory_type=state.get("type"),
            min_confidence=_confidence(state.get("min_confidence")),
            without_agent=without_agent,
            **{name: given.get(name) for name in _PLAIN},
        )
        sort: Sort = "read" if state.get("sort") == "read" else "written"
        cursor = given.get("cursor")
        page = list_memories(
            connection, wanted, now_ns=now_ns, sort=sort, limit=_ROWS, cursor=cursor
        )
    except (NotFoundError, AmbiguousIdError, BadQueryError) as error:
        return Found((), None), str(error)
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
        raise BadQueryError("min_confidence", f"confidence is {text!r}; it is a number of 0 to 1")
    return found


def _row(one: Memory, state: MemoryState, selected: str) -> Row:
    standing, tone = standing_of(one)
    return Row(
        href=state.address(one.memory_id),
        is_selected=one.memory_id == selected,
        is_gone=one.state in ("invalidated", "purged", "superseded"),
        icon="summary" if one.memory_type == "session_summary" else "memory",
        title=title_of(one),
        about=f"{type_words(one.memory_type)} · {place_of(one)}",
        standing=standing,
        tone=tone,
        writer=writer_words(one),
        written_ns=one.created_ns,
        confidence=one.confidence,
        reads=one.reads,
        last_read_ns=one.last_read_ns or None,
    )


def _facets(state: MemoryState, counted: Facets) -> list[Facet]:
    plain: Mapping[str, str] = {}
    given = (
        ("Kind", "type", counted.types, plain),
        ("Project", "project", counted.projects, plain),
        ("Writer", "writer", counted.writers, WRITERS),
        ("State", "state", counted.states, STATES),
    )
    return [
        Facet(title, _choices(state, name, counts, words))
        for title, name, counts, words in given
        if counts
    ]


def _choices(
    state: MemoryState, name: str, counts: Mapping[str, int], words: Mapping[str, str]
) -> tuple[Choice, ...]:
    on = state.get(name) or ("current" if name == "state" else "")
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_CHOICES]
    return tuple(
        Choice(
            label=words.get(value) or (type_words(value) if name == "type" else value),
            count=count,
            href=state.having(**{name: "" if value == on else value}).address(),
            is_on=value == on,
        )
        for value, count in ranked
    )


def _layers(state: MemoryState) -> list[Choice]:
    on = state.get("layer")
    return [
        Choice(label, None, state.having(layer=value).address(), on == value)
        for label, value in (("All", ""), ("Durable", "durable"), ("Working", "working"))
    ]


def _chips(state: MemoryState) -> list[Chip]:
    names = {"q": "words", "min_confidence": "confidence from", "type": "kind"}
    return [
        Chip(names.get(name, name.replace("_", " ")), value, state.having(**{name: ""}).address())
        for name, value in state.given.items()
        if name not in ("q", "sort", "cursor", "layer")
    ]


def _more(state: MemoryState, cursor: str | None) -> str | None:
    return MemoryState({**state.given, "cursor": cursor}).address() if cursor else None

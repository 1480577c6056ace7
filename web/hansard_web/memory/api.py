"""Memory over HTTP: write, read, say what does not hold, look through all of it."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Annotated, Any

import apsw
from fastapi import Depends, Query

from hansard_compiler.models.memory import (
    AcceptMemory,
    EndApprovedMemory,
    EndMemory,
    ReadMemory,
    UnsupersedeMemory,
    WriteMemory,
)
from hansard_store.approvals.rows import find_id
from hansard_store.errors import InvalidQueryError
from hansard_store.memory.access_log import accesses_of
from hansard_store.memory.json import access_json, memory_json
from hansard_store.memory.maintenance.supersessions import links_of, supersession_json
from hansard_store.memory.queries import MemoryFilter, Sort, list_memories
from hansard_store.memory.retrieval import contradicted_by
from hansard_store.memory.rows import get_memory, versions_of
from hansard_store.runs.queries import find_trace_id
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import Cursor, SearchText, TimeText, one_of, read_limit
from hansard_web.api.queries import read_times
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import Answer, noun_router
from hansard_web.api.values import Body
from hansard_web.app.site import SiteDep
from hansard_web.memory import service as books
from hansard_web.memory.record import use_json, uses_of
from hansard_web.memory.service import BookDep, DoorDep

router = noun_router("memory", route_class=JsonRoute)

LimitParam = Annotated[int, Depends(read_limit)]
_STATES = ("current", "superseded", "review", "invalidated", "expired", "purged", "hidden", "all")
_ACCESSES = 200
_READS = ("read", "candidate")


@router.post(
    "/v1/memory/write",
    response_class=Answer,
    status_code=HTTPStatus.CREATED,
    responses=answers("memory.schemas.Written", status=201),
)
def write_memory(book: BookDep, sidecar_service: DoorDep, asked: WriteMemory) -> Answer:
    """Write a record as one of the four writers; the newer supersedes, `outcome` says whether."""
    return Answer(books.write(book, sidecar_service, asked), status_code=HTTPStatus.CREATED)


@router.post("/v1/memory/read", response_class=Answer, responses=answers("memory.schemas.Read"))
def read_memory(book: BookDep, sidecar_service: DoorDep, asked: ReadMemory) -> Answer:
    """Read what is current, best answers first; that it was read is recorded."""
    return Answer(books.read(book, sidecar_service, asked))


@router.post(
    "/v1/memory/invalidate", response_class=Answer, responses=answers("memory.schemas.Changed")
)
def invalidate_memory(book: BookDep, sidecar_service: DoorDep, asked: EndMemory) -> Answer:
    """Say that a record does not hold: it is read no more, and stays with the reason."""
    return Answer(books.invalidate(book, sidecar_service, asked))


@router.post(
    "/v1/memory/invalidate/approved",
    response_class=Answer,
    responses=answers("memory.schemas.Changed"),
)
def invalidate_approved_memory(
    book: BookDep, sidecar_service: DoorDep, asked: EndApprovedMemory
) -> Answer:
    """Do what an approval says that is being run: the decision is that of the person who approved.

    The approval is of the tool `hansard.invalidate_memory`, with `memory_id` and `reason` as here,
    and `claim_id` is that of its run. Anything else is 403 `approval_mismatch`.
    """
    return Answer(books.invalidate(book, sidecar_service, asked))


@router.post(
    "/v1/memory/accept", response_class=Answer, responses=answers("memory.schemas.Changed")
)
def accept_memory(book: BookDep, asked: AcceptMemory) -> Answer:
    """Let a record that waits for a review stand; what it contradicts is superseded."""
    return Answer({"memory": memory_json(book.accept(asked))})


@router.post(
    "/v1/memory/unsupersede",
    response_class=Answer,
    responses=answers("memory.schemas.Changed"),
)
def unsupersede_memory(book: BookDep, asked: UnsupersedeMemory) -> Answer:
    """Let a superseded record stand again; a newer version in its place is superseded by it."""
    return Answer({"memory": memory_json(book.unsupersede(asked))})


@router.post("/v1/memory/purge", response_class=Answer, responses=answers("memory.schemas.Changed"))
def purge_memory(book: BookDep, asked: EndMemory) -> Answer:
    """Remove the content of a record for good; that it was there, who and why stay."""
    return Answer({"memory": memory_json(book.purge(asked))})


def read_memory_filter(
    connection: apsw.Connection,
    *,
    run: str | None = None,
    approval: str | None = None,
    fresh_since: str | None = None,
    unread_since: str | None = None,
    min_confidence: float | None = None,
    **wanted: str | None,
) -> MemoryFilter:
    """Return the filter of a list of memory; an empty value means that it was not given."""
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value}
    state = given.get("state", "current")
    if state not in _STATES:
        raise InvalidQueryError("state", f"state is {state!r}; it is one of {', '.join(_STATES)}")
    if given.get("layer", "working") not in ("working", "durable"):
        raise InvalidQueryError("layer", f"layer is {given['layer']!r}; it is working or durable")
    fresh_ns, unread_ns = read_times(fresh_since, unread_since)
    return MemoryFilter(
        **given,
        run=_trace_id(connection, run) if run else None,
        approval=find_id(connection, approval).hex() if approval else None,
        min_confidence=min_confidence,
        fresh_since_ns=fresh_ns,
        unread_since_ns=unread_ns,
    )


def _trace_id(connection: apsw.Connection, run: str) -> bytes:
    # A run that was deleted, or has not come yet, may have left memory: its whole id will do.
    if len(run) == 32 and all(digit in "0123456789abcdef" for digit in run):
        return bytes.fromhex(run)
    return find_trace_id(connection, run)


@router.get("/v1/memory", response_class=Answer, responses=answers("memory.schemas.Memories"))
def memories(
    site: SiteDep,
    limit: LimitParam,
    q: Annotated[SearchText, Query(description="words that it says")] = "",
    state: Annotated[
        str | None, one_of(*_STATES), Query(description="a standing, hidden, or all")
    ] = None,
    layer: Annotated[
        str | None, one_of("working", "durable"), Query(description="working or durable")
    ] = None,
    type: Annotated[str | None, Query(description="fact, preference, …")] = None,
    tag: Annotated[str | None, Query()] = None,
    project: Annotated[str | None, Query()] = None,
    user: Annotated[str | None, Query()] = None,
    agent: Annotated[str | None, Query()] = None,
    writer: Annotated[str | None, Query()] = None,
    slot: Annotated[str | None, Query(description="of working memory")] = None,
    run: Annotated[
        str | None, Query(description="comes from it, is its own, or touched in it")
    ] = None,
    approval: Annotated[
        str | None, Query(description="written under it: its id, or 8 digits")
    ] = None,
    min_confidence: Annotated[float | None, Query(ge=0, le=1)] = None,
    fresh_since: Annotated[TimeText | None, Query(description="RFC 3339 or ns")] = None,
    unread_since: Annotated[
        TimeText | None, Query(description="not read since: RFC 3339 or ns")
    ] = None,
    sort: Annotated[
        str, one_of("written", "read"), Query(description="written or read: the last first")
    ] = "written",
    cursor: Cursor = None,
) -> Answer:
    """List records, the last written first. Looking at them is not recorded as reading."""
    by = _sort(sort)
    with site.readers.read() as connection:
        wanted = read_memory_filter(
            connection, text=q.strip(), state=state, layer=layer, memory_type=type, tag=tag,
            project=project, user=user, agent=agent, writer=writer, slot=slot, run=run,
            approval=approval, min_confidence=min_confidence, fresh_since=fresh_since,
            unread_since=unread_since,
        )  # fmt: skip
        page = list_memories(
            connection, wanted, now_ns=time.time_ns(), sort=by, limit=limit, cursor=cursor
        )
    items = [memory_json(one) for one in page.items]
    return Answer({"items": items, "next_cursor": page.next_cursor})


@router.get(
    "/v1/memory/{memory_id}",
    response_class=Answer,
    responses=answers("memory.schemas.MemoryDetail"),
)
def memory(site: SiteDep, memory_id: str) -> Answer:
    """Return a record with its versions, who wrote and read it, and the compiles it was used in."""
    with site.readers.read() as connection:
        return Answer(memory_detail(connection, memory_id, now_ns=time.time_ns()))


def memory_detail(connection: apsw.Connection, memory_id: str, *, now_ns: int) -> Body:
    """Return everything that is known of a record; raises NotFoundError, AmbiguousIdError."""
    one = get_memory(connection, memory_id, now_ns=now_ns)
    versions = versions_of(connection, one.line, now_ns=now_ns)
    numbers = [each.id for each in versions]
    touched = accesses_of(connection, numbers, limit=_ACCESSES)
    return {
        "memory": memory_json(one),
        "conflicts": [each.json() for each in contradicted_by(connection, one, now_ns=now_ns)],
        "versions": [memory_json(each) for each in versions],
        "supersessions": [supersession_json(each) for each in links_of(connection, numbers)],
        "written_by": [access_json(one) for one in touched if one.kind not in _READS],
        "read_by": [access_json(one) for one in touched if one.kind in _READS],
        "used_in": [use_json(each) for each in uses_of(connection, one.memory_id)],
    }


def _sort(text: str) -> Sort:
    match text:
        case "written" | "read":
            return text
    raise InvalidQueryError("sort", f"sort is {text!r}; it is written or read")

"""Memory over HTTP: write, read, say what does not hold, look through all of it."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Annotated, get_args

from fastapi import Query

from hansard_compiler.compile.models import MemoryType
from hansard_compiler.models.memory import (
    AcceptMemory,
    EndApprovedMemory,
    EndMemory,
    ReadMemory,
    UnsupersedeMemory,
    WriteMemory,
    Writer,
)
from hansard_store.memory.queries import Sort, list_memories
from hansard_store.memory.rows import memory_json
from hansard_store.memory.service import MemoryService
from hansard_web.api.parameters import Cursor, Limit, SearchText, TimeText, one_of
from hansard_web.api.queries import read_word
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.memory import service as memory_service
from hansard_web.memory.service import STATES, memory_detail, read_memory_filter
from hansard_web.principals.dependencies import of_app
from hansard_web.sidecar.request import SidecarService

MemoryDep = Annotated[MemoryService, of_app("memory", is_acting=True)]
# None where the app stores no telemetry.
RecorderDep = Annotated[SidecarService | None, of_app("sidecar")]

router = NounRouter("memory", route_class=JsonRoute)


@router.post("/v1/memory/write", "memory.bodies.Written", status=201)
def write_memory(
    service: MemoryDep, sidecar_service: RecorderDep, body: WriteMemory
) -> ApiResponse:
    """Write a record as one of the four writers; the newer supersedes, `outcome` says whether."""
    return ApiResponse(
        memory_service.write(service, sidecar_service, body), status_code=HTTPStatus.CREATED
    )


@router.post("/v1/memory/read", "memory.bodies.Read")
def read_memory(service: MemoryDep, sidecar_service: RecorderDep, body: ReadMemory) -> ApiResponse:
    """Read what is current, best answers first; that it was read is recorded."""
    return ApiResponse(memory_service.read(service, sidecar_service, body))


@router.post("/v1/memory/invalidate", "memory.bodies.Changed")
def invalidate_memory(
    service: MemoryDep, sidecar_service: RecorderDep, body: EndMemory
) -> ApiResponse:
    """Say that a record does not hold: it is read no more, and stays with the reason."""
    return ApiResponse(memory_service.invalidate(service, sidecar_service, body))


@router.post("/v1/memory/invalidate/approved", "memory.bodies.Changed")
def invalidate_approved_memory(
    service: MemoryDep, sidecar_service: RecorderDep, body: EndApprovedMemory
) -> ApiResponse:
    """Do what an approval says that is being run: the decision is that of the person who approved.

    The approval is of the tool `hansard.invalidate_memory`, with `memory_id` and `reason` as here,
    and `claim_id` is that of its run. Anything else is 403 `approval_mismatch`.
    """
    return ApiResponse(memory_service.invalidate(service, sidecar_service, body))


@router.post("/v1/memory/accept", "memory.bodies.Changed")
def accept_memory(service: MemoryDep, body: AcceptMemory) -> ApiResponse:
    """Let a record that waits for a review stand; what it contradicts is superseded."""
    return ApiResponse({"memory": memory_json(service.accept(body))})


@router.post("/v1/memory/unsupersede", "memory.bodies.Changed")
def unsupersede_memory(service: MemoryDep, body: UnsupersedeMemory) -> ApiResponse:
    """Let a superseded record stand again; a newer version in its place is superseded by it."""
    return ApiResponse({"memory": memory_json(service.unsupersede(body))})


@router.post("/v1/memory/purge", "memory.bodies.Changed")
def purge_memory(service: MemoryDep, body: EndMemory) -> ApiResponse:
    """Remove the content of a record for good; that it was there, who and why stay."""
    return ApiResponse({"memory": memory_json(service.purge(body))})


@router.get("/v1/memory", "memory.bodies.Memories")
def memories(
    site: SiteDep,
    limit: Limit,
    q: Annotated[SearchText, Query(description="words that it says")] = "",
    state: Annotated[
        str | None, one_of(*STATES), Query(description="a standing, hidden, or all")
    ] = None,
    layer: Annotated[
        str | None, one_of("working", "durable"), Query(description="working or durable")
    ] = None,
    type: Annotated[str | None, one_of(*get_args(MemoryType)), Query()] = None,
    tag: Annotated[str | None, Query()] = None,
    project: Annotated[str | None, Query()] = None,
    user: Annotated[str | None, Query()] = None,
    agent: Annotated[str | None, Query()] = None,
    writer: Annotated[str | None, one_of(*get_args(Writer)), Query()] = None,
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
) -> ApiResponse:
    """List records, the last written first. Looking at them is not recorded as reading."""
    by: Sort = read_word("sort", sort, get_args(Sort)) or "written"
    with site.readers.read() as connection:
        filters = read_memory_filter(
            connection, text=q.strip(), state=state, layer=layer, memory_type=type, tag=tag,
            project=project, user=user, agent=agent, writer=writer, slot=slot, run=run,
            approval=approval, min_confidence=min_confidence, fresh_since=fresh_since,
            unread_since=unread_since,
        )  # fmt: skip
        page = list_memories(
            connection, filters, now_ns=time.time_ns(), sort=by, limit=limit, cursor=cursor
        )
    return page_answer(page, memory_json)


@router.get("/v1/memory/{memory_id}", "memory.bodies.MemoryDetail")
def memory(site: SiteDep, memory_id: str) -> ApiResponse:
    """Return a record with its versions, who wrote and read it, and the compiles it was used in."""
    with site.readers.read() as connection:
        return ApiResponse(memory_detail(connection, memory_id, now_ns=time.time_ns()))

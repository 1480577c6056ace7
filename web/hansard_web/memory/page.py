"""The memory explorer: what agents are to know, who wrote it, who read it, what does not hold."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Form
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.models.memory import AcceptMemory, EndMemory, UnsupersedeMemory
from hansard_store.memory.errors import MemoryRefused
from hansard_store.memory.rows import get_memory
from hansard_store.principals.authority import ME
from hansard_web.app.site import Site, SiteDep
from hansard_web.memory.listing import Listing, read_listing
from hansard_web.memory.page_state import MemoryState, read_state
from hansard_web.memory.record import Record, read_record
from hansard_web.memory.service import BookDep
from hansard_web.principals.requests import may_not_decide, must_sign_in
from hansard_web.ui.forms import OwnForm

router = APIRouter()
_NO_REASON: Final = "Say why, in up to 2,000 characters: whoever looks at it later will ask."


@dataclass(frozen=True, slots=True)
class MemoryPage:
    listing: Listing
    record: Record | None
    problem: str  # of a decision that was not taken
    reason: str  # what was written with it
    may_not: str  # why this reader cannot decide; "" who can
    must_sign_in: bool  # and it is that nobody is signed in


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
    book: BookDep,
    memory_id: str,
    reason: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
) -> Response:
    """Say that a record does not hold, and come back to it."""
    state = read_state(request.query_params)
    try:
        asked = EndMemory(memory_id=memory_id, reason=reason.strip(), by=by.strip() or ME)
        book.through("page").invalidate(asked)
    except ValidationError:
        return _page(
            request, site, state, memory_id,
            problem=_NO_REASON, reason=reason, status=HTTPStatus.BAD_REQUEST,
        )  # fmt: skip
    except MemoryRefused as error:
        return _page(
            request, site, state, memory_id,
            problem=str(error), reason=reason, status=HTTPStatus.CONFLICT,
        )  # fmt: skip
    return RedirectResponse(state.address(memory_id), HTTPStatus.SEE_OTHER)


@router.post("/memory/{memory_id}/accept", dependencies=[OwnForm])
def accept(
    request: Request,
    site: SiteDep,
    book: BookDep,
    memory_id: str,
    by: Annotated[str, Form()] = "",
) -> Response:
    """Let a record that waits for a person stand, and come back to it."""
    state = read_state(request.query_params)
    try:
        asked = AcceptMemory(memory_id=memory_id, by=by.strip() or ME)
        book.through("page").accept(asked)
    except (MemoryRefused, ValidationError) as error:
        status = HTTPStatus.CONFLICT
        return _page(request, site, state, memory_id, problem=str(error), status=status)
    return RedirectResponse(state.address(memory_id), HTTPStatus.SEE_OTHER)


@router.post("/memory/{memory_id}/unsupersede", dependencies=[OwnForm])
def unsupersede(
    request: Request,
    site: SiteDep,
    book: BookDep,
    memory_id: str,
    by: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    newer: Annotated[str, Form()] = "",
) -> Response:
    """Let a superseded record stand again, and come back to it."""
    state = read_state(request.query_params)
    try:
        asked = UnsupersedeMemory(
            memory_id=memory_id, by=by.strip() or ME, reason=reason.strip(),
            superseded_by=newer or None,
        )  # fmt: skip
        book.through("page").unsupersede(asked)
    except (MemoryRefused, ValidationError) as error:
        status = HTTPStatus.CONFLICT
        return _page(request, site, state, memory_id, problem=str(error), status=status)
    return RedirectResponse(state.address(memory_id), HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    state: MemoryState,
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
    refused, is_out = may_not_decide(request, site.settings), must_sign_in(request, site.settings)
    page = MemoryPage(listing, one, problem, reason, refused, is_out)
    return site.renderer.page(request, "memory.html", here="memory", page=page, status=status)

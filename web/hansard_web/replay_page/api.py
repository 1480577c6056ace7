"""Replays over HTTP: begin one, look at one before it is sent, read what became of it.

To begin one takes the scope `decide`: it sends recorded content to a provider and spends money.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.replays import ReplayRow, get_replay, list_replays
from hansard_store.steps.queries import get_step
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import Cursor, LimitText
from hansard_web.api.queries import limit_of
from hansard_web.api.request_bodies import JsonRoute, raw_body
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.approvals.worker import person
from hansard_web.principals.dependencies import principal_of
from hansard_web.replay.engine import PLAN_MS, Replays
from hansard_web.replay.json import ReplayBody, replay_body, summary_body
from hansard_web.replay.request import GoOn, ReplayInput
from hansard_web.sidecar.errors import RecordingDisabled, TooManyCalls
from hansard_web.sidecar.idempotency import Done, IdempotencyKey
from hansard_web.sidecar.request import MayRead, SidecarDep

router = NounRouter("replay", route_class=JsonRoute)
R = TypeVar("R", bound=Response)
_MOST_WAIT_S = 60.0
MOST_AT_ONCE: Final = 32  # who waits for a replay, a preview or a comparison at once


@router.post(
    "/v1/replay",
    responses=answers("replay.preview.Preview")
    | answers("replay.json.ReplayBody", status=201)
    | answers("replay.json.ReplayBody", status=202),
    dependencies=[MayRead],
)
async def begin_replay(
    site: SiteDep,
    service: SidecarDep,
    request: Request,
    fields: ReplayInput,
    idempotency_key: IdempotencyKey = None,
) -> ApiResponse:
    """Make a model call again. 202 with its state; 201 when it ended within `wait_s`."""
    replays = replays_of(request)
    once = service.once("replay", idempotency_key, raw_body(request), repeats=False)

    def work() -> ApiResponse:
        if fields.preview:
            return ApiResponse(replays.preview(fields))
        return once.do(
            lambda: _begun(site, replays, replays.start(fields), wait_s=fields.wait_s),
            again=lambda stored: _body(site, stored["replay_id"]),
        )

    return await apart(request, work)


@router.post("/v1/replay/preview", "replay.preview.Preview")
async def preview_replay(request: Request, body: ReplayInput) -> ApiResponse:
    """Show what a replay would send, how the compile changes and what it would cost."""
    replays = replays_of(request)
    return await apart(request, lambda: ApiResponse(replays.preview(body)))


@router.post(
    "/v1/replay/{replay_id}/continue",
    status_code=HTTPStatus.CREATED,
    responses=answers("replay.json.ReplayBody", status=201)
    | answers("replay.json.ReplayBody", status=202),
    dependencies=[MayRead],
)
async def continue_replay(
    site: SiteDep,
    service: SidecarDep,
    request: Request,
    replay_id: str,
    fields: GoOn,
    idempotency_key: IdempotencyKey = None,
) -> ApiResponse:
    """Have a fork that stopped go on live: asks the model, and waits for results it lacks."""
    replays = replays_of(request)
    by = person(request, fields.by)
    body = replay_id.encode() + b"\n" + raw_body(request)
    once = service.once("replay.continue", idempotency_key, body, repeats=False)

    def work() -> ApiResponse:
        return once.do(
            lambda: _begun(
                site, replays, replays.go_on(replay_id, fields, by=by), wait_s=fields.wait_s
            ),
            again=lambda stored: _body(site, stored["replay_id"]),
        )

    return await apart(request, work)


@router.get("/v1/replay", "replay.json.ReplayList")
def find_replays(
    site: SiteDep,
    step: Annotated[str | None, Query(description="of this step")] = None,
    limit: LimitText | None = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List replays, the newest first, of one step or of all."""
    with site.readers.read() as connection:
        step_id = None
        if step is not None:
            step_id = get_step(connection, step, now_ns=time.time_ns()).step_id
        page = list_replays(connection, step_id=step_id, limit=limit_of(limit), cursor=cursor)
    return page_answer(page, summary_body)


@router.get("/v1/replay/{replay_id}", "replay.json.ReplayBody")
async def one_replay(
    site: SiteDep,
    request: Request,
    replay_id: str,
    wait: Annotated[float, Query(ge=0, le=_MOST_WAIT_S)] = 0,
    comparison: bool = True,
) -> ApiResponse:
    """Show a replay by its id or a unique beginning or end of it.

    `wait`: seconds to wait for its end. `comparison=false` leaves the comparison out, which can
    take some seconds.
    """

    def work() -> ApiResponse:
        replays: Replays | None = request.app.state.replays
        if wait and replays is not None:
            replays.wait(replays.row(replay_id).replay_id, seconds=wait)
        return ApiResponse(_body(site, replay_id, with_comparison=comparison))

    return await apart(request, work)


def replays_of(request: Request) -> Replays:
    """Return what makes replays in this app.

    Raises RecordingDisabled where nothing can be stored.
    """
    found: Replays | None = request.app.state.replays
    if found is None:
        raise RecordingDisabled("this process only shows what a collector stores; ask that one")
    return found.acting(principal_of(request))


async def apart(request: Request, work: Callable[[], R]) -> R:
    """Answer in a thread that is not one of those that answer pages: this may take a minute."""
    state = request.app.state
    if not hasattr(state, "replay_threads"):
        state.replay_threads = CapacityLimiter(MOST_AT_ONCE)
    limiter: CapacityLimiter = state.replay_threads
    if limiter.available_tokens < 1:
        raise TooManyCalls(MOST_AT_ONCE)
    return await to_thread.run_sync(work, limiter=limiter)


def _begun(site: SiteDep, replays: Replays, row: ReplayRow, *, wait_s: float) -> Done:
    """Return a replay that begins, as it stands after so many seconds at the latest."""
    replays.wait(row.replay_id, seconds=wait_s)
    body = _body(site, row.replay_id)
    status = HTTPStatus.ACCEPTED if body["state"] == "running" else HTTPStatus.CREATED
    return Done({"replay_id": row.replay_id}, body, status)


def _body(site: SiteDep, replay_id: str, *, with_comparison: bool = True) -> ReplayBody:
    with site.readers.read(timeout_ms=PLAN_MS) as connection:
        row = get_replay(connection, replay_id)
        return replay_body(connection, row, now_ns=time.time_ns(), with_comparison=with_comparison)

"""Compiling and asking a model, over HTTP."""

from __future__ import annotations

from typing import Final

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from hansard_web.api.openapi import answers
from hansard_web.api.request_bodies import JsonRoute, raw_body
from hansard_web.api.responses import Answer
from hansard_web.api.router import noun_router
from hansard_web.context.streamed_calls import Tell, ToldCall
from hansard_web.policy.decider import PolicyDeskDep
from hansard_web.sidecar.compile_bodies import AskCompile, AskModel
from hansard_web.sidecar.compiles import compile_step, compiled_again
from hansard_web.sidecar.errors import TooManyCalls
from hansard_web.sidecar.idempotency import IdempotencyKey
from hansard_web.sidecar.model_calls import call_model, called_again
from hansard_web.sidecar.request import MayRead, SidecarDep

router = noun_router("sidecar", route_class=JsonRoute, dependencies=[MayRead])

# Each waits for its provider in a thread of its own: pages never wait behind model calls.
MOST_CALLS: Final = 32


@router.post(
    "/v1/compile",
    response_class=Answer,
    responses=answers("context.compile_schemas.CompiledAnswer"),
)
def compile_context(
    door: SidecarDep,
    desk: PolicyDeskDep,
    request: Request,
    asked: AskCompile,
    idempotency_key: IdempotencyKey = None,
) -> Answer:
    """Choose, shorten and lay out the context of one model call, with a receipt for every item."""
    once = door.once("compile", idempotency_key, raw_body(request))
    return once.do(
        lambda: compile_step(door, asked, desk.book.in_force()),
        again=lambda kept: compiled_again(door, kept),
    )


# async: the call gets a thread that is not one of those that answer pages.
@router.post(
    "/v1/model/call",
    response_class=Answer,
    responses=answers("context.compile_schemas.CalledModel"),
)
async def ask_model(
    door: SidecarDep, request: Request, asked: AskModel, idempotency_key: IdempotencyKey = None
) -> Response:
    """Ask a model through an adapter of the server, with its keys; both directions are kept.

    With `stream` it answers in server-sent events: `started`, `delta`, and last `result`, which is
    this same body, or `error`.
    """
    limiter = _limiter(request)
    if limiter.available_tokens < 1:
        raise TooManyCalls(MOST_CALLS)
    once = door.once("model/call", idempotency_key, raw_body(request), repeats=False)

    def work(tell: Tell | None = None) -> Answer:
        return once.do(
            lambda: call_model(door, asked, tell), again=lambda kept: called_again(door, kept)
        )

    if asked.stream:
        return ToldCall(work, limiter=limiter)
    return await to_thread.run_sync(work, limiter=limiter)


def _limiter(request: Request) -> CapacityLimiter:
    state = request.app.state
    if not hasattr(state, "model_calls"):
        state.model_calls = CapacityLimiter(MOST_CALLS)
    limiter: CapacityLimiter = state.model_calls
    return limiter

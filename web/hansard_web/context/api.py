"""Compiling and asking a model, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from anyio import (
    CancelScope,
    CapacityLimiter,
    create_memory_object_stream,
    create_task_group,
    from_thread,
    move_on_after,
    to_thread,
)
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hansard_compiler.calls import Json
from hansard_compiler.errors import HansardError
from hansard_web.api.request_bodies import JsonRoute, raw_body
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.api.values import SCHEMA_VERSION, dump
from hansard_web.app.problems import problem_of
from hansard_web.policy.decider import PolicyDeciderDep
from hansard_web.sidecar.bodies import CompileInput, ModelInput
from hansard_web.sidecar.compiles import compile_step, compiled_again
from hansard_web.sidecar.errors import TooManyCalls
from hansard_web.sidecar.idempotency import IdempotencyKey
from hansard_web.sidecar.model_calls import call_model, called_again
from hansard_web.sidecar.request import MayRead, SidecarDep

# A model call that is streamed while it is made: server-sent events in answer to the POST.
#
# `started`, any number of `delta`, then `result` with what an answer without a stream holds, or
# `error`. What is refused before the call began is an ordinary answer with its status.

Tell = Callable[[str, Json], None]
_KEEP_ALIVE_S: Final = 15.0  # a model may think for longer than a proxy waits
_MOST_UNREAD: Final = 64  # pieces; a reader that is slower than the model slows it down
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class CallerLeft(asyncio.CancelledError):
    """Nobody reads the answer any more: the provider's stream is closed, the call cancelled."""


@dataclass(frozen=True, slots=True)
class _Event:
    """A message of the stream; the last one ends it."""

    event: str  # "" for a comment
    data: bytes
    is_last: bool = False

    def bytes(self) -> bytes:
        if not self.event:
            return b": %b\n\n" % self.data
        return b"event: %b\ndata: %b\n\n" % (self.event.encode(), self.data)


_AT_WORK: Final = _Event("", b"the model is at work")


class StreamedCall(StreamingResponse):
    """Does something in a thread of `limiter`, and sends what it tells as it tells it."""

    media_type = "text/event-stream"

    def __init__(self, work: Callable[[Tell], ApiResponse], *, limiter: CapacityLimiter) -> None:
        super().__init__(_nothing(), headers=_HEADERS)
        self._work = work
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. An error before the first event is raised: it becomes an ordinary response."""
        sender, receiver = create_memory_object_stream[_Event | Exception](_MOST_UNREAD)
        error: Exception | None = None
        async with create_task_group() as group:
            group.start_soon(self._do, sender)
            group.start_soon(_leave, receive, group.cancel_scope)
            # Closed before the group waits for its tasks: the thread may wait for room in it.
            async with receiver:
                error = await self._send_all(receiver, send)
            group.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _do(self, sender: MemoryObjectSendStream[_Event | Exception]) -> None:
        def tell(event: str, data: Json) -> None:
            message = _Event(event, dump(data))
            try:
                from_thread.run(sender.send, message)
            except BaseException:
                raise CallerLeft from None

        async with sender:
            try:
                response = await to_thread.run_sync(
                    partial(self._work, tell), limiter=self._limiter
                )
            except Exception as error:  # sent to the caller, of any type
                await sender.send(error)
            else:
                await sender.send(_Event("result", bytes(response.body), is_last=True))

    async def _send_all(
        self, receiver: MemoryObjectReceiveStream[_Event | Exception], send: Send
    ) -> Exception | None:
        """Send messages until the last; returns the error that still has to be raised."""
        is_begun = False
        while True:
            received: _Event | Exception | None = None
            with move_on_after(_KEEP_ALIVE_S):
                received = await receiver.receive()
            if not is_begun:
                if isinstance(received, Exception):
                    return received
                head = {"status": self.status_code, "headers": self.raw_headers}
                await send({"type": "http.response.start", **head})
                is_begun = True
            message = _message(received)
            await send(
                {
                    "type": "http.response.body",
                    "body": message.bytes(),
                    "more_body": not message.is_last,
                }
            )
            if message.is_last:
                # What nobody foresaw goes on to the log.
                return None if isinstance(received, HansardError | _Event) else received


def _message(received: _Event | Exception | None) -> _Event:
    """Return what is sent of something that was receiver, or of nothing for a while."""
    if received is None:
        return _AT_WORK
    return received if isinstance(received, _Event) else _failure(received)


def _failure(error: Exception) -> _Event:
    problem = problem_of(error)
    details = {"code": problem.code, "message": problem.message, "details": dict(problem.details)}
    body = {"schema_version": SCHEMA_VERSION, "status": int(problem.status), "error": details}
    return _Event("error", dump(body), is_last=True)


async def _leave(receive: Receive, scope: CancelScope) -> None:
    """End everything when the caller has gone."""
    while True:
        if (await receive())["type"] == "http.disconnect":
            scope.cancel()
            return


async def _nothing() -> AsyncIterator[bytes]:
    """Yield no body: `__call__` sends it."""
    return
    yield


router = NounRouter("sidecar", route_class=JsonRoute, dependencies=[MayRead])

# Each waits for its provider in a thread of its own: pages never wait behind model calls.
MOST_CALLS: Final = 32


@router.post("/v1/compile", "sidecar.compiles.CompiledAnswer")
def compile_context(
    service: SidecarDep,
    policy: PolicyDeciderDep,
    request: Request,
    body: CompileInput,
    idempotency_key: IdempotencyKey = None,
) -> ApiResponse:
    """Choose, shorten and lay out the context of one model call, with a receipt for every item."""
    once = service.once("compile", idempotency_key, raw_body(request))
    return once.do(
        lambda: compile_step(service, body, policy.rules.in_force()),
        again=lambda stored: compiled_again(service, stored),
    )


# async: the call gets a thread that is not one of those that answer pages.
@router.post("/v1/model/call", "sidecar.model_calls.CalledModel")
async def ask_model(
    service: SidecarDep, request: Request, body: ModelInput, idempotency_key: IdempotencyKey = None
) -> Response:
    """Ask a model through an adapter of the server, with its keys; both directions are kept.

    With `stream` it answers in server-sent events: `started`, `delta`, and last `result`, which is
    this same body, or `error`.
    """
    limiter = _limiter(request)
    if limiter.available_tokens < 1:
        raise TooManyCalls(MOST_CALLS)
    once = service.once("model/call", idempotency_key, raw_body(request), repeats=False)

    def work(tell: Tell | None = None) -> ApiResponse:
        return once.do(
            lambda: call_model(service, body, tell),
            again=lambda stored: called_again(service, stored),
        )

    if body.stream:
        return StreamedCall(work, limiter=limiter)
    return await to_thread.run_sync(work, limiter=limiter)


def _limiter(request: Request) -> CapacityLimiter:
    state = request.app.state
    if not hasattr(state, "model_calls"):
        state.model_calls = CapacityLimiter(MOST_CALLS)
    limiter: CapacityLimiter = state.model_calls
    return limiter

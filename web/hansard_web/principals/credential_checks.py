"""Answers under way end with the credential of their request: at sign-out, or once it is revoked.

A request is judged when it begins. A live stream, or a request that waits, goes on for minutes; so
its credential is looked up again while it does, here and not in each route.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard_compiler.errors import HansardError

LOOK_S: Final = 0.5
_STREAM: Final = "text/event-stream"
_SAFE: Final = frozenset({"GET", "HEAD"})
_END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


class InForce:
    """Serves requests as long as their credential is in force.

    Cut are event streams, and requests that only wait for something to read. What may have changed
    something is answered as it ended, and an answer of known content is never cut in the middle,
    where it would look complete.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Of their own: requests that hold all other threads do not keep a revoked stream open.
        self._threads = anyio.CapacityLimiter(2)

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        is_in_force: Callable[[], bool],
        ended: ASGIApp,
    ) -> None:
        """Serve one request. `is_in_force` runs in a thread; `ended` answers what had not begun."""
        answer = _Answer(scope["method"], send)
        failed: Exception | None = None
        is_cut = False

        async def watch() -> None:
            nonlocal is_cut
            while not answer.is_uncut:
                await anyio.sleep(LOOK_S)
                if not answer.may_be_cut:
                    continue
                if await self._has_ended(is_in_force) and answer.may_be_cut:
                    is_cut = True
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                await self._app(scope, receive, answer.send)
            except Exception as error:  # as it is: the group would wrap it
                failed = error
            tasks.cancel_scope.cancel()
        try:
            if failed is not None:
                raise failed
        finally:
            failed = None  # or it would hold this frame, which holds it
        if is_cut and not answer.has_begun:
            await ended(scope, receive, send)
        elif is_cut and not answer.has_ended:
            await send(_END)

    async def _has_ended(self, is_in_force: Callable[[], bool]) -> bool:
        try:
            return not await to_thread.run_sync(is_in_force, limiter=self._threads)
        except HansardError:
            return False  # the store cannot be read now, by the stream neither: look again


class _Answer:
    """How far an answer has come."""

    def __init__(self, method: str, send: Send) -> None:
        self._send = send
        self.may_be_cut = method in _SAFE
        self.is_uncut = False  # from here on it cannot be cut
        self.has_begun = False
        self.has_ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self.may_be_cut = kind.partition(";")[0].strip().lower() == _STREAM
            self.is_uncut = not self.may_be_cut
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.has_ended, self.may_be_cut, self.is_uncut = True, False, True

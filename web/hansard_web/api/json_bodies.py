"""Bodies of the routes that programs write through: bounded, strict JSON, read before the route."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from anyio import CapacityLimiter, fail_after, to_thread
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.ingest import without_frames
from hansard_web.errors import PayloadTooLargeError
from hansard_web.sidecar.errors import BadBody, NotJson
from hansard_web.strict_json import parse_json

# Reading takes 2 to 15 ms of processor time a megabyte, which ingest does not have meanwhile.
MAX_BYTES: Final = 16 * 1024 * 1024
_WAIT_S: Final = 120.0  # for the whole of a body
# Larger ones are read apart: the event loop stands still meanwhile, and with it every other answer.
_APART_BYTES: Final = 64 * 1024
_MOST_APART: Final = 2  # at once: what is read can take twenty times the room of its text

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonRoute(APIRoute):
    """A route whose body is JSON of at most MAX_BYTES; `raw_body` has it as it was sent."""

    def get_route_handler(self) -> _Handler:
        """Return the handler, with the body read and checked before it."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if self.body_field is not None:
                request.scope.setdefault("state", {})["raw_body"] = await _read(request)
            return await handle(request)

        return checked


def raw_body(request: Request) -> bytes:
    """Return a body as it was sent."""
    body: bytes = request.scope["state"]["raw_body"]
    return body


async def _read(request: Request) -> bytes:
    told = request.headers.get("content-type", "")
    kind = told.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise NotJson(told)
    body = bytearray()
    try:
        with fail_after(_WAIT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise PayloadTooLargeError(MAX_BYTES)
    except TimeoutError:
        raise BadBody(f"the body did not come within {_WAIT_S:g} seconds") from None
    # Starlette's own places: FastAPI asks the request for both.
    request._body = bytes(body)
    request._json = await _parsed(request, request._body)
    return request._body


async def _parsed(request: Request, data: bytes) -> Any:
    if len(data) <= _APART_BYTES:
        return parse_json(data)
    state = request.app.state
    if not hasattr(state, "json_threads"):
        state.json_threads = CapacityLimiter(_MOST_APART)
    value, error = await to_thread.run_sync(_tried, data, limiter=state.json_threads)
    if error is not None:
        raise error
    return value


def _tried(data: bytes) -> tuple[Any, Exception | None]:
    """Return an error in place of raising it, without the frames that hold the body.

    The frame that waits for a thread has the future of the error, which would hold it in turn.
    """
    try:
        return parse_json(data), None
    except Exception as error:
        return None, without_frames(error)

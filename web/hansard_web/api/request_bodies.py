"""Bodies of the routes that programs write through: bounded, strict JSON, read before the route."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from anyio import CapacityLimiter, current_time, fail_after, sleep, to_thread
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.pipeline.decoding import json_size
from hansard_collector.pipeline.requests import without_frames
from hansard_web.app.strict_json import parse_json
from hansard_web.errors import BodiesInMemory, BodyTooDense, PayloadTooLargeError
from hansard_web.sidecar.errors import InvalidBody, InvalidJson

# Reading takes 2 to 15 ms of processor time a megabyte, which ingest does not have meanwhile.
MAX_BYTES: Final = 16 * 1024 * 1024
_WAIT_S: Final = 120.0  # for the whole of a body
# Larger ones are read apart: the event loop stands still meanwhile, and with it every other answer.
_APART_BYTES: Final = 64 * 1024
_MOST_APART: Final = 2  # at once
# What JSON takes as Python's objects, up to sixty times its bytes, is found before it is parsed.
_MAX_PARSED_BYTES: Final = 192 * 1024 * 1024
# Of all larger bodies that are being received, parsed or answered, with what they take parsed.
_MAX_IN_MEMORY: Final = 256 * 1024 * 1024
_WAIT_FOR_MEMORY_S, _LOOK_AGAIN_S = 5.0, 0.05
_ENTRY_BYTES: Final = 160  # a key, its place in an object, and in the list that finds keys twice

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonRoute(APIRoute):
    """A route whose body is JSON of at most MAX_BYTES; `raw_body` has it as it was sent."""

    def get_route_handler(self) -> _Handler:
        """Return the handler, with the body read and checked before it."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if self.body_field is None:
                return await handle(request)
            with _Share(request.app.state) as share:
                request.scope.setdefault("state", {})["raw_body"] = await _read(request, share)
                return await handle(request)

        return checked


class _Share:
    """What one request takes of the memory for larger bodies; used on the event loop alone."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._taken = 0

    def __enter__(self) -> _Share:
        return self

    def __exit__(self, *_: object) -> None:
        if self._taken:
            self._state.body_bytes -= self._taken

    def take(self, size: int) -> None:
        """Count memory in; raises BodiesInMemory where all requests together take too much."""
        together = getattr(self._state, "body_bytes", 0) + size
        if together > _MAX_IN_MEMORY:
            raise BodiesInMemory(_MAX_IN_MEMORY)
        self._state.body_bytes = together
        self._taken += size

    async def take_in_time(self, size: int) -> None:
        """Count memory in as soon as others gave it back; raises BodiesInMemory after a while."""
        end = current_time() + _WAIT_FOR_MEMORY_S
        while True:
            try:
                return self.take(size)
            except BodiesInMemory:
                if current_time() > end:
                    raise
            await sleep(_LOOK_AGAIN_S)


def raw_body(request: Request) -> bytes:
    """Return a body as it was sent."""
    body: bytes = request.scope["state"]["raw_body"]
    return body


async def _read(request: Request, share: _Share) -> bytes:
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise InvalidJson(content_type)
    body = bytearray()
    try:
        with fail_after(_WAIT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise PayloadTooLargeError(MAX_BYTES)
                if len(body) > _APART_BYTES:
                    share.take(len(chunk))
    except TimeoutError:
        raise InvalidBody(f"the body did not come within {_WAIT_S:g} seconds") from None
    # Starlette's own places: FastAPI asks the request for both.
    request._body = bytes(body)
    request._json = await _parsed(request, request._body, share)
    return request._body


async def _parsed(request: Request, data: bytes, share: _Share) -> Any:
    if len(data) <= _APART_BYTES:
        return parse_json(data)
    state = request.app.state
    if not hasattr(state, "json_threads"):
        state.json_threads = CapacityLimiter(_MOST_APART)
    size = await to_thread.run_sync(_size, data, limiter=state.json_threads)
    if size > _MAX_PARSED_BYTES:
        raise BodyTooDense(_MAX_PARSED_BYTES)
    await share.take_in_time(size)
    value, error = await to_thread.run_sync(_tried, data, limiter=state.json_threads)
    if error is not None:
        raise error
    return value


def _size(data: bytes) -> int:
    return json_size(data, _MAX_PARSED_BYTES, entry_bytes=_ENTRY_BYTES)


def _tried(data: bytes) -> tuple[Any, Exception | None]:
    """Return an error in place of raising it, without the frames that hold the body.

    The frame that waits for a thread has the future of the error, which would hold it in turn.
    """
    try:
        return parse_json(data), None
    except Exception as error:
        return None, without_frames(error)

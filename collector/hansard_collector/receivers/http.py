"""OTLP/HTTP as a route of the application that also serves the API and the pages.

A request is read, decompressed and queued here; decoding is the pipeline's. Nothing in this
module blocks the event loop, and every answer but success is a google.rpc.Status.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from hansard_collector.errors import IngestError, RequestTooLarge, StoreBusy
from hansard_collector.otlp.signals import ExportResponse
from hansard_collector.pipeline.decoding import judge_start
from hansard_collector.pipeline.requests import (
    Encoding,
    Ingest,
    IngestRequest,
    IngestResult,
    RequestSender,
    without_frames,
)
from hansard_collector.receivers.content_encoding import IDENTITY, SUPPORTED, inflate, is_supported
from hansard_collector.receivers.export_response import (
    MAX_BODY_BYTES,
    STORE_TOO_SLOW,
    STORE_WAIT_S,
    ExportRefusal,
    RejectReason,
    export_response,
    outcome_of,
    refusal_of,
    report,
    submit,
)
from hansard_collector.receivers.http_responses import (
    JSON_TYPE,
    PROTOBUF_TYPE,
    cors_headers,
    encoding_of,
    media_type_of,
    message_response,
    preflight_headers,
    refusal_response,
)
from hansard_collector.receivers.paths import PREFIXES, ReceiverPath, find_target, is_otlp_path

# Reading request bodies: counted as they come, never more in memory than is allowed.

_DRAIN_WAIT_S = 30.0  # a sender that still sends after so long will not read the answer


class SenderStalled(Exception):
    """No part of the body came for too long."""


class BodyBudget:
    """Bytes of all bodies in the making, compressed and inflated.

    The lock guards the count: the event loop's thread takes what it reads, threads that inflate
    take what comes out.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._lock = threading.Lock()

    def take(self, count_bytes: int) -> None:
        """Raises StoreBusy when many large requests come at once; memory is what ran out."""
        with self._lock:
            if self._used_bytes + count_bytes > self._limit_bytes:
                raise StoreBusy(
                    f"requests of {self._used_bytes:,} bytes are being read; send it again"
                )
            self._used_bytes += count_bytes

    def give_back(self, count_bytes: int) -> None:
        with self._lock:
            self._used_bytes -= count_bytes


class _Body:
    """The body of one request, readable once; what is held of it uses the budget until `free`."""

    def __init__(
        self, receive: Receive, *, budget: BodyBudget, chunk_wait_s: float, whole_wait_s: float
    ) -> None:
        self._receive = receive
        self._budget = budget
        self._chunk_wait_s = chunk_wait_s
        self._whole_wait_s = whole_wait_s
        self._held_bytes = 0
        self.read_bytes = 0
        self.is_complete = False

    async def read(self, limit_bytes: int) -> bytes:
        """Return the whole body. Raises RequestTooLarge, StoreBusy or SenderStalled."""
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self._whole_wait_s):
                while not self.is_complete:
                    chunk = await self._next_chunk()
                    if self.read_bytes > limit_bytes:
                        raise RequestTooLarge(limit_bytes)
                    if chunk:
                        self.hold(len(chunk))
                        chunks.append(chunk)
        except TimeoutError:
            raise SenderStalled from None
        if len(chunks) == 1:
            return chunks[0]
        whole_bytes = sum(map(len, chunks))
        self.hold(whole_bytes)  # joining copies
        joined = b"".join(chunks)
        chunks.clear()
        self.let_go(whole_bytes)
        return joined

    def hold(self, count_bytes: int) -> None:
        """Take from the budget, in any thread, before memory is used; raises StoreBusy."""
        self._budget.take(count_bytes)
        self._held_bytes += count_bytes

    def let_go(self, count_bytes: int) -> None:
        """Give back a part of what is held."""
        self._held_bytes -= count_bytes
        self._budget.give_back(count_bytes)

    async def drain(self, limit_bytes: int) -> None:
        """Read and drop what is left, up to a limit, so that the sender gets to read the response.

        Closing while it still sends would reset the connection, and a reset is retried.
        """
        stop_bytes = self.read_bytes + limit_bytes
        with contextlib.suppress(TimeoutError, SenderStalled):
            async with asyncio.timeout(_DRAIN_WAIT_S):
                while not self.is_complete and self.read_bytes <= stop_bytes:
                    await self._next_chunk()

    def free(self) -> None:
        self._budget.give_back(self._held_bytes)
        self._held_bytes = 0

    async def _next_chunk(self) -> bytes:
        try:
            async with asyncio.timeout(self._chunk_wait_s):
                message = await self._receive()
        except TimeoutError:
            raise SenderStalled from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self.read_bytes += len(chunk)
        self.is_complete = not message.get("more_body", False)
        return chunk


_INFLATING_AT_ONCE = 2  # each keeps a processor busy for as long as it works


_SENDER_GONE = ExportRefusal(
    RejectReason.SENDER_GONE, "the connection ended before the request did"
)
_SENDER_STALLED = ExportRefusal(
    RejectReason.SENDER_STALLED, "no more of the body came for too long"
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of the HTTP receiver, and the origins whose pages may send to it."""

    max_body_bytes: int = MAX_BODY_BYTES
    # Of all requests being read and inflated together. One of the largest size needs three times
    # that: compressed, in pieces and whole.
    max_buffered_bytes: int = 3 * MAX_BODY_BYTES
    max_drained_bytes: int = MAX_BODY_BYTES
    store_wait_s: float = STORE_WAIT_S
    chunk_wait_s: float = 30.0
    body_wait_s: float = 60.0  # for all of a body: exporters give up after ten seconds
    cors_origins: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = PREFIXES


def otlp_routes(ingest: Ingest, settings: HttpSettings | None = None) -> list[BaseRoute]:
    """Routes for an application, before its own; they respond and never redirect."""
    return [_OtlpRoute(ingest, settings or HttpSettings())]


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What is known of a request before its body is read."""

    target: ReceiverPath
    method: str
    headers: Headers
    encoding: Encoding | None  # None: of a type that OTLP does not know
    content_encoding: str  # lower case, "identity" left out of a list
    sender: RequestSender

    @classmethod
    def of(cls, scope: Scope, target: ReceiverPath) -> _Exchange:
        headers = Headers(scope=scope)
        codings = ",".join(headers.getlist("content-encoding")).lower().split(",")
        applied = [each.strip() for each in codings if each.strip() not in ("", IDENTITY)]
        client = scope.get("client")
        return cls(
            target=target,
            method=scope["method"],
            headers=headers,
            encoding=encoding_of(headers),
            content_encoding=", ".join(applied) or IDENTITY,
            sender=RequestSender(
                address=f"{client[0]}:{client[1]}" if client else "unix",
                user_agent=headers.get("user-agent", ""),
                transport="http",
            ),
        )


class _OtlpRoute(BaseRoute):
    """One route for all paths of OTLP: no path pattern could list them."""

    def __init__(self, ingest: Ingest, settings: HttpSettings) -> None:
        self._ingest = ingest
        self._settings = settings
        self._budget = BodyBudget(settings.max_buffered_bytes)
        self._inflating = CapacityLimiter(_INFLATING_AT_ONCE)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path, prefixes = _path_of(scope), self._settings.prefixes
        is_ours = is_otlp_path(path, scope["method"], prefixes=prefixes)
        return (Match.FULL if is_ours else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = find_target(_path_of(scope), prefixes=self._settings.prefixes)
        assert target is not None, "handle() is called for paths that match"
        exchange = _Exchange.of(scope, target)
        response = self._answer_preflight(exchange)
        if response is None:
            response = await self._answer_export(exchange, receive)
        if response is not None:
            await response(scope, receive, send)

    def _answer_preflight(self, exchange: _Exchange) -> Response | None:
        if exchange.method != "OPTIONS":
            return None
        headers = preflight_headers(exchange.headers, self._settings.cors_origins)
        return None if headers is None else Response(status_code=204, headers=headers)

    async def _answer_export(self, exchange: _Exchange, receive: Receive) -> Response | None:
        """The response to a request, or None when its sender disconnected."""
        body = _Body(
            receive,
            budget=self._budget,
            chunk_wait_s=self._settings.chunk_wait_s,
            whole_wait_s=self._settings.body_wait_s,
        )
        try:
            response = _refusal_of(exchange) or await self._store(exchange, body)
            if isinstance(response, ExportRefusal):
                return await self._refuse(exchange, response, body)
        except ClientDisconnect:
            self._report(exchange, _SENDER_GONE, body)
            return None
        finally:
            body.free()
        return message_response(
            exchange.headers,
            response,
            headers=cors_headers(exchange.headers, self._settings.cors_origins),
        )

    async def _store(self, exchange: _Exchange, body: _Body) -> ExportResponse | ExportRefusal:
        signal, encoding = exchange.target.signal, exchange.encoding
        assert signal is not None, "it would have been refused"
        assert encoding is not None, "it would have been refused"
        try:
            content = await self._read(exchange.content_encoding, encoding, body)
        except SenderStalled:
            return _SENDER_STALLED
        except IngestError as error:
            return refusal_of(error)
        queued = submit(
            self._ingest,
            IngestRequest(
                signal=signal,
                encoding=encoding,
                body=content,
                sender=exchange.sender,
                received_ns=time.time_ns(),
            ),
        )
        del content
        body.free()  # from here on the pipeline holds and counts it
        if isinstance(queued, ExportRefusal):
            return queued
        if not await _is_done(queued, within_s=self._settings.store_wait_s):
            return STORE_TOO_SLOW
        outcome = outcome_of(queued)
        if isinstance(outcome, ExportRefusal):
            return outcome
        return export_response(signal, outcome)

    async def _read(self, content_encoding: str, encoding: Encoding, body: _Body) -> bytes:
        limit_bytes = self._settings.max_body_bytes
        content = await body.read(limit_bytes)
        if content_encoding == IDENTITY:
            return content
        # In a thread whatever the size: a few hundred bytes may stand for 64 MiB.
        unpack = partial(
            inflate,
            content,
            content_encoding,
            limit_bytes=limit_bytes,
            hold=body.hold,
            judge=partial(judge_start, encoding),
        )
        inflated = await to_thread.run_sync(_returning, unpack, limiter=self._inflating)
        if isinstance(inflated, Exception):
            raise inflated
        return inflated

    async def _refuse(self, exchange: _Exchange, refusal: ExportRefusal, body: _Body) -> Response:
        body.free()  # nothing of it is stored, whatever is still read
        # A sender that waits for 100 Continue (curl with a large body) has not begun and need not.
        waits_for_permission = exchange.headers.get("expect", "").lower() == "100-continue"
        is_awaited = body.read_bytes or not waits_for_permission
        if is_awaited and refusal is not _SENDER_STALLED:  # who trickles would go on with it
            with contextlib.suppress(ClientDisconnect):
                await body.drain(self._settings.max_drained_bytes)
        self._report(exchange, refusal, body)
        response = refusal_response(
            exchange.headers, refusal, cors_origins=self._settings.cors_origins
        )
        if not body.is_complete:
            response.headers["connection"] = "close"
        return response

    def _report(self, exchange: _Exchange, refusal: ExportRefusal, body: _Body) -> None:
        report(
            self._ingest,
            refusal,
            signal=exchange.target.signal,
            sender=exchange.sender,
            size_bytes=body.read_bytes,
        )


def _returning(work: Callable[[], bytes]) -> bytes | Exception:
    """Return an error of a thread in place of raising it.

    The frame that waits for a thread has the future that holds the error, and so would be held by
    the error itself, with all that was inflated until then.
    """
    try:
        return work()
    except Exception as error:
        return without_frames(error)


def _refusal_of(exchange: _Exchange) -> ExportRefusal | None:
    """Judge a request before its body is read."""
    if exchange.target.signal is None:
        return ExportRefusal(RejectReason.UNKNOWN_PATH, exchange.target.problem)
    if exchange.method != "POST":
        return ExportRefusal(
            RejectReason.WRONG_METHOD,
            f"OTLP requests are sent with POST, not {exchange.method}{_cors_hint(exchange)}",
            headers={"allow": "POST, OPTIONS"},
        )
    if exchange.encoding is None:
        return ExportRefusal(
            RejectReason.UNSUPPORTED_TYPE,
            f"content-type {media_type_of(exchange.headers)!r} is not received, only"
            f" {PROTOBUF_TYPE} and {JSON_TYPE}",
        )
    if not is_supported(exchange.content_encoding):
        return ExportRefusal(
            RejectReason.UNSUPPORTED_ENCODING,
            f"content-encoding {exchange.content_encoding!r} is not received, only"
            f" {', '.join(SUPPORTED)}",
            headers={"accept-encoding": ", ".join(SUPPORTED)},  # RFC 9110 §15.5.16
        )
    return None


def _cors_hint(exchange: _Exchange) -> str:
    origin = exchange.headers.get("origin")
    if exchange.method != "OPTIONS" or origin is None:
        return ""
    return f"; pages of {origin!r} may send only after a start with --cors-origin {origin}"


def _path_of(scope: Scope) -> str:
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


async def _is_done(future: Future[IngestResult], *, within_s: float) -> bool:
    """Wait for a future of another thread without cancelling it: its request stays queued."""
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake(_: Future[IngestResult]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits any more
            loop.call_soon_threadsafe(woken.set)

    future.add_done_callback(wake)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await woken.wait()
    return future.done()

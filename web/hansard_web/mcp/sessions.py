"""Clients of `/mcp` that said `initialize`: who they are, and the streams of their answers.

A session holds no right: each request is judged by its own token. It tells the client's name, lets
progress come before an answer, and lets a call be cancelled. So a session from before a restart is
no reason to turn a request away: it is served for itself, like one without a session.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

SESSION_HEADER: Final = "mcp-session-id"
IDLE_S: Final = 1_800.0
MOST: Final = 1_000  # further clients are served without a session
_PEEKED_BYTES: Final = 65_536  # no `initialize` is longer
_STREAM: Final = "text/event-stream"


@dataclass(slots=True)
class _Client:
    authorization: str  # the token it began with; the id alone opens nothing
    seen_s: float
    has_ended: bool = False  # known until the room is needed, to answer so


class Sessions:
    """The sessions of one app, as long as it runs. Used by its event loop only."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._clients: dict[str, _Client] = {}
        self._manager: StreamableHTTPSessionManager | None = None
        self._making = anyio.Lock()  # two first clients make one manager

    async def serve(self, server: Server[Any], scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer what belongs to a session, or begins one; False leaves the request as it was."""
        headers = Headers(scope=scope)
        session_id = headers.get(SESSION_HEADER)
        client = None if session_id is None else self._known(session_id, headers)
        if client is None:
            return False
        manager = await self._managing(server)
        await manager.handle_request(scope, receive, send)
        client.has_ended = client.has_ended or scope["method"] == "DELETE"
        return True

    async def begin(self, server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `initialize`, and remember the session that the answer names."""
        authorization = Headers(scope=scope).get("authorization", "")

        async def remember(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session_id = MutableHeaders(raw=message["headers"]).get(SESSION_HEADER)
                if session_id:
                    self._clients[session_id] = _Client(authorization, time.monotonic())
            await send(message)

        manager = await self._managing(server)
        await manager.handle_request(scope, receive, remember)

    def has_room(self) -> bool:
        """Whether one more client may begin a session; forgets those that ended or went quiet."""
        if len(self._clients) >= MOST:
            oldest_s = time.monotonic() - IDLE_S
            self._clients = {
                session_id: one
                for session_id, one in self._clients.items()
                if one.seen_s > oldest_s and not one.has_ended
            }
        return len(self._clients) < MOST

    def _known(self, session_id: str, headers: Headers) -> _Client | None:
        client = self._clients.get(session_id)
        credential = headers.get("authorization", "")
        if client is None or not secrets.compare_digest(
            client.authorization.encode(), credential.encode()
        ):
            return None
        client.seen_s = time.monotonic()
        return client

    async def _managing(self, server: Server[Any]) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        async with self._making:
            if self._manager is None:
                manager = StreamableHTTPSessionManager(
                    server, session_idle_timeout=IDLE_S, max_sessions=2 * MOST
                )
                await self._tasks.start(_run, manager)
                self._manager = manager
        return self._manager


@asynccontextmanager
async def keeping_sessions() -> AsyncIterator[Sessions]:
    """Keep sessions until the block ends, and end them then."""
    async with anyio.create_task_group() as tasks:
        yield Sessions(tasks)
        tasks.cancel_scope.cancel()


async def _run(manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None]) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


async def begins_session(scope: Scope, receive: Receive) -> tuple[bool, Receive]:
    """Tell whether a request is an `initialize` answered by a stream, and give its body back."""
    headers = Headers(scope=scope)
    if scope["method"] != "POST" or _STREAM not in headers.get("accept", ""):
        return False, receive
    if SESSION_HEADER in headers or "mcp-method" in headers:  # the latter: without handshake
        return False, receive
    read: list[Message] = []
    body = b""
    while len(body) <= _PEEKED_BYTES:
        message = await receive()
        read.append(message)
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body", False):
            break

    async def again() -> Message:
        return read.pop(0) if read else await receive()

    return _is_initialize(body), again


def _is_initialize(body: bytes) -> bool:
    if b'"initialize"' not in body or len(body) > _PEEKED_BYTES:
        return False
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("method") == "initialize"

"""`/mcp` on the HTTP port: streamable HTTP, each request with its own token.

It stands behind the same checks as every door (Host, Origin, token), and its tools ask the API of
this app with the token of the request, so that a token opens here what it opens there. A client
that says `initialize` gets a session; what comes without one is answered as JSON, for itself.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from hansard_web.app.problems import Problem, answer_problem

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


# Clients of `/mcp` that said `initialize`: who they are, and the streams of their answers.
#
# A session holds no right: each request is judged by its own token. It tells the client's name,
# lets progress come before an answer, and lets a call be cancelled. So a session from before a
# restart is no reason to turn a request away: it is served for itself, like one without a session.

SESSION_HEADER: Final = "mcp-session-id"
IDLE_S: Final = 1_800.0
MOST: Final = 1_000  # further clients are served without a session
_PEEKED_BYTES: Final = 65_536  # no `initialize` is longer
_STREAM: Final = "text/event-stream"


@dataclass(slots=True)
class _Client:
    authorization: str  # the token it began with; the id alone opens nothing
    seen_s: float
    has_ended: bool = False  # known until the room is needed, to be told so


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
        told = headers.get("authorization", "")
        if client is None or not secrets.compare_digest(
            client.authorization.encode(), told.encode()
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
        told = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("method") == "initialize"


PATH = "/mcp"
_MAKING = threading.Lock()


class McpEndpoint:
    """Answers one request of the protocol; an ASGI app, as routes take one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = scope["app"]
        if not app.state.site.settings.mcp:
            off = Problem(HTTPStatus.NOT_FOUND, "mcp_disabled", "this server runs with --mcp off")
            await answer_problem(Request(scope), off)(scope, receive, send)
            return
        try:
            server = await to_thread.run_sync(_server_of, app)
        except ModuleNotFoundError as error:
            await answer_problem(Request(scope), _missing(error))(scope, receive, send)
            return
        sessions: Sessions = app.state.mcp_sessions
        if await sessions.serve(server, scope, receive, send):
            return
        if scope["method"] == "DELETE":
            await answer_problem(Request(scope), _no_session())(scope, receive, send)
            return
        is_beginning, receive = await begins_session(scope, receive)
        if is_beginning and sessions.has_room():
            await sessions.begin(server, scope, receive, send)
        else:
            await _answer_alone(server, scope, receive, send)


async def _answer_alone(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that stands for itself; nothing of it outlives the answer."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def mcp_route() -> Route:
    """Return the route. There is nothing to GET: the server says nothing that was not asked."""
    return Route(PATH, McpEndpoint(), methods=["POST", "DELETE"], include_in_schema=False)


def _no_session() -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "not_found", "there is no such session with this token")


def _missing(error: ModuleNotFoundError) -> Problem:
    said = f"the package {error.name!r} is missing: pip install 'hansard[mcp]'"
    return Problem(HTTPStatus.NOT_IMPLEMENTED, "mcp_missing", said)


def _server_of(app: Any) -> Server[Any]:
    """Return the MCP server of an app, made by the first who asks: importing it takes a second."""
    with _MAKING:
        if getattr(app.state, "mcp", None) is None:
            from hansard_web.mcp.api_client import Api, agent_name, app_client
            from hansard_web.mcp.server import make_server

            client, secret = app_client(app), app.state.site.folder.key()

            def api_for(context: Any) -> Api:
                headers = context.request.headers
                # Without a session a client's name is known only where each request tells it.
                agent = agent_name(context, headers.get("user-agent", "").partition(" ")[0])
                return Api(client, secret, headers.get("authorization", ""), agent)

            app.state.mcp = make_server(api_for)
    server: Server[Any] = app.state.mcp
    return server

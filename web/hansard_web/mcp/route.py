"""`/mcp` on the HTTP port: streamable HTTP, each request with its own token.

It has the same checks as every endpoint (Host, Origin, token), and its tools ask the API of this
app with the token of the request, so that a token opens here what it opens there. A client that
says `initialize` gets a session; what comes without one is answered as JSON, for itself.
"""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hansard_web.app.problems import Problem, answer_problem
from hansard_web.mcp.sessions import Sessions, begins_session

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"
_MAKING = threading.Lock()


class McpEndpoint:
    """Answers one request of the protocol; an ASGI app, as routes take one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = scope["app"]
        if not app.state.site.settings.mcp:
            off = Problem(HTTPStatus.NOT_FOUND, "mcp_disabled", "this server runs with --mcp off")
            return await answer_problem(Request(scope), off)(scope, receive, send)
        try:
            server = await to_thread.run_sync(_server_of, app)
        except ModuleNotFoundError as error:
            message = f"the package {error.name!r} is missing: pip install 'hansard[mcp]'"
            missing = Problem(HTTPStatus.NOT_IMPLEMENTED, "mcp_missing", message)
            return await answer_problem(Request(scope), missing)(scope, receive, send)
        sessions: Sessions = app.state.mcp_sessions
        if await sessions.serve(server, scope, receive, send):
            return
        if scope["method"] == "DELETE":
            message = "there is no such session with this token"
            unknown = Problem(HTTPStatus.NOT_FOUND, "not_found", message)
            return await answer_problem(Request(scope), unknown)(scope, receive, send)
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
    """Return the route. There is nothing to GET: the server sends nothing unrequested."""
    return Route(PATH, McpEndpoint(), methods=["POST", "DELETE"], include_in_schema=False)


def _server_of(app: Any) -> Server[Any]:
    """Return the MCP server of an app, made by the first who asks: importing it takes a second."""
    with _MAKING:
        if getattr(app.state, "mcp", None) is None:
            from hansard_web.mcp.api_client import ApiClient, agent_name, app_client
            from hansard_web.mcp.server import make_server

            client, secret = app_client(app), app.state.site.folder.key()

            def api_for(context: Any) -> ApiClient:
                headers = context.request.headers
                # Without a session a client's name is known only where each request tells it.
                agent = agent_name(context, headers.get("user-agent", "").partition(" ")[0])
                return ApiClient(client, secret, headers.get("authorization", ""), agent)

            app.state.mcp = make_server(api_for)
    server: Server[Any] = app.state.mcp
    return server

"""The server over stdin and stdout, for one client, until it closes them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from mcp.server.stdio import stdio_server

from hansard_web.mcp.api_client import Api, agent_name
from hansard_web.mcp.server import make_server


async def serve(source: AbstractAsyncContextManager[Api]) -> None:
    """Serve with the API that `source` opens."""
    async with source as api:

        def api_for(context: Any) -> Api:
            return replace(api, agent=agent_name(context))

        server = make_server(api_for)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

"""Speaking with the MCP server as clients do: the official client, over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Told:
    """What a tool answered."""

    is_error: bool
    body: Json
    text: str

    @property
    def answer(self) -> Json:
        assert not self.is_error, self.text[:2000]
        found: Json = self.body["answer"]
        return found

    @property
    def error(self) -> Json:
        assert self.is_error, self.text[:2000]
        found: Json = self.body["error"]
        return found


def told(result: Any) -> Told:
    return Told(bool(result.is_error), result.structured_content, result.content[0].text)


@dataclass(frozen=True)
class Speaker:
    """A client of one server, with one token."""

    url: str
    token: str | None = None

    def call(self, name: str, **arguments: Any) -> Told:
        return told(self.run(lambda client: client.call_tool(name, arguments)))

    def run(self, work: Callable[[Client], Awaitable[T]], **offers: Any) -> T:
        """Connect, do something, and disconnect."""

        async def connected() -> T:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=240, trust_env=False) as http,
                Client(
                    streamable_http_client(f"{self.url}/mcp", http_client=http), **offers
                ) as client,
            ):
                return await work(client)

        try:
            return anyio.run(connected)
        except BaseExceptionGroup as group:
            raise _only(group) from None


def _only(error: BaseException) -> BaseException:
    """Return the one error that the client's task groups wrapped."""
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error

"""One call of each kind, through the sync and the async client of each package."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai

from hansard import instrument_client
from tests.instrumentation.clients.provider import Provider

OPENAI_MODEL = "gpt-6-luna"
ANTHROPIC_MODEL = "claude-haiku-5-5"
TOOL_PARAMETERS = {"type": "object", "properties": {"k": {"type": "integer"}}}


# Made once: reading the certificates takes longer than a call.
_TLS = ssl.create_default_context()


def http_client() -> httpx2.Client:
    return httpx2.Client(verify=_TLS)


def async_http_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(verify=_TLS)


def openai_client(provider: Provider, **options: Any) -> openai.OpenAI:
    wanted = _options(http_client(), options)
    return openai.OpenAI(api_key="key", base_url=f"{provider.address}/v1", **wanted)


def async_openai_client(provider: Provider, **options: Any) -> openai.AsyncOpenAI:
    wanted = _options(async_http_client(), options)
    return openai.AsyncOpenAI(api_key="key", base_url=f"{provider.address}/v1", **wanted)


def anthropic_client(provider: Provider, **options: Any) -> anthropic.Anthropic:
    wanted = _options(http_client(), options)
    return anthropic.Anthropic(api_key="key", base_url=provider.address, **wanted)


def async_anthropic_client(provider: Provider, **options: Any) -> anthropic.AsyncAnthropic:
    wanted = _options(async_http_client(), options)
    return anthropic.AsyncAnthropic(api_key="key", base_url=provider.address, **wanted)


def _options(http: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {"max_retries": 0, "timeout": 5, "http_client": http, **options}


@dataclass(frozen=True)
class Api:
    """One API of a package: how to make its clients, its call and the call's arguments."""

    name: str
    sync: Callable[..., Any]
    asynchronous: Callable[..., Any]
    method: str  # dotted, on the client
    arguments: dict[str, Any]

    def call(self, client: Any, **more: Any) -> Any:
        found = client
        for step in self.method.split("."):
            found = getattr(found, step)
        return found(**self.arguments, **more)


RESPONSES = Api(
    "responses",
    openai_client,
    async_openai_client,
    "responses.create",
    {
        "model": OPENAI_MODEL,
        "instructions": "Be kind.",
        "input": [{"role": "user", "content": "Grüß mich ✓"}],
        "tools": [{"type": "function", "name": "get", "parameters": TOOL_PARAMETERS}],
        "max_output_tokens": 50,
    },
)
CHAT = Api(
    "chat",
    openai_client,
    async_openai_client,
    "chat.completions.create",
    {
        "model": OPENAI_MODEL,
        "messages": [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Grüß mich ✓"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "get", "parameters": TOOL_PARAMETERS}}],
        "max_completion_tokens": 50,
    },
)
MESSAGES = Api(
    "messages",
    anthropic_client,
    async_anthropic_client,
    "messages.create",
    {
        "model": ANTHROPIC_MODEL,
        "max_tokens": 50,
        "system": "Be kind.",
        "messages": [{"role": "user", "content": "Grüß mich ✓"}],
        "tools": [{"name": "get", "input_schema": TOOL_PARAMETERS}],
    },
)
APIS = (RESPONSES, CHAT, MESSAGES)


def ask(api: Api, provider: Provider, *, is_async: bool, **options: Any) -> Any:
    """Make one call with a recorded client, and return its answer."""
    if not is_async:
        with instrument_client(api.sync(provider, **options)) as client:
            return api.call(client)

    async def run() -> Any:
        async with instrument_client(api.asynchronous(provider, **options)) as client:
            return await api.call(client)

    return asyncio.run(run())


def stream(
    api: Api, provider: Provider, *, is_async: bool, most: int | None = None, **options: Any
) -> list[Any]:
    """Make one streamed call and return its events; with `most`, break off after so many."""
    if not is_async:
        with instrument_client(api.sync(provider, **options)) as client:
            events = []
            for event in api.call(client, stream=True):
                events.append(event)
                if len(events) == most:
                    break
            return events

    async def run() -> list[Any]:
        async with instrument_client(api.asynchronous(provider, **options)) as client:
            events: list[Any] = []
            async for event in await api.call(client, stream=True):
                events.append(event)
                if len(events) == most:
                    break
            return events

    return asyncio.run(run())

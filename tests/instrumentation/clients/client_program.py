"""A program with every arrangement of clients, instrumentors and recording; run by a journey.

    python -m tests.instrumentation.clients.client_program COLLECTOR PROVIDER DATA

Each arrangement is a run of its own, told by its agent's name.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import hansard
from tests.instrumentation.clients.asking import CHAT, MESSAGES, RESPONSES, ask, stream
from tests.instrumentation.clients.provider import Provider

LONG = "Tell me about the sea. " * 2_000


def plain(provider: Provider) -> None:
    ask(RESPONSES, provider, is_async=False)
    ask(CHAT, provider, is_async=False)
    ask(MESSAGES, provider, is_async=False)
    stream(CHAT, provider, is_async=False)


def large(provider: Provider) -> None:
    with hansard.instrument_client(RESPONSES.sync(provider)) as client:
        client.responses.create(model="gpt-6-luna", input=LONG)


def unrecorded(provider: Provider) -> None:
    """An instrumentor alone."""
    with CHAT.sync(provider) as client:
        CHAT.call(client)
        list(CHAT.call(client, stream=True))


def anthropics_own(provider: Provider) -> None:
    """The package's own spans alone."""
    with MESSAGES.sync(provider) as client:
        MESSAGES.call(client)


async def in_tasks(provider: Provider) -> None:
    async with hansard.instrument_client(CHAT.asynchronous(provider)) as client:
        await asyncio.gather(*(CHAT.call(client) for _ in range(3)))


def run(name: str, body: Callable[[Provider], Any], provider: Provider) -> None:
    hansard.agent(name=name)(body)(provider)


def main(collector: str, address: str, data: str) -> None:
    hansard.init(endpoint=collector, protocol="http/protobuf", data=data, service_name="clients")
    provider = Provider(address)
    run("plain", plain, provider)
    run("large", large, provider)
    run("anthropics own", anthropics_own, provider)
    asyncio.run(hansard.agent(name="in tasks")(in_tasks)(provider))
    for maker in ("genai", "openinference"):
        [on] = switch_on(maker)
        sys.stdout.write(f"{on}\n")
        run(f"{maker} alone", unrecorded, provider)
        run(f"{maker} and recorded", plain, provider)
        hansard.uninstrument()
    assert hansard.flush(10)


def switch_on(maker: str) -> list[Any]:
    """Switch on what `instrument` prefers, or, as a program of its own would, another one."""
    if maker == "genai":
        return hansard.instrument("openai")
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry import trace

    OpenAIInstrumentor().instrument(tracer_provider=trace.get_tracer_provider())
    return hansard.instrument("openai")


if __name__ == "__main__":
    main(*sys.argv[1:])

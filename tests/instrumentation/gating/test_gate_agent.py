"""Which agent a gated call is asked for: the innermost around it, wherever the call is made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import hansard
from tests.instrumentation.gating.gates import Desk
from tests.instrumentation.recording import recording


@hansard.tool(effect="write")
def send(to: str) -> str:
    return f"sent to {to}"


@hansard.tool(effect="write")
async def asend(to: str) -> str:
    return f"sent to {to}"


@hansard.agent(name="clerk")
def clerk(to: str) -> Any:
    return send(to)


@hansard.agent(name="writer")
async def writer(to: str) -> Any:
    await asyncio.sleep(0)
    return await asend(to)


@hansard.agent(name="streamer")
def streamer(to: str) -> Iterator[Any]:
    yield send(to)
    yield send(f"{to} again")


def agents(store: Desk) -> dict[str, str | None]:
    """Return who asked for each call, by whom it sends to."""
    return {str(one.arguments["to"]): one.agent for one in store.store.approvals()}


def test_a_call_is_asked_for_by_the_decorated_agent_around_it(store: Desk) -> None:
    with recording(), store.gate():
        clerk("ann")
        send("nobody")

    assert agents(store) == {"ann": "clerk", "nobody": None}


def test_the_innermost_of_agents_and_runs_asks(store: Desk) -> None:
    @hansard.agent(name="boss")
    def boss() -> None:
        clerk("inner")
        send("outer")
        with hansard.start_run("session"):
            send("run")
            clerk("in the run")
            send("run again")

    with recording(), store.gate():
        boss()

    assert agents(store) == {
        "inner": "clerk",
        "outer": "boss",
        "run": "session",
        "in the run": "clerk",
        "run again": "session",
    }


def test_the_gate_s_own_agent_beats_the_one_around(store: Desk) -> None:
    with recording(), store.gate(agent="told"):
        clerk("ann")

    assert agents(store) == {"ann": "told"}


def test_tasks_and_generators_keep_their_agents_apart(store: Desk) -> None:
    @hansard.agent(name="second")
    async def second(to: str) -> Any:
        await asyncio.sleep(0)
        return await asend(to)

    async def both() -> None:
        await asyncio.gather(writer("a"), second("b"))

    with recording(), store.gate():
        asyncio.run(both())
        for number, _ in enumerate(streamer("c")):
            send(f"between {number}")

    assert agents(store) == {
        "a": "writer",
        "b": "second",
        "c": "streamer",
        "c again": "streamer",
        "between 0": None,
        "between 1": None,
    }


def test_a_thread_has_the_agent_it_was_given(store: Desk) -> None:
    gate = store.gate()

    def ask(to: str) -> None:
        with gate:
            send(to)

    @hansard.agent(name="pool")
    def pool() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(hansard.wrap_with_context(ask), "given").result()
            threads.submit(ask, "bare").result()

    with recording():
        pool()

    assert agents(store) == {"given": "pool", "bare": None}


@pytest.mark.parametrize("fails", [False, True])
def test_an_agent_that_ended_asks_for_nothing(fails: bool, store: Desk) -> None:
    @hansard.agent
    def ends() -> None:
        if fails:
            raise KeyError

    with recording(), store.gate():
        with contextlib.suppress(KeyError):
            ends()
        send("after")

    assert agents(store) == {"after": None}


def test_an_agent_that_is_not_sampled_asks_by_its_name(store: Desk) -> None:
    with recording(sampler=ALWAYS_OFF), store.gate():
        clerk("ann")

    assert agents(store) == {"ann": "clerk"}

"""The gate's awaited forms in an event loop that is not asyncio's."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
import trio.lowlevel

import hansard
from hansard import approvals
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import AwaitRequired
from hansard_store.approvals.service import ApprovalService
from tests.instrumentation.gating.gates import Desk, state_of
from tests.journeys.processes import hosting


def sending(done: list[str]) -> Any:
    async def send(to: str) -> str:
        await trio.lowlevel.checkpoint()
        done.append(to)
        return f"sent to {to}"

    return hansard.tool(effect="write", name="send", describe="Send to {to}")(send)


def test_an_approved_tool_of_trio_runs_in_trio(store: Desk) -> None:
    done: list[str] = []
    gate = store.gate(sending(done))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    async def main() -> None:
        with gate, pytest.raises(AwaitRequired, match="arun"):
            approvals.run(identity)
        assert (await gate.arun(identity)).result == "sent to Maria"

    trio.run(main)

    assert done == ["Maria"]
    assert state_of(gate, identity) == ("approved", "done")


def test_a_wait_a_chat_and_what_was_decided_work_in_trio(store: Desk) -> None:
    done: list[str] = []
    said: list[str] = []
    tool = sending(done)
    gate = store.gate(tool, wait_s=math.inf)

    async def agent(message: str) -> str:
        await chat.gate.acall("send", {"to": message})
        return "Shall I?"

    channel = TextChannel("chat", said.append)
    chat = ChatGate(channel, agent=agent, tools=[tool], decisions=store.decisions)

    def approve() -> None:
        look = threading.Event()
        while not (waiting := store.store.approvals()):
            look.wait(0.001)
        store.approve({"approval_id": waiting[0].approval_id})

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, approve)
            assert (await gate.acall("send", {"to": "Ann"})).for_model() == "sent to Ann"
        await chat.ahandle("Bob")
        await chat.ahandle("yes", by="ana")
        gate.wait_s = 0
        store.approve(await gate.acall("send", {"to": "Cleo"}))
        async with gate:
            assert len(await approvals.arun_all_approved()) == 1

    trio.run(main)

    assert done == ["Ann", "Bob", "Cleo"]
    assert said[-1] == "Done! Send to Bob."


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("where", ["in this process", "at a server"])
def test_a_cancel_scope_that_ends_leaves_an_unknown_outcome(
    store: Desk, tmp_path: Path, backend: str, where: str
) -> None:
    scopes: list[anyio.CancelScope] = []

    async def send(to: str) -> None:
        scopes[0].cancel()
        await anyio.sleep_forever()

    tool = hansard.tool(effect="write", name="send")(send)

    def cut_off(gate: Gate, people: ApprovalService) -> None:
        identity = gate.call("send", {"to": "Maria"}).for_model()["approval_id"]
        people.approve(identity, by="ana")

        async def main() -> None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await gate.arun(identity)
            assert scope.cancelled_caught

        anyio.run(main, backend=backend)
        for thread in threading.enumerate():
            if thread.name == "hansard-gate" and not thread.daemon:
                thread.join(30)
        assert state_of(gate, identity) == ("approved", "unknown")

    if where == "in this process":
        cut_off(store.gate(tool), store.store)
        return
    with hosting(tmp_path / "data") as server, ApprovalService(server.data) as people:
        decisions = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
        cut_off(Gate(tools=[tool], decisions=decisions), people)
        decisions.close()

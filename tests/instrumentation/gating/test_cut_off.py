"""Calls that are cut off inside of groups of exceptions, and calls that fork."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
import trio

import hansard
from hansard.errors import NotDecoratable
from tests.instrumentation.gating.gates import Desk, state_of

ROOT = Path(__file__).parents[3]
BROKEN = ValueError("no such person")


def raising(error: BaseException) -> Any:
    def send(to: str) -> None:
        raise error

    return hansard.tool(send, effect="write", name="send")


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (BaseExceptionGroup("a", [BROKEN, asyncio.CancelledError()]), "unknown"),
        (BaseExceptionGroup("a", [BaseExceptionGroup("b", [KeyboardInterrupt()])]), "unknown"),
        (BaseExceptionGroup("a", [BROKEN, BaseExceptionGroup("b", [SystemExit(0)])]), "unknown"),
        (ExceptionGroup("a", [BROKEN, ExceptionGroup("b", [TimeoutError()])]), "unknown"),
        (ExceptionGroup("a", [trio.TooSlowError()]), "unknown"),
        (trio.TooSlowError(), "unknown"),
        (SystemExit(1), "unknown"),
        (subprocess.TimeoutExpired("scp", 3), "unknown"),
        (requests.ReadTimeout(), "unknown"),
        (ExceptionGroup("a", [BROKEN, ExceptionGroup("b", [LookupError()])]), "failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)
def test_what_was_cut_off_somewhere_in_a_group_is_unknown(
    store: Desk, error: BaseException, state: str
) -> None:
    gate = store.gate(raising(error))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(type(error)):
        gate.run(identity)

    assert state_of(gate, identity) == ("approved", state)


def test_a_nursery_of_trio_that_is_cancelled_from_outside_is_unknown(store: Desk) -> None:
    done: list[str] = []

    async def send(to: str) -> None:
        async with trio.open_nursery() as nursery:
            done.append(to)
            nursery.start_soon(trio.sleep, 5)
            nursery.start_soon(trio.sleep, 6)

    gate = store.gate(hansard.tool(send, effect="write"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    async def main() -> None:
        with trio.move_on_after(0.05):
            await gate.arun(identity)

    trio.run(main)

    assert done == ["Maria"]
    assert state_of(gate, identity) == ("approved", "unknown")


def test_a_task_group_with_a_timeout_in_a_child_is_unknown(store: Desk) -> None:
    async def send(to: str) -> None:
        async def one() -> None:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(5)

        async with asyncio.TaskGroup() as group:
            group.create_task(one())

    gate = store.gate(hansard.tool(send, effect="write"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(ExceptionGroup):
        asyncio.run(gate.arun(identity))

    assert state_of(gate, identity) == ("approved", "unknown")


@pytest.mark.parametrize("effect", ["read", "write"])
def test_only_the_process_that_claimed_a_call_records_its_end(tmp_path: Path, effect: str) -> None:
    program = [sys.executable, "-m", "tests.instrumentation.gating.forked", str(tmp_path), effect]
    ended = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True)
    told = json.loads(ended.stdout)

    if effect == "write":
        assert told["state"] == ["approved", "failed"]
    else:
        assert told["events"] == ["tool.called send", "tool.returned send"]
        assert told["error"] == "ValueError"


def test_a_function_that_is_given_with_an_effect_is_a_tool(store: Desk) -> None:
    done: list[str] = []

    def send(to: str) -> None:
        done.append(to)

    gate = store.gate(hansard.tool(send, effect="write", describe="Send to {to}"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))
    gate.run(identity)

    assert done == ["Maria"]
    assert state_of(gate, identity) == ("approved", "done")


def test_what_is_no_function_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(NotDecoratable):
        hansard.tool("send", effect="write")  # type: ignore[call-overload]

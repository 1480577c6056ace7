"""An error that comes out of another thread: nothing of its frames stays when it was handled."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

import hansard
from hansard._gate.flow import FlowStep, _in_a_thread, adrive, in_thread
from tests.instrumentation.gating.gates import desk


class Large:
    """What the frames of a failing call hold."""


held: list[weakref.ref[Large]] = []


def fail(kind: type[BaseException] = LookupError) -> Any:
    large = Large()
    held.append(weakref.ref(large))
    raise kind("as it is")


@contextmanager
def without_collector() -> Iterator[None]:
    held.clear()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def handled(work: Callable[[], Awaitable[Any]]) -> str:
    """Await what fails, and handle it in the loop: `asyncio.run` itself would keep the error."""
    try:
        await work()
    except (LookupError, RuntimeError) as error:
        return repr(error)
    raise AssertionError


def slow_flow() -> Any:
    yield FlowStep(fail, is_slow=True)


def without_a_loop() -> str:
    try:
        _in_a_thread(fail)
    except LookupError as error:
        return repr(error)
    raise AssertionError


WAYS: dict[str, Callable[[], str]] = {
    "gate, asyncio": lambda: asyncio.run(handled(lambda: adrive(slow_flow()))),
    "gate, await": lambda: asyncio.run(handled(lambda: in_thread(fail))),
    "gate, trio": lambda: str(trio.run(handled, lambda: in_thread(fail))),
    "gate, no loop": without_a_loop,
}


@pytest.mark.parametrize("way", WAYS)
def test_an_error_from_a_thread_holds_nothing_once_it_is_handled(way: str) -> None:
    with without_collector():
        told = WAYS[way]()
        left = [one() for one in held]

    assert told == "LookupError('as it is')"
    assert left == [None]


def test_a_gated_call_that_fails_in_a_loop_holds_nothing(tmp_path: Path) -> None:
    async def main() -> list[object]:
        with desk(tmp_path / "data") as store:

            async def send(to: str) -> str:
                await asyncio.sleep(0)
                fail()
                return to

            gate = store.gate(hansard.tool(effect="write", name="send")(send))
            identity = store.approve(await gate.acall("send", {"to": "Maria"}))
            with without_collector():
                with suppress(LookupError):
                    await gate.arun(identity)
                return [one() for one in held]

    assert asyncio.run(main()) == [None]


@pytest.mark.parametrize("way", ["gate, await", "gate, asyncio"])
def test_a_stop_iteration_is_no_end_of_the_coroutine(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fail, "__defaults__", (StopIteration,))

    assert "StopIteration" in WAYS[way]()

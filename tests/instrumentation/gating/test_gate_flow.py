"""A flow is written once: driven where it is, or awaited."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hansard.gating.flow import Flow, Step, adrive, drive


def add_up(*, is_slow: bool = False) -> Flow[tuple[int, int]]:
    first = yield Step(lambda: 1, is_slow)
    try:
        yield Step(lambda: 1 // 0, is_slow)
    except ZeroDivisionError:
        second = yield Step(threading.get_ident, is_slow)
        return first, second
    return first, 0


def test_a_flow_is_driven_on_the_callers_thread() -> None:
    assert drive(add_up()) == (1, threading.get_ident())


def test_an_event_loop_leaves_slow_steps_to_other_threads() -> None:
    assert asyncio.run(adrive(add_up())) == (1, threading.get_ident())
    assert asyncio.run(adrive(add_up(is_slow=True)))[1] != threading.get_ident()


def test_an_error_that_the_flow_does_not_take_is_raised() -> None:
    def failing() -> Flow[None]:
        yield Step(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        drive(failing())
    with pytest.raises(ZeroDivisionError):
        asyncio.run(adrive(failing()))


def test_a_cancelled_task_does_not_wait_for_a_slow_step() -> None:
    release = threading.Event()

    async def cancelled() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def wait() -> None:
            loop.call_soon_threadsafe(begun.set)
            release.wait(30)

        def waiting() -> Flow[None]:
            yield Step(wait, is_slow=True)

        task = asyncio.create_task(adrive(waiting()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(cancelled())
    finally:
        release.set()

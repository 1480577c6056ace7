"""A flow is written once: driven where it is, or awaited."""

from __future__ import annotations

import ast
import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hansard
from hansard._gate.flow import Flow, FlowStep, adrive, can_wait, drive
from hansard.errors import AwaitRequired


def add_up(*, is_slow: bool = False) -> Flow[tuple[int, int]]:
    first = yield FlowStep(lambda: 1, is_slow)
    try:
        yield FlowStep(lambda: 1 // 0, is_slow)
    except ZeroDivisionError:
        second = yield FlowStep(threading.get_ident, is_slow)
        return first, second
    return first, 0


def test_a_flow_is_driven_on_the_callers_thread() -> None:
    assert drive(add_up()) == (1, threading.get_ident())


def test_an_event_loop_leaves_slow_steps_to_other_threads() -> None:
    assert asyncio.run(adrive(add_up())) == (1, threading.get_ident())
    assert asyncio.run(adrive(add_up(is_slow=True)))[1] != threading.get_ident()


def test_an_error_that_the_flow_does_not_take_is_raised() -> None:
    def failing() -> Flow[None]:
        yield FlowStep(lambda: 1 // 0)

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
            yield FlowStep(wait, is_slow=True)

        task = asyncio.create_task(adrive(waiting()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(cancelled())
    finally:
        release.set()


# ---- nothing that is still to come gets into a flow


async def _three() -> int:
    await asyncio.sleep(0)
    return 3


async def _nested() -> object:
    return _three()


def awaited() -> Flow[list[object]]:
    """Return what a flow is given for what its steps return."""
    pool = ThreadPoolExecutor(1)
    made = []
    for work in (_three, _nested, lambda: pool.submit(lambda: 3), lambda: pool.submit(_three)):
        made.append((yield FlowStep(work)))
        made.append((yield FlowStep(work, is_slow=True)))
    pool.shutdown()
    return made


def test_a_flow_gets_the_end_of_whatever_a_step_returns() -> None:
    assert drive(awaited()) == asyncio.run(adrive(awaited())) == [3] * 8


def test_a_flow_that_cannot_wait_is_told_before_it_begins() -> None:
    begun: list[str] = []

    def careful() -> Flow[object]:
        yield can_wait(AwaitRequired("it", "`await it()`"))
        begun.append("begun")
        return (yield FlowStep(_three))

    async def inside() -> None:
        with pytest.raises(AwaitRequired, match="await it"):
            drive(careful())
        assert begun == []
        assert await adrive(careful()) == 3

    asyncio.run(inside())
    assert drive(careful()) == 3


def test_functions_of_the_program_are_called_in_steps_alone() -> None:
    """A call beside the drivers would throw away what it returns, where that is a coroutine."""
    folder = Path(hansard.__file__).parent
    handed_in = {"function", "undo", "_describe", "_evaluator", "_agent", "evaluator", "describe"}
    direct = [
        f"{path.name}: {ast.unparse(node)}"
        for path in (
            folder / "chat.py",
            *(folder / "_gate").glob("*.py"),
            *(folder / "_backend").glob("*.py"),
        )
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", None) or getattr(node.func, "id", None)) in handed_in
    ]

    allowed = (
        "tools.py: self.function(",  # in `_called`, of which `run` makes a step
        "tracing.py: tool.plan.describe(",
        "local_approvals.py: self._store.undo(",
        "approvals.py: gate.decisions.undo(",
    )
    assert [one for one in direct if not one.startswith(allowed)] == []
    uses = [
        path.name
        for path in (folder / "_gate").rglob("*.py")
        if "._called(" in path.read_text(encoding="utf-8")
    ]
    assert uses == ["tools.py"]

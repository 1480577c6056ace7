"""One flow for tools of both kinds: what a gate does is written once, and driven in two ways.

A flow is a generator of steps: asking the decisions' store, and running the program's own function.
The plain driver does them where it is; the other one awaits them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Generator
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a flow that takes time."""

    work: Callable[[], Any]
    is_slow: bool = False  # it waits for others: an event loop must not do it itself


def pause(seconds: float) -> Step:
    """Return a step that lets time pass."""
    return _Pause(partial(time.sleep, seconds), seconds=seconds)


@dataclass(frozen=True, slots=True)
class _Pause(Step):
    seconds: float = 0.0


Flow: TypeAlias = Generator[Step, Any, T]


def drive(flow: Flow[T]) -> T:
    """Do a flow on this thread."""
    try:
        step = next(flow)
        while True:
            try:
                made = step.work()
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(made)
    except StopIteration as end:
        result: T = end.value
        return result


async def adrive(flow: Flow[T]) -> T:
    """Do a flow in an event loop; what is slow has a thread of its own."""
    try:
        step = next(flow)
        while True:
            try:
                made = await _awaited(step)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(made)
    except StopIteration as end:
        result: T = end.value
        return result


async def _awaited(step: Step) -> Any:
    if isinstance(step, _Pause):
        return await asyncio.sleep(step.seconds)
    made = await in_thread(step.work) if step.is_slow else step.work()
    return await made if inspect.isawaitable(made) else made


async def in_thread(work: Callable[[], T]) -> T:
    """Do something in a thread that nobody waits for, neither when cancelled nor at the end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(told: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            told(value)

    def run() -> None:
        try:
            told, value = done.set_result, work()
        except BaseException as error:
            told, value = done.set_exception, error  # type: ignore[assignment]  # either setter
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(tell, told, value)

    # A daemon, unlike the threads of asyncio.to_thread: a long poll must not hold up the exit.
    run_here = copy_context().run
    threading.Thread(target=run_here, args=(run,), name="hansard-gate", daemon=True).start()
    return await done

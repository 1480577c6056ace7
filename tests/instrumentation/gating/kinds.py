"""Tools of every kind that a program may have, and the ways in which their work ends."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import hansard

Ending = Literal["returns", "raises", "times out", "is cancelled"]
ENDINGS: tuple[Ending, ...] = ("returns", "raises", "times out", "is cancelled")
# What the store has of a call that ended so.
STATES = {"returns": "done", "raises": "failed", "times out": "unknown", "is cancelled": "unknown"}


class Broken(Exception):
    """What a tool raises."""


@dataclass
class Work:
    """What a tool does, and what could be seen of it from outside meanwhile."""

    ending: Ending = "returns"
    look: Callable[[], object] = lambda: None
    done: list[str] = field(default_factory=list)  # to whom it was sent, once that is over
    seen: list[object] = field(default_factory=list)  # what `look` returned half-way

    def plain(self, to: str) -> str:
        self.seen.append(self.look())
        if self.ending == "raises":
            raise Broken(to)
        if self.ending == "times out":
            raise TimeoutError(to)
        if self.ending == "is cancelled":
            raise KeyboardInterrupt
        self.done.append(to)
        return f"sent to {to}"

    async def awaited(self, to: str) -> str:
        await asyncio.sleep(0)
        self.seen.append(self.look())
        if self.ending == "raises":
            raise Broken(to)
        if self.ending == "times out":
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        if self.ending == "is cancelled":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await asyncio.sleep(0)
        self.done.append(to)
        return f"sent to {to}"


def _sync(work: Work) -> Any:
    def send(to: str) -> str:
        return work.plain(to)

    return send


def _coroutine_function(work: Work) -> Any:
    async def send(to: str) -> str:
        return await work.awaited(to)

    return send


def _annotated(work: Work) -> Any:
    def send(to: str) -> Awaitable[str]:
        return work.awaited(to)

    return send


def _unannotated(work: Work) -> Any:
    def send(to: str):  # type: ignore[no-untyped-def]
        return work.awaited(to)

    return send


def _object(work: Work) -> Any:
    class Sender:
        async def __call__(self, to: str) -> str:
            return await work.awaited(to)

    return Sender()


def _partial(work: Work) -> Any:
    async def send(prefix: str, to: str) -> str:
        return await work.awaited(prefix + to)

    return functools.partial(send, "")


def _wrapped(work: Work) -> Any:
    async def inner(to: str) -> str:
        return await work.awaited(to)

    @functools.wraps(inner)
    def send(to: str) -> Any:
        return inner(to)

    return send


def _nested(work: Work) -> Any:
    async def send(to: str) -> Any:
        return work.awaited(to)  # somebody forgot an await

    return send


def _method(work: Work) -> Any:
    class Sender:
        async def send(self, to: str) -> str:
            return await work.awaited(to)

    return Sender().send


KINDS: dict[str, Callable[[Work], Any]] = {
    "sync": _sync,
    "async def": _coroutine_function,
    "returns an awaitable": _annotated,
    "returns one and does not say so": _unannotated,
    "object with async __call__": _object,
    "partial of async": _partial,
    "wrapper of async": _wrapped,
    "async def that returns a coroutine": _nested,
    "async method": _method,
}
ASYNC = [name for name in KINDS if name != "sync"]
# These show beforehand that they have to be awaited.
SHOWN = [name for name in ASYNC if name != "returns one and does not say so"]


def make(kind: str, work: Work, effect: Literal["read", "write"], **options: Any) -> Any:
    """Return a decorated tool called `send`."""
    function: Any = KINDS[kind](work)
    return hansard.tool(effect=effect, name="send", describe="Send to {to}", **options)(function)

"""One flow for tools of both kinds: written once, then driven on the caller's thread or awaited.

A flow is a generator of steps, and whatever may take time is a step: asking the store of
decisions, and every call of a function that the program wrote. A driver waits for what a step
returns, so no flow ever gets a coroutine, an awaitable or a future for a result. Where a driver
cannot wait (on the thread of a running event loop) it raises AwaitRequired, and a flow checks that
before it claims.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, get_origin

from hansard._runtime.warnings import warn_once
from hansard._tracing.serialization import is_pending
from hansard.errors import AwaitRequired, FutureNotStarted, GateError, PendingResult

if TYPE_CHECKING:
    from hansard._gate.tracing import Mirror

T = TypeVar("T")
_MOST_NESTED: Final = 16  # awaitables that an awaitable returns, one in the other
# How long a future of a pool may wait for its work to begin: after that it never will.
_UNBEGUN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class FlowStep:
    """A piece of a flow that takes time."""

    work: Callable[[], Any]
    is_slow: bool = False  # it waits for others: an event loop must not do it itself
    is_final: bool = False  # it records an end: done also where the flow is cancelled meanwhile
    # Gets what a slow step returned after its flow was cancelled: nothing else does.
    if_late: Callable[[Any], object] | None = field(default=None, repr=False)
    # Current while it is done, and left while the rest is awaited.
    within: Mirror | None = field(default=None, repr=False)
    pause_s: float = 0.0  # of a step that lets time pass
    otherwise: AwaitRequired | None = None  # raised where a loop runs, by a step that only asks
    is_of_tool: bool = True  # else it asks for another function of the program


def pause(seconds: float) -> FlowStep:
    """Return a step that lets time pass."""
    return FlowStep(partial(time.sleep, seconds), pause_s=seconds)


def can_wait(otherwise: AwaitRequired, *, is_of_tool: bool = True) -> FlowStep:
    """Return a step that raises where the flow is driven inside a running event loop.

    It comes before a flow does anything that only waiting brings to an end.
    """
    return FlowStep(lambda: None, otherwise=otherwise, is_of_tool=is_of_tool)


def ending(error: BaseException, record: Callable[[], object], *, is_slow: bool) -> Flow[None]:
    """Record how the work ended, as a flow; also where the flow itself is thrown away.

    A generator that is closed must not yield, and may be closed by the garbage collector, under
    whatever locks this thread holds: another thread records it then.
    """
    if isinstance(error, GeneratorExit):
        with contextlib.suppress(RuntimeError):  # the interpreter ends: no thread begins any more
            thread = threading.Thread(target=_recorded, args=(record,), name="hansard-gate")
            thread.start()
            _ending.thread = thread
    else:
        yield FlowStep(record, is_slow, is_final=True)


# The thread that records an end of a flow of this thread, for the driver to wait for.
_ending = threading.local()


def _wait_for_end() -> None:
    thread: threading.Thread | None = _ending.__dict__.pop("thread", None)
    if thread is not None:
        thread.join()


def _recorded(record: Callable[[], object]) -> None:
    try:
        record()
    except GateError as error:
        warn_once("gate end", "how a call ended that was thrown away is not recorded: %s", error)


Flow: TypeAlias = Generator[FlowStep, Any, T]
Outcome: TypeAlias = tuple[Any, BaseException | None]  # what was returned, or raised


# ---- on the caller's thread


def drive(flow: Flow[T]) -> T:
    """Do a flow on this thread; async functions run in an event loop of this flow's own.

    Raises AwaitRequired where this thread has a running event loop and the flow has to wait.
    """
    with _OwnLoop() as loop:
        result: T = _driven(flow, loop, hands_over=False)
        return result


def begin(flow: Flow[T]) -> Any:
    """Do a flow on this thread up to a tool's awaitable: its end, or a coroutine that brings it.

    It is for a plain function that returns an awaitable, as its caller awaits that.
    """
    with _OwnLoop() as loop:
        return _driven(flow, loop, hands_over=True)


def _driven(flow: Flow[Any], loop: _OwnLoop, *, hands_over: bool) -> Any:
    try:
        step = next(flow)
        while True:
            try:
                if hands_over and step.within is not None:
                    made = step.work()
                    if is_pending(made):
                        step.within.pause()
                        return _rest(flow, made, step.within)
                elif hands_over and step.otherwise is not None and step.is_of_tool:
                    made = None
                else:
                    made = loop.done(step)
            except GeneratorExit as error:  # the program raised it: nothing is being collected
                try:
                    step = flow.throw(error)
                finally:
                    _wait_for_end()
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(made)
    except StopIteration as end:
        return end.value


async def _rest(flow: Flow[T], made: Any, within: Mirror | None) -> T:
    if within is not None:
        within.enter()
    return await adrive(flow, pending=made)


class _OwnLoop:
    """Waits on the caller's thread: one event loop for all that one flow has to wait for."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def done(self, step: FlowStep) -> Any:
        """Return what a step comes to."""
        if step.otherwise is not None and is_looping():
            raise step.otherwise
        made = step.work()
        if not is_pending(made):
            return made
        if is_looping():
            return _settled_elsewhere(made)
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(_settled(made), context=copy_context())


def _settled_elsewhere(made: Any) -> Any:
    """Return the end of what a function turned out to return, inside a running event loop.

    A coroutine has a loop and a thread of its own. A future belongs to the loop that runs here,
    and would be waited for in vain.
    """
    if isinstance(made, Coroutine):
        run = partial(sys.modules["trio"].run, _settled, made) if _is_trio() else (
            lambda: asyncio.run(_settled(made))
        )  # fmt: skip
        return _in_a_thread(run)
    if isinstance(made, asyncio.Future | Future) and made.done():
        return made.result()
    raise PendingResult(type(made).__name__)


def _in_a_thread(work: Callable[[], T]) -> T:
    """Do something in a thread that has no event loop, and wait for it."""
    came: list[Outcome] = []

    def run() -> None:
        came.extend(outcome_of(work))

    thread = threading.Thread(target=copy_context().run, args=(run,), name="hansard-gate")
    thread.start()
    thread.join()
    made: T = taken_from(came)
    return made


def outcome_of(work: Callable[[], Any]) -> list[Outcome]:
    """Do something and return its result, for `taken_from`."""
    try:
        return [(work(), None)]
    except BaseException as error:
        return [(None, error)]


def taken_from(came: list[Outcome]) -> Any:
    """Return the result of work in another thread, or raise it; nothing is left in the list.

    An error holds the frames that it passed through, and they a future or list that holds the
    error: such a cycle, with all that the frames hold, stays until the garbage collector runs.
    """
    value, error = came.pop()
    try:
        if error is not None:
            raise error
        return value
    finally:
        del value, error


# ---- awaited


async def adrive(flow: Flow[T], *, pending: Any = None) -> T:
    """Do a flow in an event loop of asyncio or trio; what is slow has a thread of its own.

    `pending` is what its last step returned, of a flow that was begun elsewhere.
    """
    try:
        step = next(flow) if pending is None else FlowStep(lambda: pending)
        while True:
            try:
                made = await _awaited(step)
            except GeneratorExit:
                flow.close()
                raise
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(made)
    except StopIteration as end:
        result: T = end.value
        return result


async def _awaited(step: FlowStep) -> Any:
    if step.otherwise is not None:
        return None
    if step.pause_s:
        sleep = sys.modules["trio"].sleep if _is_trio() else asyncio.sleep
        return await sleep(step.pause_s)
    made = await _stepped_aside(step) if step.is_slow else step.work()
    return await _settled(made) if is_pending(made) else made


async def in_thread(work: Callable[[], T]) -> T:
    """Run work in a thread that nothing waits for, neither when cancelled nor at the end."""
    done: T = await _stepped_aside(FlowStep(work, is_slow=True))
    return done


async def _stepped_aside(step: FlowStep) -> Any:
    """Do a step in a thread: one that is final outlives a cancellation, and the program's end."""
    if _is_trio():
        return await _in_trio_thread(step)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Outcome]] = loop.create_future()

    def hand_over(came: list[Outcome]) -> None:
        if not done.done():
            done.set_result(came)
            return
        value, error = came.pop()
        if error is None and step.if_late is not None:
            threading.Thread(target=step.if_late, args=(value,), name="hansard-gate").start()

    def run() -> None:
        came = outcome_of(step.work)
        try:
            loop.call_soon_threadsafe(hand_over, came)
        except RuntimeError:  # the loop is closed: nothing waits
            value, failed = came.pop()
            if failed is None and step.if_late is not None:
                step.if_late(value)

    # A daemon, unlike the threads of asyncio.to_thread: a long poll must not hold up the exit.
    must_end = step.is_final or step.if_late is not None
    run_here = copy_context().run
    threading.Thread(target=run_here, args=(run,), name="hansard-gate", daemon=not must_end).start()
    return taken_from(await done)


async def _in_trio_thread(step: FlowStep) -> Any:
    trio = sys.modules["trio"]
    must_end = step.is_final or step.if_late is not None
    with trio.CancelScope(shield=must_end):
        work = partial(outcome_of, step.work)
        came = await trio.to_thread.run_sync(work, abandon_on_cancel=not must_end)
    return taken_from(came)


# ---- what is still to come


async def _settled(made: Any) -> Any:
    """Return what is there in the end, however many awaitables are in one another."""
    for _ in range(_MOST_NESTED):
        if isinstance(made, Future):
            came = await _of_thread(made)
        elif inspect.isawaitable(made):
            came = await made
        else:
            return made
        if came is made:  # a pool that is awaited to open, and returns itself
            return came
        made = came
    if isinstance(made, Coroutine):
        made.close()
    raise RuntimeError(f"more than {_MOST_NESTED} awaitables, one in the other")


async def _of_thread(made: Future[Any]) -> Any:
    """Return the end of a future of a pool.

    What has begun is waited for as long as it takes. What never begins is cancelled, as after a
    timeout, so that it does not run once nothing waits for it. Raises FutureNotStarted.
    """
    if _is_trio():
        run = sys.modules["trio"].to_thread.run_sync
        return await run(_result_of, made, abandon_on_cancel=True)
    end = asyncio.wrap_future(made)  # which listens to it, too
    try:
        await asyncio.wait([end], timeout=_limit_of(made, listeners=1))
    except asyncio.CancelledError:
        end.cancel()
        raise
    _refuse_unbegun(made, listeners=1)
    return await end


def _result_of(made: Future[Any]) -> Any:
    wait([made], timeout=_limit_of(made))
    _refuse_unbegun(made)
    return made.result()


def _limit_of(made: Future[Any], *, listeners: int = 0) -> float | None:
    """Return how long a future may wait before its work has begun; None: it is at work."""
    return None if _is_at_work(made, listeners) else _UNBEGUN_S


def _is_at_work(made: Future[Any], listeners: int) -> bool:
    """Whether work on a future is under way, beside so many listeners of our own.

    A task in another event loop (`run_coroutine_threadsafe`) never says that it runs, but it
    listens whether its future is cancelled, as soon as that loop has taken it.
    """
    return made.running() or len(getattr(made, "_done_callbacks", ())) > listeners


def _refuse_unbegun(made: Future[Any], *, listeners: int = 0) -> None:
    if not made.done() and not _is_at_work(made, listeners) and made.cancel():
        raise FutureNotStarted(type(made).__name__, _UNBEGUN_S)


def is_looping() -> bool:
    """Whether this thread runs an event loop, of asyncio or trio, and must not wait."""
    if _is_trio():
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_trio() -> bool:
    """Whether this is a task of trio; a program that has not imported it has none."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    with contextlib.suppress(RuntimeError, AttributeError):
        trio.lowlevel.current_task()
        return True
    return False


_AWAITED: Final = re.compile(r"['\"]?(?:\w+\.)*(?:Awaitable|Coroutine|Future|Task)\b")


def may_be_async(function: Any) -> bool:
    """Whether what a function returns may have to be awaited, as far as it shows beforehand.

    Looked at are the function, what it wraps or is a part of, and the annotation of its result.
    """
    for _ in range(_MOST_NESTED):
        call = inspect.getattr_static(type(function), "__call__", None)
        own = (function,) if inspect.isroutine(function) else (function, call)
        if any(inspect.iscoroutinefunction(one) or _promises_one(one) for one in own):
            return True
        is_partial = isinstance(function, functools.partial)
        within = function.func if is_partial else getattr(function, "__wrapped__", None)
        if within is None or within is function:
            return False
        function = within
    return False


def _promises_one(function: Any) -> bool:
    """Whether the annotation of a result names an awaitable."""
    try:
        hint = function.__annotations__.get("return")
    except Exception:  # it has none, or one that cannot be read at run time
        return False
    if isinstance(hint, str):
        return bool(_AWAITED.match(hint))
    kind = get_origin(hint) or hint
    return isinstance(kind, type) and issubclass(kind, Awaitable | Future)

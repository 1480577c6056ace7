"""Context that crosses threads, pools and worker processes.

`await`, tasks and `asyncio.to_thread` carry it by themselves. Threads and pools do not.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from types import FrameType
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from opentelemetry.context import Context

from hansard._runtime.recorder import active
from hansard._tracing.context import current_context, enter, entered
from hansard._tracing.propagation import context_of, inject

_log = logging.getLogger("hansard")

# When a signal ends a worker: for what is left to be sent, with the rest spooled; for both on a
# busy machine; and how long the interrupted thread waits before it goes on meanwhile.
_SENDING_S: Final = 1.0
_ENDING_S: Final = 5.0
_PATIENCE_S: Final = 0.2

P = ParamSpec("P")
R = TypeVar("R")


class _Wrapped(Generic[P, R]):
    """A function that runs where it was wrapped; pickled, it carries the W3C headers along."""

    def __init__(self, function: Callable[P, R], context: Context) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._context = context

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        with entered(self._context):
            return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._function, dict(inject(context=self._context)))


def _unpickled(function: Callable[..., Any], headers: Mapping[str, str]) -> _Wrapped[..., Any]:
    return _Wrapped(function, context_of(headers))


def wrap_with_context(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function bound to the current context: what it records nests here.

    For `Thread(target=…)`, `executor.submit(…)`, callbacks; in a process pool too, where
    `worker_initializer` starts the SDK. It may be called any number of times, at once too.
    """
    context = current_context()
    if not inspect.iscoroutinefunction(function):
        return _Wrapped(function, context)

    @functools.wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        with entered(context):
            return await function(*args, **kwargs)

    return cast("Callable[P, R]", run)


class _WrappedExecutor(Executor):
    """An executor whose calls run in the context of the code that submits them."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._inner.submit(wrap_with_context(fn), *args, **kwargs)

    def map(self, fn: Callable[..., R], *iterables: Iterable[Any], **options: Any) -> Iterator[R]:
        return self._inner.map(wrap_with_context(fn), *iterables, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def wrap_executor(executor: Executor) -> Executor:
    """Return the executor, of threads or processes, with every call bound to its caller."""
    return _WrappedExecutor(executor)


def worker_initializer(**options: Any) -> Callable[[], None]:
    """Return an `initializer=` for a pool of processes: it starts the SDK where this one is.

    Takes the arguments of `init()`; those of this process's `init()` are repeated, and
    what `instrument()` switched on here is switched on there. What the workers record nests in the
    span that is current here, and is sent before a worker ends.

    Where this process does not record, neither do its workers. Raises ConfigError, or TypeError for
    an argument that `init()` does not have, here and not in the worker: there nothing is raised.
    """
    from hansard._runtime.setup import check_arguments

    check_arguments(options)
    recorder = active()
    if recorder is None:
        return _start_nothing
    switching = sys.modules.get("hansard._clients.instrument")
    instrumented = [] if switching is None else switching.all_on()
    arguments = {**recorder.settings.arguments, **options}
    return functools.partial(_start_worker, arguments, dict(inject()), instrumented)


def _start_nothing() -> None:
    """Initialize a worker of a process that does not record."""


def _start_worker(
    options: dict[str, Any], headers: dict[str, str], instrumented: Sequence[str]
) -> None:
    """Start recording in a worker; a pool whose initializer raises is broken, so nothing does."""
    from hansard._runtime.setup import init

    try:
        init(**options)
    except Exception:  # another environment than its parent's: the work goes on unrecorded
        _log.exception("recording cannot start in this worker; its work runs without")
        return
    if instrumented:
        from hansard._clients.instrument import instrument

        instrument(*instrumented)
    finish_with_process()
    enter(context_of(headers))


def finish_with_process() -> None:
    """Send what is left when this worker ends, also by SIGTERM, with which a pool ends its workers.

    Before Python 3.13 a forked worker runs no `atexit`. A handler of SIGTERM that the program has
    set stays; without one the process still ends by that signal, after five seconds at most.
    """
    from multiprocessing import util

    from hansard._runtime.setup import shutdown

    util.Finalize(None, shutdown, exitpriority=100)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _Ending())


def finish_if_worker() -> None:
    """Do so where `multiprocessing` started this process and the program calls `init()` itself."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        finish_with_process()


class _Ending:
    """The end of a worker by a signal: what is left is sent or spooled, then the signal ends it.

    A thread of its own sends. The interrupted one may hold a lock that is needed for that, so it
    waits only shortly and goes on until the sending is done, and then gets the signal again.
    """

    def __init__(self) -> None:
        self._sender: threading.Thread | None = None
        self._is_sent = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        if self._sender is None:
            self._sender = threading.Thread(target=self._send, args=(number,), daemon=True)
            self._sender.start()
            self._sender.join(_PATIENCE_S)
        if self._is_sent:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _send(self, number: int) -> None:
        from hansard._runtime.setup import shutdown

        stop = threading.Thread(target=shutdown, args=(_SENDING_S,), daemon=True)
        stop.start()
        stop.join(_ENDING_S)
        self._is_sent = True
        if signal.getsignal(number) is self:
            os.kill(os.getpid(), number)


_is_hooked = False


def after_fork_in_child() -> None:
    """In a child that multiprocessing forks: see that it sends what it recorded before it ends.

    Its own start clears all finalizers, and then calls what is registered here.
    """
    global _is_hooked
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _is_hooked:
        _is_hooked = True
        # It holds its first argument weakly: a function of a module stays.
        util.register_after_fork(finish_with_process, lambda finish: finish())

"""Bodies that are watched while the client reads them, and what becomes of those nobody reads."""

from __future__ import annotations

import atexit
import functools
import os
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from queue import SimpleQueue
from typing import Any, Protocol


class Watcher(Protocol):
    """What is told of a body; none of these raises."""

    def chunk(self, data: bytes) -> None: ...
    def ended(self) -> None: ...
    def failed(self, error: BaseException) -> None: ...
    def closed(self) -> None: ...


def watch(response: Any, watcher: Watcher, *, is_async: bool) -> None:
    """Let a watcher see the body of a response as the client reads it, byte for byte.

    A body that is dropped without being read or closed counts as closed: when it is collected, or
    at the latest when the process ends.
    """
    package = type(response).__module__.partition(".")[0]
    inner = response.stream
    stream = (_async_type if is_async else _sync_type)(package)(inner, watcher)
    _reaper.expect(stream, watcher)
    response.stream = stream


@functools.cache
def _sync_type(package: str) -> type[Any]:
    """Return the class for a client library's package: it insists on its own base."""
    base: Any = import_module(package).SyncByteStream

    class WatchedStream(base):  # type: ignore[misc]  # the base is only known at run time
        def __init__(self, inner: Any, watcher: Watcher) -> None:
            self._inner = inner
            self._watcher = watcher

        def __iter__(self) -> Iterator[bytes]:
            try:
                for chunk in self._inner:
                    self._watcher.chunk(chunk)
                    yield chunk
            except GeneratorExit:  # the reader went away; it closes the response next
                raise
            except BaseException as error:
                self._watcher.failed(error)
                raise
            self._watcher.ended()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._watcher.closed()

    return WatchedStream


@functools.cache
def _async_type(package: str) -> type[Any]:
    base: Any = import_module(package).AsyncByteStream

    class WatchedAsyncStream(base):  # type: ignore[misc]  # the base is only known at run time
        def __init__(self, inner: Any, watcher: Watcher) -> None:
            self._inner = inner
            self._watcher = watcher

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._inner:
                    self._watcher.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                self._watcher.failed(error)
                raise
            self._watcher.ended()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._watcher.closed()

    return WatchedAsyncStream


class _Reaper:
    """Closes the records of streams that were dropped.

    The garbage collector may run in any thread at any time, also inside our own locks. So what it
    calls only puts into a SimpleQueue, which is made for that; a thread does the rest.
    """

    def __init__(self) -> None:
        self._is_registered = False
        self.reset()

    def reset(self) -> None:
        self._dropped: SimpleQueue[int] = SimpleQueue()
        self._open: dict[int, Watcher] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # one thread is started, by whichever thread comes first

    def expect(self, stream: object, watcher: Watcher) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="hansard-streams", daemon=True
                )
                self._thread.start()
                self._end_with_process()
        key = id(watcher)
        self._open[key] = watcher
        end = weakref.finalize(stream, self._dropped.put, key)
        end.atexit = False  # `close_all` does it, at a known time

    def _end_with_process(self) -> None:
        # Registered after `init` registered its own end, so it runs before it.
        if not self._is_registered:
            self._is_registered = True
            atexit.register(self.close_all)

    def _work(self) -> None:
        while True:
            self._close(self._dropped.get())

    def _close(self, key: int) -> None:
        watcher = self._open.pop(key, None)
        if watcher is not None:
            watcher.closed()

    def close_all(self) -> None:
        """Close what is still open when the process ends."""
        for key in list(self._open):
            self._close(key)


_reaper = _Reaper()
if hasattr(os, "register_at_fork"):
    # The parent's streams are the parent's; its thread did not come along.
    os.register_at_fork(after_in_child=_reaper.reset)

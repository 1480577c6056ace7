"""Waiting until something was committed: one poller a process, for as long as somebody waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final

import apsw
from anyio import fail_after

from hansard_store.database import DataFolder, data_version, open_reader

POLL_S: Final = 0.1


class _Waiter:
    """One request that waits. Its event belongs to its loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()


class StoreWatch:
    """Wakes whoever waits when any process committed; it costs nothing while nobody does.

    The lock guards the set of waiters: event loops add and remove, the poller thread wakes them.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._lock = Lock()
        self._waiters: set[_Waiter] = set()
        self._wanted = Event()
        self._closing = Event()
        self._poller: Thread | None = None

    @property
    def is_closing(self) -> bool:
        return self._closing.is_set()

    def close(self) -> None:
        """Wake everybody for the last time and end the poller."""
        self._closing.set()
        self._wanted.set()
        self._wake()
        if self._poller is not None:
            self._poller.join()

    def watching(self) -> Watching:
        """Return a context in which no commit is missed between reading and waiting."""
        return Watching(self)

    def add(self, waiter: _Waiter) -> None:
        with self._lock:
            self._waiters.add(waiter)
            self._wanted.set()
            if self._poller is None and not self._closing.is_set():
                self._poller = Thread(target=self._poll, name="hansard-watch", daemon=True)
                self._poller.start()

    def remove(self, waiter: _Waiter) -> None:
        with self._lock:
            self._waiters.discard(waiter)
            if not self._waiters and not self._closing.is_set():
                self._wanted.clear()

    def _poll(self) -> None:
        connection = open_reader(self._folder)
        try:
            version = -1
            while not self._closing.wait(POLL_S):
                self._wanted.wait()
                # Locked for a moment (a backup, a migration of another process): look again.
                with suppress(apsw.BusyError, apsw.LockedError):
                    found = data_version(connection)
                    if found != version:
                        version = found
                        self._wake()
        finally:
            connection.close()

    def _wake(self) -> None:
        with self._lock:
            waiters = tuple(self._waiters)
        for waiter in waiters:
            with suppress(RuntimeError):  # its loop has ended
                waiter.loop.call_soon_threadsafe(waiter.news.set)


class Watching:
    """`async with`: read, then `await changed(...)`, then read again."""

    def __init__(self, watch: StoreWatch) -> None:
        self._watch = watch
        self._waiter: _Waiter | None = None

    async def __aenter__(self) -> Watching:
        self._waiter = _Waiter()
        self._watch.add(self._waiter)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._waiter is not None:
            self._watch.remove(self._waiter)

    async def changed(self, *, within_s: float) -> bool:
        """Wait for a commit since the last call; False when the time is up or the server ends."""
        assert self._waiter is not None
        if self._watch.is_closing or within_s <= 0:
            return False
        try:
            with fail_after(within_s):
                await self._waiter.news.wait()
        except TimeoutError:
            return False
        self._waiter.news.clear()
        return not self._watch.is_closing

"""Waiting until something was committed: one poller a process, for as long as somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final

import apsw
from anyio import fail_after

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import data_version, open_reader

POLL_S: Final = 0.1
# What somebody waits for, read by the poller after a commit. It is the same until that happens.
Look = Callable[[apsw.Connection], object]
_UNSEEN: Final = object()


class _Waiter:
    """One request that waits. Its event belongs to its loop, what it saw to the poller."""

    def __init__(self, look: Look | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self.look = look
        self._seen: object = _UNSEEN

    def is_concerned(self, connection: apsw.Connection) -> bool:
        """Say whether a commit is news for it; each would be a herd of readers otherwise."""
        if self.look is None:
            return True
        before, self._seen = self._seen, self.look(connection)
        return self._seen != before


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

    @property
    def streams(self) -> int:
        """Return how many wait for any commit at all."""
        with self._lock:
            return sum(one.look is None for one in self._waiters)

    def watching(self, look: Look | None = None) -> Watching:
        """Return a context in which no commit is missed between reading and waiting.

        With `look` only those count after which it finds something else.
        """
        return Watching(self, look)

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
                        self._wake(connection)
                        version = found
        finally:
            connection.close()

    def _wake(self, connection: apsw.Connection | None = None) -> None:
        with self._lock:
            waiters = tuple(self._waiters)
        for waiter in waiters:
            if connection is not None and not waiter.is_concerned(connection):
                continue
            with suppress(RuntimeError):  # its loop has ended
                waiter.loop.call_soon_threadsafe(waiter.news.set)


class Watching:
    """`async with`: read, then `await changed(...)`, then read again."""

    def __init__(self, watch: StoreWatch, look: Look | None) -> None:
        self._watch = watch
        self._look = look
        self._waiter: _Waiter | None = None

    async def __aenter__(self) -> Watching:
        self._waiter = _Waiter(self._look)
        self._watch.add(self._waiter)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._waiter is not None:
            self._watch.remove(self._waiter)

    async def changed(self, *, within_s: float) -> bool:
        """Wait for such a commit since the last call; False when time is up or the server ends."""
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

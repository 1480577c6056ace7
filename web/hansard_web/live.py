"""The live feed: what changed, sent to every open page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Final

import apsw
from anyio import fail_after, to_thread

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import data_version, open_reader
from hansard_store.runs.queries import RunItem, changed_runs, last_change

# The live feed: one poller a process tells every open page which runs changed.
#
# The poller looks at `PRAGMA data_version`, which any process's commit changes, and reads changed
# runs once for all. A page that falls behind has to load afresh; nobody waits for it.

POLL_S: Final = 0.25  # so a page gets at most four messages a second
MOST_PENDING: Final = 200  # changed runs that are sent as rows; more are a fresh page


@dataclass(frozen=True, slots=True)
class Batch:
    """What a page should do now: show these runs again, or load its list afresh."""

    seq: int  # the feed continues after this change_seq
    runs: tuple[RunItem, ...] = ()  # the longest unchanged first
    is_resync: bool = False


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed up to a change_seq; of a flood only that there were too many to list."""

    runs: Sequence[RunItem]
    seq: int
    is_flood: bool = False


class _Follower:
    """Changes that one open page has not been sent yet. Only its event loop touches it."""

    def __init__(self, seq: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self._pending: dict[int, RunItem] = {}
        self._is_behind = False
        self._after = seq
        self._seq = seq

    def offer(self, changes: Sequence[RunItem]) -> None:
        """Add changes; of a run only its latest state is held.

        The poller may tell what the page has seen: it did not know where this one begins.
        """
        for run in changes:
            if run.change_seq <= self._after:
                continue
            self._pending.pop(run.id, None)
            self._pending[run.id] = run
            self._seq = max(self._seq, run.change_seq)
        if len(self._pending) > MOST_PENDING:
            self._is_behind = True
            self._pending.clear()
        self.news.set()

    def fall_behind(self, seq: int) -> None:
        """More runs changed, up to that change_seq, than are sent one by one."""
        if seq <= self._after:
            return
        self._seq = max(self._seq, seq)
        self._is_behind = True
        self._pending.clear()
        self.news.set()

    def catch_up(self, found: _Changes) -> None:
        """Add everything that happened before now; the poller need not send it again."""
        self.add(found)
        self._after = max(self._after, found.seq)

    def add(self, found: _Changes) -> None:
        """Add changes, whether or not all of them are listed."""
        if found.is_flood:
            self.fall_behind(found.seq)
        else:
            self.offer(found.runs)

    def take(self) -> Batch | None:
        """Return everything pending as one batch, None when there is nothing."""
        self.news.clear()
        is_behind, runs = self._is_behind, tuple(self._pending.values())
        self._is_behind = False
        self._pending.clear()
        if is_behind:
            return Batch(self._seq, is_resync=True)
        return Batch(self._seq, runs) if runs else None


class RunFeed:
    """Follows the store on behalf of every open page.

    The lock guards the set of followers: event loops add and remove, the poller thread reads.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._lock = Lock()
        self._followers: set[_Follower] = set()
        self._wanted = Event()  # somebody follows, or the feed closes
        self._closing = Event()
        # Where it starts is settled before anybody can follow: what a follower has not read yet is
        # after it, however late the thread comes to run.
        self._connection = open_reader(folder)
        self._version = data_version(self._connection)
        self._seq = last_change(self._connection)
        self._poller = Thread(target=self._poll, name="hansard-live", daemon=True)
        self._poller.start()

    def close(self) -> None:
        """End every stream and the poller at once: a server waits for its streams to stop."""
        self._closing.set()
        self._wanted.set()
        with self._lock:
            followers = tuple(self._followers)
        for follower in followers:
            _call(follower.loop, follower.news.set)
        self._poller.join()

    async def follow(self, *, after: int) -> AsyncIterator[Batch]:
        """Yield what changed after that change_seq, first from the store, then as it happens."""
        follower = _Follower(after)
        with self._lock:
            self._followers.add(follower)
            self._wanted.set()
        try:
            # Subscribed before reading: nothing falls between.
            follower.catch_up(await to_thread.run_sync(self._read_since, after))
            while not self._closing.is_set():
                if batch := follower.take():
                    yield batch
                else:
                    await follower.news.wait()
        finally:
            with self._lock:
                self._followers.discard(follower)
                if not self._followers and not self._closing.is_set():
                    self._wanted.clear()

    def _read_since(self, seq: int) -> _Changes:
        connection = open_reader(self._folder)
        try:
            return _changes(connection, after=seq)
        finally:
            connection.close()

    def _poll(self) -> None:
        try:
            while not self._closing.wait(POLL_S):
                self._wanted.wait()
                # Locked for a moment (a backup, a migration of another process): look again.
                with suppress(apsw.BusyError, apsw.LockedError):
                    self._look()
        finally:
            self._connection.close()

    def _look(self) -> None:
        found = data_version(self._connection)
        if found != self._version:
            self._version = found
            changes = _changes(self._connection, after=self._seq)
            self._seq = changes.seq
            self._publish(changes)

    def _publish(self, changes: _Changes) -> None:
        with self._lock:
            followers = tuple(self._followers)
        for follower in followers:
            _call(follower.loop, follower.add, changes)


def _changes(connection: apsw.Connection, *, after: int) -> _Changes:
    """Return what changed after that change_seq."""
    runs = changed_runs(
        connection, since_change=after, now_ns=time.time_ns(), limit=MOST_PENDING + 1
    )
    if len(runs) <= MOST_PENDING:
        return _Changes(runs, runs[-1].change_seq if runs else after)
    # Read before it is published: what a page then loads afresh has all up to here.
    return _Changes((), last_change(connection), is_flood=True)


def _call(loop: asyncio.AbstractEventLoop, act: Callable[..., None], *arguments: object) -> None:
    # A loop that has closed meanwhile has no page to tell.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act, *arguments)


# Waiting until something was committed: one poller a process, for as long as somebody waits.

WATCH_POLL_S: Final = 0.1
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
    """Wakes the waiters when any process committed; it costs nothing while nobody waits.

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
            while not self._closing.wait(WATCH_POLL_S):
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

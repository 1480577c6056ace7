"""What changed, sent to every open page, and to requests that wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Final, Generic, TypeVar

import apsw
from anyio import fail_after, to_thread

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import data_version, open_reader
from hansard_store.runs.queries import RunItem, changed_runs, last_change


class _Listener:
    """An open request that is woken; its event belongs to its loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()


_L = TypeVar("_L", bound=_Listener)


class _Poller(Generic[_L]):
    """Notices commits of any process, by `PRAGMA data_version`, as long as somebody listens.

    The lock guards the set of listeners: event loops add and remove, the poller's thread reads. It
    begins with the first listener; with a connection of its own, whose version is known, at once.
    """

    def __init__(
        self,
        name: str,
        folder: DataFolder,
        committed: Callable[[apsw.Connection], None],
        *,
        every_s: float,
        connection: apsw.Connection | None = None,
        version: int = -1,
    ) -> None:
        self._name, self._folder, self._committed = name, folder, committed
        self._every_s = every_s
        self._connection, self._version = connection, version
        self._lock = Lock()
        self._listeners: set[_L] = set()
        self._wanted = Event()  # somebody listens, or the end has come
        self._closing = Event()
        self._thread: Thread | None = None
        if connection is not None:
            self._start()

    @property
    def is_closing(self) -> bool:
        return self._closing.is_set()

    def listeners(self) -> tuple[_L, ...]:
        with self._lock:
            return tuple(self._listeners)

    @contextmanager
    def listening(self, one: _L) -> Iterator[_L]:
        """Let one listen for as long as the block lasts."""
        with self._lock:
            self._listeners.add(one)
            self._wanted.set()
            if self._thread is None and not self.is_closing:
                self._start()
        try:
            yield one
        finally:
            with self._lock:
                self._listeners.discard(one)
                if not self._listeners and not self.is_closing:
                    self._wanted.clear()

    def close(self) -> None:
        """Wake everybody for the last time and end the thread at once."""
        self._closing.set()
        self._wanted.set()
        for one in self.listeners():
            _call(one.loop, one.news.set)
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        self._thread = Thread(target=self._poll, name=self._name, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        with closing(self._connection or open_reader(self._folder)) as connection:
            while not self._closing.wait(self._every_s):
                self._wanted.wait()
                # Locked for a moment (a backup, a migration of another process): look again.
                with suppress(apsw.BusyError, apsw.LockedError):
                    found = data_version(connection)
                    if found != self._version:
                        self._committed(connection)
                        self._version = found


def _call(loop: asyncio.AbstractEventLoop, act: Callable[..., None], *arguments: object) -> None:
    # A loop that has closed meanwhile has no page to tell.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act, *arguments)


# The live feed: one poller a process tells every open page which runs changed.
#
# It reads changed runs once for all. A page that falls behind has to load afresh; nobody waits for
# it.

POLL_S: Final = 0.25  # so a page gets at most four messages a second
MOST_PENDING: Final = 200  # changed runs that are sent as rows; more are a fresh page


@dataclass(frozen=True, slots=True)
class LiveBatch:
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


class _Follower(_Listener):
    """Changes that one open page has not been sent yet. Only its event loop touches it."""

    def __init__(self, seq: int) -> None:
        super().__init__()
        self._pending: dict[int, RunItem] = {}
        self._is_behind = False
        self._after = seq
        self._seq = seq

    def catch_up(self, found: _Changes) -> None:
        """Add everything that happened before now; the poller need not send it again."""
        self.add(found)
        self._after = max(self._after, found.seq)

    def add(self, found: _Changes) -> None:
        """Add changes; of a run only its latest state is held, of a flood only that it came.

        The poller may tell what the page has seen: it did not know where this one begins.
        """
        is_flood = found.is_flood and found.seq > self._after
        if is_flood:
            self._seq = max(self._seq, found.seq)
        for run in found.runs:
            if run.change_seq > self._after:
                self._pending.pop(run.id, None)
                self._pending[run.id] = run
                self._seq = max(self._seq, run.change_seq)
        if is_flood or len(self._pending) > MOST_PENDING:
            self._is_behind = True
            self._pending.clear()
        self.news.set()

    def take(self) -> LiveBatch | None:
        """Return everything pending as one batch, None when there is nothing."""
        self.news.clear()
        is_behind, runs = self._is_behind, tuple(self._pending.values())
        self._is_behind = False
        self._pending.clear()
        if is_behind:
            return LiveBatch(self._seq, is_resync=True)
        return LiveBatch(self._seq, runs) if runs else None


class RunFeed:
    """Follows the store on behalf of every open page."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        # Where it starts is settled before anybody can follow: what a follower has not read yet is
        # after it, however late the thread comes to run.
        connection = open_reader(folder)
        version = data_version(connection)
        self._seq = last_change(connection)
        self._poller = _Poller[_Follower](
            "hansard-live",
            folder,
            self._publish,
            every_s=POLL_S,
            connection=connection,
            version=version,
        )

    def close(self) -> None:
        """End every stream and the poller at once: a server waits for its streams to stop."""
        self._poller.close()

    async def follow(self, *, after: int) -> AsyncIterator[LiveBatch]:
        """Yield what changed after that change_seq, first from the store, then as it happens."""
        with self._poller.listening(_Follower(after)) as follower:
            # Subscribed before reading: nothing falls between.
            follower.catch_up(await to_thread.run_sync(self._read_since, after))
            while not self._poller.is_closing:
                if batch := follower.take():
                    yield batch
                else:
                    await follower.news.wait()

    def _read_since(self, seq: int) -> _Changes:
        with closing(open_reader(self._folder)) as connection:
            return _changes(connection, after=seq)

    def _publish(self, connection: apsw.Connection) -> None:
        changes = _changes(connection, after=self._seq)
        self._seq = changes.seq
        for follower in self._poller.listeners():
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


# Waiting until something was committed: one poller a process, for as long as somebody waits.

WATCH_POLL_S: Final = 0.1
# What somebody waits for, read by the poller after a commit. It is the same until that happens.
Look = Callable[[apsw.Connection], object]
_UNSEEN: Final = object()


class _Waiter(_Listener):
    """One request that waits. What it saw belongs to the poller."""

    def __init__(self, watch: StoreWatch, look: Look | None) -> None:
        super().__init__()
        self._watch = watch
        self.look = look
        self._seen: object = _UNSEEN

    def is_concerned(self, connection: apsw.Connection) -> bool:
        """Say whether a commit is news for it; each would be a herd of readers otherwise."""
        if self.look is None:
            return True
        before, self._seen = self._seen, self.look(connection)
        return self._seen != before

    async def changed(self, *, within_s: float) -> bool:
        """Wait for such a commit since the last call; False when time is up or the server ends."""
        if self._watch.is_closing or within_s <= 0:
            return False
        try:
            with fail_after(within_s):
                await self.news.wait()
        except TimeoutError:
            return False
        self.news.clear()
        return not self._watch.is_closing


class StoreWatch:
    """Wakes the waiters when any process committed; it costs nothing while nobody waits."""

    def __init__(self, folder: DataFolder) -> None:
        self._poller = _Poller[_Waiter]("hansard-watch", folder, self._wake, every_s=WATCH_POLL_S)

    @property
    def is_closing(self) -> bool:
        return self._poller.is_closing

    def close(self) -> None:
        """Wake everybody for the last time and end the poller."""
        self._poller.close()

    @property
    def streams(self) -> int:
        """Return how many wait for any commit at all."""
        return sum(one.look is None for one in self._poller.listeners())

    @asynccontextmanager
    async def watching(self, look: Look | None = None) -> AsyncIterator[_Waiter]:
        """Read, then `await changed(...)`, then read again: no commit is missed between.

        With `look` only those count after which it finds something else.
        """
        with self._poller.listening(_Waiter(self, look)) as waiter:
            yield waiter

    def _wake(self, connection: apsw.Connection) -> None:
        for waiter in self._poller.listeners():
            if waiter.is_concerned(connection):
                _call(waiter.loop, waiter.news.set)

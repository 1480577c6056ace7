"""Group commit: which items share the next transaction; requests take turns item by item.

A job is a request from the queue to its response. `Turns` prepares the items of the next
transaction, at most `BATCH_ITEMS`; between two items `Courtesy` lets requests for pages go first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from hansard_collector.pipeline.requests import (
    IngestRequest,
    IngestResult,
    RefusedRequest,
    list_refusal,
    sender_key,
    without_frames,
)
from hansard_collector.pipeline.stages import Batch, BatchMark, Prepared
from hansard_store.ledger import LedgerBatch

BATCH_ITEMS: Final = 512
_PREPARE_S: Final = 0.25  # most time spent preparing one transaction: senders wait
_SLICE_S: Final = 0.1  # the same of a job that is prepared beside, as writing takes as long again
_MOST_COURTESY_S: Final = 0.05  # of stepping aside at once

_log = logging.getLogger("hansard.pipeline")


@dataclass(slots=True)
class Job:
    """A request from the queue to its response, with the count of its items that are written."""

    batch: Batch
    future: Future[IngestResult]
    size_bytes: int  # of the body, which is dropped once it is decoded
    count: Counter[str] = field(default_factory=Counter)

    @property
    def request(self) -> IngestRequest:
        return self.batch.request

    def acknowledge(self) -> None:
        """Answer the sender; all items are committed."""
        count, batch = self.count, self.batch
        accepted = sum(count[one] for one in ("stored", "duplicate", "opened", "deleted"))
        if not self.future.done():
            self.future.set_result(IngestResult(accepted, batch.rejected, batch.rejection()))

    def refuse(self, error: Exception) -> None:
        """Send the sender an error response, unless it got one already."""
        if not self.future.done():
            self.future.set_exception(without_frames(error))

    @property
    def service(self) -> str:
        """The service that most items of the request name."""
        services = self.batch.services
        return services.most_common(1)[0][0][:200] if services else ""

    def count_in(self, ledger: LedgerBatch) -> None:
        """Count the request as a whole, with those of its items that were rejected."""
        request, rejected = self.request, self.batch.rejected
        key = sender_key(request.sender, self.service)
        count = ledger.of(key, request.signal, address=request.sender.address)
        count.update(requests=1, bytes=self.size_bytes, received=rejected, rejected=rejected)
        for reason, items in self.batch.reasons.items():
            list_refusal(ledger, key, self.refused("rejected_item", reason), items=items)

    def refused(self, code: str, message: str) -> RefusedRequest:
        """Return what is to be counted of a request that is refused, or of items of it."""
        request = self.request
        return RefusedRequest(
            signal=request.signal,
            sender=request.sender,
            code=code,
            message=message,
            size_bytes=self.size_bytes,
            received_ns=request.received_ns,
        )


@dataclass(slots=True)
class Tally:
    """The outcome of a job's items in one transaction."""

    job: Job
    outcomes: Counter[str] = field(default_factory=Counter)
    dialect: str = ""

    def count_in(self, ledger: LedgerBatch) -> None:
        """Add to the ledger of the transaction that stores what is counted."""
        request = self.job.request
        key = sender_key(request.sender, self.job.service)
        count = ledger.of(key, request.signal, address=request.sender.address)
        count.update(self.outcomes, received=self.outcomes.total())
        if self.dialect:
            ledger.dialects[key] = self.dialect


@dataclass(frozen=True, slots=True)
class Slice:
    """Items of a job that were prepared beside the pipeline thread."""

    job: Job
    items: Sequence[Prepared]
    is_last: bool

    def chunk(self) -> Chunk:
        """Return what goes into a transaction."""
        chunk: Chunk = [(self.job, item) for item in self.items]
        return [*chunk, (self.job, None)] if self.is_last else chunk


def next_slice(job: Job) -> Slice | None:
    """Prepare the next items of a job, for a short time; None when its sender got a response."""
    batch = job.batch
    items: list[Prepared] = []
    until = time.monotonic() + _SLICE_S
    while not job.future.done():
        item = next(batch.prepared, _END)
        if item is _END:
            return Slice(job, items, is_last=True)
        if item is not None and item is not BatchMark.HEAVY:
            items.append(item)
        if len(items) >= BATCH_ITEMS or time.monotonic() > until:
            return Slice(job, items, is_last=False)
    batch.prepared = iter(())  # which knows the batch: a cycle
    return None


Chunk: TypeAlias = list[tuple[Job, Prepared | None]]  # None: the job's items are all before it


class _Turn:
    """A job whose items are being prepared, and what it took of its share so far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        # Not left with the job: the iterator knows the batch, which would be a cycle.
        self._items, job.batch.prepared = job.batch.prepared, iter(())
        self._held: Prepared | None = None  # prepared while looking for the end of the job
        self.is_heavy = False  # what comes next takes long
        self.items = 0
        self.seconds = 0.0

    def fill(self, chunk: Chunk, *, until: float, courtesy: Courtesy) -> bool:
        """Add items until the chunk is full or its time is over; True when the job's end is in it.

        The end of a job goes with its last item: its sender is answered a commit earlier.
        """
        began = time.monotonic()
        try:
            while not self.job.future.done():  # else it failed half-way: its sender sends it again
                courtesy.give_way()
                item = self._held or next(self._items, _END)
                self._held = None
                if item is _END:
                    break
                if item is BatchMark.HEAVY:
                    self.is_heavy = True
                    return False
                if item is not None and len(chunk) >= BATCH_ITEMS:
                    self._held = item
                    return False
                if item is not None:
                    chunk.append((self.job, item))
                    self.items += 1
                if time.monotonic() > until:
                    return False
        finally:
            self.seconds += time.monotonic() - began
        chunk.append((self.job, None))
        return True

    def hand_over(self) -> Job:
        """Return the job with the items that are not prepared yet, for another thread."""
        self.job.batch.prepared, self._items = self._items, iter(())
        return self.job

    @property
    def has_had_its_share(self) -> bool:
        return self.items >= BATCH_ITEMS or self.seconds >= _PREPARE_S

    def begin_share(self) -> None:
        self.items, self.seconds = 0, 0.0


class Turns:
    """Which items go into the next transaction; used by the pipeline thread alone.

    Requests are worked off in the order in which they came. One that is not done after a
    transaction's worth of items or of time goes behind the others, and from then on gets every
    second transaction while others wait: no request waits for the end of another one.
    So do slices of large requests, each of which has a transaction for itself.
    """

    def __init__(self, *, courtesy: Courtesy) -> None:
        self._courtesy = courtesy
        self._fresh: deque[_Turn] = deque()
        self._long: deque[_Turn] = deque()
        self._long_was_first = False
        self._slices: deque[Slice] = deque()
        self._was_slice = False
        self.heavy: list[Job] = []  # whose next item takes long, to be prepared beside

    @property
    def has_work(self) -> bool:
        """Whether there is a request that is not done."""
        return bool(self._fresh or self._long or self._slices)

    @property
    def fresh_bytes(self) -> int:
        """Of the requests that have not had a transaction yet."""
        return sum(turn.job.size_bytes for turn in self._fresh)

    def add(self, job: Job) -> None:
        """Take a job whose stages have run, behind those that have had no turn yet."""
        self._fresh.append(_Turn(job))

    def add_slice(self, made: Slice) -> None:
        """Take items that were prepared beside, behind those that were taken before."""
        self._slices.append(made)

    def next(self) -> Chunk:
        """Prepare the next items: a number of them, or some time's worth; none at the end."""
        others = bool(self._fresh or self._long)
        self._was_slice = bool(self._slices) and not (others and self._was_slice)
        return self._slices.popleft().chunk() if self._was_slice else self._prepare()

    def _prepare(self) -> Chunk:
        chunk: Chunk = []
        until = time.monotonic() + _PREPARE_S
        self._long_was_first = bool(self._long) and not (self._fresh and self._long_was_first)
        lanes = (self._long, self._fresh) if self._long_was_first else (self._fresh, self._long)
        for lane in lanes:
            turns = len(lane)
            while turns and lane and len(chunk) < BATCH_ITEMS and time.monotonic() <= until:
                turns -= 1
                self._fill(chunk, lane, until=until)
        return chunk

    def abandon(self, error: Exception) -> None:
        """Answer the senders of what is left that it failed."""
        for lane in (self._fresh, self._long):
            while lane:
                lane.popleft().job.refuse(error)
        while self._slices:
            self._slices.popleft().job.refuse(error)

    def _fill(self, chunk: Chunk, lane: deque[_Turn], *, until: float) -> None:
        turn = lane.popleft()
        try:
            is_done = turn.fill(chunk, until=until, courtesy=self._courtesy)
        except Exception as error:  # a stage must not end the thread: the request is refused
            _log.exception("a request's items could not be prepared")
            turn.job.refuse(error)
            return
        if is_done:
            return
        if turn.is_heavy:
            self.heavy.append(turn.hand_over())
            return
        if turn.has_had_its_share:
            turn.begin_share()
            self._long.append(turn)
        else:
            lane.appendleft(turn)


_END: Final[Any] = object()


# People before senders: ingest steps aside while a page is waiting.
#
# One Python process runs one thread of Python at a time. Under full ingest a page that takes 20 ms
# by itself took ten times that, because the pipeline wants the processor as much as the page does,
# and never stops. So between two items it looks whether a person waits, and if so lets them go
# first, for at most half of the time: ingest is slowed while people look, and never stopped.


class Courtesy:
    """Counts who waits; `ask` and `release` from any thread, `give_way` from the pipeline's.

    The condition guards the count.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting = 0
        self._nobody_waits = threading.Condition()
        self._clock = clock
        self._works_until = 0.0

    def ask(self) -> None:
        """A caller waits for a response from now on."""
        with self._nobody_waits:
            self._waiting += 1

    def release(self) -> None:
        """The response is sent; to be called once for every `ask`."""
        with self._nobody_waits:
            self._waiting -= 1
            if not self._waiting:
                self._nobody_waits.notify_all()

    def give_way(self) -> float:
        """Wait while a caller waits, and return for how many seconds.

        Afterwards the pipeline works for as long as it has waited before it gives way again.
        """
        if not self._waiting:
            return 0.0
        began = self._clock()
        if began < self._works_until:
            return 0.0
        with self._nobody_waits:
            self._nobody_waits.wait_for(lambda: not self._waiting, timeout=_MOST_COURTESY_S)
        ended = self._clock()
        self._works_until = ended + (ended - began)
        return ended - began

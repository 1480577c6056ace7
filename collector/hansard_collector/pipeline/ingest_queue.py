"""The ingest pipeline: one thread that decodes and writes, fed by a bounded queue.

    the stages (`stages.py`) -> rows (`writing.py`) -> group commit -> acknowledge

The stages run outside the transaction; `ItemWriter` is the rows.
What queued while the last transaction was written shares the next, at most 512 items or about 100
ms of writing, so that an approval's write never waits long for the lock. A request may span
several transactions and is acknowledged after the last: sent again, its parts are known; other
requests get theirs in between (`group_commit.py`). A second thread commits: a dozen statements
that hold no lock of Python's, under which the next items are decoded and prepared. A third one
looks for secrets in a request, a fourth takes the log into the database file, which hold none
either, and a fifth opens and prepares large requests and those with an item that takes long, one
at a time, while the small ones go on: Python divides the processor between the two, also within an
item.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from hansard_collector.errors import MalformedRequest, RequestTooLarge, StoreBusy
from hansard_collector.payloads import PayloadStage
from hansard_collector.pipeline.group_commit import (
    Chunk,
    Courtesy,
    Job,
    Slice,
    Tally,
    Turns,
    next_slice,
)
from hansard_collector.pipeline.ingest_store import IngestStore
from hansard_collector.pipeline.preparation import Preparer
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import (
    Encoding,
    IngestRequest,
    IngestResult,
    Refusals,
    RefusedRequest,
    RepeatedRequests,
)
from hansard_collector.pipeline.stages import Batch, Thread, Worker, open_batch, run_stages
from hansard_collector.pipeline.validation import USUAL_LIMITS, ItemLimits
from hansard_collector.pipeline.writing import ItemWriter, dialect_of
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreBusyError

_TAKE_BYTES = 4 * 1024 * 1024  # of requests decoded before the next transaction
_QUEUE_BYTES = 64 * 1024 * 1024  # until answered; one of the largest size always fits when alone
_QUEUE_REQUESTS = 10_000
# What takes longer than others should wait: opened beside them. JSON takes ten times as long, and
# so does looking for secrets string by string.
_LARGE_BYTES = {Encoding.PROTOBUF: 4 * 1024 * 1024, Encoding.JSON: 512 * 1024}
_LARGE_UNCLEAN_BYTES = 256 * 1024
_LARGE_CACHE_BYTES = 8 * 1024 * 1024  # of texts that such requests repeat

_log = logging.getLogger("hansard.pipeline")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Work:
    """What one transaction is to hold: items, and refusals that are to be counted."""

    chunk: Chunk
    refusals: Refusals


@dataclass(frozen=True, slots=True)
class QueueState:
    """How full the queue is, for /health."""

    requests: int  # that are not begun
    bytes: int  # of all that are not answered
    max_bytes: int


class Pipeline:
    """Owns the ingest connection; receivers submit, one thread writes.

    The lock guards the queues, the refusals and what they count; they are touched by every receiver
    thread, the pipeline thread and its helpers. All else belongs to the pipeline thread alone.
    """

    def __init__(
        self,
        folder: DataFolder,
        retention: RetentionPolicy,
        *,
        durability: str = "normal",
        limits: ItemLimits = USUAL_LIMITS,
        queue_bytes: int = _QUEUE_BYTES,
        helpers: Executor | None = None,
    ) -> None:
        # One commits while the pipeline thread prepares (only one of them uses the writer at a
        # time), two look for secrets in what is prepared next, one opens a large request, one
        # checkpoints. Who gives helpers of their own has no thread for that.
        self._helpers = helpers or ThreadPoolExecutor(5, thread_name_prefix=Thread.HELPER.value)
        self._store = IngestStore(
            folder, durability=durability, helpers=None if helpers else self._helpers
        )
        # Of the pipeline thread, and of the helper that opens and prepares large requests:
        self._worker = Worker(
            retention,
            Preparer(key=folder.key(), limits=limits),
            PayloadStage(folder, retention.mode),
            self._helpers,
            marks_heavy=True,
        )
        self._large_worker = replace(
            self._worker,
            retention=retention.twin(),
            preparer=Preparer(key=folder.key(), limits=limits, cache_bytes=_LARGE_CACHE_BYTES),
            marks_heavy=False,
        )
        self._max_bytes = queue_bytes
        self._condition = threading.Condition()
        self._queue: deque[Job] = deque()
        self._large: deque[Job] = deque()  # large requests of the queue, which wait for each other
        self._large_one: Job | None = None  # that is worked on, from its opening to its answer
        self._slices: deque[Slice] = deque()  # of it, ready for the pipeline thread
        self._unanswered_bytes = 0
        self._refusals = Refusals()
        self._repeated = RepeatedRequests()
        self._closing = False
        self.courtesy = Courtesy()  # for those who answer people from this process
        # Of the pipeline thread: what is prepared next, refusals that are to be counted, and those
        # that could not be while the store was busy: they are counted with the next requests.
        self._turns = Turns(courtesy=self.courtesy)
        self._uncounted = Refusals()
        self._owed = Refusals()
        self._thread = threading.Thread(
            target=self._write_all, name="hansard-pipeline", daemon=True
        )

    # ---- what receivers call, from any thread

    def start(self) -> None:
        """Begin to write what is submitted."""
        self._thread.start()

    def submit(self, request: IngestRequest) -> Future[IngestResult]:
        """Queue a request; raises StoreBusy when the queue is full or the server is stopping.

        A large one with the same content as one that is worked on, or that was answered too late
        for its sender, is that one.
        """
        size = len(request.body)
        key = self._repeated.key_of(request)
        with self._condition:
            if self._closing:
                raise StoreBusy("the server is stopping; send it again to the next one")
            earlier = self._repeated.find(key) if key else None
            if earlier is not None:
                return earlier
            waiting = len(self._queue) + len(self._large)
            full = self._unanswered_bytes + size > self._max_bytes or waiting > _QUEUE_REQUESTS
            is_large = size > _LARGE_BYTES[request.encoding]
            if full and (waiting or (is_large and self._unanswered_bytes)):
                raise StoreBusy("the ingest queue is full; send it again in a second")
            job = Job(Batch(request, self._worker), Future(), size)
            if key:
                self._repeated.add(key, job.future)
            self._queue.append(job)
            self._unanswered_bytes += size
            self._condition.notify()
        # Of the job only its size: its future would hold it, and be held by it.
        job.future.add_done_callback(partial(self._answered, size))
        return job.future

    def refuse(self, request: RefusedRequest) -> None:
        """Count a request that a receiver refused; it is written with the next transaction."""
        with self._condition:
            self._refusals.add(request)
            self._condition.notify()

    def queue_state(self) -> QueueState:
        """Return how full the queue is."""
        with self._condition:
            waiting = len(self._queue) + len(self._large)
            return QueueState(waiting, self._unanswered_bytes, self._max_bytes)

    def work_off(self) -> None:
        """Write what is queued on the caller's thread: for those who never `start`."""
        self._write_all(wait=False)

    def set_patience(self, wait_ms: int) -> None:
        """Wait this long for other writers, and at the end for readers; 3 s where it is not set."""
        self._store.set_patience(wait_ms)

    def close(self) -> None:
        """Finish what was accepted, checkpoint and close; nothing is accepted any more."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join()
        self._helpers.shutdown()
        self._store.close()

    # ---- the pipeline thread

    def _write_all(self, *, wait: bool = True) -> None:
        work = self._next(wait=wait)
        while work is not None:
            commit = self._begin(work)
            # Prepared while the disk takes the one before.
            following = self._next(wait=False)
            self._settle(commit, work)
            self._store.take_in_log()
            # Nothing of what is written is held while there is nothing to do.
            work = following
            del following, commit
            if work is None:
                work = self._next(wait=wait)

    def _next(self, *, wait: bool) -> _Work | None:
        """Return what the next transaction is to hold; None when there is nothing, or the end."""
        while True:
            try:
                taken = self._admit()
                chunk = self._turns.next()
                self._hand_over()
            except Exception as error:
                # The last border: whatever it was, the thread goes on and senders get a response.
                _log.exception("requests could not be taken apart")
                self._turns.abandon(error)
                continue
            if chunk or self._uncounted:
                return self._work(chunk)
            if self._turns.has_work:
                continue
            if not taken and not (wait and self._wait_for_news()):
                return None

    def _admit(self) -> bool:
        """Open what is queued, up to some megabytes; False when there was nothing."""
        if self._turns.fresh_bytes >= _TAKE_BYTES:
            return True
        jobs = self._take_jobs()
        self._begin_large()
        with self._condition:
            slices, self._slices = self._slices, deque()
            refusals, self._refusals = self._refusals, Refusals()
        self._uncounted.merge(refusals)
        opened = [job for job in jobs if self._open(job)]
        for job in opened:  # secrets were looked for in all of them meanwhile
            if self._is_slow(job):
                self._set_aside(job)
            elif self._attempt(job, run_stages):
                self._turns.add(job)
        for made in slices:
            self._turns.add_slice(made)
            if not made.is_last:
                self._helpers.submit(self._prepare_slice, made.job)
        return bool(jobs or slices or refusals)

    def _hand_over(self) -> None:
        """Have the requests whose next item takes long prepared beside the others."""
        heavy, self._turns.heavy = self._turns.heavy, []
        for job in heavy:
            self._set_aside(job)

    def _work(self, chunk: Chunk) -> _Work:
        work = _Work(chunk, self._uncounted)
        work.refusals.merge(self._owed)
        self._uncounted, self._owed = Refusals(), Refusals()
        return work

    def _wait_for_news(self) -> bool:
        """Wait until there is something to do; False when there is nothing, ever again."""
        with self._condition:
            while not self._has_news():
                if self._closing and self._large_one is None:
                    return False
                self._condition.wait()
            return True

    def _has_news(self) -> bool:
        """Return whether there is something to do; under the lock."""
        can_begin_large = self._large and self._large_one is None
        return bool(self._queue or self._refusals or self._slices or can_begin_large)

    def _take_jobs(self) -> list[Job]:
        """Return what is queued, up to some megabytes, but for large requests."""
        jobs: list[Job] = []
        taken_bytes = 0
        with self._condition:
            while self._queue and (taken_bytes < _TAKE_BYTES or not jobs):
                job = self._queue.popleft()
                if job.size_bytes > _LARGE_BYTES[job.request.encoding]:
                    self._large.append(job)
                    continue
                taken_bytes += job.size_bytes
                jobs.append(job)
        return jobs

    def _begin_large(self) -> None:
        """Have the next large request opened beside the others, when the one before is done."""
        with self._condition:
            if self._large_one is not None or not self._large:
                return
            job = self._large_one = self._large.popleft()
        self._helpers.submit(self._open_large, job)

    def _open_large(self, job: Job) -> None:
        """Run the stages of a request, and prepare its first items, on a helper's thread.

        Of one that was handed over by the pipeline thread some or all of them have run.
        """
        job.batch.worker = self._large_worker
        is_open = job.batch.stages_run > 0 or self._open(job)
        if is_open and self._attempt(job, run_stages) is not None:
            self._prepare_slice(job)
        else:
            self._answered(0, job.future)

    def _prepare_slice(self, job: Job) -> None:
        """Prepare the next items of the large request, on a helper's thread."""
        made = self._attempt(job, lambda _: next_slice(job))
        if made is None:
            self._answered(0, job.future)
            return
        with self._condition:
            self._slices.append(made)
            self._condition.notify()

    def _set_aside(self, job: Job) -> None:
        with self._condition:
            self._large.append(job)
        self._begin_large()

    def _answered(self, size_bytes: int, future: Future[IngestResult]) -> None:
        """Count a request no more, on whichever thread its future was set."""
        with self._condition:
            self._unanswered_bytes -= size_bytes
            if self._large_one is not None and self._large_one.future is future:
                self._large_one = None
            self._condition.notify()

    def _is_slow(self, job: Job) -> bool:
        return job.size_bytes > _LARGE_UNCLEAN_BYTES and not job.batch.is_clean.result()

    def _open(self, job: Job) -> bool:
        """Run the first stages of a job; False when that cannot be done.

        Not for one whose sender stopped waiting: it will send it again.
        """
        is_pending = job.future.set_running_or_notify_cancel()
        return is_pending and self._attempt(job, open_batch) is not None

    def _attempt(self, job: Job, run: Callable[[Batch], _T]) -> _T | None:
        """Run stages; None when they fail, with an immediate response to the sender."""
        try:
            return run(job.batch)
        except (MalformedRequest, RequestTooLarge) as error:
            code, message = error.code, str(error)
            job.refuse(error)
        except Exception as error:  # a stage must not end the thread: the request is refused
            _log.exception("a request could not be taken apart")
            code, message = MalformedRequest.code, f"internal error ({type(error).__name__})"
            job.refuse(error)
        self.refuse(job.refused(code, message))
        return None

    def _begin(self, work: _Work) -> Future[None] | Exception:
        """Write a transaction's rows, and have it committed by the other thread."""
        try:
            tallies = self._write_rows(work.chunk, work.refusals)
        except Exception as error:
            return error
        return self._helpers.submit(self._commit, work.chunk, tallies)

    def _settle(self, commit: Future[None] | Exception, work: _Work) -> None:
        """Wait for a commit; on failure answer every sender, and count it."""
        # Never raised again here: this frame, which holds the commit, would be held by the error.
        error = commit if isinstance(commit, Exception) else commit.exception()
        if error is None:
            return
        if isinstance(error, StoreBusyError):
            self._put_off(work, error)
            return
        _log.error("a batch could not be written; its items are tried one by one", exc_info=error)
        try:
            self._write_singly(work)
        except Exception as failed:
            self._put_off(work, failed)

    def _put_off(self, work: _Work, error: Exception) -> None:
        """Have senders retry; refusals are counted with the next requests."""
        _log.warning("%s", error)
        busy = StoreBusy("the store cannot be written now; send it again in a second")
        for job, _ in work.chunk:
            job.refuse(busy)
        self._owed.merge(work.refusals)

    def _write_rows(self, chunk: Chunk, refusals: Refusals) -> list[Tally]:
        """Write a chunk's rows into a transaction that waits for its commit."""
        tallies: dict[int, Tally] = {}
        writer = self._store.writer()
        with writer.rows(now_ns=time.time_ns()) as batch:
            items = ItemWriter(writer, batch, self._worker.preparer)
            items.expect(item for _, item in chunk)
            for job, item in chunk:
                self.courtesy.give_way()
                if item is None:
                    job.count_in(batch.ledger)
                    continue
                tally = tallies.setdefault(id(job), Tally(job))
                tally.outcomes[items.write(item)] += 1
                tally.dialect = dialect_of(item) or tally.dialect
            items.join_logs()
            items.derive_stale()
            for tally in tallies.values():
                tally.count_in(batch.ledger)
            refusals.write(batch.ledger)
        return list(tallies.values())

    def _commit(self, chunk: Chunk, tallies: Sequence[Tally]) -> None:
        """End the transaction, and acknowledge the jobs that end in it."""
        self._store.commit()
        for tally in tallies:
            tally.job.count.update(tally.outcomes)
        for job, item in chunk:
            if item is None:
                job.acknowledge()

    def _write_singly(self, work: _Work) -> None:
        """Write items one by one, so that one that cannot be written costs only itself."""
        self._commit([], self._write_rows([], work.refusals))
        work.refusals = Refusals()
        for job, item in work.chunk:
            one: Chunk = [(job, item)]
            try:
                self._commit(one, self._write_rows(one, Refusals()))
            except StoreBusyError:
                raise
            except Exception as error:
                _log.error("an item could not be written and is refused: %s", error)
                if item is None:
                    job.refuse(error)
                else:
                    job.batch.reasons[f"internal error ({type(error).__name__})"] += 1
